#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "simd.hpp"

// Symmetric systems of a few hundred or thousand unknowns. What a BLAS library answers depends, in the last digits,
// on its threads and on where arrays lie in memory; this does not.

namespace dualsvm {

constexpr std::size_t kRows = 4;  // rows that are worked on at once, so that those above are read less often

/// From the lower triangle of A (d x d) makes L with L L' = A in its place; returns whether A is positive definite.
__attribute__((always_inline)) inline bool factor_loop(double* a, std::size_t d) {
    for (std::size_t first = 0; first < d; first += kRows) {
        const std::size_t n = std::min(kRows, d - first);
        double* rows[kRows];
        for (std::size_t t = 0; t < kRows; ++t) rows[t] = a + (first + std::min(t, n - 1)) * d;
        for (std::size_t j = 0; j < first + n; ++j) {
            const double* above = a + j * d;
            Lane lanes[kRows] = {};
            std::size_t k = 0;
            for (; k + kLane <= j; k += kLane) {
                const Lane x = load(above + k);
                for (std::size_t t = 0; t < kRows; ++t) lanes[t] += x * load(rows[t] + k);
            }
            for (std::size_t t = j > first ? j - first : 0; t < n; ++t) {
                double sum = dualsvm::sum(lanes[t]);
                for (std::size_t e = k; e < j; ++e) sum += above[e] * rows[t][e];
                const double left = rows[t][j] - sum;
                if (first + t == j) {
                    if (!(left > 0)) return false;
                    rows[t][j] = std::sqrt(left);
                } else {
                    rows[t][j] = left / above[j];
                }
            }
        }
    }
    return true;
}

DUALSVM_WIDE inline bool factor_wide(double* a, std::size_t d) { return factor_loop(a, d); }

/// Solves A x = b in the place of b, given the lower triangle of A, which becomes its factor; returns false, and
/// leaves b alone, where A is not positive definite.
inline bool solve_symmetric(double* a, std::size_t d, double* b) {
    if (!(wide() ? factor_wide(a, d) : factor_loop(a, d))) return false;
    for (std::size_t i = 0; i < d; ++i) {
        const double* row = a + i * d;
        for (std::size_t k = 0; k < i; ++k) b[i] -= row[k] * b[k];
        b[i] /= row[i];
    }
    for (std::size_t i = d; i-- > 0;) {
        const double* row = a + i * d;
        b[i] /= row[i];
        for (std::size_t k = 0; k < i; ++k) b[k] -= row[k] * b[i];
    }
    return true;
}

}  // namespace dualsvm
