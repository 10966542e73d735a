#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "arrange.hpp"
#include "arrays.hpp"
#include "cholesky.hpp"
#include "make_state.hpp"
#include "preferences.hpp"
#include "simd.hpp"
#include "validate.hpp"

using namespace dualsvm;

namespace {

constexpr Index kMost = std::numeric_limits<std::int32_t>::max();  // more numbers need wide indices

Kind kind_of(const std::string& name) {
    if (name == "single") return Kind::single;
    if (name == "pairs") return Kind::pairs;
    if (name == "two_sided") return Kind::two_sided;
    if (name == "multiclass") return Kind::multiclass;
    if (name == "group") return Kind::group;
    if (name == "lists") return Kind::lists;
    throw std::invalid_argument("unknown kind of problem: " + name);
}

template <class T, class I>
std::unique_ptr<State> sparse_state(const nb::tuple& parts, double bias, const Spec& spec) {
    const auto start = as_is<I>(parts[2]);
    const T* x = as_is<T>(parts[0]).data();
    const I* column = as_is<I>(parts[1]).data();
    const Index n = Index(start.size()) - 1, d = nb::cast<Index>(parts[3]);
    return make_state(Csr<T, I>{x, column, start.data(), start.data() + 1, n, d, bias}, spec);
}

template <class T>
std::unique_ptr<State> sparse_state(const nb::tuple& parts, double bias, const Spec& spec) {
    const bool wide_index = nb::cast<nb::ndarray<nb::ro>>(parts[1]).dtype() == nb::dtype<std::int64_t>();
    return wide_index ? sparse_state<T, std::int64_t>(parts, bias, spec)
                      : sparse_state<T, std::int32_t>(parts, bias, spec);
}

template <class T>
std::unique_ptr<State> dense_state(nb::handle rows, double bias, const Spec& spec) {
    const auto x = as_is<T, 2>(rows);
    return make_state(Dense<T>{x.data(), Index(x.shape(0)), Index(x.shape(1)), bias}, spec);
}

/// A state, and the arrays that it reads. What the arrays hold has been checked by the caller (problem.py).
struct Held {
    nb::object rows;
    nb::dict spec;
    std::unique_ptr<State> state;

