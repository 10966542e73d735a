#pragma once

#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

#include "block.hpp"
#include "calendar.hpp"
#include "outer.hpp"
#include "random.hpp"
#include "simd.hpp"
#include "state.hpp"

// The one loop that drives every kind of block. See block.hpp for what a block can do.

namespace dualsvm {

/// Runs f(0) .. f(n-1), each on a thread of its own where the system gives one. f must not throw.
template <class F>
void parallel(std::size_t n, F&& f) {
    std::vector<std::thread> threads;
    threads.reserve(n);
    for (std::size_t t = 1; t < n; ++t) {
        try {
            threads.emplace_back([&f, t] { f(t); });
        } catch (const std::exception&) {
            f(t);
        }
    }
    f(0);
    for (auto& thread : threads) thread.join();
}

/// What a run over some examples adds up.
struct Tally {
    double linear = 0, loss = 0, gap = 0;

    void operator+=(const Tally& other) {
        linear += other.linear;
        loss += other.loss;
        gap += other.gap;
    }
};

/// Some examples, and room to say what was found of each; a part of the gap up to `little` is little to gain.
struct Visits {
    const std::uint32_t* examples;
    Find* finds;
    std::size_t n;
    double little;
};

constexpr double kLittle = 0.1;       // times the mean part of the gap in the last pass: little to gain
constexpr std::size_t kMostSums = 4;  // threads that each keep a Hessian of their own
constexpr std::size_t kAhead = 4;     // how many visits ahead a row is asked for

template <class Block>
DUALSVM_AHEAD void look_ahead(const Block& block, const Visits& visits, std::size_t p) {
    if (p + 2 * kAhead < visits.n) block.soon(visits.examples[p + 2 * kAhead]);
    if (p + kAhead < visits.n) block.ahead(visits.examples[p + kAhead]);
}

/// Visits examples in the given order, each time raising the dual over the block as far as it goes.
template <class Block>
inline Tally sweep_loop(Block& block, typename Block::Scratch& scratch, const Visits& visits, const Weights& weights,
                        double sigma) {
    Tally tally;
    for (std::size_t p = 0; p < visits.n; ++p) {
        look_ahead(block, visits, p);
        const std::uint32_t i = visits.examples[p];
        const Look look = block.look(i, weights.w, scratch);
        tally.gap += look.gap;
        visits.finds[p] = !(look.violation > 0) ? Find::rest : look.gap <= visits.little ? Find::little : Find::gain;
        if (look.violation > 0) tally.linear += block.step(i, weights, sigma, scratch);
    }
    return tally;
}

template <class Block>
DUALSVM_WIDE Tally sweep_wide(Block& block, typename Block::Scratch& scratch, const Visits& visits,
                              const Weights& weights, double sigma) {
    return sweep_loop(block, scratch, visits, weights, sigma);
}

/// Whether the primal of these blocks can be smooth.
template <class Block>
concept Smooth = requires(Block block, typename Block::Scratch scratch) { block.answer(Index(0), scratch); };

/// Looks at examples at a fixed w, and adds up their losses, and in u what their dual variables make of it, once
/// they have been set to what w asks for if they are to `answer`.
template <class Block>
inline Tally inspect_loop(Block& block, typename Block::Scratch& scratch, const Visits& visits, const double* w,
                          const Weights& u, bool answer) {
    Tally tally;
    for (std::size_t p = 0; p < visits.n; ++p) {
        look_ahead(block, visits, p);
        const std::uint32_t i = visits.examples[p];
        const Look look = block.look(i, w, scratch);
        tally.loss += look.loss;
        if constexpr (Smooth<Block>)
            if (answer) block.answer(i, scratch);
        tally.linear += block.linear(i);
        visits.finds[p] = look.violation > 0 ? Find::gain : Find::rest;
        block.deposit(i, u, scratch);
    }
    return tally;
}

template <class Block>
DUALSVM_WIDE Tally inspect_wide(Block& block, typename Block::Scratch& scratch, const Visits& visits, const double* w,
                                const Weights& u, bool answer) {
    return inspect_loop(block, scratch, visits, w, u, answer);
}

template <class Block>
class StateOf final : public State {
public:
    StateOf(Block block, const Shape& shape, bool single_precision, std::uint64_t seed)
        : block_(std::move(block)),
          prior_(shape, std::size_t(block_.n_weights())),
          drawn_(prior_),
          single_precision_(single_precision),
          random_(seed),
          v_(std::size_t(block_.n_weights())) {
        if (prior_.apart()) w_.resize(v_.size());
        for (Index i = 0; i < block_.size(); ++i)
            if (block_.cost(i) > 0) examples_.push_back(std::uint32_t(i));
        calendar_.reset(examples_, std::size_t(block_.size()));
        prior_.place(v_, w_);
        restart();
    }

