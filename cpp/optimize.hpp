#pragma once

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "answered.hpp"
#include "block.hpp"
#include "calendar.hpp"
#include "columns.hpp"
#include "crew.hpp"
#include "loops.hpp"
#include "order.hpp"
#include "random.hpp"
#include "simd.hpp"
#include "state.hpp"

// The state of every kind of block. See block.hpp for what a block can do.

namespace dualsvm {

constexpr std::size_t kScreened = 2048;  // examples that are worth a thread where it is seen who sleeps
constexpr std::size_t kLarge = 10000;    // examples from which on it takes a while to build v from alpha
constexpr double kCoarse = 3e-4;         // gap down to which weights may be light,
constexpr std::int64_t kRough = 64;      // and visits per example

template <class Block>
class StateOf final : public State {
public:
    /// A state of its own, or, with the moving parts of another, one more part of the same problem.
    StateOf(Block block, const Shape& shape, bool single_precision, std::uint64_t seed,
            std::shared_ptr<Moving> moving)
        : State(moving ? std::move(moving)
                       : std::make_shared<Moving>(shape, std::size_t(block.n_weights()), single_precision, seed)),
          block_(std::move(block)),
          scratch_(block_.scratch()) {
        examples_.reserve(std::size_t(block_.size()));
        for (Index i = 0; i < block_.size(); ++i)
            if (block_.cost(i) > 0) examples_.push_back(std::uint32_t(i));
        explore();
    }

    void explore() override { calendar_.wake(examples_, std::size_t(block_.size())); }

    std::size_t turn() override {
        calendar_.turn(due_);
        order_.mix(due_, double(block_.rows.bytes()) / double(block_.size()), moving_.random);
        finds_.resize(due_.size());
        return due_.size();
    }
    Tally visit(std::size_t from, std::size_t to, Meeting* meeting, Crew& crew) override {
        if (meeting) {
            alone();
            const auto run = wide() ? meet_wide<Block> : meet_loop<Block>;
            return run(block_, scratch_, share(due_, 0, 1), from, to, moving_.moving(), moving_.sigma, *meeting,
                       moving_.random);
        }
        if constexpr (Lightened<Block>)
            if (moving_.light) return sweep(from, to, moving_.light->now(), crew);
        return sweep(from, to, moving_.moving(), crew);
    }
    bool unite(Crew& crew) override {
        if constexpr (Divisible<Block>)
            if (columns_) {
                columns_->undo(block_, share(due_, 0, 1));
                batch_ = 0;
                alone();
                exactly(crew);
                Large<double> u(moving_.v.size());
                const double linear = gather(nullptr, u.data(), crew);
                moving_.rebuild(std::move(u), linear);
                moving_.restart();
                explore();
                return true;
            }
        return false;
    }
    std::int64_t note() override { return note(due_); }
    Screening screen(Crew& crew) override {
        calendar_.sleepers(due_);
        const Tally all = look_now(due_, false, crew);
        return {std::int64_t(due_.size()), note(due_), all.gap};
    }
    Screening screen_all(bool settle, Crew& crew) override {
        moving_.fix();
        const Tally all = look_now(examples_, true, crew);
        moving_.loss = all.loss;
        moving_.judged = true;
        std::int64_t woken = 0;
        if (settle) {
            calendar_.wake({}, std::size_t(block_.size()));
            woken = note(examples_);
        } else
            woken = calendar_.rouse(examples_, finds_.data());
        const double upper = moving_.distance() + all.loss;
        return {std::int64_t(examples_.size()), woken, upper - moving_.dual()};
    }
    void lighten(Crew& crew) override {
        if constexpr (Lightened<Block>) {
            const auto n = std::int64_t(examples_.size());
            const bool light = !moving_.loose() && !moving_.prior.apart() && !moving_.prior.varied() &&
                               moving_.known > kCoarse && moving_.rough <= kRough * n && block_.light(examples_);
            if (!light) return exactly(crew);
            if (moving_.light) return;
            moving_.light = std::make_unique<Light>(moving_.v.size(), block_.stride);
            if (!moving_.none()) moving_.light->fill(moving_.v, moving_.offered());
        }
    }
    std::size_t sleeping() const override { return calendar_.sleeping(); }
    std::size_t dozing() const override { return dozing_; }
    std::size_t size() const override { return examples_.size(); }

    Bounds certify(Crew& crew) override {
        exactly(crew);
        if (!moving_.judged) return bounds(examples_, crew, 0.0).bounds;
        const bool fresh = Once<Block> && examples_.size() >= kLarge && moving_.fresh(examples_.size());
        if (fresh || moving_.built()) return stated(moving_.loss);
        Large<double> u(moving_.v.size());
        const double linear = gather(nullptr, u.data(), crew);
        return settle(std::move(u), linear, moving_.loss);
    }

