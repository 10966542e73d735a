#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "crew.hpp"
#include "large.hpp"
#include "letters.hpp"
#include "loops.hpp"

// Passes in several threads, each of which has some of the columns of sparse rows and the weights of these. For a
// batch of examples each thread adds up its part of the scores w.x and tells the others; then all of them take the
// very same steps, each with dual variables of its own, and move the weights of their own columns. While a letter is
// on its way, they add up the scores of the next batch. So scores lack the steps of the examples visited just before,
// fewer than 2 B with batches of B: along one example the others reach as far as their rows are alike,
//     x_j' x_i / (|x_j| |x_i|),  whose root mean square is the coherence of the rows,
// and where that times 2 B is about 1, as many visits are needed as one after the other. A constant feature, which
// all rows have in common, is left out of that: every thread has its weights. Some rows tell the coherence, and where
// they are not like the others, the dual may fall in a pass: so the first thread notes what it changes, and a pass
// can be undone.

namespace dualsvm {

constexpr std::size_t kBatch = 7;       // examples at most of which a letter tells: of two classes, in one line
constexpr double kAlike = 0.8;          // coherence times 2 B, at most
constexpr std::size_t kCompared = 64;   // rows that tell the coherence, and where to divide the columns
constexpr std::size_t kDivided = 1024;  // examples that are worth a division
constexpr std::size_t kMostParts = 8;   // of the columns
constexpr Index kPart = 12;             // numbers of a row, at least, for each

/// Blocks of sparse rows whose scores can be added up from parts of the rows.
template <class Block>
concept Divisible = requires(Block block, const Weights& w, typename Block::Scratch scratch) {
    block.rows.stop;
    block.n_scores(w);
    block.solve(Index(0), nullptr, 1.0, scratch);
};

/// Which part of the columns a thread has, how many examples are a batch, and the turn of the first of them.
struct Part {
    std::size_t own, batch;
    std::uint64_t turn;
};

/// Visits, as `sweep_loop` does, but with the columns of `rows` only; `own` is room for the weights of the constant
/// feature, twice, and for its part of the scores. Notes the dual variables there were, unless `before` is null.
template <class Block, class Rows, class Moved>
inline Tally sweep_part_loop(Block& block, typename Block::Scratch& scratch, const Rows& rows, double bias,
                             Letters& letters, const Part& part, const Visits& visits, std::size_t from,
                             std::size_t to, const Moved& weights, double sigma, typename Moved::Number* own,
                             double* before) {
    using Number = typename Moved::Number;
    const Index n = block.n_scores(weights), last = rows.d * n;
    const std::int32_t none = 0;
    const Csr<double, std::int32_t> constant{nullptr, nullptr, &none, &none, 1, 0, bias};  // a row of that alone
    const Moved common = weights.copied(last, n, own, bias != 0);
    const std::size_t n_batches = (to - from + part.batch - 1) / part.batch;
    const auto batch = [&](std::size_t b, auto&& f) {
        const std::size_t first = from + b * part.batch, end = std::min(first + part.batch, to);
        for (std::size_t p = first; p < end; ++p) f(p, Index(p - first) * n);
    };
    const auto tell = [&](std::size_t b) {
        Number* scores = letters.at<Number>(part.own, part.turn + b);
        batch(b, [&](std::size_t p, Index at) {
            if (p + 4 * kAhead < visits.n) {
                block.soon(visits.examples[p + 4 * kAhead]);
                rows.soon(visits.examples[p + 4 * kAhead]);
            }
            if (p + 2 * kAhead < visits.n) rows.ahead(visits.examples[p + 2 * kAhead]);
            if (b > 0 && p == from + b * part.batch + part.batch / 2) letters.ahead(part.own, part.turn + b - 1);
            block.part(rows, visits.examples[p], weights.seen(), scores + at);
        });
        letters.send(part.own, part.turn + b);
    };

    Tally tally;
    if (n_batches > 0) tell(0);
    for (std::size_t b = 0; b < n_batches; ++b) {
        if (b + 1 < n_batches) tell(b + 1);
        for (std::size_t k = 0; k < letters.senders(); ++k) letters.await(k, part.turn + b);
        batch(b, [&](std::size_t p, Index at) {
            const std::uint32_t i = visits.examples[p];
            if (before) block.keep(i, before + Index(p) * block.n_kept());
            double* const sums = block.scores(scratch);
            const Number* const first = letters.at<Number>(0, part.turn + b) + at;
            const Number* const second = letters.at<Number>(1, part.turn + b) + at;
#pragma omp simd
            for (Index j = 0; j < n; ++j) sums[j] = double(first[j]) + double(second[j]);
            for (std::size_t k = 2; k < letters.senders(); ++k) {
                const Number* const more = letters.at<Number>(k, part.turn + b) + at;
#pragma omp simd
                for (Index j = 0; j < n; ++j) sums[j] += double(more[j]);
            }
            if (bias != 0) {
                Number* score = own + 2 * n;
                block.part(constant, 0, common.seen(), score);
                for (Index j = 0; j < n; ++j) sums[j] += double(score[j]);
            }
            conclude(block, scratch, visits, p, block.judge(i, scratch), tally, [&] {
                const double change = block.solve(i, weights.s, sigma, scratch);
                block.follow(rows, i, weights, sigma, scratch);
                if (bias != 0) block.follow(constant, 0, common, sigma, scratch);
                return change;
            });
        });
    }
    if (bias != 0 && part.own == 0) weights.take(last, n, own);
    return tally;
}

template <class Block, class Rows, class Moved>
DUALSVM_WIDE Tally sweep_part_wide(Block& block, typename Block::Scratch& scratch, const Rows& rows, double bias,
                                   Letters& letters, const Part& part, const Visits& visits, std::size_t from,
                                   std::size_t to, const Moved& weights, double sigma, typename Moved::Number* own,
                                   double* before) {
    return sweep_part_loop(block, scratch, rows, bias, letters, part, visits, from, to, weights, sigma, own, before);
}

/// Adds up in u what the dual variables make of it in the columns of `rows`, and their linear part.
template <class Block, class Rows>
inline double gather_part_loop(const Block& block, typename Block::Scratch& scratch, const Rows& rows, double bias,
                               const std::vector<std::uint32_t>& examples, const Weights& u) {
    const std::int32_t none = 0;
    const Csr<double, std::int32_t> constant{nullptr, nullptr, &none, &none, 1, 0, bias};
    double* const last = u.v + rows.d * block.n_scores(u);
    const Weights common{last, last, nullptr, nullptr, nullptr, nullptr};
    double linear = 0;
    for (const std::uint32_t i : examples) {
        linear += block.linear(i);
        block.hold(i, scratch);
        block.follow(rows, i, u, 1.0, scratch);
        if (bias != 0) block.follow(constant, 0, common, 1.0, scratch);
    }
    return linear;
}

template <class Block, class Rows>
DUALSVM_WIDE double gather_part_wide(const Block& block, typename Block::Scratch& scratch, const Rows& rows,
                                     double bias, const std::vector<std::uint32_t>& examples, const Weights& u) {
    return gather_part_loop(block, scratch, rows, bias, examples, u);
}

/// How many numbers of row i lie before a column: to count reads ahead, which to search does not.
template <class Rows, class I>
__attribute__((always_inline)) inline I numbers_before(const Rows& rows, Index i, I border) {
    const I* const column = rows.column + rows.start[i];
    const Index n = Index(rows.stop[i]) - Index(rows.start[i]);
    I before = 0;
#pragma omp simd reduction(+ : before)
    for (Index k = 0; k < n; ++k) before += I(column[k] < border);
    return before;
}

/// Finds out what must be known of some examples before several threads visit them: the norms of their rows, and
/// where these pass the borders.
template <class Block, class I>
inline void prepare_loop(Block& block, Index from, Index to, const double* s, const std::vector<I>& borders,
                         std::vector<Raw<I>>& cuts) {
    for (Index i = from; i < to; ++i) {
        block.measure(i, s);
        for (std::size_t k = 0; k < cuts.size(); ++k)
            cuts[k][std::size_t(i)] = block.rows.start[i] + numbers_before(block.rows, i, borders[k]);
    }
}

template <class Block, class I>
DUALSVM_WIDE void prepare_wide(Block& block, Index from, Index to, const double* s, const std::vector<I>& borders,
                               std::vector<Raw<I>>& cuts) {
    prepare_loop(block, from, to, s, borders, cuts);
}

/// Calls f with some of the rows that are not empty, here and there.
template <class Rows, class F>
void sample(const Rows& rows, std::size_t n, const F& f) {
    constexpr double golden = 0.6180339887498949;  // whose multiples, modulo 1, lie everywhere
    for (std::size_t k = 0; k < n; ++k) {
        const auto i = Index(std::fmod(double(k) * golden, 1.0) * double(rows.size()));
        if (rows.stop[i] > rows.start[i]) f(i);
    }
}

/// The root mean square of the cosines between some of the rows, without the constant feature.
template <class Rows>
double coherence(Rows rows) {
    rows.bias = 0;
    double squares = 0, pairs = 0;
    Index last = -1;
    sample(rows, kCompared, [&](Index i) {
        if (last >= 0 && last != i) {
            const double length = rows.norm(i, nullptr) * rows.norm(last, nullptr), x = rows.inner(i, last, nullptr);
            squares += length > 0 ? x * x / length : 0.0;
            pairs += 1;
        }
        last = i;
    });
    return pairs > 0 ? std::sqrt(squares / pairs) : 1.0;
}

/// Examples a batch, for as many threads as may have a part of the columns; 0: none of this is worth it.
template <class Rows>
std::size_t batch_of(const Rows& rows) {
    const double most = kAlike / (2 * std::max(coherence(rows), 1e-9));
    return most < 4 ? 0 : std::min(std::size_t(most), kBatch);
}

/// The columns of the rows of blocks in parts, and the blocks once more for every thread but the first.
template <class Block>
class Columns {
    using Rows = std::remove_cvref_t<decltype(std::declval<Block>().rows)>;
    using I = std::remove_cvref_t<decltype(*std::declval<Rows>().start)>;

public:
    /// With as many parts as there are threads.
    Columns(Block& block, std::size_t n_parts, std::size_t batch, const double* s, Crew& crew)
        : batch_(batch), cuts_(n_parts - 1, Raw<I>(std::size_t(block.size()))) {
        const Rows& rows = block.rows;
        const std::vector<I> borders = divide(rows, n_parts);
        borders_.assign(borders.begin(), borders.end());
        std::atomic<Index> next{0};  // a thread that has just been hired takes a while to come
        crew.run(n_parts, [&](std::size_t) {
            const auto run = wide() ? prepare_wide<Block, I> : prepare_loop<Block, I>;
            for (Index i; (i = next.fetch_add(kClaim)) < block.size();)
                run(block, i, std::min(i + kClaim, block.size()), s, borders, cuts_);
        });
        for (std::size_t t = 0; t < n_parts; ++t) {
            Rows part = rows;
            part.bias = 0;
            if (t > 0) part.start = cuts_[t - 1].data();
            if (t + 1 < n_parts) part.stop = cuts_[t].data();
            parts_.push_back(part);
        }
        others_.assign(n_parts - 1, block);
        finds_.resize(n_parts - 1);
    }

