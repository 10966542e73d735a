#pragma once

#include <cstring>
#include <numeric>

#include "maximise.hpp"
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
        for (const std::uint32_t i : order_) {
            Block& block = blocks_[i];
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
        for (Index k = 0; k < n; ++k) {
            out[k] = 0;
            for (const Held& held : blocks_[which[k]].held)
                if (held.alpha > 0) out[k] += held.alpha * (held.l - dot(held, w));
        }
    }

    /// Looks at all blocks and has the next pass visit them; returns the gap of the cached problem at the present w.
    double look() {
        const double* w = weights().data();
        double sum = 0;
        for (Block& block : blocks_) {
            double worst = 0, total = 0, alpha_g = 0;
            for (const Held& held : block.held) {
                const double g = held.l - dot(held, w);
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
            for (const Held& held : block.held) {
                if (!(held.alpha > 0)) continue;
                linear += held.alpha * held.l;
                for (Index k = 0; k < held.n(); ++k) u[held.column[k]] += held.alpha * held.x[k];
            }
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
        for (std::size_t i = 0; i < blocks_.size(); ++i) {
            for (const Held& held : blocks_[i].held) {
                all.example.push_back(Index(i));
                all.column.insert(all.column.end(), held.column.begin(), held.column.end());
                all.x.insert(all.x.end(), held.x.begin(), held.x.end());
                all.start.push_back(Index(all.x.size()));
                all.l.push_back(held.l);
                all.alpha.push_back(held.alpha);
            }
        }
        return all;
    }

private:
    static constexpr Index kLongest = 8;  // passes that a block rests

    struct Held {
        std::vector<std::int32_t> column;
        std::vector<double> x;
        double l, alpha;
        Index idle;
        std::uint64_t print;
        Index n() const { return Index(x.size()); }
        Index bytes() const { return Index(sizeof(Held)) + 12 * n(); }
    };
    struct Block {
        std::vector<Held> held;
        std::vector<double> gram;  // room x room, of x' S x
        Index room = 0;
        double cost = 0, gap = 0;
        Index nap = 0, due = 0;
    };
    struct Seen {
        double gap, gain, read;
    };

    static double dot(const Held& held, const double* w) {
        const std::int32_t* column = held.column.data();
        const double* x = held.x.data();
        const Index n = held.n();
        double sum[4] = {};
        Index k = 0;
        for (; k + 4 <= n; k += 4)
            for (Index q = 0; q < 4; ++q) sum[q] += x[k + q] * w[column[k + q]];
        for (; k < n; ++k) sum[0] += x[k] * w[column[k]];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    /// v += a S x
    static void carry(const Held& held, double a, const Weights& moving) {
        const std::int32_t* column = held.column.data();
        const double* x = held.x.data();
        const Index n = held.n();
        if (moving.s || moving.m) {
            for (Index k = 0; k < n; ++k) move(moving, column[k], a * x[k]);
        } else {
            double* v = moving.v;
            for (Index k = 0; k < n; ++k) v[column[k]] += a * x[k];
        }
    }

    Seen visit(Block& block, const Weights& moving) {
        const Index m = Index(block.held.size());
        g_.resize(std::size_t(m + 1));
        mass_.resize(std::size_t(m + 1));
        first_.resize(std::size_t(m + 1));
        double worst = 0, total = 0, alpha_g = 0, read = 0;
        for (Index j = 0; j < m; ++j) {
            const Held& held = block.held[j];
            g_[j] = first_[j] = held.l - dot(held, moving.w);
            mass_[j] = held.alpha;
            worst = std::max(worst, g_[j]);
            total += held.alpha;
            alpha_g += held.alpha * g_[j];
            read += double(held.n());
        }
        g_[m] = 0;
        mass_[m] = remainder(block.cost, total);
        block.gap = losses(worst, block.cost, total, alpha_g, false).gap;
        double gain = 0;
        if (block.gap > 0) {
            const double* gram = block.gram.data();
            const Index room = block.room;
            maximise(
                m + 1, m, [&](Index j, Index k) { return j < m && k < m ? gram[j * room + k] : 0.0; }, g_.data(),
                mass_.data());
            for (Index j = 0; j < m; ++j) {
                Held& held = block.held[j];
                const double a = mass_[j] - held.alpha;
                if (a == 0) continue;
                held.alpha = mass_[j];
                gain += 0.5 * a * (first_[j] + g_[j]);
                carry(held, a, moving);
                read += double(held.n());
            }
        }
        for (Index j = m - 1; j >= 0; --j) {
            Held& held = block.held[j];
            held.idle = held.alpha > 0 ? 0 : held.idle + 1;
            if (held.idle > patience_) drop(block, j);
        }
        return {block.gap, gain, read};
    }

    bool knows(const Block& block, const std::int32_t* column, const double* x, Index n, double l) const {
        const std::uint64_t print = fingerprint(column, x, n, l);
        return std::any_of(block.held.begin(), block.held.end(), [&](const Held& held) {
            return held.print == print && held.l == l && held.n() == n &&
                   std::equal(column, column + n, held.column.begin()) && std::equal(x, x + n, held.x.begin());
        });
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
        if (m == block.room) {
            const Index room = std::max<Index>(4, 2 * m);
            std::vector<double> gram(std::size_t(room * room));
            for (Index j = 0; j < m; ++j) std::copy_n(block.gram.data() + j * block.room, m, gram.data() + j * room);
            bytes_ += 8 * (room * room - block.room * block.room);
            block.gram.swap(gram);
            block.room = room;
        }
        for (Index k = 0; k < n; ++k) spread_[column[k]] = s ? s[column[k]] * x[k] : x[k];
        block.held.push_back({{column, column + n}, {x, x + n}, l, alpha, 0, fingerprint(column, x, n, l)});
        bytes_ += block.held.back().bytes();
        for (Index j = 0; j <= m; ++j)
            block.gram[m * block.room + j] = block.gram[j * block.room + m] = dot(block.held[j], spread_.data());
        for (Index k = 0; k < n; ++k) spread_[column[k]] = 0;
    }

    /// Takes constraint j out of a block, the last one taking its place.
    void drop(Block& block, Index j) {
        const Index last = Index(block.held.size()) - 1, room = block.room;
        double* gram = block.gram.data();
        bytes_ -= block.held[j].bytes();
        if (j < last) {
            block.held[j] = std::move(block.held[last]);
            gram[j * room + j] = gram[last * room + last];
            for (Index k = 0; k < last; ++k)
                if (k != j) gram[j * room + k] = gram[k * room + j] = gram[last * room + k];
        }
        block.held.pop_back();
    }

    void merge(Block& block) {
        if (block.held.size() < 2) return;
        double total = 0, l = 0;
        for (const Held& held : block.held) total += held.alpha;
        std::vector<std::int32_t> column;
        for (const Held& held : block.held) {
            l += held.alpha / total * held.l;
            column.insert(column.end(), held.column.begin(), held.column.end());
            for (Index k = 0; k < held.n(); ++k) spread_[held.column[k]] += held.alpha / total * held.x[k];
        }
        std::sort(column.begin(), column.end());
        column.erase(std::unique(column.begin(), column.end()), column.end());
        std::vector<double> x;
        for (const std::int32_t k : column) {
            x.push_back(spread_[k]);
            spread_[k] = 0;
        }
        for (const Held& held : block.held) bytes_ -= held.bytes();
        bytes_ -= 8 * block.room * block.room;
        block.held.clear();
        block.gram = {};
        block.room = 0;
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
    Index bytes_ = 0, now_ = 0;
    std::size_t next_merged_ = 0;
    double mean_gap_ = 0;
};

}  // namespace dualsvm
