#pragma once

#include <cstring>
#include <numeric>

#include "maximise.hpp"
#include "parts.hpp"
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
    double work = 0;  // columns read and written
};

/// The state of a problem whose constraints are too many to list: those that a search found, their dual variables,
/// and v. The block of an example is maximised by its Gram matrix: one read of each of its constraints tells the
/// gradients, and one update of v carries the result.
class Working {
public:
    Working(const Shape& shape, Index n_weights, Index patience, std::uint64_t seed)
        : regulariser_(shape, std::size_t(n_weights)),
          patience_(patience),
          random_(seed),
          v_(std::size_t(n_weights)),
          w_(std::size_t(n_weights)),
          spread_(std::size_t(n_weights)) {
        place();
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
            blocks_.emplace_back();
            blocks_.back().cost = cost[i];
        }
    }

    Index size() const { return Index(blocks_.size()); }
    Index n_weights() const { return Index(v_.size()); }
    Index bytes() const { return bytes_; }
    Index held() const {
        Index sum = 0;
        for (const Block& block : blocks_) sum += Index(block.held.size());
        return sum;
    }
    const std::vector<double>& weights() const { return regulariser_.apart() ? w_ : v_; }

    /// Adds the constraints that are new, and maximises the blocks of their examples; returns their number.
    Index insert(const Constraints& found, double& gain) {
        const Weights moving = regulariser_.moving(v_, w_, false);
        Index added = 0;
        for (Index r = 0; r < found.n; ++r) {
            Block& block = blocks_[found.example[r]];
            const Index n = found.start[r + 1] - found.start[r];
            const std::int32_t* column = found.column + found.start[r];
            const double* x = found.x + found.start[r];
            if (!(block.cost > 0) || knows(block, column, x, n, found.l[r])) continue;
            add(block, column, x, n, found.l[r], 0.0, moving.s);
            ++added;
            gain += visit(block, moving).gain;
            block.due = 0;
        }
        return added;
    }

    /// Takes constraints over with their dual variables, which must be feasible; `rebuild` has to follow.
    void put(const Constraints& given, const double* alpha) {
        const Weights moving = regulariser_.moving(v_, w_, false);
        for (Index r = 0; r < given.n; ++r) {
            const Index at = given.start[r], n = given.start[r + 1] - at;
            add(blocks_[given.example[r]], given.column + at, given.x + at, n, given.l[r], alpha[r], moving.s);
        }
    }

    /// One pass over the blocks that are due: one that had little to gain is left alone for a few passes.
    CachePass optimize() {
        const Weights moving = regulariser_.moving(v_, w_, false);
        CachePass pass;
        random_.shuffle(order_);
        ++now_;
        const double little = 0.1 * mean_gap_;
        const std::size_t n = order_.size();
        for (std::size_t q = 0; q < n; ++q) {
            if (q + 2 < n) __builtin_prefetch(&blocks_[order_[q + 2]]);
            if (q + 1 < n && blocks_[order_[q + 1]].due <= now_) blocks_[order_[q + 1]].ahead();
            Block& block = blocks_[order_[q]];
            if (!block.held.empty() && block.due <= now_) {
                const Seen seen = visit(block, moving);
                ++pass.visited;
                pass.gain += seen.gain;
                pass.work += seen.read;
                block.nap = seen.gap > little ? 0 : std::min<Index>(2 * block.nap + 1, kLongest);
                block.due = now_ + 1 + block.nap;
            }
            pass.gap += block.gap;
        }
        mean_gap_ = pass.gap / double(std::max<Index>(1, pass.visited));
        return pass;
    }

    /// sum_j alpha_ij g_ij of some examples, at the present w. With the loss of an example that a search has found
    /// there, C_i h_i, this makes its part of the gap: C_i max(0, h_i) - sum_j alpha_ij g_ij.
    void pledged(const Index* which, Index n, double* out) const {
        const double* w = weights().data();
        std::vector<double> dots;
        for (Index k = 0; k < n; ++k) {
            const Block& block = blocks_[which[k]];
            block.dots(w, dots);
            out[k] = 0;
            for (std::size_t j = 0; j < dots.size(); ++j) out[k] += block.held[j].alpha * (block.held[j].l - dots[j]);
        }
    }

    /// Looks at all blocks and has the next pass visit them; returns the gap of the cached problem at the present w.
    double look() {
        const double* w = weights().data();
        double sum = 0;
        std::vector<double> dots;
        for (Block& block : blocks_) {
            double worst = 0, total = 0, alpha_g = 0;
            block.dots(w, dots);
            for (std::size_t j = 0; j < dots.size(); ++j) {
                const Held& held = block.held[j];
                const double g = held.l - dots[j];
                worst = std::max(worst, g);
                total += held.alpha;
                alpha_g += held.alpha * g;
            }
            block.gap = losses(worst, block.cost, total, alpha_g, false).gap;
            block.due = block.nap = 0;
            sum += block.gap;
        }
        return sum;
    }

    /// The gap of the cached block of every example, when it was last looked at.
    void cached_gaps(double* out) const {
        for (const Block& block : blocks_) *out++ = block.gap;
    }

    /// Computes v and w from the dual variables, and returns the dual: a lower bound on the optimum.
    double rebuild() {
        std::vector<double> u(v_.size());
        double linear = 0;
        for (const Block& block : blocks_) {
            for (const Held& held : block.held) linear += held.alpha * held.l;
            deposit(block, 1.0, u);
        }
        v_ = regulariser_.scaled(std::move(u));
        place();
        return linear + regulariser_.conjugate(v_);
    }

    /// Comes down to a number of bytes: drops constraints without a dual variable, then merges those of an example
    /// into their convex combination, which changes neither w nor the dual. One constraint of each example stays.
    void shrink(Index limit) {
        if (bytes_ <= limit) return;
        for (Block& block : blocks_)
            for (Index j = Index(block.held.size()) - 1; j >= 0; --j)
                if (block.held[j].alpha == 0) drop(block, j);
        for (std::size_t turn = 0; turn < blocks_.size() && bytes_ > limit * 3 / 4; ++turn)
            merge(blocks_[next_merged_++ % blocks_.size()]);
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
            const Block& block = blocks_[i];
            for (std::size_t j = 0; j < block.held.size(); ++j) {
                block.sorted(Index(j), entries);
                for (const Entry& entry : entries) {
                    all.column.push_back(entry.column);
                    all.x.push_back(entry.x);
                }
                all.example.push_back(Index(i));
                all.start.push_back(Index(all.x.size()));
                all.l.push_back(block.held[j].l);
                all.alpha.push_back(block.held[j].alpha);
            }
        }
        return all;
    }

