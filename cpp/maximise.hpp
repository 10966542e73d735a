#pragma once

#include "block.hpp"

namespace dualsvm {

constexpr double kBlockSolved = 0.1;  // of the first largest difference of gradients: a stored block is solved

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

/// Lane by lane the larger one, and where it was found.
struct Top {
    Lane value, place;
    __attribute__((always_inline)) void meet(Lane other, Lane where) {
        const auto more = other > value;
        value = more ? other : value;
        place = more ? where : place;
    }
    /// The largest of all, the first such.
    __attribute__((always_inline)) Index best() const {
        int at = 0;
        for (int q = 1; q < kLane; ++q)
            if (value[q] > value[at] || (value[q] == value[at] && place[q] < place[at])) at = q;
        return Index(place[at]);
    }
};

/// The same where the Gram matrix is stored, in rows of `stride` numbers, its diagonal beside it, and the slack is
/// the first member, with zeros in its row and column. Four members are looked at together: g and mass have room for
/// a multiple of kLane, and behind the last member the mass is 0 and g is -infinity.
__attribute__((always_inline)) inline void maximise_stored(Index n, const double* gram, Index stride,
                                                           const double* diagonal, double* g, double* mass) {
    const Lane counting = {0, 1, 2, 3};
    const Index lanes = (n + kLane - 1) / kLane * kLane;
    double first = -1;
    for (Index moves = 0; moves < 10 + 10 * n; ++moves) {
        Top top{load(g), counting};
        for (Index q = kLane; q < lanes; q += kLane) top.meet(load(g + q), counting + double(q));
        const Index j = top.best();
        const double* row = gram + j * stride;
        const double high = g[j], own = diagonal[j];
        Top gains{Lane{}, Lane{} - 1.0};
        Lane widest{};
        for (Index q = 0; q < lanes; q += kLane) {
            const Lane held = load(mass + q), rise = high - load(g + q);
            const Lane scale = own + load(diagonal + q), floor = 4e-16 * scale, exact = scale - 2.0 * load(row + q);
            const Lane h = exact > floor ? exact : floor, full = rise / h;
            const Lane a = full < held ? full : held;  // 0 / 0, too, is no less
            const Lane gain = a * (rise - 0.5 * h * a), none{};
            const Lane open = held > none ? rise : none;
            widest = open > widest ? open : widest;
            gains.meet(open > none ? gain : none, counting + double(q));
        }
        const Index k = gains.best();
        if (k < 0) return;
        const double wide = most(widest);
        if (first < 0) first = wide;
        if (wide <= kBlockSolved * first) return;
        const double h = std::max(own + diagonal[k] - 2 * row[k], 4e-16 * (own + diagonal[k]));
        const double a = std::min((high - g[k]) / h, mass[k]);
        mass[j] += a;
        mass[k] = a < mass[k] ? mass[k] - a : 0.0;
        const double* other = gram + k * stride;
        for (Index q = 0; q < lanes; q += kLane) store(g + q, load(g + q) - a * (load(row + q) - load(other + q)));
    }
}

/// Maximises  g.d - h/2 |d|^2  over  sum_j d_j = 0, mass + d >= 0,  for n members, a multiple of kLane; those that
/// are none have no mass, and a g far below the others. With z_j = g_j / h + mass_j, counted from the largest,
///     mass_j + d_j = max(z_j - theta, 0),     theta such that these add up to what the masses do.
/// What any members among themselves ask for is not too much: with those who have a mass it begins, and comes up
/// until nobody falls below it any more.
__attribute__((always_inline)) inline void project(Index n, double h, const double* g, const double* mass,
                                                   double* d) {
    const Lane none{};
    Lane held{}, top = load(g);
    for (Index j = 0; j < n; j += kLane) {
        const Lane here = load(g + j);
        top = here > top ? here : top;
        held += load(mass + j);
    }
    const double high = most(top), whole = sum(held), inverse = 1 / h;
    Lane first = none - kInfinity, theirs{}, some{};
    for (Index j = 0; j < n; j += kLane) {
        const Lane m = load(mass + j), z = (load(g + j) - high) * inverse + m;
        store(d + j, z);
        first = z > first ? z : first;
        theirs += m > none ? z : none;
        some += m > none ? none + 1.0 : none;
    }
    const double highest = most(first), members = std::max(sum(some), 1.0);
    double theta = std::max((sum(theirs) - whole) / members - highest, -whole), above = double(n) + 1;
    for (;;) {
        Lane total{}, count{};
        for (Index j = 0; j < n; j += kLane) {
            const Lane z = load(d + j) - highest;
            total += z > theta ? z : none;
            count += z > theta ? none + 1.0 : none;
        }
        if (!(sum(count) < above)) break;
        above = sum(count);
        theta = (sum(total) - whole) / above;
    }
    for (Index j = 0; j < n; j += kLane) {
        const Lane z = load(d + j) - highest - theta;
        store(d + j, (z > none ? z : none) - load(mass + j));
    }
}

}  // namespace dualsvm
