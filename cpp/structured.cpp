#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "chain.hpp"
#include "decoder.hpp"
#include "working.hpp"

namespace dualsvm {
namespace {

Shape shape_of(const nb::dict& spec) {
    const auto n = nb::cast<std::int64_t>(spec["n_weights"]);
    return {pointer<double>(spec, "mean", n), pointer<double>(spec, "variance", n), pointer<double>(spec, "lower", n),
            pointer<double>(spec, "upper", n)};
}

/// Constraints as Python has them, checked against what the kernel will do with them.
Constraints constraints_of(const Working& working, const Array<Index>& example, const Array<Index>& start,
                           const Array<std::int32_t>& column, const Array<double>& x, const Array<double>& l) {
    const auto n = Index(l.size());
    expect(Index(example.size()) == n && Index(start.size()) == n + 1 && column.size() == x.size() &&
               start.data()[0] == 0 && start.data()[n] == Index(x.size()),
           "constraints of other lengths");
    for (Index r = 0; r < n; ++r) {
        expect(start.data()[r] <= start.data()[r + 1], "constraints that do not follow one another");
        expect(example.data()[r] >= 0 && example.data()[r] < working.size(), "a constraint of no example");
    }
    for (std::size_t k = 0; k < column.size(); ++k)
        expect(column.data()[k] >= 0 && column.data()[k] < working.n_weights(), "a constraint on no weight");
    return {example.data(), start.data(), column.data(), x.data(), l.data(), n};
}

void check_examples(const Working& working, const Array<Index>& which) {
    for (std::size_t k = 0; k < which.size(); ++k)
        expect(which.data()[k] >= 0 && which.data()[k] < working.size(), "no such example");
}

template <class Rows>
std::unique_ptr<Decoder> chains(const Rows& rows, const nb::dict& spec) {
    const auto n = length(spec, "start") - 1, L = length(spec, "cost");
    const auto* start = given<Index>(spec, "start", n + 1);
    const auto* label = given<std::int32_t>(spec, "label", rows.size());
    expect(n >= 0 && start[0] == 0 && start[n] == rows.size(), "sequences of other lengths");
    for (Index i = 0; i < n; ++i) expect(start[i] <= start[i + 1], "sequences that do not follow one another");
    for (Index t = 0; t < rows.size(); ++t) expect(label[t] >= -1 && label[t] < L, "a label of no class");
    return std::make_unique<Chains<Rows>>(rows, start, n, label, given<double, 2>(spec, "cost", L * L), L,
                                          nb::cast<bool>(spec["normalized"]), nb::cast<bool>(spec["start_end"]));
}

/// Constraints found for examples, as compressed rows: starts, columns, entries, margins, values and bounds.
nb::tuple search(const HeldDecoder& self, const Array<Index>& which, const Array<double>& w, int threads) {
    const auto n = Index(which.size());
    for (Index k = 0; k < n; ++k) self.check(which.data()[k]);
    std::vector<Finding> found(which.size());
    std::vector<Index> start{0};
    std::vector<std::int32_t> column;
    std::vector<double> x, l, value, bound;
    {
        nb::gil_scoped_release release;
        const std::vector<double> room = self.weights(w);
        in_threads(n, threads, [&](Index k) { found[k] = self.decoder->find(which.data()[k], room.data()); });
        std::size_t total = 0;
        for (const Finding& one : found) total += one.x.size();
        column.reserve(total);
        x.reserve(total);
        for (const Finding& one : found) {
            for (const Entry& entry : one.x) {
                column.push_back(entry.column);
                x.push_back(entry.x);
            }
            start.push_back(Index(x.size()));
            l.push_back(one.l);
            value.push_back(one.value);
            bound.push_back(one.bound);
        }
    }
    return nb::make_tuple(array_of(std::move(start)), array_of(std::move(column)), array_of(std::move(x)),
                          array_of(std::move(l)), array_of(std::move(value)), array_of(std::move(bound)));
}

/// The best labels of examples, one behind the other.
nb::object decode(const HeldDecoder& self, const Array<Index>& which, const Array<double>& w, bool augmented,
                  int threads) {
    const auto n = Index(which.size());
    std::vector<Index> start{0};
    for (Index k = 0; k < n; ++k) {
        self.check(which.data()[k]);
        start.push_back(start.back() + self.decoder->length(which.data()[k]));
    }
    std::vector<std::int32_t> labels(std::size_t(start.back()));
    {
        nb::gil_scoped_release release;
        const std::vector<double> room = self.weights(w);
        in_threads(n, threads, [&](Index k) {
            self.decoder->decode(which.data()[k], room.data(), augmented, labels.data() + start[k]);
        });
    }
    return nb::cast(array_of(std::move(labels)));
}

const std::int32_t* labels_of(const HeldDecoder& self, Index i, const Array<std::int32_t>& labels) {
    self.check(i);
    expect(Index(labels.size()) == self.decoder->length(i), "an output of another length");
    return labels.data();
}

}  // namespace

void bind_structured(nb::module_& m) {
    using Columns = Array<std::int32_t>;
    nb::class_<Working>(m, "Working")
        .def("__init__",
             [](Working* self, const nb::dict& spec, std::int64_t patience, std::uint64_t seed) {
                 new (self) Working(shape_of(spec), nb::cast<Index>(spec["n_weights"]), patience, seed);
             })
        .def("grow",
             [](Working& self, const nb::dict& spec) {
                 const auto n = nb::cast<Index>(spec["n_weights"]);
                 expect(n >= self.n_weights(), "weights cannot be taken away");
                 self.grow(shape_of(spec), n);
             })
        .def("admit",
             [](Working& self, const Array<double>& cost) {
                 expect(self.size() + Index(cost.size()) < (Index(1) << 32),
                        "a state holds fewer than 2**32 examples");
                 self.admit(cost.data(), Index(cost.size()));
             })
        .def("insert",
             [](Working& self, const Array<Index>& example, const Array<Index>& start, const Columns& column,
                const Array<double>& x, const Array<double>& l) {
                 const Constraints found = constraints_of(self, example, start, column, x, l);
                 nb::gil_scoped_release release;
                 double gain = 0;
                 const Index added = self.insert(found, gain);
                 return std::tuple(added, gain);
             })
        .def("put",
             [](Working& self, const Array<Index>& example, const Array<Index>& start, const Columns& column,
                const Array<double>& x, const Array<double>& l, const Array<double>& alpha) {
                 const Constraints given = constraints_of(self, example, start, column, x, l);
                 expect(alpha.size() == l.size(), "alpha of another length");
                 nb::gil_scoped_release release;
                 self.put(given, alpha.data());
             })
        .def("forget",
             [](Working& self, const Array<Index>& which) {
                 check_examples(self, which);
                 self.forget(which.data(), Index(which.size()));
             })
        .def("move",
             [](Working& self, const Array<Index>& example, const Array<Index>& start, const Columns& column,
                const Array<double>& x, const Array<double>& l, bool scaled) {
                 const Constraints by = constraints_of(self, example, start, column, x, l);
                 nb::gil_scoped_release release;
                 self.move(by, scaled);
             })
        .def("optimize",
             [](Working& self, double gap, std::int64_t passes, bool priced, double gain, double work) {
                 nb::gil_scoped_release release;
                 const CachePasses done = self.optimize({gap, passes, priced, gain, work});
                 return std::tuple(done.visited, done.gain, done.gap, done.work);
             })
        .def("pledged",
             [](Working& self, const Array<Index>& which) {
                 check_examples(self, which);
                 std::vector<double> out(which.size());
                 {
                     nb::gil_scoped_release release;
                     self.pledged(which.data(), Index(which.size()), out.data());
                 }
                 return array_of(std::move(out));
             })
        .def("cached_gaps",
             [](const Working& self) {
                 std::vector<double> out(std::size_t(self.size()));
                 self.cached_gaps(out.data());
                 return array_of(std::move(out));
             })
        .def("rebuild",
             [](Working& self) {
                 nb::gil_scoped_release release;
                 return self.rebuild();
             })
        .def("deposit",
             [](Working& self) {
                 Large<double> u(std::size_t(self.n_weights()));
                 double linear = 0;
                 {
                     nb::gil_scoped_release release;
                     linear = self.deposit(u);
                 }
                 return nb::make_tuple(array_of(std::move(u)), linear);
             })
        .def("scale",
             [](Working& self, double factor) {
                 expect(factor > 0, "a factor that is not positive");
                 self.scale(factor);
             })
        .def("look",
             [](Working& self) {
                 nb::gil_scoped_release release;
                 return self.look();
             })
        .def("shrink",
             [](Working& self, std::int64_t limit) {
                 nb::gil_scoped_release release;
                 self.shrink(limit);
             })
        .def("weights", [](const Working& self) { return array_of(Large<double>(self.weights())); })
        .def("content",
             [](const Working& self) {
                 Working::Content all = self.content();
                 return nb::make_tuple(array_of(std::move(all.example)), array_of(std::move(all.start)),
                                       array_of(std::move(all.column)), array_of(std::move(all.x)),
                                       array_of(std::move(all.l)), array_of(std::move(all.alpha)));
             })
        .def_prop_ro("held", [](const Working& self) { return self.held(); })
        .def_prop_ro("bytes", [](const Working& self) { return self.bytes(); })
        .def_prop_ro("n_examples", [](const Working& self) { return self.size(); })
        .def_prop_ro("n_weights", [](const Working& self) { return self.n_weights(); });

    nb::class_<HeldDecoder>(m, "Decoder")
        .def_prop_ro("n_weights", [](const HeldDecoder& self) { return self.decoder->n_weights(); })
        .def("search", &search)
        .def("decode", &decode)
        .def("best",
             [](const HeldDecoder& self, std::int64_t i, const Array<double>& w, std::int64_t k) {
                 self.check(i);
                 expect(k > 0, "k must be positive");
                 std::vector<std::int32_t> labels;
                 auto scores = self.decoder->best(i, self.weights(w).data(), k, labels);
                 return nb::make_tuple(array_of(std::move(labels)), array_of(std::move(scores)));
             })
        .def("loss",
             [](const HeldDecoder& self, std::int64_t i, const Array<std::int32_t>& labels) {
                 return self.decoder->loss(i, labels_of(self, i, labels));
             })
        .def("joint", [](const HeldDecoder& self, std::int64_t i, const Array<std::int32_t>& labels) {
            std::vector<Entry> entries;
            self.decoder->joint(i, labels_of(self, i, labels), 1.0, entries);
            settle(entries);
            std::vector<std::int32_t> column;
            std::vector<double> x;
            for (const Entry& entry : entries) {
                column.push_back(entry.column);
                x.push_back(entry.x);
            }
            return nb::make_tuple(array_of(std::move(column)), array_of(std::move(x)));
        });

    m.def("graphs", &hold_graphs);
    m.def("chains", [](nb::object rows, nb::dict spec) {
        return hold(std::move(rows), std::move(spec),
                    [](const auto& view, const nb::dict& spec) { return chains(view, spec); });
    });
}

}  // namespace dualsvm