    void explore() override { calendar_.wake(examples_); }

    std::vector<Pass> optimize(std::int64_t max_passes, std::int64_t max_visits, double goal) override {
        std::vector<Pass> passes;
        std::vector<std::uint32_t> due;
        while (std::int64_t(passes.size()) < max_passes && max_visits > 0) {
            const auto began = std::chrono::steady_clock::now();
            calendar_.turn(due);
            if (due.empty()) break;
            random_.shuffle(due);
            finds_.resize(due.size());
            const Tally tally = sweep(due);
            linear_ += tally.linear;
            blend();
            const double lower = dual();
            const double whole = drawn() && scale_ > 0 ? scale_ : std::abs(lower + tally.gap);
            const double estimate = tally.gap / std::max(whole, std::numeric_limits<double>::min());
            little_ = drawn() ? -1.0 : kLittle * tally.gap / double(due.size());
            const std::int64_t awake = note(due);
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
            passes.push_back({std::int64_t(due.size()), awake, lower, estimate, took.count()});
            max_visits -= std::int64_t(due.size());
            if (estimate <= goal) break;
        }
        return passes;
    }

    Bounds certify(int threads) override { return inspect(examples_, threads, false); }

    bool smooth() const override { return Smooth<Block> && block_.squared && !prior_.boxed(); }
    Bounds answer(std::int64_t stride, int threads) override {
        if (stride <= 1) return inspect(examples_, threads, true);
        std::vector<std::uint32_t> some;
        for (std::size_t p = 0; p < examples_.size(); p += std::size_t(stride)) some.push_back(examples_[p]);
        return inspect(some, threads, true);
    }
    void own(double* w) const override { std::copy(weights().begin(), weights().end(), w); }

    void curve(double* sum, int threads) override {
        if constexpr (Smooth<Block>) {
            const std::size_t d = v_.size();
            std::vector<std::uint32_t> changed;
            std::vector<double> by;
            counted_.resize(std::size_t(block_.size()));
            for (const std::uint32_t i : examples_) {
                const double c = block_.curvature(i);
                if (c == counted_[i]) continue;
                changed.push_back(i);
                by.push_back(c - counted_[i]);
                counted_[i] = c;
            }
            const std::size_t n = changed.size(), shares = std::min(shares_of(changed, threads), kMostSums);
            std::vector<std::vector<double>> parts(shares - 1, std::vector<double>(d * d));
            std::vector<Outer<std::remove_cvref_t<decltype(block_.rows)>>> outers;
            for (std::size_t t = 0; t < shares; ++t)
                outers.emplace_back(block_.rows, t > 0 ? parts[t - 1].data() : sum);
            parallel(shares, [&](std::size_t t) {
                auto& outer = outers[t];
                const std::size_t from = n * t / shares, to = n * (t + 1) / shares;
                wide() ? outer.add_wide(changed, by, from, to) : outer.add_loop(changed, by, from, to);
            });
            for (const auto& part : parts)
                for (std::size_t k = 0; k < d * d; ++k) sum[k] += part[k];
        }
    }

    void draw(const double* centre, double kappa) override {
        drawn_ = kappa > 0 ? prior_.drawn(centre, kappa) : prior_;
        for (double& value : v_) value /= sigma_ * (1 + kappa);
        sigma_ = 1 / (1 + kappa);
        w_.resize(drawn_.apart() ? v_.size() : 0);
        drawn_.place(v_, w_);
        restart();
    }

    std::int64_t n_weights() const override { return std::int64_t(v_.size()); }
    std::int64_t n_alpha() const override { return block_.n_alpha(); }
    void get_weights(double* w) const override {
        for (const double value : offer_) *w++ = rounded(value);
    }
    void get_alpha(double* alpha) const override {
        for (Index i = 0; i < block_.size(); ++i) block_.get_alpha(i, alpha);
    }
    double set_alpha(const double* alpha, int threads) override {
        for (Index i = 0; i < block_.size(); ++i) block_.set_alpha(i, alpha);
        const double lower = certify(threads).lower;
        restart();
        return lower;
    }
    double nothing() const override { return prior_.conjugate(std::vector<double>(v_.size())); }
    void set_weights(const double* w) override {
        offer_.assign(w, w + v_.size());
        foreign_ = true;
    }

private:
    const std::vector<double>& weights() const { return drawn_.apart() ? w_ : v_; }
    double rounded(double w) const { return single_precision_ ? double(float(w)) : w; }
    bool drawn() const { return sigma_ < 1; }
    double dual() const { return linear_ + prior_.conjugate(v_, sigma_); }