    bool smooth() const override { return Smooth<Block> && !moving_.prior.boxed(); }
    Rounded answer(double width, std::int64_t stride, Crew& crew) override {
        alone();
        answered_.begin(width, stride);
        if (answered_.all()) return bounds(examples_, crew, width);
        std::vector<std::uint32_t> some;
        answered_.each(examples_, [&](std::uint32_t i) { some.push_back(i); });
        return bounds(some, crew, width);
    }
    Rounded refine(double width, Crew& crew) override {
        alone();
        moving_.fix();
        Large<double> u(moving_.v.size());
        moving_.prior.unscaled(moving_.v, moving_.sigma, u.data());
        double tangents = moving_.linear;  // l.alpha - w.u, which the losses are at least
        for (std::size_t k = 0; k < u.size(); ++k) tangents -= moving_.offered()[k] * u[k];
        Tally all;
        if constexpr (Smooth<Block>)
            all = look_with(wide() ? refine_wide<Block> : refine_loop<Block>,
                            answered_.curved(block_, examples_, width), moving_.offered().data(), u.data(), crew,
                            width);
        const Bounds bounds = settle(std::move(u), moving_.linear + all.linear, tangents + all.loss);
        return {bounds, tangents + all.smooth, all.gap, all.curve};
    }
    void own(double* w) const override { std::copy(moving_.weights().begin(), moving_.weights().end(), w); }

    std::int64_t curve(double* sum, Crew& crew) override {
        if constexpr (Smooth<Block>) return answered_.curve(block_, examples_, sum, moving_.v.size(), crew);
        return 0;
    }

    void draw(const double* centre, double kappa) override {
        exactly();
        obey(kappa > 0 ? moving_.prior.drawn(centre, kappa) : moving_.prior, 1 / (1 + kappa));
        moving_.leaning = false;
    }
    void lean(const double* mean, double sigma) override {
        exactly();
        obey(moving_.prior.around(mean), sigma);
        moving_.leaning = true;
        moving_.known = kInfinity;
    }

    std::int64_t n_weights() const override { return std::int64_t(moving_.v.size()); }
    std::int64_t n_alpha() const override { return block_.n_alpha(); }
    void get_weights(double* w, const Index* order, Index n) const override {
        Large<double> light(moving_.light && order ? moving_.v.size() : 0);
        if (moving_.light) moving_.light->give(order ? light.data() : w);
        if (moving_.light && !order) return;
        const double* const offered = moving_.light ? light.data() : moving_.offered().data();
        const Index lines = order ? n : 1, line = n_weights() / std::max<Index>(lines, 1);
        for (Index k = 0; k < lines; ++k) {
            double* const to = w + (order ? order[k] : k) * line;
            const double* const from = offered + k * line;
            if (moving_.single_precision) {
#pragma omp simd
                for (Index j = 0; j < line; ++j) to[j] = double(float(from[j]));
            } else
                std::copy_n(from, line, to);
        }
    }
    void get_alpha(double* alpha) const override {
        for (Index i = 0; i < block_.size(); ++i) block_.get_alpha(i, alpha);
    }
    double set_alpha(const double* alpha, Crew& crew) override {
        exactly(crew);
        alone();
        for (Index i = 0; i < block_.size(); ++i) block_.set_alpha(i, alpha);
        const double lower = bounds(examples_, crew, 0.0).bounds.lower;
        moving_.restart();
        return lower;
    }
    double nothing() const override {
        return moving_.prior.apart() ? moving_.prior.conjugate(Large<double>(moving_.v.size())) : 0.0;
    }

    Tally inspect(const double* w, double* u, Crew& crew) override { return look_at(examples_, w, u, crew, 0.0); }
    void resume(const double* alpha) override {
        alone();
        for (Index i = 0; i < block_.size(); ++i) block_.set_alpha(i, alpha);
    }
    Tally survey(const double* w, double* rest, Crew& crew) override {
        if (rest) std::fill(rest, rest + block_.size(), kInfinity);
        return look_over(examples_, w, rest, crew, kShared);
    }
    double deposit(const bool* which, double* u) const override {
        Crew alone(1);
        return gather(which, u, alone);
    }

    void set_weights(const double* w) override {
        exactly();
        moving_.offer.assign(w, w + moving_.v.size());
        moving_.foreign = true;
        moving_.judged = false;
    }

private:
    /// Has v and the weights offered in double precision again, if they are light.
    void exactly(Crew& crew) {
        if (!moving_.light) return;
        moving_.offer.resize(moving_.v.size());
        moving_.in_shares(crew, [&](std::size_t, std::size_t from, std::size_t to) {
            moving_.light->give(moving_.offer.data(), from, to);
            std::fill(moving_.v.data() + from, moving_.v.data() + to, 0.0);
        });
        moving_.light.reset();
        moving_.rebuilt(gather(nullptr, moving_.v.data(), crew));
    }
    void exactly() {
        Crew alone(1);
        exactly(alone);
    }

