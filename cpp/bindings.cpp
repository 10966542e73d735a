#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <tuple>

#include "make_state.hpp"
#include "simd.hpp"
#include "validate.hpp"

namespace nb = nanobind;
using namespace dualsvm;

namespace {

template <class T, int N = 1>
using Array = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N = 1>
using MaybeArray = std::optional<Array<T, N>>;

template <class A>
auto pointer(const std::optional<A>& array) {
    return array ? array->data() : nullptr;
}

void expect(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

/// A state and the arrays that it reads.
struct Held {
    std::unique_ptr<State> state;
    std::vector<nb::object> arrays;
};

Kind kind_of(const std::string& name) {
    if (name == "single") return Kind::single;
    if (name == "pairs") return Kind::pairs;
    if (name == "two_sided") return Kind::two_sided;
    if (name == "multiclass") return Kind::multiclass;
    if (name == "group") return Kind::group;
    throw std::invalid_argument("unknown kind of problem: " + name);
}

template <class T, class I>
std::unique_ptr<State> sparse_state(const nb::tuple& parts, double bias, const Spec& spec) {
    const auto x = nb::cast<Array<T>>(parts[0]);
    const auto column = nb::cast<Array<I>>(parts[1]);
    const auto start = nb::cast<Array<I>>(parts[2]);
    const auto d = nb::cast<Index>(parts[3]);
    return make_state(Csr<T, I>{x.data(), column.data(), start.data(), Index(start.size()) - 1, d, bias}, spec);
}

template <class T>
std::unique_ptr<State> dense_state(const nb::handle& rows, double bias, const Spec& spec) {
    const auto x = nb::cast<Array<T, 2>>(rows);
    return make_state(Dense<T>{x.data(), Index(x.shape(0)), Index(x.shape(1)), bias}, spec);
}

/// The caller (problem.py) has checked every array; here only what would make the kernel read astray.
Held hold(nb::object rows, const std::string& kind, Array<double> cost, Array<double> margins, bool squared,
          double bias, MaybeArray<signed char> sign, MaybeArray<Index, 2> pairs, double epsilon,
          MaybeArray<std::int32_t> label, MaybeArray<double, 2> class_loss, MaybeArray<Index> start,
          MaybeArray<Index> member, MaybeArray<double> mean, MaybeArray<double> variance, MaybeArray<double> lower,
          MaybeArray<double> upper, std::uint64_t seed) {
    expect(cost.size() < (std::size_t(1) << 32), "more than 2**32 examples in one state");
    const Spec spec{kind_of(kind),
                    squared,
                    {pointer(mean), pointer(variance), pointer(lower), pointer(upper)},
                    seed,
                    cost.data(),
                    margins.data(),
                    pointer(sign),
                    pointer(pairs),
                    Index(cost.size()),
                    epsilon,
                    pointer(label),
                    pointer(class_loss),
                    class_loss ? Index(class_loss->shape(0)) : 0,
                    pointer(start),
                    pointer(member)};
    Held held;
    if (nb::isinstance<nb::tuple>(rows)) {
        const auto parts = nb::cast<nb::tuple>(rows);
        const auto values = nb::cast<nb::ndarray<>>(parts[0]);
        const bool wide_index = nb::cast<nb::ndarray<>>(parts[1]).dtype() == nb::dtype<std::int64_t>();
        if (values.dtype() == nb::dtype<float>())
            held.state = wide_index ? sparse_state<float, std::int64_t>(parts, bias, spec)
                                    : sparse_state<float, std::int32_t>(parts, bias, spec);
        else
            held.state = wide_index ? sparse_state<double, std::int64_t>(parts, bias, spec)
                                    : sparse_state<double, std::int32_t>(parts, bias, spec);
    } else if (nb::cast<nb::ndarray<>>(rows).dtype() == nb::dtype<float>()) {
        held.state = dense_state<float>(rows, bias, spec);
    } else {
        held.state = dense_state<double>(rows, bias, spec);
    }
    const auto n = std::size_t(held.state->n_weights());
    for (const auto* array : {&mean, &variance, &lower, &upper})
        expect(!*array || (*array)->size() == n, "prior or bounds of another length than the weights");
    held.arrays.push_back(std::move(rows));
    const auto keep = [&](const auto& array) {
        if (array) held.arrays.push_back(nb::cast(*array));
    };
    held.arrays.push_back(nb::cast(cost));
    held.arrays.push_back(nb::cast(margins));
    keep(sign);
    keep(pairs);
    keep(label);
    keep(class_loss);
    keep(start);
    keep(member);
    return held;
}

using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void fill(Vector& to, std::int64_t n, const char* what) { expect(std::int64_t(to.size()) == n, what); }

template <class T>
void bind_validation(nb::module_& m) {
    m.def("all_finite", [](const Array<T>& x) {
        nb::gil_scoped_release release;
        return all_finite(x.data(), x.size());
    });
}

template <class I>
void bind_csr_check(nb::module_& m) {
    m.def("check_csr", [](const Array<I>& start, const Array<I>& column, std::int64_t n_columns) {
        nb::gil_scoped_release release;
        return int(check_csr(start.data(), start.size(), column.data(), column.size(), n_columns));
    });
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The compiled kernel of dualsvm. Not part of the public interface.";
    m.def("wide", &wide, "Whether the loops with wide instructions are in use.");
    bind_validation<float>(m);
    bind_validation<double>(m);
    bind_csr_check<std::int32_t>(m);
    bind_csr_check<std::int64_t>(m);

    using Release = nb::call_guard<nb::gil_scoped_release>;
    nb::class_<Held>(m, "State")
        .def(
            "__init__",
            [](Held* self, nb::object rows, const std::string& kind, Array<double> cost, Array<double> margins,
               bool squared, double bias, MaybeArray<signed char> sign, MaybeArray<Index, 2> pairs, double epsilon,
               MaybeArray<std::int32_t> label, MaybeArray<double, 2> class_loss, MaybeArray<Index> start,
               MaybeArray<Index> member, MaybeArray<double> mean, MaybeArray<double> variance,
               MaybeArray<double> lower, MaybeArray<double> upper, std::uint64_t seed) {
                new (self) Held(hold(std::move(rows), kind, cost, margins, squared, bias, sign, pairs, epsilon, label,
                                     class_loss, start, member, mean, variance, lower, upper, seed));
            },
            nb::arg("rows"), nb::kw_only(), nb::arg("kind"), nb::arg("cost"), nb::arg("margins"), nb::arg("squared"),
            nb::arg("bias") = 0.0, nb::arg("sign") = nb::none(), nb::arg("pairs") = nb::none(),
            nb::arg("epsilon") = 0.0, nb::arg("label") = nb::none(), nb::arg("class_loss") = nb::none(),
            nb::arg("start") = nb::none(), nb::arg("member") = nb::none(), nb::arg("mean") = nb::none(),
            nb::arg("variance") = nb::none(), nb::arg("lower") = nb::none(), nb::arg("upper") = nb::none(),
            nb::arg("seed") = 0)
        .def(
            "explore", [](Held& self) { self.state->explore(); }, Release())
        .def(
            "optimize",
            [](Held& self, std::int64_t max_passes, std::int64_t max_visits, double goal, int threads) {
                std::vector<Pass> passes;
                {
                    nb::gil_scoped_release release;
                    passes = self.state->optimize(max_passes, max_visits, goal, threads);
                }
                std::vector<std::tuple<std::int64_t, std::int64_t, double, double, double>> out;
                for (const Pass& p : passes) out.emplace_back(p.visited, p.awake, p.lower, p.gap, p.seconds);
                return out;
            },
            nb::arg("max_passes"), nb::arg("max_visits"), nb::arg("goal"), nb::arg("threads"))
        .def(
            "certify",
            [](Held& self, int threads) {
                const Bounds bounds = self.state->certify(threads);
                return std::pair(bounds.lower, bounds.upper);
            },
            nb::arg("threads"), Release())
        .def_prop_ro("n_weights", [](const Held& self) { return self.state->n_weights(); })
        .def_prop_ro("n_alpha", [](const Held& self) { return self.state->n_alpha(); })
        .def("get_weights",
             [](const Held& self, Vector w) {
                 fill(w, self.state->n_weights(), "weights of another length");
                 self.state->get_weights(w.data());
             })
        .def("get_alpha",
             [](const Held& self, Vector alpha) {
                 fill(alpha, self.state->n_alpha(), "alpha of another length");
                 self.state->get_alpha(alpha.data());
             })
        .def(
            "set_alpha",
            [](Held& self, const Array<double>& alpha, int threads) {
                expect(std::int64_t(alpha.size()) == self.state->n_alpha(), "alpha of another length");
                nb::gil_scoped_release release;
                self.state->set_alpha(alpha.data(), threads);
            },
            nb::arg("alpha"), nb::arg("threads") = 1);
}
