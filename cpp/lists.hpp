#pragma once

#include <numeric>

#include "maximise.hpp"
#include "preferences.hpp"

namespace dualsvm {

/// Lists of rows to be ranked, one slack each. With s = w.row, a list pays for all its preference pairs,
///     sum over pairs (i preferred to j) of weight_i weight_j max(0, margin - (s_i - s_j)),
/// which is the largest of the constraints that the subsets of its pairs make:
///     x = sum of weight_i weight_j (row_i - row_j),     l = margin times the sum of weight_i weight_j.
/// The worst one is found by sorting. A constraint is kept as one coefficient per row, so that its gradient comes
/// from the scores of the rows, which are computed once a visit, and feature vectors are never stored. A list keeps
/// a few constraints with their Gram matrix; where it needs more, the two that count least become one: their mean,
/// weighted by alpha, leaves the dual as it is and is no less a constraint.
template <class Rows>
struct Lists {
    static constexpr Index kKept = 16;
    struct List {
        std::vector<double> coef;      // kept constraints x rows of the list
        std::vector<double> l, alpha;  // of each
        std::vector<double> gram;      // kKept x kKept; the first entry negative: not yet known
        Index kept() const { return Index(l.size()); }
    };
    struct Scratch {
        Preferences preferences;
        std::vector<double> s, coef, z;  // of the rows; of the worst constraint; a vector of weights, zeros
        double l;
        double g[kKept + 1], mass[kKept + 1];  // kept constraints, the worst one, the slack
    };

    Rows rows;
    const Index* start;   // the places of list i are start[i] .. start[i+1]
    const Index* member;  // the row at a place
    Index n;
    const std::int32_t* grade;  // by place
    const double* weight;       // by place, or null
    double margin;
    const double* costs;
    bool squared;
    std::vector<List> lists;
    Index longest = 0;

    Lists(const Rows& rows, const Index* start, const Index* member, Index n, const std::int32_t* grade,
          const double* weight, double margin, const double* costs, bool squared)
        : rows(rows),
          start(start),
          member(member),
          n(n),
          grade(grade),
          weight(weight),
          margin(margin),
          costs(costs),
          squared(squared),
          lists(std::size_t(n)) {
        for (Index i = 0; i < n; ++i) longest = std::max(longest, length(i));
    }

    Index size() const { return n; }
    Index n_weights() const { return rows.width(); }
    Index n_alpha() const { return 4 * start[n]; }
    double cost(Index i) const { return costs[i]; }
    Index length(Index i) const { return start[i + 1] - start[i]; }
    Scratch scratch() const {
        Scratch t{};
        t.s.resize(std::size_t(longest));
        t.coef.resize(std::size_t(longest));
        t.z.resize(std::size_t(n_weights()));
        return t;
    }
    DUALSVM_AHEAD void soon(Index i) const { prefetch(start + i, 1); }
    DUALSVM_AHEAD void ahead(Index i) const { rows.ahead(member[start[i]]); }

    Look look(Index i, const double* w, Scratch& t) const {
        const List& list = lists[i];
        const Index m = length(i), kept = list.kept();
        const Index* row = member + start[i];
        for (Index p = 0; p < m; ++p) t.s[p] = rows.dot(row[p], w);
        const double* weights = weight ? weight + start[i] : nullptr;
        t.l = margin * t.preferences.violated(m, t.s.data(), grade + start[i], weights, margin, t.coef.data());
        double total = 0, alpha_g = 0;
        for (Index c = 0; c < kept; ++c) {
            t.g[c] = list.l[c] - along(&list.coef[c * m], t.s.data(), m);
            t.mass[c] = list.alpha[c];
            total += list.alpha[c];
            alpha_g += list.alpha[c] * t.g[c];
        }
        t.g[kept] = t.l - along(t.coef.data(), t.s.data(), m);
        t.mass[kept] = 0;
        Look look = losses(t.g[kept], costs[i], total, alpha_g, squared);
        const double pull = squared ? total / (2 * costs[i]) : 0.0;
        for (Index c = 0; c <= kept; ++c) t.g[c] -= pull;
        t.g[kept + 1] = 0;
        t.mass[kept + 1] = squared ? kInfinity : remainder(costs[i], total);
        look.violation = violation(t.g, t.mass, kept + 2);
        return look;
    }

