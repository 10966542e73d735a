#pragma once

#include <cmath>

#include "block.hpp"

namespace dualsvm {

/// Regression: two constraints that share a slack, x = +-row and l = +-y - epsilon. At most one of the two
/// is violated (epsilon >= 0), so that one signed variable b = alpha_+ - alpha_- in [-C, C] tells all. Along it
/// the dual is, with r = y - w.x and h = x' S x,
///     r (b - b0) - h/2 (b - b0)^2 - epsilon |b|  (- b^2 / 4C for the squared loss)
/// with its maximum at  b = clip(soft(h b0 + r, epsilon) / (h + q), -C, C),   q = 0 or 1 / (2C).
template <class Rows>
struct TwoSided {
    struct Coordinate {
        double b, h, y, cost;  // h < 0: not yet known
    };
    struct Scratch {
        double r, moved;
    };

    static constexpr bool once = true;

    Rows rows;
    double epsilon;
    bool squared;
    Large<Coordinate> at;

    TwoSided(const Rows& rows, const double* targets, double epsilon, const double* cost, bool squared)
        : rows(rows), epsilon(epsilon), squared(squared) {
        at.reserve(std::size_t(size()));
        for (Index i = 0; i < size(); ++i) at.push_back({0.0, -1.0, targets[i], cost[i]});
    }

    Index size() const { return rows.size(); }
    Index n_weights() const { return rows.width(); }
    Index n_alpha() const { return 2 * size(); }
    double cost(Index i) const { return at[i].cost; }
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
    static double* scores(Scratch& t) { return &t.r; }
    static Index n_scores(const Weights&) { return 1; }
    static Index n_kept() { return 1; }
    void keep(Index i, double* to) const { *to = at[i].b; }
    void recall(Index i, const double* from) { at[i].b = *from; }
    template <class Some>
    static void part(const Some& rows, Index r, const double* w, double* score) {
        *score = rows.dot(r, w);
    }
    Look judge(Index i, Scratch& t) const {
        const Coordinate& c = at[i];
        const double r = c.y - t.r;
        const double b = std::abs(c.b);
        Look look = losses(std::abs(r) - epsilon, c.cost, b, c.b * r - epsilon * b, squared);
        t.r = r;
        double g = (c.b == 0 ? std::abs(r) : std::copysign(r, r * c.b)) - epsilon;  // along |b|, away from 0
        if (squared) g -= b / (2 * c.cost);
        look.violation = violation(g, b, c.cost, squared);
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
        const double h = sigma * c.h;
        const double cap = squared ? kInfinity : c.cost;
        const double pull = h * c.b + t.r;
        const double past = std::abs(pull) - epsilon;
        double size = 0;
        if (past > 0) size = std::min(past * (1 / std::max(h + curve, kTiny)), cap);
        const double old = c.b;
        c.b = std::copysign(size, pull);
        if (size > 0 && old != 0 && std::abs(old) < cap) {  // further, but not past 0, where the slope changes
            const double further = size + (kPast - 1) * (size - std::copysign(1.0, pull) * old);
            size = std::min(std::max(further, 0.0), cap);
            c.b = std::copysign(size, pull);
        }
        const double a = c.b - old;
        t.r -= h * a;
        t.moved = a;
        return a * c.y - epsilon * (size - std::abs(old)) - 0.5 * curve * a * (c.b + old);
    }
    template <class Some>
    static void follow(const Some& rows, Index r, const Weights& weights, double sigma, Scratch& t) {
        if (t.moved != 0) rows.add(r, sigma * t.moved, weights);
    }

    double rest(Index i, const Scratch& t) const {
        const Coordinate& c = at[i];
        const double within = masked(c.b == 0, epsilon - std::abs(t.r));
        const bool full = !squared & (std::abs(c.b) >= c.cost);
        return std::max(within, std::max(masked(full, std::copysign(1.0, c.b) * t.r - epsilon), 0.0));
    }

    /// b becomes C times the difference of the slopes of both ramps, or 2 C slack, with the sign of r, under a
    /// squared loss. Ramps that are wider than epsilon overlap, where b is small.
    Answer answer(Index i, double width, Scratch& t) {
        Coordinate& c = at[i];
        const double old = c.b, slack = std::abs(t.r) - epsilon;
        if (squared) {
            c.b = std::copysign(2 * c.cost * std::max(0.0, slack), t.r);
            t.moved = c.b - old;
            return {std::abs(c.b) * (std::abs(c.b) / (4 * c.cost)), 0.0};
        }
        const Ramp above = ramp(t.r - epsilon, width), below = ramp(-t.r - epsilon, width);
        c.b = c.cost * (above.slope - below.slope);
        t.moved = c.b - old;
        const double b = std::abs(c.b);
        return {c.cost * (above.value + below.value), losses(slack, c.cost, b, c.b * t.r - epsilon * b, false).gap};
    }
    double curvature(Index i, double width) const {
        const Coordinate& c = at[i];
        const double b = std::abs(c.b);
        if (squared) return masked(b > 0, 2 * c.cost);
        if (b < c.cost * (1 - 2 * epsilon / width)) return 2 * c.cost;
        return masked((b > 0) & (b < c.cost), c.cost);
    }

    void deposit_step(Index i, const Weights& u, const Scratch& t) const {
        if (t.moved != 0) rows.add(i, t.moved, u);
    }
    void hold(Index i, Scratch& t) const { t.moved = at[i].b; }
    void deposit(Index i, const Weights& u, Scratch& t) const {
        hold(i, t);
        follow(rows, i, u, 1.0, t);
    }
    double linear(Index i) const {
        const Coordinate& c = at[i];
        const double b = std::abs(c.b);
        return c.b * c.y - epsilon * b - (squared ? b * (b / (4 * c.cost)) : 0.0);
    }
    void set_alpha(Index i, const double* alpha) { at[i].b = alpha[2 * i] - alpha[2 * i + 1]; }
    void get_alpha(Index i, double* alpha) const {
        alpha[2 * i] = std::max(at[i].b, 0.0);
        alpha[2 * i + 1] = std::max(-at[i].b, 0.0);
    }
};

}  // namespace dualsvm