    /// Adds to u what the dual variables make of it, those of the examples in `which`, or of all; returns their
    /// linear part.
    double gather(const bool* which, double* u, Crew& crew) const {
        if constexpr (Divisible<Block>)
            if (columns_ && !which) return columns_->gather(block_, examples_, u, crew);
        const std::size_t shares = shares_of(examples_, crew), n = moving_.v.size(), m = examples_.size();
        std::vector<Large<double>> sums(shares - 1, Large<double>(n));
        std::vector<double> linear(shares);
        auto scratches = scratch(shares);
        crew.run(shares, [&](std::size_t t) {
            const std::size_t from = m * t / shares, to = m * (t + 1) / shares;
            const auto run = wide() ? gather_wide<Block> : gather_loop<Block>;
            double* sum = t > 0 ? sums[t - 1].data() : u;
            linear[t] = run(block_, scratches[t], examples_.data() + from, to - from, which, sum);
        });
        for (std::size_t t = 1; t < shares; ++t) {
            linear[0] += linear[t];
            for (std::size_t k = 0; k < n; ++k) u[k] += sums[t - 1][k];
        }
        return linear[0];
    }

    /// Has the steps obey this, with sigma times the variance of the prior.
    void obey(Regulariser drawn, double sigma) {
        moving_.drawn = std::move(drawn);
        for (double& value : moving_.v) value *= sigma / moving_.sigma;
        moving_.sigma = sigma;
        moving_.least = -kInfinity;  // what they raise may be another dual
        moving_.w.resize(moving_.drawn.apart() ? moving_.v.size() : 0);
        moving_.drawn.place(moving_.v, moving_.w);
        moving_.restart();
    }

    /// Bounds of the dual variables as they are, or, with a width, of those that answer to the weights offered.
    Rounded bounds(const std::vector<std::uint32_t>& examples, Crew& crew, double width) {
        moving_.fix();
        Large<double> u(moving_.v.size());
        const Tally all = look_at(examples, moving_.offered().data(), u.data(), crew, width);
        const Bounds bounds = settle(std::move(u), all.linear, all.loss);
        moving_.since = 0;
        if (width > 0) {  // the next pass begins anew
            moving_.blended = 0;
            moving_.foreign = false;
        } else if (moving_.foreign)
            moving_.restart();
        return {bounds, all.smooth, all.gap, all.curve};
    }

    /// The bounds that these make, with the weights offered.
    Bounds settle(Large<double> u, double linear, double loss) {
        moving_.rebuild(std::move(u), linear);
        return stated(loss);
    }
    Bounds stated(double loss) {
        const double distance = moving_.prior.distance(moving_.offered()), upper = distance + loss,
                     lower = moving_.risen;
        moving_.scale = upper;
        moving_.known = (upper - lower) / std::max(std::abs(upper), std::numeric_limits<double>::min());
        return {lower, upper, distance};
    }

    template <class Moved>
    Tally sweep(std::size_t from, std::size_t to, const Moved& weights, Crew& crew) {
        if constexpr (Divisible<Block>)
            if (divided(to - from, weights, crew))
                return columns_->sweep(block_, share(due_, 0, 1), from, to, weights, moving_.sigma, crew);
        alone();
        if constexpr (Brief<Block>)
            if (block_.rows.brief() && !weights.m) {
                const auto run = wide() ? sweep_early_wide<Block> : sweep_early_loop<Block>;
                return run(block_, scratch_, share(due_, 0, 1), from, to, weights, moving_.sigma);
            }
        const auto run = wide() ? sweep_wide<Block, Moved> : sweep_loop<Block, Moved>;
        return run(block_, scratch_, share(due_, 0, 1), from, to, weights, moving_.sigma);
    }

    /// Whether several threads, each with some of the columns, are to make these visits.
    template <class Moved>
    bool divided(std::size_t visits, const Moved& weights, Crew& crew) {
        const auto parts = std::size_t(block_.rows.numbers() / block_.size() / kPart);
        const std::size_t n = std::min({crew.threads(), parts, kMostParts});
        if (n < 2 || moving_.loose() || (weights.s && block_.n_scores(weights) > 1)) return false;
        if ((!columns_ && visits < kDivided) || batch_ == 0 || !crew.gather(n)) return false;
        if (!batch_) batch_ = batch_of(block_.rows);  // while the threads come
        if (batch_ == 0) return false;
        if (!columns_) {
            columns_ = std::make_unique<Columns<Block>>(block_, n, *batch_, weights.s, crew);
            moving_.borders = columns_->borders();
            for (std::size_t& k : moving_.borders) k *= moving_.v.size() / std::size_t(block_.rows.width());
        }
        return true;
    }
    /// What the others know of the dual variables is not true any more.
    void alone() {
        if constexpr (Divisible<Block>)
            if (columns_) {
                columns_.reset();
                moving_.borders.clear();
            }
    }