    /// The first column of every part but the first.
    const std::vector<std::size_t>& borders() const { return borders_; }

    template <class Moved>
    Tally sweep(Block& block, const Visits& visits, std::size_t from, std::size_t to, const Moved& weights,
                double sigma, Crew& crew) {
        using Number = typename Moved::Number;
        const std::size_t n_parts = parts_.size();
        const auto n = std::size_t(block.n_scores(weights));
        Letters letters(n_parts, batch_ * n * sizeof(Number));
        std::vector<Large<Number>> own(n_parts, Large<Number>(3 * n));
        auto own_scratch = scratches(block, n_parts);
        for (auto& finds : finds_) finds.resize(visits.n);
        before_.resize(visits.n * std::size_t(block.n_kept()));
        Tally tally;
        crew.run(n_parts, [&](std::size_t t) {
            Visits noted = visits;
            if (t > 0) noted.finds = finds_[t - 1].data();
            const auto run = wide() ? sweep_part_wide<Block, Rows, Moved> : sweep_part_loop<Block, Rows, Moved>;
            const Tally found =
                run(t > 0 ? others_[t - 1] : block, own_scratch[t], parts_[t], block.rows.bias, letters,
                    {t, batch_, 0}, noted, from, to, weights, sigma, own[t].data(), t > 0 ? nullptr : before_.data());
            if (t == 0) tally = found;
        });
        return tally;
    }

