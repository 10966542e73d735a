#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "large.hpp"
#include "weights.hpp"

// A block is what one example owns: its dual variables alpha_ij >= 0 under one cap, and the way to its rows.
// Every kind of block has the same verbs, with i the example:
//
//   look(i, w, scratch)             its gradients g_ij = l_ij - w.x_ij, left in the scratch, and what they say
//   step(i, weights, sigma, scratch)  raises the dual over the block from those gradients, as far as it goes,
//                                   moving v; returns the change of `linear`. With sigma other than 1, v
//                                   moves sigma times as far, against a curvature sigma times as large
//   rest(i, scratch)                by how much the gradients of the last look may change before there is anything to
//                                   gain; 0 where there is
//   deposit(i, u, scratch)          u += sum_j alpha_ij x_ij
//   linear(i)                       its part of the dual beside the quadratic: l.alpha (- alpha^2 / 4C)
//   set_alpha, get_alpha            the dual variables, in the order in which the user sees them
//
// and blocks of one slack have two more for Newton's method on the primal, which is smooth under a squared loss, and
// under others once the kinks of the losses have been rounded off over a width:
//
//   answer(i, width, scratch)       sets alpha_i to what the w of the last look asks for, and tells what that makes;
//                                   deposit_step then tells of the change
//   curvature(i, width)             what x_i x_i' counts in the Hessian of the losses there, 1 / width times where
//                                   they have been rounded off
//
// A block has a constant `once` where its steps add to a weight once. Where `step` leaves the gradients after it in
// the scratch, `rest` tells of those, and there is a cheaper way to follow it elsewhere:
//
//   deposit_step(i, u, scratch)     u += what the last step added to sum_j alpha_ij x_ij
//
// Blocks whose rows can be read in parts, by several threads, have look and step in pieces (columns.hpp):
//
//   part(rows, r, w, score)         what row r makes of w: n_scores(w) numbers, whose sums go to scores(scratch)
//   judge(i, scratch)               what `look` finds, given these
//   solve(i, s, sigma, scratch)     raises the dual, with S = diag(s); leaves what v is to receive of the row
//   hold(i, scratch)                leaves what all of the dual variables make of it
//   follow(rows, r, weights, sigma, scratch)   has v receive what is left there
//   keep(i, to), recall(i, from)    save and restore the n_kept() dual variables
//
// Squared hinge: no cap, alpha_i^2 / (4 C_i) is subtracted from the dual.

namespace dualsvm {

/// x if that holds, else 0: without a branch, which nobody could foretell.
inline double masked(bool holds, double x) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & -std::uint64_t(holds));
}

/// What one look at a block at a fixed w finds.
struct Look {
    double loss;       // C_i slack_i, or C_i slack_i^2: its part of the primal
    double gap;        // its part of primal - dual: the blocks' gaps add up to the whole gap, and none is negative
    double violation;  // 0 where the block is at its optimum
};

/// C slack (or C slack^2) and the block's part of the gap, from its worst gradient and alpha.g.
inline Look losses(double worst, double cost, double mass, double alpha_g, bool squared) {
    const double slack = std::max(worst, 0.0);
    const double loss = squared ? cost * slack * slack : cost * slack;
    const double gap = loss - alpha_g + (squared ? mass * (mass / (4 * cost)) : 0.0);
    return {loss, std::max(gap, 0.0), 0.0};
}

/// Variables between their bounds step so many times as far as to the maximum over their own block, or to a bound if
/// that is nearer: successive over-relaxation. With a the step to the maximum, the dual still rises by
///     h/2 a^2 (1 - (kPast - 1)^2)
/// or more, and as the others will follow, fewer visits lead as far. Who comes from a bound steps to the maximum.
constexpr double kPast = 1.3;

/// Curvatures below this count as this: a step along a row of zeros is to a bound.
constexpr double kTiny = 1e-300;

/// What a block makes of the dual variables with which it answers: its loss, with the kinks rounded off, and its part
/// of the gap, without.
struct Answer {
    double loss, gap;
};

/// max(g, 0) with the kink rounded off to a parabola over a width, and its slope.
struct Ramp {
    double value, slope;
};

inline Ramp ramp(double g, double width) {
    const double slope = std::min(std::max(0.5 + g / width, 0.0), 1.0);
    return {slope * g + 0.5 * width * slope * (1 - slope), slope};
}

/// The violation of one variable under a cap: how far it would go along its gradient with a curvature of 1. Without a
/// branch, which nobody could foretell.
inline double violation(double g, double alpha, double cost, bool squared) {
    return std::abs(std::min(std::max(g, -alpha), squared ? kInfinity : cost - alpha));
}

/// The violation of a block whose members hold `mass[j]` of a common total and may pass it on to one another.
inline double violation(const double* g, const double* mass, Index n) {
    double up = -kInfinity, down = kInfinity;
    for (Index j = 0; j < n; ++j) {
        up = std::max(up, g[j]);
        if (mass[j] > 0) down = std::min(down, g[j]);
    }
    return std::max(up - down, 0.0);
}

/// By how much gradients may differ from these before such members pass anything on; 0 where they do already.
inline double distance_to_gain(const double* g, const double* mass, Index n) {
    Index holder = -1;
    for (Index j = 0; j < n; ++j) {
        if (!(mass[j] > 0)) continue;
        if (holder >= 0) return 0.0;
        holder = j;
    }
    double most = -kInfinity;
    for (Index j = 0; j < n; ++j)
        if (j != holder) most = std::max(most, g[j]);
    return holder < 0 ? kInfinity : std::max(g[holder] - most, 0.0);
}

/// What is left of a cap, without the dust that rounding leaves.
inline double remainder(double cap, double mass) {
    const double left = cap - mass;
    return left > 1e-13 * cap ? left : 0.0;
}

}  // namespace dualsvm
