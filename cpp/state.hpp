#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "crew.hpp"
#include "moving.hpp"

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

/// Bounds, and what was added up on the way to them: the losses with their kinks rounded off, and how much of the gap
/// is due to that; and what the outer products of the rows count in their Hessian, all together.
struct Rounded {
    Bounds bounds;
    double loss, gap, curve;
};

/// What a screening finds: at how many it looked, how many of them woke up, and their part of the gap.
struct Screening {
    std::int64_t looks = 0, woken = 0;
    double gap = 0;
};

/// What `optimize` did, and whether it ended at its goal.
struct Course {
    std::vector<Pass> passes;
    bool reached = false;
};

/// What moves: dual variables, v, w and who is visited when, over a problem that stays where the caller has it.
/// Three verbs act on it. Each does bounded work, none prints and none knows of Python.
///
/// Several states over different rows of one problem may share what moves: the rows that are in memory, of more than
/// memory holds. Then `resume`, `survey`, `deposit` and `inspect` take the place of set_alpha and certify.
class State {
public:
    explicit State(std::shared_ptr<Moving> moving) : shared_(std::move(moving)), moving_(*shared_) {}
    virtual ~State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    /// explore: the next pass visits every example.
    virtual void explore() = 0;

    /// What a pass of `optimize` is made of: find who is due next, in random order; visit some of them, for the first
    /// time if there is a meeting; and note what was found; returns how many have something to gain. Who rests at a
    /// bound sleeps until a screening finds otherwise: of those who sleep, at the weights of now, or of everybody, at
    /// the weights offered, which tells the whole gap, too, and where all are to settle puts to sleep who rests then.
    virtual std::size_t turn() = 0;
    virtual Tally visit(std::size_t from, std::size_t to, Meeting* meeting, Crew& crew) = 0;
    virtual std::int64_t note() = 0;
    virtual Screening screen(Crew& crew) = 0;
    virtual Screening screen_all(bool settle, Crew& crew) = 0;
    /// Goes over to light weights, where passes do well with them, or back from them. A state that is alone may keep
    /// them between two calls of `optimize`; other verbs first go back.
    virtual void lighten(Crew& crew) = 0;
    /// Undoes the last pass, if several threads have made it, and has one thread make all visits from now on; returns
    /// whether they had.
    virtual bool unite(Crew& crew) = 0;
    virtual std::size_t sleeping() const = 0;
    virtual std::size_t dozing() const = 0;  // of those who were visited last
    virtual std::size_t size() const = 0;    // examples that cost something

    /// certify: the dual of alpha and the primal of the weights offered, in one pass over all examples; where single
    /// precision is asked for, the weights offered are first rounded to it. Rebuilds v from alpha, and wakes the
    /// examples that have something to gain. Where a screening has just found the primal, that is not done again, and
    /// where few visits have moved v, it is not rebuilt.
    virtual Bounds certify(Crew& crew) = 0;

    /// answer: as certify, but it wakes nobody, and first every dual variable becomes what the weights offered ask
    /// for, where the kinks of the losses are rounded off over this width. Newton's method builds on it: `own` is
    /// then m + S u, from which the weights offered differ by S times the gradient of the rounded primal, and `curve`
    /// adds to the Hessian of the losses (width times it, unless they are squared), whose lower triangle the caller
    /// keeps and which begins at 0, what has changed in it since the last call; it returns how many examples count in
    /// it. Only where `smooth`. With a stride above 1 only one run of examples in so many answers, and what is
    /// returned bounds nothing; the next strides must divide it.
    ///
    /// refine: as answer, of those only whose losses were curved when they last answered, at this width or a smaller
    /// one. The others keep their dual variables, and their losses become the tangents there, which lie below: so the
    /// lower bound is one of the problem, and the upper bound is not.
    virtual bool smooth() const = 0;
    virtual Rounded answer(double width, std::int64_t stride, Crew& crew) = 0;
    virtual Rounded refine(double width, Crew& crew) = 0;
    virtual void own(double* w) const = 0;
    virtual std::int64_t curve(double* hessian, Crew& crew) = 0;

    /// draw: until the next call, optimize solves the problem with another term 1/2 kappa (w - c)' S^-1 (w - c), c
    /// the given centre; kappa 0 takes it away. Bounds remain those of the problem itself.
    virtual void draw(const double* centre, double kappa) = 0;

    /// lean: until the next call, optimize solves a problem with the same bounds on the weights, but with another
    /// prior: around this mean, and with sigma times the variance. That is what a share of the examples sees of the
    /// others.
    virtual void lean(const double* mean, double sigma) = 0;

    virtual std::int64_t n_weights() const = 0;
    virtual std::int64_t n_alpha() const = 0;
    /// The weights offered, what certify bounds; with an order of `n` lines, line k of them where that says.
    virtual void get_weights(double* w, const Index* order, Index n) const = 0;
    virtual void get_alpha(double* alpha) const = 0;
    virtual double set_alpha(const double* alpha, Crew& crew) = 0;  // returns their dual
    virtual double nothing() const = 0;                             // the dual where alpha is all 0
    virtual void set_weights(const double* w) = 0;  // within their bounds; what the next certify bounds

    /// resume: takes dual variables that v already counts.
    virtual void resume(const double* alpha) = 0;
    /// survey: the losses of these examples at some weights, and their parts of the gap; and for each, unless `rest`
    /// is null, how far its gradients are from leaving it anything to gain: 0 where they do already, infinity where
    /// it costs nothing.
    virtual Tally survey(const double* w, double* rest, Crew& crew) = 0;
    /// deposit: adds to u what the dual variables make of it, those of the examples in `which`, or of all; returns
    /// their linear part.
    virtual double deposit(const bool* which, double* u) const = 0;
    /// inspect: both at once, for all examples; wakes those that have something to gain.
    virtual Tally inspect(const double* w, double* u, Crew& crew) = 0;
    const std::shared_ptr<Moving>& moving() const { return shared_; }

protected:
    std::shared_ptr<Moving> shared_;
    Moving& moving_;
};

/// optimize: passes over the examples of some states, which share what moves, that are due, until `max_passes` of
/// them, `max_visits` visits, or a relative gap of `goal`. Of a state that is alone, and so knows all examples, and
/// whose weights are not drawn anywhere, that is the gap of the weights offered; else an estimate of what may be
/// gained.
Course optimize(const std::vector<State*>& states, std::int64_t max_passes, std::int64_t max_visits, double goal,
                int threads, bool alone);

/// meet: passes over the first of these states, whose rows have just been read, in the company of the others.
std::vector<Pass> meet(const std::vector<State*>& states, std::int64_t passes, Meeting& meeting);

}  // namespace dualsvm
