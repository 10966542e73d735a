#pragma once

#include <algorithm>

#include "rows.hpp"

namespace dualsvm {

/// s = sum_f x_f w_f for Q lanes of the `width` weights that every feature has, side by side.
template <int Q, class Entries>
__attribute__((always_inline)) inline void emit(const Entries& entries, const double* w, Index width, double* s) {
    Lane sum[Q] = {};
    for (Index k = 0; k < entries.n; ++k) {
        const double x = double(entries.x[k]);
        const double* row = w + Index(entries.column[k]) * width;
        for (int q = 0; q < Q; ++q) sum[q] += x * load(row + q * kLane);
    }
    for (int q = 0; q < Q; ++q) store(s + q * kLane, sum[q]);
}

/// s_a = sum_f x_f w_fa for all a below `width`. The last lane may reach into the next row of w: what s has behind
/// its last entry means nothing.
template <class Entries>
__attribute__((always_inline)) inline void emit(const Entries& entries, const double* w, Index width, double* s) {
    const Index lanes = (width + kLane - 1) / kLane;
    for (Index q = 0; q < lanes; q += 4) {
        switch (std::min<Index>(4, lanes - q)) {
            case 4:
                emit<4>(entries, w + q * kLane, width, s + q * kLane);
                break;
            case 3:
                emit<3>(entries, w + q * kLane, width, s + q * kLane);
                break;
            case 2:
                emit<2>(entries, w + q * kLane, width, s + q * kLane);
                break;
            default:
                emit<1>(entries, w + q * kLane, width, s + q * kLane);
        }
    }
}

}  // namespace dualsvm
