#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "large.hpp"
#include "rows.hpp"
#include "threads.hpp"

// Copies of numbers in another order: of rows, such as are read faster than the rows themselves, and of what is
// reported.

namespace dualsvm {

/// Dense rows as sparse ones, without their zeros: with several classes, who visits a row has to look for what is not
/// zero in any case, and here does so once.
template <class T, class I>
struct Filled {
    std::vector<I> start;
    Raw<I> column;
    Raw<T> x;
};

template <class T, class I>
Filled<T, I> without_zeros(const Dense<T>& rows, Index n_filled) {
    Filled<T, I> out{std::vector<I>(std::size_t(rows.n) + 1), {}, {}};
    out.column.resize(std::size_t(n_filled));
    out.x.resize(std::size_t(n_filled));
    auto room = rows.room();
    I at = 0;
    for (Index i = 0; i < rows.n; ++i) {
        const auto row = rows.entries(i, room);
        std::copy_n(row.column, row.n, out.column.data() + at);
        std::copy_n(row.x, row.n, out.x.data() + at);
        out.start[std::size_t(i) + 1] = at += I(row.n);
    }
    return out;
}

template <class T>
Index count_filled(const T* x, Index n) {
    Index filled = 0;
#pragma omp simd reduction(+ : filled)
    for (Index k = 0; k < n; ++k) filled += x[k] != 0;
    return filled;
}

/// The columns of an n x k matrix as sparse rows, without zeros.
template <class I>
Filled<double, I> turned(const double* x, Index n, Index k) {
    Filled<double, I> out{std::vector<I>(std::size_t(k) + 1), {}, {}};
    I* const count = out.start.data() + 1;
    if (k == 1)
        count[0] = I(count_filled(x, n));
    else
        for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < k; ++j) count[j] += x[i * k + j] != 0;
    for (std::size_t j = 1; j < out.start.size(); ++j) out.start[j] += out.start[j - 1];
    out.column.resize(std::size_t(out.start.back()));
    out.x.resize(out.column.size());
    if (k == 1) {
        for (Index i = 0, at = 0; at < Index(count[0]); ++i) {  // without a branch that nobody could foretell
            out.column[std::size_t(at)] = I(i);
            out.x[std::size_t(at)] = x[i];
            at += x[i] != 0;
        }
        return out;
    }
    std::vector<I> next(out.start.begin(), out.start.end() - 1);
    for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < k; ++j)
            if (const double value = x[i * k + j]; value != 0) {
                const auto at = std::size_t(next[std::size_t(j)]++);
                out.column[at] = I(i);
                out.x[at] = value;
            }
    return out;
}

/// Sparse rows whose columns are renumbered so that those that many rows have come first, in the numbers and in every
/// row: those in at least 2^k rows before those in fewer, and else as they were. The weights that are in the cache
/// then lie together, and those that are not are waited for together. With several parts, for as many threads, the
/// columns are first dealt out to them, each kind in turn, and follow part by part.
template <class T, class I>
struct Arranged {
    std::vector<I> order;  // the columns, by their new numbers
    Raw<I> column;
    Raw<T> x;
};

template <class T, class I>
Arranged<T, I> common_first(const I* start, std::size_t n_rows, const I* column, const T* x, std::size_t n_columns,
                            std::size_t n_parts) {
    constexpr std::size_t kinds = 33;  // by the binary digits of the number of rows, most first
    const auto sum_up = [](std::vector<std::size_t>& ends) {
        for (std::size_t k = 1; k < ends.size(); ++k) ends[k] += ends[k - 1];
    };
    const auto n = std::size_t(start[n_rows]);
    std::vector<std::vector<std::uint32_t>> counts(n_parts, std::vector<std::uint32_t>(n_columns));
    in_threads(std::int64_t(n_parts), int(n_parts), [&](std::int64_t piece) {
        const auto k = std::size_t(piece);
        for (std::size_t p = n * k / n_parts; p < n * (k + 1) / n_parts; ++p) ++counts[k][std::size_t(column[p])];
    });
    auto& count = counts[0];
    for (std::size_t k = 1; k < n_parts; ++k)
        std::transform(count.begin(), count.end(), counts[k].begin(), count.begin(), std::plus<>());

    Arranged<T, I> out{std::vector<I>(n_columns), Raw<I>(n), Raw<T>(n)};
    struct Place {
        I number;
        std::uint32_t heap;  // all heaps of one part come before those of the next
    };
    std::vector<Place> places(n_columns);
    std::vector<std::size_t> next(kinds * n_parts + 1), dealt(kinds);
    for (std::size_t k = 0; k < n_columns; ++k) {
        const auto kind = std::size_t(32 - std::bit_width(count[k]));
        places[k].heap = std::uint32_t(dealt[kind]++ % n_parts * kinds + kind);
        ++next[places[k].heap + 1u];
    }
    sum_up(next);
    for (std::size_t k = 0; k < n_columns; ++k) {
        places[k].number = I(next[places[k].heap]++);
        out.order[std::size_t(places[k].number)] = I(k);
    }
    const std::size_t pieces = 4 * n_parts;
    in_threads(std::int64_t(pieces), int(n_parts), [&](std::int64_t piece) {
        std::vector<std::size_t> next(kinds * n_parts + 1);
        const std::size_t first = n_rows * std::size_t(piece) / pieces,
                          end = n_rows * std::size_t(piece + 1) / pieces;
        for (std::size_t i = first; i < end; ++i) {
            const auto from = std::size_t(start[i]), to = std::size_t(start[i + 1]);
            std::fill(next.begin(), next.end(), 0);
            next[0] = from;
            for (std::size_t p = from; p < to; ++p) ++next[places[std::size_t(column[p])].heap + 1u];
            sum_up(next);
            for (std::size_t p = from; p < to; ++p) {
                const Place& place = places[std::size_t(column[p])];
                const std::size_t at = next[place.heap]++;
                out.column[at] = place.number;
                out.x[at] = x[p];
            }
        }
    });
    return out;
}

}  // namespace dualsvm
