#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "large.hpp"
#include "rows.hpp"

// Copies of rows that are read faster than the rows themselves.

namespace dualsvm {

/// Dense rows as sparse ones, without their zeros: with several classes, who visits a row has to look for what is not
/// zero in any case, and here does so once.
template <class T, class I>
struct Filled {
    std::vector<I> start;
    Large<I> column;
    Large<T> x;
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

/// Sparse rows whose columns are renumbered so that those that many rows have come first, in the numbers and in every
/// row: those in at least 2^k rows before those in fewer, and else as they were. The weights that are in the cache
/// then lie together, and those that are not are waited for together.
template <class T, class I>
struct Arranged {
    std::vector<I> order;  // the columns, by their new numbers
    std::vector<I> column;
    std::vector<T> x;
};

template <class T, class I>
Arranged<T, I> common_first(const I* start, std::size_t n_rows, const I* column, const T* x, std::size_t n_columns) {
    constexpr std::size_t kinds = 33;  // by the binary digits of the number of rows, most first
    using Ends = std::array<std::size_t, kinds + 1>;
    const auto sum_up = [](Ends& ends) {
        for (std::size_t k = 1; k <= kinds; ++k) ends[k] += ends[k - 1];
    };
    const auto n = std::size_t(start[n_rows]);
    std::vector<std::uint32_t> count(n_columns);
    for (std::size_t p = 0; p < n; ++p) ++count[std::size_t(column[p])];

    Arranged<T, I> out{std::vector<I>(n_columns), std::vector<I>(n), std::vector<T>(n)};
    struct Place {
        I number;
        std::uint8_t kind;
    };
    std::vector<Place> places(n_columns);
    Ends next{};
    for (std::size_t k = 0; k < n_columns; ++k) {
        places[k].kind = std::uint8_t(32 - std::bit_width(count[k]));
        ++next[places[k].kind + 1u];
    }
    sum_up(next);
    for (std::size_t k = 0; k < n_columns; ++k) {
        places[k].number = I(next[places[k].kind]++);
        out.order[std::size_t(places[k].number)] = I(k);
    }
    for (std::size_t i = 0; i < n_rows; ++i) {
        const auto from = std::size_t(start[i]), to = std::size_t(start[i + 1]);
        next = {from};
        for (std::size_t p = from; p < to; ++p) ++next[places[std::size_t(column[p])].kind + 1u];
        sum_up(next);
        for (std::size_t p = from; p < to; ++p) {
            const Place& place = places[std::size_t(column[p])];
            const std::size_t at = next[place.kind]++;
            out.column[at] = place.number;
            out.x[at] = x[p];
        }
    }
    return out;
}

}  // namespace dualsvm
