#pragma once

#include <array>
#include <type_traits>

#include "light.hpp"
#include "rows.hpp"
#include "simd.hpp"

// Weights of several classes, which lie as features x classes, the classes of a feature side by side and padded to
// whole vectors: the scores of all classes, and an update of all classes, are each one run over the row.

namespace dualsvm {

/// Numbers of all features and classes, where `LightWeights` has them.
template <class T>
struct ClassTable {
    T* at;
    Index stride;
    T* beside = nullptr;
    Index rest = 0;
};
inline ClassTable<const float> class_table(const LightWeights& w) { return {w.at, w.stride, w.beside, w.rest}; }

/// f(k, x_k) for every feature of a row, the constant one included.
template <class Some, class F>
void each_entry(const Some& rows, const typename Some::Row& row, F&& f) {
    const auto [x, column, n] = row;  // which no store in f can be taken to change
    for (Index p = 0; p < n; ++p) f(Index(column[p]), double(x[p]));
    if (rows.bias != 0) f(rows.d, rows.bias);
}

/// f(j, N) for N vectors of classes at a time, from class j on: so few that all of them stay in registers.
template <class F>
void in_lanes(Index stride, Index lane, F&& f, Index j = 0) {
    for (; j + 6 * lane <= stride; j += 6 * lane) f(j, std::integral_constant<int, 6>());
    switch ((stride - j) / lane) {
        case 5:
            return f(j, std::integral_constant<int, 5>());
        case 4:
            return f(j, std::integral_constant<int, 4>());
        case 3:
            return f(j, std::integral_constant<int, 3>());
        case 2:
            return f(j, std::integral_constant<int, 2>());
        case 1:
            return f(j, std::integral_constant<int, 1>());
    }
}

/// The same for a table in numbers T: where some classes lie beside, f(0, N, R) first, with R times four of them.
template <class T, class S, class F>
void in_parts(const ClassTable<T>& table, F&& f) {
    constexpr std::integral_constant<int, Light::kWhole / kTile<S>> whole;
    if (table.rest == 4) f(0, whole, std::integral_constant<int, 1>());
    if (table.rest == 8) f(0, whole, std::integral_constant<int, 2>());
    const auto rest = [&](Index j, auto n) { f(j, n, std::integral_constant<int, 0>()); };
    in_lanes(table.stride, kTile<S>, rest, table.rest > 0 ? Light::kWhole : 0);
}

/// sums += value times some numbers of a table
template <class S, class T, class Vector>
void add_times(const T* at, Vector& sums, S value) {
    if constexpr (std::is_same_v<S, T>)
        sums += value * vector<Vector>(at);
    else
        sums += value * load(at);
}

inline constexpr auto same = [](double value) { return value; };

/// out_j = sum_k f(x_k) table[k, j], added up in numbers as `out` has them. Every other entry goes to sums of its
/// own, so that additions overlap.
template <class Some, class T, class S, class F = decltype(same)>
void score_classes(const Some& rows, const typename Some::Row& row, const ClassTable<const T>& table, S* out,
                   F f = same) {
    in_parts<const T, S>(
        table, [&]<int N, int R>(Index from, std::integral_constant<int, N>, std::integral_constant<int, R>) {
            struct Sums {
                typename TileOf<S>::type broad[N] = {};
                std::array<typename FourOf<S>::type, R> few = {};
            } even, odd;
            const auto add = [t = table, from, f](Sums& sums, Index k, double x) {
                const S value = S(f(x));
                const T *at = t.at + from + k * t.stride, *beside = t.beside + k * t.rest;
                for (int j = 0; j < N; ++j) add_times<S>(at + j * kTile<S>, sums.broad[j], value);
                for (int j = 0; j < R; ++j) add_times<S>(beside + 4 * j, sums.few[std::size_t(j)], value);
            };
            Index p = 0;
            for (; p + 2 <= row.n; p += 2) {
                add(even, Index(row.column[p]), double(row.x[p]));
                add(odd, Index(row.column[p + 1]), double(row.x[p + 1]));
            }
            if (p < row.n) add(even, Index(row.column[p]), double(row.x[p]));
            if (rows.bias != 0) add(odd, rows.d, rows.bias);
            for (int j = 0; j < N; ++j) put(out + from + j * kTile<S>, even.broad[j] + odd.broad[j]);
            for (std::size_t j = 0; j < R; ++j) put(out + table.stride + 4 * j, even.few[j] + odd.few[j]);
        });
}

/// v[:, j] += d_j x
template <class Some>
void spread_classes(const Some& rows, const typename Some::Row& row, const LightWeights& v, const float* d) {
    using Four = FourOf<float>::type;
    in_parts<float, float>(
        {v.at, v.stride, v.beside, v.rest},
        [&]<int N, int R>(Index from, std::integral_constant<int, N>, std::integral_constant<int, R>) {
            typename TileOf<float>::type broad[N];
            std::array<Four, R> few;
            for (int j = 0; j < N; ++j) broad[j] = tile(d + from + j * kTile<float>);
            for (std::size_t j = 0; j < R; ++j) few[j] = vector<Four>(d + v.stride + 4 * j);
            each_entry(rows, row, [&, v, from](Index k, double x) {
                float *at = v.at + from + k * v.stride, *beside = v.beside + k * v.rest;
                for (int j = 0; j < N; ++j, at += kTile<float>) put(at, tile(at) + float(x) * broad[j]);
                for (std::size_t j = 0; j < R; ++j, beside += 4)
                    put(beside, vector<Four>(beside) + float(x) * few[j]);
            });
        });
}

}  // namespace dualsvm
