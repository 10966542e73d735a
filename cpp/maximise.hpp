#pragma once

#include "block.hpp"

namespace dualsvm {

/// Maximises  g.d - 1/2 d' G d  over  alpha + d >= 0, sum(alpha + d) <= cap,  moving alpha and g in place.
/// One of the n members stands for the slack: a constraint of zeros whose gradient is 0 and whose mass is what is
/// left of the cap. Every move is then a pair step, from the member k that holds mass to the member j with the
/// largest gradient:      a = min((g_j - g_k) / (G_jj + G_kk - 2 G_jk), mass_k)
/// and k is the one that gains most. `gram(j, k)` is G_jk, 0 where either is the slack. Members that are alike make
/// the curvature 0 but for rounding, hence its floor.
template <class Gram>
inline void maximise(Index n, Index slack, const Gram& gram, double* g, double* mass) {
    double first = -1;
    for (Index moves = 0; moves < 10 + 10 * n; ++moves) {
        const Index j = std::max_element(g, g + n) - g;
        Index k = -1;
        double best = 0, a = 0, least = g[j];
        for (Index q = 0; q < n; ++q) {
            if (!(mass[q] > 0) || g[q] >= g[j]) continue;
            least = std::min(least, g[q]);
            const double scale = gram(j, j) + gram(q, q);
            const double h = std::max(scale - 2 * gram(j, q), 4e-16 * scale);
            const double rise = g[j] - g[q];
            const double move = h > 0 ? std::min(rise / h, mass[q]) : mass[q];
            const double gain = move * (rise - 0.5 * h * move);
            if (gain > best && move < kInfinity) {
                best = gain;
                k = q;
                a = move;
            }
        }
        if (k < 0) return;
        if (first < 0) first = g[j] - least;
        if (g[j] - least <= 1e-4 * first) return;
        mass[j] += a;
        mass[k] = a < mass[k] ? mass[k] - a : 0.0;
        for (Index q = 0; q < n; ++q) g[q] -= a * (gram(q, j) - gram(q, k));
        g[slack] = 0;
    }
}

}  // namespace dualsvm