    double step(Index i, const Weights& weights, double sigma, Scratch& t) {
        List& list = lists[i];
        const Index m = length(i), before = list.kept();
        const double slack = t.mass[before + 1];
        if (before == 0 || (t.g[before] > 0 && t.g[before] > *std::max_element(t.g, t.g + before)))
            keep(i, weights.s, t);
        if (list.gram[0] < 0) fill(i, 0, weights.s, t);
        const Index kept = list.kept();
        t.g[kept] = 0;
        t.mass[kept] = slack;
        const double curve = squared ? 1 / (2 * costs[i]) : 0.0;
        maximise(
            kept + 1, kept,
            [&](Index j, Index k) { return j < kept && k < kept ? sigma * list.gram[j * kKept + k] + curve : 0.0; },
            t.g, t.mass);
        double gain = 0, total = 0, change = 0;
        std::fill_n(t.s.begin(), m, 0.0);  // from here on, what the rows get
        for (Index c = 0; c < kept; ++c) {
            const double a = t.mass[c] - list.alpha[c];
            total += list.alpha[c];
            if (a == 0) continue;
            list.alpha[c] = t.mass[c];
            for (Index p = 0; p < m; ++p) t.s[p] += a * list.coef[c * m + p];
            gain += a * list.l[c];
            change += a;
        }
        for (Index p = 0; p < m; ++p)
            if (t.s[p] != 0) rows.add(member[start[i] + p], sigma * t.s[p], weights);
        if (list.kept() == kKept - 1) make_room(list, m);
        return gain - 0.5 * curve * change * (2 * total + change);
    }

    /// Where the worst set of pairs, or the slack if it is empty, holds everything: until a pair enters or leaves it.
    double rest(Index i, const Scratch& t) const {
        const Index kept = lists[i].kept(), members = kept + 2;
        const Index holder = std::find_if(t.mass, t.mass + members, [](double m) { return m > 0; }) - t.mass;
        if (std::any_of(t.mass + std::min(holder + 1, members), t.mass + members, [](double m) { return m > 0; }))
            return 0.0;
        const double worst = t.g[kept], rounding = 1e-10 * (t.l + std::abs(t.l - worst));
        if (holder < members && t.g[holder] < worst - rounding) return 0.0;
        return t.preferences.nearest(length(i), t.s.data(), grade + start[i], margin);
    }

    void deposit(Index i, const Weights& u, Scratch& t) const {
        gather(i, t.coef.data());
        for (Index p = 0; p < length(i); ++p)
            if (t.coef[p] != 0) rows.add(member[start[i] + p], t.coef[p], u);
    }
    double linear(Index i) const {
        const List& list = lists[i];
        const double total = std::accumulate(list.alpha.begin(), list.alpha.end(), 0.0);
        return along(list.alpha.data(), list.l.data(), list.kept()) -
               (squared ? total * (total / (4 * costs[i])) : 0.0);
    }

