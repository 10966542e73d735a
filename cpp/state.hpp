#pragma once

#include <cstdint>
#include <vector>

namespace dualsvm {

/// One pass over the examples that were due.
struct Pass {
    std::int64_t visited;  // examples visited in it
    std::int64_t awake;    // of those, how many had anything to gain
    double lower;          // the dual after it
    double estimate;       // relative gap as seen in passing, while w moved: not a bound
    double seconds;
};

struct Bounds {
    double lower, upper;
    double distance;  // the part of the upper bound that the weights pay to the prior
};

/// What moves: dual variables, v, w and who is visited when, over a problem that stays where the caller has it.
/// Three verbs act on it. Each does bounded work, none prints and none knows of Python.
class State {
public:
    virtual ~State() = default;

    /// explore: the next pass visits every example.
    virtual void explore() = 0;

    /// optimize: passes over the examples that are due, until `max_passes` of them, `max_visits` visits, or an
    /// estimated relative gap of `goal`.
    virtual std::vector<Pass> optimize(std::int64_t max_passes, std::int64_t max_visits, double goal) = 0;

    /// certify: the dual of alpha and the primal of the weights offered, in one pass over all examples; where single
    /// precision is asked for, the weights offered are first rounded to it. Rebuilds v from alpha, and wakes the
    /// examples that have something to gain.
    virtual Bounds certify(int threads) = 0;

    /// answer: as certify, but first every dual variable becomes what the weights offered ask for. Newton's method
    /// builds on it: `own` is then m + S u, from which the weights offered differ by S times the gradient of the
    /// primal, and `curve` adds to the Hessian of the losses, whose lower triangle the caller keeps and which begins
    /// at 0, what has changed in it since the last call. Only where `smooth`. With a stride above 1 only every
    /// stride-th example answers, and what is returned bounds nothing.
    virtual bool smooth() const = 0;
    virtual Bounds answer(std::int64_t stride, int threads) = 0;
    virtual void own(double* w) const = 0;
    virtual void curve(double* hessian, int threads) = 0;

    /// draw: until the next call, optimize solves the problem with another term 1/2 kappa (w - c)' S^-1 (w - c), c
    /// the given centre; kappa 0 takes it away. Bounds remain those of the problem itself.
    virtual void draw(const double* centre, double kappa) = 0;

    virtual std::int64_t n_weights() const = 0;
    virtual std::int64_t n_alpha() const = 0;
    virtual void get_weights(double* w) const = 0;  // the weights offered: what certify bounds
    virtual void get_alpha(double* alpha) const = 0;
    virtual double set_alpha(const double* alpha, int threads) = 0;  // returns their dual
    virtual double nothing() const = 0;                              // the dual where alpha is all 0
    virtual void set_weights(const double* w) = 0;  // within their bounds; what the next certify bounds
};

}  // namespace dualsvm
