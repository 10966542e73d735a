#pragma once

#include "held.hpp"
#include "random.hpp"

namespace dualsvm {

/// Constraints in compressed rows, each of some example.
struct Constraints {
    const Index* example;
    const Index* start;
    const std::int32_t* column;
    const double* x;
    const double* l;
    Index n;
};

/// What passes over the cache did.
struct CachePasses {
    Index passes = 0, visited = 0;
    double gain = 0;  // of the dual; where weights are bounded, at most that
    double gap = 0;   // of the cached problem, as seen in the last pass: not a bound
    double work = 0;  // columns read and written
};

/// When to end passes over the cache: at a gap of the cached problem, after a number of them, or, if the oracle has a
/// price, when one of them gains less for its work than all that was gained since the oracle was last asked, `gain`
/// for `work` before the first.
struct Until {
    double gap;
    Index passes;
    bool priced;
    double gain, work;
};

/// The state of a problem whose constraints are too many to list: those that a search found, their dual variables,
/// and v. The block of an example is maximised by its Gram matrix: one read of each of its constraints tells the
/// gradients, and one update of v carries the result.
class Working {
public:
    Working(const Shape& shape, Index n_weights, Index patience, std::uint64_t seed)
        : regulariser_(shape, 0), patience_(patience), random_(seed) {
        grow(shape, n_weights);
    }

    /// More weights, with the prior and the box of all.
    void grow(const Shape& shape, Index n_weights) {
        regulariser_ = Regulariser(shape, std::size_t(n_weights));
        v_.resize(std::size_t(n_weights));
        w_.resize(std::size_t(n_weights));
        spread_.resize(std::size_t(n_weights));
        place();
    }

    /// More examples, with their C_i.
    void admit(const double* cost, Index n) {
        for (Index i = 0; i < n; ++i) {
            order_.push_back(std::uint32_t(blocks_.size()));
            rests_.push_back({0, kNever});
            blocks_.emplace_back();
            blocks_.back().cost = cost[i];
        }
    }

    Index size() const { return Index(blocks_.size()); }
    Index n_weights() const { return Index(v_.size()); }
    Index bytes() const { return bytes_; }
    Index held() const {
        Index sum = 0;
        for (const Held& block : blocks_) sum += block.size();
        return sum;
    }
    const Large<double>& weights() const { return regulariser_.apart() ? w_ : v_; }

    /// Adds the constraints that are new, and maximises the blocks of their examples; returns their number.
    Index insert(const Constraints& found, double& gain) {
        const Weights moving = regulariser_.moving(v_, w_, false);
        Index added = 0;
        for (Index r = 0; r < found.n; ++r) {
            Held& block = blocks_[found.example[r]];
            const Index at = found.start[r], n = found.start[r + 1] - at;
            if (!(block.cost > 0) || block.knows(found.column + at, found.x + at, n, found.l[r])) continue;
            changing(block, [&] {
                block.add(found.column + at, found.x + at, n, found.l[r], 0.0, moving.s, spread_, scratch_);
            });
            gain += block.visit(moving, scratch_).gain;
            prune(block);
            block.follow(0);
            rests_[found.example[r]] = {};
            ++added;
        }
        return added;
    }

    /// Takes constraints over with their dual variables, which must be feasible; `rebuild` has to follow.
    void put(const Constraints& given, const double* alpha) {
        const double* s = regulariser_.moving(v_, w_, false).s;
        for (Index r = 0; r < given.n; ++r) {
            Held& block = blocks_[given.example[r]];
            const Index at = given.start[r], n = given.start[r + 1] - at;
            changing(block, [&] {
                block.add(given.column + at, given.x + at, n, given.l[r], alpha[r], s, spread_, scratch_);
            });
            rests_[given.example[r]] = {};
        }
    }

    /// Drops the constraints of some examples with their dual variables; `rebuild` has to follow.
    void forget(const Index* which, Index n) {
        for (Index k = 0; k < n; ++k) {
            Held& block = blocks_[which[k]];
            drop(block, [](const Held::Constraint&) { return true; });
            block.gap = 0;
        }
    }

    /// Adds a vector to all constraints of an example, l times it if `scaled`, for some examples; `rebuild` has to
    /// follow. Their dual variables stay.
    void move(const Constraints& by, bool scaled) {
        const double* s = regulariser_.moving(v_, w_, false).s;
        for (Index r = 0; r < by.n; ++r) {
            Held& block = blocks_[by.example[r]];
            const Index at = by.start[r], n = by.start[r + 1] - at;
            changing(block, [&] { block.move(by.column + at, by.x + at, n, scaled, s, spread_, scratch_); });
            if (block.size()) rests_[by.example[r]] = {};
        }
    }

