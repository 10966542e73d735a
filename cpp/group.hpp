#pragma once

#include "maximise.hpp"

namespace dualsvm {

/// Rows that share a slack, any number to an example. Blocks of up to kCached constraints keep their Gram
/// matrix, and are maximised without touching feature vectors; of larger ones a few constraints at a time are:
/// the worst offenders and the holders of mass with the smallest gradients.
template <class Rows>
struct Group {
    static constexpr Index kCached = 16, kChosen = 8;
    struct Scratch {
        std::vector<double> g, mass;  // the slack last
        double part_g[kCached + 1], part_mass[kCached + 1], gram[(kCached + 1) * (kCached + 1)];
        Index part[kCached];
    };

    Rows rows;
    const Index* start;   // the places of example i are start[i] .. start[i+1]
    const Index* member;  // the row at a place
    const double* l;      // by row
    const double* costs;
    Index n;
    bool squared;
    std::vector<double> alpha;  // by place
    std::vector<std::size_t> gram_at;
    std::vector<double> gram;
    Index largest = 0;

    Group(const Rows& rows, const Index* start, const Index* member, Index n, const double* l, const double* costs,
          bool squared)
        : rows(rows),
          start(start),
          member(member),
          l(l),
          costs(costs),
          n(n),
          squared(squared),
          alpha(std::size_t(rows.size())),
          gram_at(std::size_t(n)) {
        std::size_t total = 0;
        for (Index i = 0; i < n; ++i) {
            const Index m = start[i + 1] - start[i];
            largest = std::max(largest, m);
            gram_at[i] = total;
            if (m <= kCached) total += std::size_t((m + 1) * (m + 1));
        }
        gram.assign(total, -1.0);  // the first entry of a matrix, a squared norm, tells whether it is known
    }

    Index size() const { return n; }
    Index n_weights() const { return rows.width(); }
    Index n_alpha() const { return rows.size(); }
    double cost(Index i) const { return costs[i]; }
    Scratch scratch() const {
        Scratch t;
        t.g.resize(std::size_t(largest + 1));
        t.mass.resize(std::size_t(largest + 1));
        return t;
    }
    DUALSVM_AHEAD void soon(Index i) const { prefetch(start + i, 1); }
    DUALSVM_AHEAD void ahead(Index i) const { rows.ahead(member[start[i]]); }

    Look look(Index i, const double* w, Scratch& t) const {
        const Index m = start[i + 1] - start[i];
        const double* a = &alpha[start[i]];
        double worst = 0, total = 0, alpha_g = 0;
        for (Index j = 0; j < m; ++j) {
            const Index r = member[start[i] + j];
            t.g[j] = l[r] - rows.dot(r, w);
            worst = std::max(worst, t.g[j]);
            total += a[j];
            alpha_g += a[j] * t.g[j];
        }
        Look look = losses(worst, costs[i], total, alpha_g, squared);
        const double pull = squared ? total / (2 * costs[i]) : 0.0;
        for (Index j = 0; j < m; ++j) {
            t.g[j] -= pull;
            t.mass[j] = a[j];
        }
        t.g[m] = 0;
        t.mass[m] = squared ? kInfinity : remainder(costs[i], total);
        look.violation = violation(t.g.data(), t.mass.data(), m + 1);
        return look;
    }

    double step(Index i, const Weights& weights, double sigma, Scratch& t) {
        const Index first = start[i], all = start[i + 1] - first;
        const Index m = choose(i, t);
        const double* matrix = gram_of(i, m, weights.s, t);
        for (Index j = 0; j < m; ++j) {
            t.part_g[j] = t.g[t.part[j]];
            t.part_mass[j] = t.mass[t.part[j]];
        }
        t.part_g[m] = 0;
        t.part_mass[m] = t.mass[all];
        const double curve = squared ? 1 / (2 * costs[i]) : 0.0;
        maximise(
            m + 1, m,
            [&](Index j, Index k) { return j < m && k < m ? sigma * matrix[j * (m + 1) + k] + curve : 0.0; },
            t.part_g, t.part_mass);
        double gain = 0, before = 0, change = 0;
        for (Index j = 0; j < all; ++j) before += alpha[first + j];
        for (Index j = 0; j < m; ++j) {
            const Index place = first + t.part[j], r = member[place];
            const double a = t.part_mass[j] - alpha[place];
            if (a == 0) continue;
            alpha[place] = t.part_mass[j];
            rows.add(r, sigma * a, weights);
            gain += a * l[r];
            change += a;
        }
        return gain - 0.5 * curve * change * (2 * before + change);
    }

    double rest(Index i, const Scratch& t) const {
        return distance_to_gain(t.g.data(), t.mass.data(), start[i + 1] - start[i] + 1);
    }

    void deposit(Index i, const Weights& u, Scratch&) const {
        for (Index p = start[i]; p < start[i + 1]; ++p)
            if (alpha[p] > 0) rows.add(member[p], alpha[p], u);
    }
    double linear(Index i) const {
        double sum = 0, total = 0;
        for (Index p = start[i]; p < start[i + 1]; ++p) {
            sum += alpha[p] * l[member[p]];
            total += alpha[p];
        }
        return sum - (squared ? total * (total / (4 * costs[i])) : 0.0);
    }
    void set_alpha(Index i, const double* from) {
        for (Index p = start[i]; p < start[i + 1]; ++p) alpha[p] = from[member[p]];
    }
    void get_alpha(Index i, double* to) const {
        for (Index p = start[i]; p < start[i + 1]; ++p) to[member[p]] = alpha[p];
    }

private:
    /// The constraints that this step may move, as places within the block.
    Index choose(Index i, Scratch& t) const {
        const Index m = start[i + 1] - start[i];
        if (m <= kCached) {
            for (Index j = 0; j < m; ++j) t.part[j] = j;
            return m;
        }
        const double* a = &alpha[start[i]];
        Index chosen = 0;
        const auto take = [&](auto better) {
            Index best = -1;
            for (Index j = 0; j < m; ++j)
                if (std::find(t.part, t.part + chosen, j) == t.part + chosen && better(j, best)) best = j;
            if (best >= 0) t.part[chosen++] = best;
        };
        for (Index turn = 0; turn < kChosen / 2; ++turn) {
            take([&](Index j, Index best) { return best < 0 || t.g[j] > t.g[best]; });
            take([&](Index j, Index best) { return a[j] > 0 && (best < 0 || t.g[j] < t.g[best]); });
        }
        return chosen;
    }

    const double* gram_of(Index i, Index m, const double* s, Scratch& t) {
        const bool cached = start[i + 1] - start[i] <= kCached;
        double* matrix = cached ? &gram[gram_at[i]] : t.gram;
        if (cached && matrix[0] >= 0) return matrix;
        const Index* r = member + start[i];
        for (Index j = 0; j <= m; ++j) {
            for (Index k = 0; k <= j; ++k) {
                const double value = j < m ? rows.inner(r[t.part[j]], r[t.part[k]], s) : 0.0;
                matrix[j * (m + 1) + k] = matrix[k * (m + 1) + j] = value;
            }
        }
        return matrix;
    }
};

}  // namespace dualsvm
