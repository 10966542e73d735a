#pragma once

#include <cmath>

#include "block.hpp"

namespace dualsvm {

/// One constraint per example (binary classes, preference pairs, rows with a slack of their own):
/// x = sign * row. The dual along its one variable is a parabola cut off at 0 and at the cap:
///     a = clip(g / h, -alpha, C - alpha),     g = l - w.x,     h = x' S x
/// and for the squared hinge  g = l - w.x - alpha / (2C),  h = x' S x + 1 / (2C),  no cap above.
template <class Rows>
struct Single {
    struct Coordinate {
        double alpha, h, l, cost;  // h < 0: not yet known
    };
    struct Scratch {
        double g, moved;
    };

    static constexpr bool once = true;

    Rows rows;
    const signed char* sign;  // null: all +1
    bool squared;
    Large<Coordinate> at;

    Single(const Rows& rows, const signed char* sign, const double* margins, const double* cost, bool squared)
        : rows(rows), sign(sign), squared(squared) {
        at.reserve(std::size_t(size()));
        for (Index i = 0; i < size(); ++i) at.push_back({0.0, -1.0, margins[i], cost[i]});
    }

    Index size() const { return rows.size(); }
    Index n_weights() const { return rows.width(); }
    Index n_alpha() const { return size(); }
    double cost(Index i) const { return at[i].cost; }
    double side(Index i) const { return sign ? double(sign[i]) : 1.0; }
    Scratch scratch() const { return {}; }
    DUALSVM_AHEAD void soon(Index i) const {
        prefetch(&at[i], 1);
        rows.soon(i);
    }
    DUALSVM_AHEAD void ahead(Index i) const { rows.ahead(i); }

    Look look(Index i, const double* w, Scratch& t) const {
        part(rows, i, w, scores(t));
        return judge(i, t);
    }
    static double* scores(Scratch& t) { return &t.g; }
    static Index n_scores(const Weights&) { return 1; }
    static Index n_kept() { return 1; }
    void keep(Index i, double* to) const { *to = at[i].alpha; }
    void recall(Index i, const double* from) { at[i].alpha = *from; }
    template <class Some>
    static void part(const Some& rows, Index r, const double* w, double* score) {
        *score = rows.dot(r, w);
    }
    Look judge(Index i, Scratch& t) const {
        const Coordinate& c = at[i];
        double g = c.l - side(i) * t.g;
        Look look = losses(g, c.cost, c.alpha, c.alpha * g, squared);
        if (squared) g -= c.alpha / (2 * c.cost);
        t.g = g;
        look.violation = violation(g, c.alpha, c.cost, squared);
        return look;
    }

    double step(Index i, const Weights& weights, double sigma, Scratch& t) {
        const double change = solve(i, weights.s, sigma, t);
        follow(rows, i, weights, sigma, t);
        return change;
    }
    void measure(Index i, const double* s) {
        if (at[i].h < 0) at[i].h = rows.norm(i, s);
    }
    double solve(Index i, const double* s, double sigma, Scratch& t) {
        measure(i, s);
        Coordinate& c = at[i];
        const double curve = squared ? 1 / (2 * c.cost) : 0.0;
        const double h = sigma * c.h + curve;
        const double cap = squared ? kInfinity : c.cost;
        const double far = 1.0 + masked((c.alpha > 0) & (c.alpha < cap), kPast - 1.0);
        const double to = c.alpha + t.g * (far / std::max(h, kTiny));  // divided while the score is added up
        const double old = c.alpha;
        c.alpha = std::min(std::max(to, 0.0), cap);
        const double a = c.alpha - old;
        t.g -= h * a;
        t.moved = side(i) * a;
        return a * (c.l - 0.5 * curve * (c.alpha + old));
    }
    template <class Some>
    static void follow(const Some& rows, Index r, const Weights& weights, double sigma, Scratch& t) {
        if (t.moved != 0) rows.add(r, sigma * t.moved, weights);
    }

    double rest(Index i, const Scratch& t) const {
        const Coordinate& c = at[i];
        return std::max(masked(c.alpha <= 0, -t.g), std::max(masked(!squared & (c.alpha >= c.cost), t.g), 0.0));
    }

    /// alpha becomes C times the slope of the ramp, or 2 C slack where the hinge is squared.
    Answer answer(Index i, double width, Scratch& t) {
        Coordinate& c = at[i];
        const double old = c.alpha;
        if (squared) {
            c.alpha = std::max(c.alpha + 2 * c.cost * t.g, 0.0);
            t.moved = side(i) * (c.alpha - old);
            return {c.alpha * (c.alpha / (4 * c.cost)), 0.0};
        }
        const Ramp rounded = ramp(t.g, width);
        c.alpha = c.cost * rounded.slope;
        t.moved = side(i) * (c.alpha - old);
        return {c.cost * rounded.value, losses(t.g, c.cost, c.alpha, c.alpha * t.g, false).gap};
    }
    double curvature(Index i, double) const {
        const Coordinate& c = at[i];
        if (squared) return masked(c.alpha > 0, 2 * c.cost);
        return masked((c.alpha > 0) & (c.alpha < c.cost), c.cost);
    }

    void deposit_step(Index i, const Weights& u, const Scratch& t) const {
        if (t.moved != 0) rows.add(i, t.moved, u);
    }
    void hold(Index i, Scratch& t) const { t.moved = side(i) * at[i].alpha; }
    void deposit(Index i, const Weights& u, Scratch& t) const {
        hold(i, t);
        follow(rows, i, u, 1.0, t);
    }
    double linear(Index i) const {
        const Coordinate& c = at[i];
        return c.alpha * c.l - (squared ? c.alpha * (c.alpha / (4 * c.cost)) : 0.0);
    }
    void set_alpha(Index i, const double* alpha) { at[i].alpha = alpha[i]; }
    void get_alpha(Index i, double* alpha) const { alpha[i] = at[i].alpha; }
};

}  // namespace dualsvm