    /// Passes over the blocks that are due: one that had little to gain is left alone for a few passes.
    CachePasses optimize(const Until& until) {
        const Weights moving = regulariser_.moving(v_, w_, false);
        CachePasses all;
        do {
            random_.shuffle(order_);
            ++now_;
            due_.clear();
            for (const std::uint32_t i : order_)
                if (rests_[i].until <= now_) due_.push_back(i);
            Held::Visit pass;
            if (++since_ > kStretch) {
                pass.gain += stretch(moving, pass.read);
                since_ = 1;
            }
            for (std::size_t k = 0; k < due_.size(); ++k) {
                if (k + 2 * kAhead < due_.size()) prefetch(&blocks_[due_[k + 2 * kAhead]], sizeof(Held));
                if (k + kAhead < due_.size()) blocks_[due_[k + kAhead]].ahead();
                Held& block = blocks_[due_[k]];
                Rest& rest = rests_[due_[k]];
                const Held::Visit seen = block.visit(moving, scratch_);
                pass.gain += seen.gain;
                pass.read += seen.read;
                rest.length = block.gap > kLittle * mean_gap_ ? 0 : std::min(2 * rest.length + 1, kLongest);
                rest.until = now_ + 1 + rest.length;
                prune(block);
            }
            all.gap = 0;
            for (const Held& block : blocks_) all.gap += block.gap;
            all.gain += pass.gain;
            all.work += pass.read;
            all.visited += Index(due_.size());
            ++all.passes;
            if (due_.empty()) break;
            mean_gap_ = all.gap / double(due_.size());
            if (until.priced && pass.gain * (until.work + all.work) < (until.gain + all.gain) * pass.read) break;
        } while (all.gap > until.gap && all.passes < until.passes && all.work < kMostWork);
        return all;
    }

    /// sum_j alpha_ij g_ij of some examples, at the present w. With the loss of an example that a search has found
    /// there, C_i h_i, this makes its part of the gap: C_i max(0, h_i) - sum_j alpha_ij g_ij.
    void pledged(const Index* which, Index n, double* out) {
        for (Index k = 0; k < n; ++k) out[k] = blocks_[which[k]].pledged(weights().data(), scratch_);
    }

    /// Looks at all blocks and has the next pass visit them; returns the gap of the cached problem at the present w.
    double look() {
        double sum = 0;
        for (std::size_t i = 0; i < blocks_.size(); ++i) {
            sum += blocks_[i].look(weights().data(), scratch_);
            if (blocks_[i].size()) rests_[i] = {};
        }
        return sum;
    }

    /// The gap of the cached block of every example, when it was last looked at.
    void cached_gaps(double* out) const {
        for (const Held& block : blocks_) *out++ = block.gap;
    }

    /// u += sum_ij alpha_ij x_ij; returns sum_ij alpha_ij l_ij.
    double deposit(Large<double>& u) {
        double linear = 0;
        for (const Held& block : blocks_) linear += block.deposit(u, scratch_);
        return linear;
    }

    /// Computes v and w from the dual variables, and returns the dual: a lower bound on the optimum.
    double rebuild() {
        Large<double> u(v_.size());
        const double linear = deposit(u);
        v_ = regulariser_.scaled(std::move(u));
        place();
        return linear + regulariser_.conjugate(v_);
    }

    /// Multiplies all C_i and dual variables by a factor; `rebuild` has to follow. The dual is then the factor times
    /// that of the problem with so many times the variance, and no Gram matrix has to change.
    void scale(double factor) {
        for (Held& block : blocks_) {
            block.cost *= factor;
            block.gap *= factor;
            for (Held::Constraint& one : block.all) one.alpha *= factor, one.before *= factor;
        }
        mean_gap_ *= factor;
    }

    /// Comes down to a number of bytes: drops constraints without a dual variable, then merges those of an example
    /// into their convex combination, which changes neither w nor the dual. One constraint of each example stays.
    void shrink(Index limit) {
        if (bytes_ <= limit) return;
        for (Held& block : blocks_) drop(block, [](const Held::Constraint& one) { return one.alpha == 0; });
        const double* s = regulariser_.moving(v_, w_, false).s;
        for (std::size_t turn = 0; turn < blocks_.size() && bytes_ > limit / 4 * 3; ++turn) {
            Held& block = blocks_[next_merged_++ % blocks_.size()];
            changing(block, [&] { block.merge(s, spread_, scratch_); });
        }
    }

