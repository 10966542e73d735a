#pragma once

#include <cmath>
#include <vector>

#include "rows.hpp"

namespace dualsvm {

/// Adds c_p x x' to the lower triangle of a d x d matrix, x the row listed at p, for from <= p < to.
///
/// The products of a sparse row are scattered. Rows with more entries are collected in a panel P, scaled by the
/// roots of their c, and P'P is formed in tiles that stay in registers; its sums are in the type of the rows. The
/// columns that make a tile lie together, so that few pages are read at a time.
template <class Rows>
class Outer {
public:
    Outer(const Rows& rows, double* sum)
        : rows_(rows),
          sum_(sum),
          d_(std::size_t(rows.width())),
          at_(d_),
          x_(d_),
          panel_((d_ + kWide - 1) / kWide * kWide * kPanel) {}

    __attribute__((always_inline)) void add_loop(const std::vector<std::uint32_t>& list, const std::vector<double>& c,
                                                 std::size_t from, std::size_t to) {
        for (std::size_t p = from; p < to; ++p) {
            if (p + 2 * kSoon < to) rows_.soon(Index(list[p + 2 * kSoon]));
            if (p + kSoon < to) rows_.ahead(Index(list[p + kSoon]));
            if (filled_ > 0 && (c[p] > 0) != (sign_ > 0)) square();
            sign_ = c[p] > 0 ? 1 : -1;
            std::size_t n = 0;
            rows_.each(Index(list[p]), [&](Index k, double value) {
                at_[n] = std::size_t(k);
                x_[n++] = value;
            });
            if (kDear * n * n < d_ * d_)
                scatter(c[p], n);
            else
                collect(std::sqrt(std::abs(c[p])), n);
        }
        if (filled_ > 0) square();
    }
    DUALSVM_WIDE void add_wide(const std::vector<std::uint32_t>& list, const std::vector<double>& c, std::size_t from,
                               std::size_t to) {
        add_loop(list, c, from, to);
    }

private:
    using Number = typename Rows::Value;
    using Tile = typename TileOf<Number>::type;
    static constexpr std::size_t kTile = sizeof(Tile) / sizeof(Number), kWide = 2 * kTile, kTall = 4, kPanel = 128;
    static constexpr std::size_t kSoon = 4;          // how many rows ahead one is asked for
    static constexpr std::size_t kDear = 2 * kWide;  // so many tiled products in the time of one that is scattered

    void scatter(double c, std::size_t n) {
        for (std::size_t a = 0; a < n; ++a) {
            const double xa = c * x_[a];
            double* row = sum_ + at_[a] * d_;
            for (std::size_t b = 0; b <= a; ++b) row[at_[b]] += xa * x_[b];
        }
    }

    void collect(double root, std::size_t n) {
        Number* row = &panel_[filled_ * kWide];
        for (std::size_t a = 0; a < n; ++a) row[place(at_[a])] = Number(root * x_[a]);
        if (++filled_ == kPanel) square();
    }

    /// sum += sign P'P, and empties P.
    void square() {
        for (std::size_t j = 0; j < d_; j += kWide) {
            for (std::size_t k = j; k < d_; k += kTall) {
                Tile sums[kTall][2] = {};
                const Number *along = &panel_[place(j)], *down = &panel_[place(k)];
                for (std::size_t r = 0; r < filled_ * kWide; r += kWide) {
                    Tile left, right;
                    std::memcpy(&left, along + r, sizeof left);
                    std::memcpy(&right, along + r + kTile, sizeof right);
                    for (std::size_t t = 0; t < kTall; ++t) {
                        sums[t][0] += down[r + t] * left;
                        sums[t][1] += down[r + t] * right;
                    }
                }
                for (std::size_t t = 0; t < std::min(kTall, d_ - k); ++t)
                    for (std::size_t e = 0; e < kWide && j + e <= k + t; ++e)
                        sum_[(k + t) * d_ + j + e] += sign_ * double(sums[t][e / kTile][e % kTile]);
            }
        }
        std::fill(panel_.begin(), panel_.end(), Number(0));
        filled_ = 0;
    }

    /// Where column k of the first row lies in the panel.
    static std::size_t place(std::size_t k) { return k / kWide * (kPanel * kWide) + k % kWide; }

    const Rows& rows_;
    double* sum_;
    std::size_t d_;
    std::vector<std::size_t> at_;  // a row: the columns of its entries, and the entries
    std::vector<double> x_;
    std::vector<Number> panel_;
    std::size_t filled_ = 0;
    double sign_ = 1;  // of the c of the rows in the panel
};

}  // namespace dualsvm
