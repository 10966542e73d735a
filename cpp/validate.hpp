#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "simd.hpp"
#include "threads.hpp"

namespace dualsvm {

constexpr std::int64_t kChecked = 4096;           // numbers that are checked together,
constexpr std::int64_t kClaimed = kChecked << 4;  // and that a thread checks at once

/// Whether every number is finite, and small enough to be squared and summed.
template <class T>
inline bool all_finite_loop(const T* x, std::int64_t n) {
    constexpr T limit = sizeof(T) == sizeof(float) ? std::numeric_limits<T>::max() : T(1e150);
    for (std::int64_t from = 0; from < n; from += kChecked) {
        const std::int64_t to = std::min(from + kChecked, n);
        int bad = 0;
#pragma omp simd reduction(+ : bad)
        for (std::int64_t k = from; k < to; ++k) bad += !(std::abs(x[k]) <= limit);
        if (bad) return false;
    }
    return true;
}

template <class T>
DUALSVM_WIDE bool all_finite_wide(const T* x, std::int64_t n) {
    return all_finite_loop(x, n);
}

template <class T>
bool all_finite(const T* x, std::int64_t n, int threads = 1) {
    std::atomic<bool> good{true};
    in_threads((n + kClaimed - 1) / kClaimed, threads, [&](std::int64_t k) {
        const std::int64_t from = k * kClaimed, some = std::min(kClaimed, n - from);
        if (good && !(wide() ? all_finite_wide(x + from, some) : all_finite_loop(x + from, some))) good = false;
    });
    return good;
}

enum class CsrCheck : int { canonical = 0, not_canonical = 1, broken = 2 };

/// The same of some rows, whose starts are those of rows.
template <class I>
inline CsrCheck check_rows_loop(const I* start, std::int64_t from, std::int64_t to, const I* column, I last) {
    const std::int64_t first = start[from], end = start[to];
    if (first < end && (column[first] < 0 || column[first] > last)) return CsrCheck::broken;
    std::int64_t falls = 0;
    for (std::int64_t p = first + 1; p < end; p += kChecked) {
        const std::int64_t next = std::min(p + kChecked, end);
        int outside = 0, fall = 0;
#pragma omp simd reduction(+ : outside, fall)
        for (std::int64_t q = p; q < next; ++q) {
            outside += (column[q] < 0) | (column[q] > last);
            fall += column[q] <= column[q - 1];
        }
        if (outside) return CsrCheck::broken;
        falls += fall;
    }
    for (std::int64_t i = from + 1; i < to; ++i) {  // from one row to the next they may fall
        const std::int64_t p = start[i];
        falls -= p > first && p < start[i + 1] && column[p] <= column[p - 1];
    }
    return falls == 0 ? CsrCheck::canonical : CsrCheck::not_canonical;
}

template <class I>
DUALSVM_WIDE CsrCheck check_rows_wide(const I* start, std::int64_t from, std::int64_t to, const I* column, I last) {
    return check_rows_loop(start, from, to, column, last);
}

/// Whether the row starts and the columns describe a matrix (else broken), and whether the columns of every row
/// increase (else not canonical).
template <class I>
CsrCheck check_csr(const I* start, std::size_t n_starts, const I* column, std::size_t n_columns_stored,
                   std::int64_t n_columns, int threads = 1) {
    if (n_starts == 0 || start[0] != 0) return CsrCheck::broken;
    for (std::size_t i = 1; i < n_starts; ++i)
        if (start[i] < start[i - 1]) return CsrCheck::broken;
    const std::int64_t n = std::int64_t(n_starts) - 1, numbers = std::int64_t(start[n]);
    if (std::size_t(numbers) > n_columns_stored) return CsrCheck::broken;
    const I last = I(std::min<std::int64_t>(n_columns - 1, std::numeric_limits<I>::max()));
    const std::int64_t some = std::max<std::int64_t>(1, n / std::max<std::int64_t>(1, numbers / kClaimed));
    std::atomic<int> worst{0};
    in_threads((n + some - 1) / some, threads, [&](std::int64_t k) {
        const std::int64_t from = k * some, to = std::min(from + some, n);
        const int found = int((wide() ? check_rows_wide<I> : check_rows_loop<I>)(start, from, to, column, last));
        for (int known = worst; known < found && !worst.compare_exchange_weak(known, found);) {
        }
    });
    return CsrCheck(worst.load());
}

}  // namespace dualsvm