    /// Looks at examples between passes, at the weights of now or at those offered.
    Tally look_now(const std::vector<std::uint32_t>& examples, bool offered, Crew& crew) {
        const auto look = [&](const auto& w) { return look_over(examples, w, nullptr, crew, kScreened); };
        if constexpr (Lightened<Block>)
            if (Light* light = moving_.light.get()) return look(offered ? light->offer() : light->now());
        return look((offered ? moving_.offered() : moving_.weights()).data());
    }

    /// Looks at examples at a fixed w, in the order in which their rows lie.
    template <class Seen>
    Tally look_over(const std::vector<std::uint32_t>& examples, const Seen& w, double* rest, Crew& crew,
                    std::size_t least) {
        const std::size_t shares = shares_of(examples, crew, least);
        std::vector<Tally> tallies(shares);
        auto scratches = scratch(shares);
        finds_.resize(examples.size());
        crew.run(shares, [&](std::size_t t) {
            const auto run = wide() ? survey_wide<Block, Seen> : survey_loop<Block, Seen>;
            tallies[t] = run(own(t), scratches[t], share(examples, t, shares), w, rest);
        });
        Tally all;
        for (const Tally& tally : tallies) all += tally;
        return all;
    }

    /// Looks at examples at a fixed w, adds to u what their dual variables make of it, and, unless these answer to w,
    /// wakes those with something to gain.
    Tally look_at(const std::vector<std::uint32_t>& examples, const double* w, double* u, Crew& crew, double width) {
        if (width > 0)  // nobody is visited between two answers
            return look_with(wide() ? answer_wide<Block> : answer_loop<Block>, examples, w, u, crew, width);
        const auto run = wide() ? inspect_wide<Block> : inspect_loop<Block>;
        const Tally all = look_with(run, examples, w, u, crew);
        calendar_.wake({}, std::size_t(block_.size()));
        note(examples);
        return all;
    }

    /// Runs a loop over examples that adds to u, in threads.
    template <class Loop, class... Width>
    Tally look_with(Loop run, const std::vector<std::uint32_t>& examples, const double* w, double* u, Crew& crew,
                    Width... width) {
        const std::size_t shares = shares_of(examples, crew), n = moving_.v.size();
        std::vector<Large<double>> sums(shares - 1, Large<double>(n));
        std::vector<Tally> tallies(shares);
        auto scratches = scratch(shares);
        finds_.resize(examples.size());
        crew.run(shares, [&](std::size_t t) {
            double* sum = t > 0 ? sums[t - 1].data() : u;
            tallies[t] = run(block_, scratches[t], share(examples, t, shares), w,
                             {sum, sum, nullptr, nullptr, nullptr, nullptr}, width...);
        });
        Tally all = tallies[0];
        for (std::size_t t = 1; t < shares; ++t) {
            all += tallies[t];
            for (std::size_t k = 0; k < n; ++k) u[k] += sums[t - 1][k];
        }
        return all;
    }

    auto scratch(std::size_t shares) const { return scratches(block_, shares); }

    /// The block as thread t has it: what it writes in a pass, no other should have read.
    const Block& own(std::size_t t) const {
        if constexpr (Divisible<Block>)
            if (columns_) return columns_->own(block_, t);
        return block_;
    }

    /// The share of thread t among `shares`, with room for its notes.
    Visits share(const std::vector<std::uint32_t>& examples, std::size_t t, std::size_t shares) {
        const std::size_t from = examples.size() * t / shares, to = examples.size() * (t + 1) / shares;
        return {examples.data() + from, finds_.data() + from, to - from, moving_.little};
    }

    /// Enters into the calendar what was found of these examples; returns how many have something to gain.
    std::int64_t note(const std::vector<std::uint32_t>& examples) {
        const auto [awake, dozing] = calendar_.enter(examples, finds_.data());
        dozing_ = dozing;
        return std::int64_t(awake);
    }

    Block block_;
    typename Block::Scratch scratch_;
    std::vector<std::uint32_t> examples_;  // all that cost something
    struct Nothing {};
    std::unique_ptr<typename decltype([] {
        if constexpr (Divisible<Block>)
            return std::type_identity<Columns<Block>>();
        else
            return std::type_identity<Nothing>();
    }())::type>
        columns_;
    std::optional<std::size_t> batch_;  // examples of which threads tell one another at once, once that is known
    Calendar calendar_;
    Order order_;
    std::vector<std::uint32_t> due_;  // in the present pass
    std::vector<Find> finds_;
    std::size_t dozing_ = 0;    // how many of those who were noted last doze
    Answered<Block> answered_;  // for Newton's method
};

}  // namespace dualsvm
