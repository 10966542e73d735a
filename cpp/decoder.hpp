#pragma once

#include <memory>

#include "arrays.hpp"
#include "search.hpp"
#include "validate.hpp"

// Decoders as Python holds them.

namespace dualsvm {

/// A decoder, and the arrays that it reads.
struct HeldDecoder {
    nb::object rows;
    nb::dict spec;
    std::unique_ptr<Decoder> decoder;

    /// The weights, with entries to spare.
    std::vector<double> weights(const Array<double>& w) const {
        expect(Index(w.size()) == decoder->n_weights(), "weights of another length");
        expect(all_finite(w.data(), Index(w.size())), "weights that are not finite, or beyond 1e150");
        std::vector<double> room(w.size() + kLane);
        std::copy_n(w.data(), w.size(), room.data());
        return room;
    }
    void check(Index i) const { expect(i >= 0 && i < decoder->size(), "no such example"); }
};

/// Calls `make` with the rows in the form that they have: dense, or (values, columns, starts, width).
template <class Make>
std::unique_ptr<Decoder> with_rows(const nb::object& rows, const Make& make) {
    const bool sparse = nb::isinstance<nb::tuple>(rows);
    const auto parts = sparse ? nb::cast<nb::tuple>(rows) : nb::tuple();
    const auto values = nb::cast<nb::ndarray<nb::ro>>(sparse ? nb::object(parts[0]) : rows);
    const auto typed = [&]<class T>(T) {
        if (!sparse) {
            const auto x = as_is<T, 2>(rows);
            return make(Dense<T>{x.data(), Index(x.shape(0)), Index(x.shape(1)), 0.0});
        }
        const auto x = as_is<T>(parts[0]);
        const auto column = as_is<std::int32_t>(parts[1]), start = as_is<std::int32_t>(parts[2]);
        const auto width = nb::cast<Index>(parts[3]);
        const auto found = check_csr(start.data(), start.size(), column.data(), column.size(), width);
        expect(found == CsrCheck::canonical && x.size() == column.size(), "rows that are no sparse matrix");
        return make(Csr<T, std::int32_t>{x.data(), column.data(), start.data(), start.data() + 1,
                                         Index(start.size()) - 1, width, 0.0});
    };
    return values.dtype() == nb::dtype<float>() ? typed(float()) : typed(double());
}

/// A decoder of rows in any form, as `make(rows, spec)` makes it.
template <class Make>
HeldDecoder hold(nb::object rows, nb::dict spec, const Make& make) {
    auto decoder = with_rows(rows, [&](const auto& view) { return make(view, spec); });
    return {std::move(rows), std::move(spec), std::move(decoder)};
}

HeldDecoder hold_graphs(nb::object rows, nb::dict spec);

}  // namespace dualsvm