    Held(nb::object rows_, nb::dict spec_, const Held* beside = nullptr)
        : rows(std::move(rows_)), spec(std::move(spec_)) {
        const auto examples = length(spec, "cost"), classes = length(spec, "class_loss");
        const auto n_weights = nb::cast<std::int64_t>(spec["n_weights"]);
        expect(examples < (std::int64_t(1) << 32), "a state holds fewer than 2**32 examples");
        Spec s{};
        s.kind = kind_of(nb::cast<std::string>(spec["kind"]));
        s.squared = nb::cast<bool>(spec["squared"]);
        s.single_precision = nb::cast<bool>(spec["single_precision"]);
        s.seed = nb::cast<std::uint64_t>(spec["seed"]);
        s.shape = {pointer<double>(spec, "mean", n_weights), pointer<double>(spec, "variance", n_weights),
                   pointer<double>(spec, "lower", n_weights), pointer<double>(spec, "upper", n_weights)};
        s.n_examples = examples;
        s.cost = pointer<double>(spec, "cost", examples);
        s.margins = pointer<double>(spec, "margins", s.kind == Kind::group ? -1 : examples);
        s.sign = pointer<signed char>(spec, "sign", examples);
        s.pair = pointer<Index, 2>(spec, "pairs", 2 * examples);
        s.epsilon = spec.contains("epsilon") ? nb::cast<double>(spec["epsilon"]) : 0.0;
        s.margin = spec.contains("margin") ? nb::cast<double>(spec["margin"]) : 1.0;
        s.rescaled = spec.contains("rescaled") && nb::cast<bool>(spec["rescaled"]);
        s.label = pointer<std::int32_t>(spec, "label", examples);
        s.class_loss = pointer<double, 2>(spec, "class_loss", classes * classes);
        s.n_classes = classes;
        s.start = pointer<Index>(spec, "start", examples + 1);
        s.member = pointer<Index>(spec, "member", s.kind == Kind::group ? length(spec, "margins") : -1);
        s.grade = pointer<std::int32_t>(spec, "grade", length(spec, "member"));
        s.weight = pointer<double>(spec, "weight", length(spec, "member"));

        if (beside) {
            s.moving = beside->state->moving();
            expect(beside->state->n_weights() == n_weights, "states of one problem have the same weights");
        }
        const auto bias = nb::cast<double>(spec["bias"]);
        const bool sparse = nb::isinstance<nb::tuple>(rows);
        const auto parts = sparse ? nb::cast<nb::tuple>(rows) : nb::tuple();
        const auto values = nb::cast<nb::ndarray<nb::ro>>(sparse ? nb::object(parts[0]) : rows);
        if (values.dtype() == nb::dtype<float>())
            state = sparse ? sparse_state<float>(parts, bias, s) : dense_state<float>(rows, bias, s);
        else
            state = sparse ? sparse_state<double>(parts, bias, s) : dense_state<double>(rows, bias, s);
        expect(state->n_weights() == n_weights, "n_weights differs from what the rows ask for");
    }
};

using Passes = std::vector<std::tuple<std::int64_t, std::int64_t, double, double, double>>;

std::pair<Passes, bool> run(const std::vector<State*>& states, std::int64_t max_passes, std::int64_t max_visits,
                            double goal, int threads, bool alone) {
    Course course;
    {
        nb::gil_scoped_release release;
        course = optimize(states, max_passes, max_visits, goal, threads, alone);
    }
    Passes out;
    for (const Pass& p : course.passes) out.emplace_back(p.visited, p.awake, p.lower, p.estimate, p.seconds);
    return {out, course.reached};
}

std::vector<State*> together(const std::vector<Held*>& many) {
    std::vector<State*> states;
    for (Held* held : many) {
        states.push_back(held->state.get());
        expect(held->state->moving() == many[0]->state->moving(), "states that share nothing");
    }
    return states;
}

template <class T>
void bind_all_finite(nb::module_& m) {
    m.def(
        "all_finite",
        [](const Array<T>& x, int threads) {
            nb::gil_scoped_release release;
            return all_finite(x.data(), Index(x.size()), threads);
        },
        nb::arg("x"), nb::arg("threads") = 1);
}

template <class I>
void bind_check_csr(nb::module_& m) {
    m.def(
        "check_csr",
        [](const Array<I>& start, const Array<I>& column, std::int64_t n_columns, int threads) {
            nb::gil_scoped_release release;
            return int(check_csr(start.data(), start.size(), column.data(), column.size(), n_columns, threads));
        },
        nb::arg("start"), nb::arg("column"), nb::arg("n_columns"), nb::arg("threads") = 1);
}

template <class T, class I>
void bind_common_first(nb::module_& m) {
    m.def("common_first", [](const Array<I>& start, const Array<I>& column, const Array<T>& x, std::size_t n_columns,
                             std::size_t n_parts) {
        expect(start.size() > 0 && x.size() == column.size() && n_parts > 0, "lengths differ, or no part");
        Arranged<T, I> rows;
        {
            nb::gil_scoped_release release;
            rows = common_first(start.data(), start.size() - 1, column.data(), x.data(), n_columns, n_parts);
        }
        return std::tuple(array_of(std::move(rows.order)), array_of(std::move(rows.column)),
                          array_of(std::move(rows.x)));
    });
}

/// What f() makes, for sparse matrices to be built from.
template <class F>
nb::object filled_tuple(const F& f) {
    std::invoke_result_t<F> out;
    {
        nb::gil_scoped_release release;
        out = f();
    }
    return nb::make_tuple(array_of(std::move(out.x)), array_of(std::move(out.column)),
                          array_of(std::move(out.start)));
}

template <class T>
void bind_without_zeros(nb::module_& m) {
    m.def("without_zeros", [](const Array<T, 2>& x) {
        const Dense<T> rows{x.data(), Index(x.shape(0)), Index(x.shape(1)), 0.0};
        Index n_filled = 0;
        {
            nb::gil_scoped_release release;
            n_filled = count_filled(rows.x, rows.n * rows.d);
        }
        return n_filled > kMost ? filled_tuple([&] { return without_zeros<T, std::int64_t>(rows, n_filled); })
                                : filled_tuple([&] { return without_zeros<T, std::int32_t>(rows, n_filled); });
    });
}

nb::object turned_tuple(const Array<double, 2>& x) {
    const auto n = Index(x.shape(0)), k = Index(x.shape(1));
    return n * k > kMost ? filled_tuple([&] { return turned<std::int64_t>(x.data(), n, k); })
                         : filled_tuple([&] { return turned<std::int32_t>(x.data(), n, k); });
}

auto as_tuple(const Rounded& found) {
    const auto& [bounds, loss, gap, curve] = found;
    return std::tuple(bounds.lower, bounds.upper, bounds.distance, loss, gap, curve);
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The compiled kernel of dualsvm. Not part of the public interface.";
    m.def("wide", &wide, "Whether the loops with wide instructions are in use.");
    bind_all_finite<float>(m);
    bind_all_finite<double>(m);
    bind_check_csr<std::int32_t>(m);
    bind_check_csr<std::int64_t>(m);
    bind_without_zeros<float>(m);
    bind_without_zeros<double>(m);
    m.def("turned", &turned_tuple);
    bind_common_first<float, std::int32_t>(m);
    bind_common_first<double, std::int32_t>(m);
    bind_common_first<float, std::int64_t>(m);
    bind_common_first<double, std::int64_t>(m);

    m.def("swapped", [](const Array<double>& scores, const Array<std::int32_t>& grade, const Array<Index>& start,
                        double margin) {
        expect(scores.size() == grade.size() && start.size() > 0, "lengths differ");
        std::vector<double> sums;
        {
            nb::gil_scoped_release release;
            sums = swapped(scores.data(), grade.data(), start.data(), Index(start.size()) - 1, margin);
        }
        return sums;
    });

    m.def("solve_symmetric", [](Matrix a, Vector b) {
        expect(a.shape(0) == b.size() && a.shape(1) == b.size(), "a system of another shape");
        nb::gil_scoped_release release;
        return solve_symmetric(a.data(), b.size(), b.data());
    });

    nb::class_<Held>(m, "State")
        .def(nb::init<nb::object, nb::dict>())
        .def(nb::init<nb::object, nb::dict, const Held*>())
        .def("explore", [](Held& self) { self.state->explore(); })
        .def("optimize",
             [](Held& self, std::int64_t max_passes, std::int64_t max_visits, double goal, int threads) {
                 return run({self.state.get()}, max_passes, max_visits, goal, threads, true);
             })
        .def("certify",
             [](Held& self, int threads) {
                 nb::gil_scoped_release release;
                 Crew crew(threads);
                 const Bounds bounds = self.state->certify(crew);
                 return std::tuple(bounds.lower, bounds.upper, bounds.distance);
             })
        .def_prop_ro("smooth", [](const Held& self) { return self.state->smooth(); })
        .def("answer",
             [](Held& self, double width, std::int64_t stride, int threads) {
                 expect(self.state->smooth(), "the primal is not smooth");
                 expect(width > 0, "no width");
                 nb::gil_scoped_release release;
                 Crew crew(threads);
                 return as_tuple(self.state->answer(width, stride, crew));
             })
        .def("refine",
             [](Held& self, double width, int threads) {
                 expect(self.state->smooth(), "the primal is not smooth");
                 expect(width > 0, "no width");
                 nb::gil_scoped_release release;
                 Crew crew(threads);
                 return as_tuple(self.state->refine(width, crew));
             })
        .def("own",
             [](const Held& self, Vector w) {
                 expect(std::int64_t(w.size()) == self.state->n_weights(), "weights of another length");
                 self.state->own(w.data());
             })
        .def("curve",
             [](Held& self, Matrix hessian, int threads) {
                 const auto d = self.state->n_weights();
                 expect(self.state->smooth(), "the primal is not smooth");
                 expect(std::int64_t(hessian.shape(0)) == d && std::int64_t(hessian.shape(1)) == d,
                        "a Hessian of another shape");
                 nb::gil_scoped_release release;
                 Crew crew(threads);
                 return self.state->curve(hessian.data(), crew);
             })
        .def("draw",
             [](Held& self, const Array<double>& centre, double kappa) {
                 expect(std::int64_t(centre.size()) == self.state->n_weights(), "a centre of another length");
                 self.state->draw(centre.data(), kappa);
             })
        .def("lean",
             [](Held& self, const Array<double>& mean, double sigma) {
                 expect(std::int64_t(mean.size()) == self.state->n_weights(), "a mean of another length");
                 expect(sigma > 0, "no variance");
                 self.state->lean(mean.data(), sigma);
             })
        .def_prop_ro("n_weights", [](const Held& self) { return self.state->n_weights(); })
        .def_prop_ro("n_alpha", [](const Held& self) { return self.state->n_alpha(); })
        .def(
            "get_weights",
            [](const Held& self, std::optional<Array<Index>> order) {
                const Index n = self.state->n_weights(), lines = order ? Index(order->size()) : 1;
                expect(lines == 0 ? n == 0 : n % lines == 0, "an order of another length");
                Raw<double> w(static_cast<std::size_t>(n));
                self.state->get_weights(w.data(), order ? order->data() : nullptr, lines);
                return array_of(std::move(w));
            },
            nb::arg("order") = nb::none())
        .def("get_alpha",
             [](const Held& self, Vector alpha) {
                 expect(std::int64_t(alpha.size()) == self.state->n_alpha(), "alpha of another length");
                 self.state->get_alpha(alpha.data());
             })
        .def("nothing", [](const Held& self) { return self.state->nothing(); })
        .def("set_alpha",
             [](Held& self, const Array<double>& alpha, int threads) {
                 expect(std::int64_t(alpha.size()) == self.state->n_alpha(), "alpha of another length");
                 nb::gil_scoped_release release;
                 Crew crew(threads);
                 return self.state->set_alpha(alpha.data(), crew);
             })
        .def("set_weights",
             [](Held& self, const Array<double>& w) {
                 expect(std::int64_t(w.size()) == self.state->n_weights(), "weights of another length");
                 self.state->set_weights(w.data());
             })
        .def("resume",
             [](Held& self, const Array<double>& alpha) {
                 expect(std::int64_t(alpha.size()) == self.state->n_alpha(), "alpha of another length");
                 self.state->resume(alpha.data());
             })
        .def("survey",
             [](Held& self, const Array<double>& w, Vector rest, int threads) {
                 expect(std::int64_t(w.size()) == self.state->n_weights(), "weights of another length");
                 expect(rest.size() == 0 || std::int64_t(rest.size()) == length(self.spec, "cost"),
                        "rest of another length");
                 nb::gil_scoped_release release;
                 Crew crew(threads);
                 const Tally tally = self.state->survey(w.data(), rest.size() ? rest.data() : nullptr, crew);
                 return std::pair(tally.loss, tally.gap);
             })
        .def("deposit",
             [](const Held& self, const Array<bool>& which, Vector u) {
                 expect(std::int64_t(u.size()) == self.state->n_weights(), "weights of another length");
                 expect(which.size() == 0 || std::int64_t(which.size()) == length(self.spec, "cost"),
                        "a mask of another length");
                 nb::gil_scoped_release release;
                 return self.state->deposit(which.size() ? which.data() : nullptr, u.data());
             })
        .def("inspect",
             [](Held& self, const Array<double>& w, Vector u, int threads) {
                 expect(std::int64_t(w.size()) == self.state->n_weights() && w.size() == u.size(),
                        "weights of another length");
                 nb::gil_scoped_release release;
                 Crew crew(threads);
                 const Tally tally = self.state->inspect(w.data(), u.data(), crew);
                 return std::pair(tally.loss, tally.linear);
             })
        .def("rebuild",
             [](Held& self, const Array<double>& u, double linear, double upper) {
                 expect(std::int64_t(u.size()) == self.state->n_weights(), "weights of another length");
                 Moving& moving = *self.state->moving();
                 moving.rebuild(Large<double>(u.data(), u.data() + u.size()), linear);
                 moving.scale = upper;
                 return moving.dual();
             })
        .def("counted",
             [](const Held& self, Vector u) {  // the inverse of rebuild
                 expect(std::int64_t(u.size()) == self.state->n_weights(), "weights of another length");
                 const Moving& moving = *self.state->moving();
                 moving.prior.unscaled(moving.v, moving.sigma, u.data());
                 return moving.linear;
             })
        .def("restart", [](Held& self) { self.state->moving()->restart(); })
        .def("distance", [](const Held& self, const Array<double>& w) {
            expect(std::int64_t(w.size()) == self.state->n_weights(), "weights of another length");
            return self.state->moving()->prior.distance(Large<double>(w.data(), w.data() + w.size()));
        });

    m.def("optimize",
          [](const std::vector<Held*>& many, std::int64_t max_passes, std::int64_t max_visits, double goal,
             int threads) { return run(together(many), max_passes, max_visits, goal, threads, false); });
    m.def("meet", [](const std::vector<Held*>& many, std::int64_t passes, double bar, Flags counted, Vector come,
                     Vector gone, Vector rank) {
        expect(!many.empty(), "nobody to meet");
        const std::vector<State*> states = together(many);
        const auto width = std::size_t(states[0]->n_weights());
        const auto n = std::size_t(length(many[0]->spec, "cost"));
        expect(come.size() == width && gone.size() == width, "weights of another length");
        expect(rank.size() == n && counted.size() == n, "ranks of another length");
        Meeting meeting{bar, counted.data(), come.data(), gone.data(), rank.data()};
        std::tuple<std::int64_t, std::int64_t, double> found{};
        {
            nb::gil_scoped_release release;
            std::fill(rank.data(), rank.data() + n, kInfinity);
            auto& [visited, awake, estimate] = found;
            for (const Pass& pass : meet(states, passes, meeting)) {
                visited += pass.visited;
                awake += pass.awake;
                estimate = pass.estimate;
            }
        }
        return std::tuple_cat(found, std::tuple(meeting.linear));
    });

    m.def("trim", [] {  // gives memory that is free back to the system, where the C library does not by itself
        Spare::clear();
#ifdef __GLIBC__
        malloc_trim(0);
#endif
    });

    bind_structured(m);
    bind_text(m);
}
