#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "simd.hpp"

namespace dualsvm {

constexpr std::int64_t kChecked = 4096;  // numbers that are checked together

/// Whether every number is finite, and small enough to be squared and summed.
template <class T>
inline bool all_finite_loop(const T* x, std::size_t n) {
    constexpr T limit = sizeof(T) == sizeof(float) ? std::numeric_limits<T>::max() : T(1e150);
    for (std::size_t from = 0; from < n; from += std::size_t(kChecked)) {
        const std::size_t to = std::min(from + std::size_t(kChecked), n);
        int bad = 0;
#pragma omp simd reduction(+ : bad)
        for (std::size_t k = from; k < to; ++k) bad += !(std::abs(x[k]) <= limit);
        if (bad) return false;
    }
    return true;
}

template <class T>
DUALSVM_WIDE bool all_finite_wide(const T* x, std::size_t n) {
    return all_finite_loop(x, n);
}

template <class T>
bool all_finite(const T* x, std::size_t n) {
    return wide() ? all_finite_wide(x, n) : all_finite_loop(x, n);
}

enum class CsrCheck : int { canonical = 0, not_canonical = 1, broken = 2 };

/// Whether the row starts and the columns describe a matrix (else broken), and whether the columns of every row
/// increase (else not canonical).
template <class I>
inline CsrCheck check_csr_loop(const I* start, std::size_t n_starts, const I* column, std::size_t n_columns_stored,
                               std::int64_t n_columns) {
    if (n_starts == 0 || start[0] != 0) return CsrCheck::broken;
    for (std::size_t i = 1; i < n_starts; ++i)
        if (start[i] < start[i - 1]) return CsrCheck::broken;
    if (std::size_t(start[n_starts - 1]) > n_columns_stored) return CsrCheck::broken;
    const I last = I(std::min<std::int64_t>(n_columns - 1, std::numeric_limits<I>::max()));
    const std::int64_t n = std::int64_t(start[n_starts - 1]);
    if (n > 0 && (column[0] < 0 || column[0] > last)) return CsrCheck::broken;
    std::int64_t falls = 0;
    for (std::int64_t from = 1; from < n; from += kChecked) {
        const std::int64_t to = std::min(from + kChecked, n);
        int outside = 0, fall = 0;
#pragma omp simd reduction(+ : outside, fall)
        for (std::int64_t p = from; p < to; ++p) {
            outside += (column[p] < 0) | (column[p] > last);
            fall += column[p] <= column[p - 1];
        }
        if (outside) return CsrCheck::broken;
        falls += fall;
    }
    for (std::size_t i = 1; i + 1 < n_starts; ++i) {  // from one row to the next they may fall
        const I p = start[i];
        falls -= p > 0 && p < start[i + 1] && column[p] <= column[p - 1];
    }
    return falls == 0 ? CsrCheck::canonical : CsrCheck::not_canonical;
}

template <class I>
DUALSVM_WIDE CsrCheck check_csr_wide(const I* start, std::size_t n_starts, const I* column,
                                     std::size_t n_columns_stored, std::int64_t n_columns) {
    return check_csr_loop(start, n_starts, column, n_columns_stored, n_columns);
}

template <class I>
CsrCheck check_csr(const I* start, std::size_t n_starts, const I* column, std::size_t n_columns_stored,
                   std::int64_t n_columns) {
    return (wide() ? check_csr_wide<I> : check_csr_loop<I>)(start, n_starts, column, n_columns_stored, n_columns);
}

}  // namespace dualsvm