    // What the user sees of a list is the sum over its constraints, in four numbers for every row: alpha times the
    // coefficient of the row, its positive and its negative part, and equal shares of l.alpha / margin and of the sum
    // of alpha.
    void set_alpha(Index i, const double* from) {
        List& list = lists[i];
        const Index m = length(i);
        list = {};
        double l = 0, mass = 0;
        for (Index p = 0; p < m; ++p) {
            l += from[4 * member[start[i] + p] + 2];
            mass += from[4 * member[start[i] + p] + 3];
        }
        if (!(mass > 0)) return;
        list.coef.resize(std::size_t(m));
        for (Index p = 0; p < m; ++p) {
            const double* at = from + 4 * member[start[i] + p];
            list.coef[p] = (at[0] - at[1]) / mass;
        }
        list.l = {margin * (l / mass)};
        list.alpha = {squared ? mass : std::min(mass, costs[i])};
        list.gram.assign(kKept * kKept, -1.0);
    }
    void get_alpha(Index i, double* to) const {
        const List& list = lists[i];
        const Index m = length(i);
        std::vector<double> coef(static_cast<std::size_t>(m));
        gather(i, coef.data());
        const double l = along(list.alpha.data(), list.l.data(), list.kept());
        const double mass = std::accumulate(list.alpha.begin(), list.alpha.end(), 0.0);
        for (Index p = 0; p < m; ++p) {
            double* at = to + 4 * member[start[i] + p];
            at[0] = std::max(coef[p], 0.0);
            at[1] = std::max(-coef[p], 0.0);
            at[2] = l / (margin * double(m));
            at[3] = mass / double(m);
        }
    }

private:
    static double along(const double* a, const double* b, Index m) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index p = 0; p < m; ++p) sum += a[p] * b[p];
        return sum;
    }

    /// coef = sum of alpha times the coefficients of the kept constraints.
    void gather(Index i, double* coef) const {
        const List& list = lists[i];
        const Index m = length(i);
        std::fill_n(coef, m, 0.0);
        for (Index c = 0; c < list.kept(); ++c)
            for (Index p = 0; p < m; ++p) coef[p] += list.alpha[c] * list.coef[c * m + p];
    }

    /// Adds the worst constraint, which `look` found, to the kept ones.
    void keep(Index i, const double* s, Scratch& t) {
        List& list = lists[i];
        const Index m = length(i), c = list.kept();
        if (list.gram.empty()) list.gram.assign(kKept * kKept, -1.0);
        if (c > 0 && list.gram[0] < 0) fill(i, 0, s, t);
        list.coef.insert(list.coef.end(), t.coef.begin(), t.coef.begin() + m);
        list.l.push_back(t.l);
        list.alpha.push_back(0.0);
        fill(i, c, s, t);
    }

    /// Computes the entries of the Gram matrix between constraint c and those before it.
    void fill(Index i, Index c, const double* s, Scratch& t) {
        List& list = lists[i];
        const Index m = length(i);
        const Index* row = member + start[i];
        const Weights z{t.z.data(), t.z.data(), s, nullptr, nullptr, nullptr};
        for (Index p = 0; p < m; ++p)
            if (list.coef[c * m + p] != 0) rows.add(row[p], list.coef[c * m + p], z);
        for (Index p = 0; p < m; ++p) t.s[p] = rows.dot(row[p], t.z.data());
        for (Index k = 0; k <= c; ++k) {
            const double value = along(&list.coef[k * m], t.s.data(), m);
            list.gram[c * kKept + k] = list.gram[k * kKept + c] = k == c ? std::max(value, 0.0) : value;
        }
        for (Index p = 0; p < m; ++p) rows.each(row[p], [&](Index k, double) { t.z[k] = 0; });
    }

    /// Drops the constraints without alpha, or else melts the two with the least.
    void make_room(List& list, Index m) {
        const Index kept = list.kept();
        std::vector<Index> stay;
        for (Index c = 0; c < kept; ++c)
            if (list.alpha[c] > 0) stay.push_back(c);
        if (Index(stay.size()) == kept) {
            std::sort(stay.begin(), stay.end(), [&](Index c, Index k) { return list.alpha[c] > list.alpha[k]; });
            const Index gone = stay.back();
            stay.pop_back();
            melt(list, stay.back(), gone, m);
            std::sort(stay.begin(), stay.end());
        }
        for (Index c = 0; c < Index(stay.size()); ++c) {
            std::copy_n(&list.coef[stay[c] * m], m, &list.coef[c * m]);
            list.l[c] = list.l[stay[c]];
            list.alpha[c] = list.alpha[stay[c]];
            for (Index k = 0; k < Index(stay.size()); ++k)
                list.gram[c * kKept + k] = list.gram[stay[c] * kKept + stay[k]];
        }
        list.coef.resize(stay.size() * std::size_t(m));
        list.l.resize(stay.size());
        list.alpha.resize(stay.size());
    }

    void melt(List& list, Index into, Index gone, Index m) {
        const double mass = list.alpha[into] + list.alpha[gone];
        const double a = list.alpha[into] / mass, b = list.alpha[gone] / mass;
        const auto mean = [&](double& kept, double other) { kept = a * kept + b * other; };
        for (Index p = 0; p < m; ++p) mean(list.coef[into * m + p], list.coef[gone * m + p]);
        mean(list.l[into], list.l[gone]);
        for (Index k = 0; k < list.kept(); ++k) mean(list.gram[into * kKept + k], list.gram[gone * kKept + k]);
        for (Index k = 0; k < list.kept(); ++k) mean(list.gram[k * kKept + into], list.gram[k * kKept + gone]);
        list.alpha[into] = mass;
    }
};

}  // namespace dualsvm