    /// All that is held, example by example.
    struct Content {
        std::vector<Index> example, start{0};
        std::vector<std::int32_t> column;
        std::vector<double> x, l, alpha;
    };
    Content content() const {
        Content all;
        std::vector<Entry> entries;
        for (std::size_t i = 0; i < blocks_.size(); ++i) {
            const Held& block = blocks_[i];
            for (Index j = 0; j < block.size(); ++j) {
                block.sorted(j, entries);
                for (const Entry& entry : entries) {
                    all.column.push_back(entry.column);
                    all.x.push_back(entry.x);
                }
                all.example.push_back(Index(i));
                all.start.push_back(Index(all.x.size()));
                all.l.push_back(block.all[j].l);
                all.alpha.push_back(block.all[j].alpha);
            }
        }
        return all;
    }

private:
    static constexpr double kLittle = 0.1;       // of the mean gap: a block that has less may rest
    static constexpr std::int32_t kLongest = 8;  // passes that it rests
    static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();
    static constexpr double kMostWork = 3e8;  // in one call: short enough for Ctrl-C
    static constexpr Index kStretch = 6;      // passes whose direction is taken once more
    static constexpr double kFar = 2;         // times as far as they went, at most
    static constexpr std::size_t kAhead = 3;  // visits from asking for a block to reading it

    struct Rest {
        std::int32_t length = 0, until = 0;  // passes, and the one that it ends with
    };
    /// Goes on in the direction of the last passes, by E = t (alpha - before), t as large as each block allows:
    ///     s = clip((l.E - w.u) / (u' S u), 0, 1)     for u = sum_ij E_ij x_ij
    /// is the best part of that way, so that the dual cannot fall. Passes are slow along a few directions in which
    /// all examples move together; this is quick. Bounds on the weights would make the dual another function. Returns
    /// what the dual gains.
    double stretch(const Weights& moving, double& work) {
        if (regulariser_.boxed()) return 0;
        Large<double> e(v_.size()), far(blocks_.size());  // S u, and how far each block goes
        const Weights along{e.data(), e.data(), moving.s, nullptr, nullptr, nullptr};
        double rise = 0, curvature = 0;
        for (std::size_t i = 0; i < blocks_.size(); ++i) {
            if (i + kAhead < blocks_.size()) blocks_[i + kAhead].ahead();
            const auto [t, linear] = blocks_[i].stretch(kFar, along, scratch_, work);
            far[i] = t;
            rise += linear;
        }
        for (std::size_t k = 0; k < e.size(); ++k) {
            const double u = moving.s ? e[k] / moving.s[k] : e[k];
            rise -= u * moving.w[k];
            curvature += u * e[k];
        }
        const double s = curvature > 0 ? std::clamp(rise / curvature, 0.0, 1.0) : 0.0;
        for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].follow(s * far[i]);
        for (std::size_t k = 0; k < e.size(); ++k) v_[k] += s * e[k];
        place();
        return s * (rise - 0.5 * s * curvature);
    }

    void prune(Held& block) {
        drop(block, [&](const Held::Constraint& one) { return one.idle > patience_; });
    }

    template <class F>
    void drop(Held& block, const F& unwanted) {
        for (Index j = block.size() - 1; j >= 0; --j)
            if (unwanted(block.all[j])) changing(block, [&] { block.drop(j, scratch_); });
    }

    /// Keeps count of the memory while a block changes.
    template <class F>
    void changing(Held& block, const F& change) {
        bytes_ -= block.bytes();
        change();
        bytes_ += block.bytes();
    }

    void place() {
        if (regulariser_.apart()) regulariser_.place(v_, w_);
    }

    Regulariser regulariser_;
    Index patience_;
    Random random_;
    Large<double> v_, w_;
    std::vector<double> spread_;
    std::vector<Held> blocks_;
    std::vector<Rest> rests_;  // of the blocks
    std::vector<std::uint32_t> order_, due_;
    Held::Scratch scratch_;
    Index bytes_ = 0, since_ = 0;
    std::int32_t now_ = 0;
    std::size_t next_merged_ = 0;
    double mean_gap_ = 0;  // of a block
};

}  // namespace dualsvm