    /// The weights offered are a running mean of w, mostly over the last ten passes: the primal of w itself goes
    /// up and down from pass to pass, and lies further from the optimum. Confined, as a mean may round out of the
    /// box.
    void blend() {
        const std::vector<double>& w = weights();
        const double part = std::max(0.1, 8.0 / (7.0 + double(++blended_)));
        for (std::size_t k = 0; k < offer_.size(); ++k) offer_[k] += part * (w[k] - offer_[k]);
        prior_.confine(offer_);
    }
    void restart() {
        offer_ = weights();
        blended_ = 0;
        foreign_ = false;
    }

    Bounds inspect(const std::vector<std::uint32_t>& examples, int threads, bool answer) {
        for (double& w : offer_) w = rounded(w);
        const std::size_t shares = shares_of(examples, threads);
        std::vector<std::vector<double>> sums(shares, std::vector<double>(v_.size()));
        std::vector<Tally> tallies(shares);
        auto scratches = scratch(shares);
        finds_.resize(examples.size());
        parallel(shares, [&](std::size_t t) {
            const auto run = wide() ? inspect_wide<Block> : inspect_loop<Block>;
            double* u = sums[t].data();
            tallies[t] = run(block_, scratches[t], share(examples, t, shares), offer_.data(),
                             {u, u, nullptr, nullptr, nullptr, nullptr}, answer);
        });
        Tally all = tallies[0];
        for (std::size_t t = 1; t < shares; ++t) {
            all += tallies[t];
            for (std::size_t k = 0; k < v_.size(); ++k) sums[0][k] += sums[t][k];
        }
        calendar_.wake({});
        note(examples);
        linear_ = all.linear;
        v_ = prior_.scaled(std::move(sums[0]));
        for (double& value : v_) value *= sigma_;
        drawn_.place(v_, w_);
        const double distance = prior_.distance(offer_);
        const Bounds bounds{dual(), distance + all.loss, distance};
        scale_ = bounds.upper;
        if (answer) {  // the next pass begins anew
            blended_ = 0;
            foreign_ = false;
        } else if (foreign_)
            restart();
        return bounds;
    }

    /// How many threads are worth having for these examples.
    static std::size_t shares_of(const std::vector<std::uint32_t>& examples, int threads) {
        constexpr std::size_t least = 64;
        return std::max<std::size_t>(1, std::min<std::size_t>(std::size_t(threads), examples.size() / least));
    }
    auto scratch(std::size_t shares) const {
        std::vector<typename Block::Scratch> many;
        for (std::size_t t = 0; t < shares; ++t) many.push_back(block_.scratch());
        return many;
    }

    /// The share of thread t among `shares`, with room for its notes.
    Visits share(const std::vector<std::uint32_t>& examples, std::size_t t, std::size_t shares) {
        const std::size_t from = examples.size() * t / shares, to = examples.size() * (t + 1) / shares;
        return {examples.data() + from, finds_.data() + from, to - from, little_};
    }

    /// Enters into the calendar what was found of these examples; returns how many have something to gain.
    std::int64_t note(const std::vector<std::uint32_t>& examples) {
        std::int64_t awake = 0;
        for (std::size_t p = 0; p < examples.size(); ++p) {
            calendar_.enter(examples[p], finds_[p], random_);
            awake += finds_[p] != Find::rest;
        }
        return awake;
    }

    Tally sweep(const std::vector<std::uint32_t>& due) {
        auto scratch = block_.scratch();
        const auto run = wide() ? sweep_wide<Block> : sweep_loop<Block>;
        const Tally tally = run(block_, scratch, share(due, 0, 1), drawn_.moving(v_, w_, drawn()), sigma_);
        if (drawn()) drawn_.regain(v_, w_);
        return tally;
    }

    Block block_;
    Regulariser prior_;
    Regulariser drawn_;  // what the steps obey: the prior, or more than that
    double sigma_ = 1;   // variance of that in units of the prior's
    double scale_ = 0;   // the last upper bound
    bool single_precision_;
    Random random_;
    std::vector<double> v_, w_;            // w_ is empty where it is v_
    std::vector<double> offer_;            // the weights offered to the caller
    std::int64_t blended_ = 0;             // passes blended into them
    bool foreign_ = false;                 // they came from outside
    std::vector<std::uint32_t> examples_;  // all that cost something
    Calendar calendar_;
    std::vector<Find> finds_;
    double little_ = -1;  // what the calendar takes for little to gain, in the present pass
    double linear_ = 0;
    std::vector<double> counted_;  // what the Hessian counts the examples with
};

}  // namespace dualsvm
