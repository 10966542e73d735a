#pragma once

#include <thread>

#include "held.hpp"
#include "meeting.hpp"
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

/// What a pass over the cache did.
struct CachePass {
    Index visited = 0;
    double gain = 0;  // of the dual; where weights are bounded, at most that
    double gap = 0;   // of the cached problem, as seen in passing: not a bound
    double work = 0;  // entries read
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
    const std::vector<double>& weights() const { return regulariser_.apart() ? w_ : v_; }

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

    /// One pass over the blocks that are due: one that had little to gain is left alone for a few passes.
    CachePass optimize(int threads) {
        random_.shuffle(order_);
        ++now_;
        due_.clear();
        for (const std::uint32_t i : order_)
            if (rests_[i].until <= now_) due_.push_back(i);
        CachePass pass;
        pass.visited = Index(due_.size());
        const Index round = std::max(kRound, Index(double(n_weights()) * 8 / entries_));
        if (threads > 1 && !regulariser_.boxed() && pass.visited >= 2 * threads * kRound)
            side_by_side(threads, round, pass);
        else
            meet(0, pass.visited, regulariser_.moving(v_, w_, false), scratch_, pass);
        for (const std::uint32_t i : due_) prune(blocks_[i]);
        for (const Held& block : blocks_) pass.gap += block.gap;
        if (pass.visited) {
            mean_gap_ = pass.gap / double(pass.visited);
            entries_ = std::max(1.0, pass.work / double(pass.visited));
        }
        return pass;
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

    /// Computes v and w from the dual variables, and returns the dual: a lower bound on the optimum.
    double rebuild() {
        std::vector<double> u(v_.size());
        double linear = 0;
        for (const Held& block : blocks_) linear += block.deposit(u, scratch_);
        v_ = regulariser_.scaled(std::move(u));
        place();
        return linear + regulariser_.conjugate(v_);
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
    static constexpr Index kRound = 128;  // blocks that a thread visits before v is merged, at least
    static constexpr Index kAhead = 3;    // visits from asking for a block to reading it

    struct Rest {
        std::int32_t length = 0, until = 0;  // passes, and the one that it ends with
    };
    struct Share {
        std::vector<double> v, w, alpha;  // alpha: of the blocks of a round, before it
        Held::Scratch scratch;
        CachePass pass;
    };

    /// Visits the blocks due from `first` to `last`, and decides when to do so again.
    void meet(Index first, Index last, const Weights& moving, Held::Scratch& scratch, CachePass& pass) {
        for (Index k = first; k < last; ++k) {
            if (k + 2 * kAhead < last) prefetch(&blocks_[due_[k + 2 * kAhead]], sizeof(Held));
            if (k + kAhead < last) blocks_[due_[k + kAhead]].ahead();
            Held& block = blocks_[due_[k]];
            Rest& rest = rests_[due_[k]];
            const Held::Visit seen = block.visit(moving, scratch);
            pass.gain += seen.gain;
            pass.work += seen.read;
            rest.length = block.gap > kLittle * mean_gap_ ? 0 : std::min(2 * rest.length + 1, kLongest);
            rest.until = now_ + 1 + rest.length;
        }
    }

    /// A pass in threads. In a round each visits blocks of its own, moving a v of its own; what the rounds have moved
    /// is added up and followed as far as the dual rises: with D the sum of the moves of v, and L that of l.alpha,
    ///     theta = min(1, (L - w' S^-1 D) / (D' S^-1 D))
    /// Who visits which block when depends on nothing but their order and the number of threads.
    void side_by_side(int threads, Index round, CachePass& pass) {
        std::vector<Share> shares(std::size_t(threads), Share{v_, w_, {}, {}, {}});
        const Index n = Index(due_.size()), stride = round * threads;
        const auto part = [&](Index from, int t) {
            return std::pair(std::min(n, from + t * round), std::min(n, from + (t + 1) * round));
        };
        Meeting meeting(threads);
        const auto work = [&](int t) {
            Share& share = shares[t];
            const Weights moving = regulariser_.moving(share.v, share.w, false);
            for (Index from = 0; from < n; from += stride) {
                const auto [first, last] = part(from, t);
                share.alpha.clear();
                for (Index k = first; k < last; ++k)
                    for (const Held::Constraint& one : blocks_[due_[k]].all) share.alpha.push_back(one.alpha);
                meet(first, last, moving, share.scratch, share.pass);
                meeting.wait();
                if (t == 0) join(shares, from, part, pass);
                meeting.wait();
            }
        };
        std::vector<std::thread> others;
        for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
        work(0);
        for (std::thread& other : others) other.join();
        for (const Share& share : shares) pass.work += share.pass.work;
    }

    template <class Part>
    void join(std::vector<Share>& shares, Index from, const Part& part, CachePass& pass) {
        double linear = 0, along = 0, square = 0;
        for (std::size_t t = 0; t < shares.size(); ++t) {
            const auto [first, last] = part(from, int(t));
            const double* before = shares[t].alpha.data();
            for (Index k = first; k < last; ++k)
                for (const Held::Constraint& one : blocks_[due_[k]].all) linear += one.l * (one.alpha - *before++);
        }
        const std::vector<double>& w = weights();
        std::vector<double>& sum = shares[0].v;  // of the moves
        const double* s = regulariser_.moving(v_, w_, false).s;
        for (std::size_t k = 0; k < v_.size(); ++k) {
            double move = 0;
            for (const Share& share : shares) move += share.v[k] - v_[k];
            const double scaled = s ? move / s[k] : move;
            along += w[k] * scaled;
            square += move * scaled;
            sum[k] = move;
        }
        const double slope = linear - along;
        const double theta = square > 0 ? std::min(1.0, std::max(0.0, slope / square)) : 1.0;
        for (std::size_t k = 0; k < v_.size(); ++k) v_[k] += theta * sum[k];
        place();
        pass.gain += theta * (slope - 0.5 * theta * square);
        for (std::size_t t = 0; t < shares.size(); ++t) {
            shares[t].v = v_;
            shares[t].w = w_;
            const auto [first, last] = part(from, int(t));
            const double* before = shares[t].alpha.data();
            for (Index k = first; k < last && theta < 1; ++k) {
                for (Held::Constraint& one : blocks_[due_[k]].all) {
                    one.alpha = *before + theta * (one.alpha - *before);
                    ++before;
                }
            }
        }
    }

    /// A pass in threads may leave a constraint some of the dual variable that its visits took away.
    void prune(Held& block) {
        drop(block, [&](const Held::Constraint& one) { return one.alpha == 0 && one.idle > patience_; });
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
    std::vector<double> v_, w_, spread_;
    std::vector<Held> blocks_;
    std::vector<Rest> rests_;  // of the blocks
    std::vector<std::uint32_t> order_, due_;
    Held::Scratch scratch_;
    Index bytes_ = 0;
    std::int32_t now_ = 0;
    std::size_t next_merged_ = 0;
    double mean_gap_ = 0, entries_ = 1;  // of a block
};

}  // namespace dualsvm