    /// The block with the dual variables that thread t has.
    const Block& own(const Block& block, std::size_t t) const {
        return t > 0 && t <= others_.size() ? others_[t - 1] : block;
    }

    /// Adds to u what the dual variables of these examples make of it; returns their linear part.
    double gather(const Block& block, const std::vector<std::uint32_t>& examples, double* u, Crew& crew) const {
        auto own_scratch = scratches(block, parts_.size());
        double linear = 0;
        crew.run(parts_.size(), [&](std::size_t t) {
            const auto run = wide() ? gather_part_wide<Block, Rows> : gather_part_loop<Block, Rows>;
            const double found = run(block, own_scratch[t], parts_[t], t > 0 ? 0.0 : block.rows.bias, examples,
                                     {u, u, nullptr, nullptr, nullptr, nullptr});
            if (t == 0) linear = found;
        });
        return linear;
    }

    /// Gives the block the dual variables back that it had before these visits, the last.
    void undo(Block& block, const Visits& visits) const {
        for (std::size_t p = 0; p < visits.n; ++p)
            block.recall(visits.examples[p], before_.data() + Index(p) * block.n_kept());
    }

private:
    static constexpr Index kClaim = 256;  // examples that a thread prepares at once

    /// Where to divide the columns so that all parts have as many numbers, at lines of the cache.
    static std::vector<I> divide(const Rows& rows, std::size_t n_parts) {
        std::vector<I> columns, borders;
        sample(rows, kCompared, [&](Index i) {
            columns.insert(columns.end(), rows.column + rows.start[i], rows.column + rows.stop[i]);
        });
        for (std::size_t k = 1; k < n_parts && !columns.empty(); ++k) {
            const auto border = columns.begin() + std::ptrdiff_t(columns.size() * k / n_parts);
            std::nth_element(columns.begin(), border, columns.end());
            borders.push_back(*border / 8 * 8);
        }
        borders.resize(n_parts - 1);
        return borders;
    }

    std::size_t batch_;
    std::vector<std::size_t> borders_;
    std::vector<Raw<I>> cuts_;
    std::vector<Rows> parts_;
    std::vector<Block> others_;
    std::vector<std::vector<Find>> finds_;
    Large<double> before_;
};

}  // namespace dualsvm