private:
    static constexpr Index kLongest = 8;  // passes that a block rests

    struct Entry {
        std::int32_t column;
        double x;
    };
    struct Held {
        double l, alpha;
        Index idle, n;  // visits without a dual variable; entries of x
        std::uint64_t print;
    };
    struct Block {
        std::vector<Held> held;
        std::vector<double> gram;  // the diagonal of x' S x, and then its rows, behind one for the slack
        Parts parts;
        Index stride = 0;  // of rows: a multiple of kLane
        double cost = 0, gap = 0;
        Index nap = 0, due = 0;

        Index bytes() const { return parts.bytes() + Index(sizeof(Held) * held.size()) + 8 * Index(gram.size()); }
        double* row(Index j) { return gram.data() + (j + 2) * stride + 1; }
        DUALSVM_AHEAD void ahead() const {
            prefetch(held.data(), Index(sizeof(Held) * held.size()));
            prefetch(gram.data(), 8 * Index(gram.size()));
            parts.ahead();
        }
        /// w.x of every constraint
        void dots(const double* w, std::vector<double>& out) const {
            out.assign(held.size(), 0.0);
            parts.dots(w, out.data());
        }
        /// The entries of a constraint.
        void sorted(Index j, std::vector<Entry>& out) const {
            out.clear();
            parts.each(j, [&](std::int32_t column, double x) { out.push_back({column, x}); });
            std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.column < b.column; });
        }
    };
    struct Seen {
        double gap, gain, read;
    };

    /// u += factor sum_j alpha_j x_j
    static void deposit(const Block& block, double factor, std::vector<double>& u) {
        std::vector<double> a;
        for (const Held& held : block.held) a.push_back(factor * held.alpha);
        block.parts.carry(a.data(), {u.data(), u.data(), nullptr, nullptr, nullptr, nullptr});
    }

    Seen visit(Block& block, const Weights& moving) {
        const Seen seen = wide() ? visit_wide(block, moving) : visit_loop(block, moving);
        for (Index j = Index(block.held.size()) - 1; j >= 0; --j) {
            Held& held = block.held[j];
            held.idle = held.alpha > 0 ? 0 : held.idle + 1;
            if (held.idle > patience_) drop(block, j);
        }
        return seen;
    }
    DUALSVM_WIDE Seen visit_wide(Block& block, const Weights& moving) { return visit_loop(block, moving); }

    Seen visit_loop(Block& block, const Weights& moving) {
        const Index m = Index(block.held.size()), stride = block.stride;
        reserve(stride);
        double *g = g_.data(), *mass = mass_.data(), *first = first_.data();  // of the slack, and then of constraints
        std::fill_n(g, m + 1, 0.0);
        block.parts.dots(moving.w, g + 1);
        double worst = 0, total = 0, alpha_g = 0, read = double(block.parts.columns());
        for (Index j = 1; j <= m; ++j) {
            const Held& held = block.held[j - 1];
            g[j] = first[j] = held.l - g[j];
            mass[j] = held.alpha;
            worst = std::max(worst, g[j]);
            total += held.alpha;
            alpha_g += held.alpha * g[j];
        }
        mass[0] = remainder(block.cost, total);
        block.gap = losses(worst, block.cost, total, alpha_g, false).gap;
        double gain = 0;
        if (block.gap > 0) {
            for (Index j = m + 1; j % kLane; ++j) g[j] = -kInfinity, mass[j] = 0;
            maximise_stored(m + 1, block.gram.data() + stride, stride, block.gram.data(), g, mass);
            for (Index j = 1; j <= m; ++j) {
                Held& held = block.held[j - 1];
                const double a = mass[j] - held.alpha;
                held.alpha = mass[j];
                gain += 0.5 * a * (first[j] + g[j]);
                mass[j] = a;
            }
            read += double(block.parts.carry(mass + 1, moving));
        }
        return {block.gap, gain, read};
    }

    void reserve(Index n) {
        if (Index(g_.size()) >= n) return;
        g_.resize(std::size_t(n));
        mass_.resize(std::size_t(n));
        first_.resize(std::size_t(n));
    }

    bool knows(const Block& block, const std::int32_t* column, const double* x, Index n, double l) const {
        const std::uint64_t print = fingerprint(column, x, n, l);
        std::vector<Entry> entries;
        for (std::size_t j = 0; j < block.held.size(); ++j) {
            const Held& held = block.held[j];
            if (held.print != print || held.l != l || held.n != n) continue;
            block.sorted(Index(j), entries);
            bool same = Index(entries.size()) == n;
            for (Index k = 0; same && k < n; ++k) same = entries[k].column == column[k] && entries[k].x == x[k];
            if (same) return true;
        }
        return false;
    }

    static std::uint64_t fingerprint(const std::int32_t* column, const double* x, Index n, double l) {
        std::uint64_t print = 0x9e3779b97f4a7c15u;
        const auto mix = [&](double value, std::uint64_t place) {
            std::uint64_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            print = (print ^ bits ^ (place << 32)) * 0xff51afd7ed558ccdu;
            print ^= print >> 33;
        };
        mix(l, 0);
        for (Index k = 0; k < n; ++k) mix(x[k], std::uint64_t(column[k]));
        return print;
    }

    void add(Block& block, const std::int32_t* column, const double* x, Index n, double l, double alpha,
             const double* s) {
        const Index m = Index(block.held.size());
        bytes_ -= block.bytes();
        if (m + 1 >= block.stride) {
            const Index stride = block.stride + std::max(Index(kLane), block.stride / 2 / kLane * kLane);
            std::vector<double> gram(std::size_t((stride + 1) * stride));
            std::copy_n(block.gram.data(), block.stride, gram.data());
            for (Index j = 0; j < m; ++j) std::copy_n(block.row(j) - 1, block.stride, gram.data() + (j + 2) * stride);
            block.gram.swap(gram);
            block.stride = stride;
            reserve(stride);
        }
        double own = 0;
        for (Index k = 0; k < n; ++k) {
            spread_[column[k]] = s ? s[column[k]] * x[k] : x[k];
            own += spread_[column[k]] * x[k];
        }
        std::fill_n(g_.data(), m, 0.0);
        block.parts.dots(spread_.data(), g_.data());
        for (Index j = 0; j < m; ++j) block.row(m)[j] = block.row(j)[m] = g_[j];
        block.row(m)[m] = block.gram[m + 1] = own;
        for (Index k = 0; k < n; ++k) spread_[column[k]] = 0;
        block.parts.add(column, x, n, spread_, room_);
        block.held.push_back({l, alpha, 0, n, fingerprint(column, x, n, l)});
        bytes_ += block.bytes();
    }

    /// Takes constraint j out of a block, the last one taking its place.
    void drop(Block& block, Index j) {
        const Index last = Index(block.held.size()) - 1;
        bytes_ -= block.bytes();
        if (j < last) {
            block.held[j] = block.held[last];
            for (Index k = 0; k < last; ++k)
                if (k != j) block.row(j)[k] = block.row(k)[j] = block.row(last)[k];
            block.row(j)[j] = block.gram[j + 1] = block.row(last)[last];
        }
        for (Index k = 0; k <= last; ++k) block.row(last)[k] = block.row(k)[last] = 0;
        block.gram[last + 1] = 0;
        block.held.pop_back();
        block.parts.drop(j, room_);
        bytes_ += block.bytes();
    }

    void merge(Block& block) {
        if (block.held.size() < 2) return;
        double total = 0, l = 0;
        for (const Held& held : block.held) total += held.alpha;
        std::vector<std::int32_t> column;
        std::vector<double> x;
        for (std::size_t j = 0; j < block.held.size(); ++j) {
            l += block.held[j].alpha / total * block.held[j].l;
            block.parts.each(Index(j), [&](std::int32_t k, double) { column.push_back(k); });
        }
        deposit(block, 1 / total, spread_);
        std::sort(column.begin(), column.end());
        column.erase(std::unique(column.begin(), column.end()), column.end());
        for (const std::int32_t k : column) {
            x.push_back(spread_[k]);
            spread_[k] = 0;
        }
        bytes_ -= block.bytes();
        block.held.clear();
        block.parts = {};
        block.gram = {};
        block.stride = 0;
        bytes_ += block.bytes();
        add(block, column.data(), x.data(), Index(x.size()), l, total, regulariser_.moving(v_, w_, false).s);
    }

    void place() {
        if (regulariser_.apart()) regulariser_.place(v_, w_);
    }

    Regulariser regulariser_;
    Index patience_;
    Random random_;
    std::vector<double> v_, w_, spread_;
    std::vector<Block> blocks_;
    std::vector<std::uint32_t> order_;
    std::vector<double> g_, mass_, first_;
    Parts::Room room_;
    Index bytes_ = 0, now_ = 0;
    std::size_t next_merged_ = 0;
    double mean_gap_ = 0;
};

}  // namespace dualsvm
