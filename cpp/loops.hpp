#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "block.hpp"
#include "calendar.hpp"
#include "crew.hpp"
#include "moving.hpp"
#include "random.hpp"
#include "simd.hpp"

// What is done with one example after the other: each loop exists twice, with and without AVX2.

namespace dualsvm {

/// Some examples, and room to say what was found of each; a part of the gap up to `little` is little to gain.
struct Visits {
    const std::uint32_t* examples;
    Find* finds;
    std::size_t n;
    double little;
};

/// What a thread notes of the example that it looks at, away from what other threads write: a line of the cache that
/// two cores write goes to and fro.
template <class Block>
struct alignas(128) Private : Block::Scratch {
    explicit Private(const Block& block) : Block::Scratch(block.scratch()) {}
};

template <class Block>
std::vector<Private<Block>> scratches(const Block& block, std::size_t threads) {
    std::vector<Private<Block>> many;
    many.reserve(threads);
    while (many.size() < threads) many.emplace_back(block);
    return many;
}

constexpr std::size_t kShared = 64;  // examples that are worth a thread

/// How many threads are worth having for these examples.
inline std::size_t shares_of(const std::vector<std::uint32_t>& examples, const Crew& crew,
                             std::size_t least = kShared) {
    return std::max<std::size_t>(1, std::min(crew.threads(), examples.size() / least));
}

constexpr std::size_t kAhead = 4;  // how many visits ahead a row is asked for
constexpr Index kFollowed = 256;   // bytes of a row, up to which the hardware asks for several

template <class Block>
DUALSVM_AHEAD void look_ahead(const Block& block, const Visits& visits, std::size_t p) {
    if (p + 2 * kAhead < visits.n) block.soon(visits.examples[p + 2 * kAhead]);
    if (p + kAhead < visits.n) block.ahead(visits.examples[p + kAhead]);
}

/// The same for examples in the order of their rows: those that follow without a gap need not be asked for, unless
/// they are neither so long that the hardware sees one coming, nor so short that it sees several.
template <class Block>
DUALSVM_AHEAD void look_across(const Block& block, const Visits& visits, std::size_t p) {
    const auto follows = [&](std::size_t k) {
        return p + k >= visits.n || visits.examples[p + k] == visits.examples[p] + k;
    };
    if (!follows(2 * kAhead)) block.soon(visits.examples[p + 2 * kAhead]);
    const Index bytes = block.rows.bytes(), n = block.rows.size();
    if (!follows(kAhead) || (bytes > kFollowed * n && bytes <= kShort * n))
        block.ahead(visits.examples[std::min(p + kAhead, visits.n - 1)]);
}

/// Whether a step of these blocks leaves the gradients after it in the scratch.
template <class Block>
concept Followed =
    requires(Block block, Weights u, typename Block::Scratch scratch) { block.deposit_step(Index(0), u, scratch); };

/// Whether passes over these blocks may have light weights.
template <class Block>
concept Lightened = requires(Block block, const LightWeights& w, typename Block::Scratch scratch) {
    block.look(Index(0), w, scratch);
};

/// What follows the look of a visit: a step, where there is something to gain.
template <class Block, class Step>
inline void conclude(const Block& block, typename Block::Scratch& scratch, const Visits& visits, std::size_t p,
                     const Look& look, Tally& tally, const Step& step) {
    tally.gap += look.gap;
    visits.finds[p] = Find::rest;
    if (!(look.violation > 0)) return;
    tally.linear += step();
    bool dozes = false;
    if constexpr (Followed<Block>) dozes = block.rest(visits.examples[p], scratch) > 0;
    visits.finds[p] = found(look.gap <= visits.little, dozes);
}

/// Visits some of these examples in the given order, each time raising the dual over the block as far as it goes.
template <class Block, class Moved>
inline Tally sweep_loop(Block& block, typename Block::Scratch& scratch, const Visits& visits, std::size_t from,
                        std::size_t to, const Moved& weights, double sigma) {
    Tally tally;
    for (std::size_t p = from; p < to; ++p) {
        look_ahead(block, visits, p);
        const std::uint32_t i = visits.examples[p];
        conclude(block, scratch, visits, p, block.look(i, weights.seen(), scratch), tally,
                 [&] { return block.step(i, weights, sigma, scratch); });
    }
    return tally;
}

template <class Block, class Moved>
DUALSVM_WIDE Tally sweep_wide(Block& block, typename Block::Scratch& scratch, const Visits& visits, std::size_t from,
                              std::size_t to, const Moved& weights, double sigma) {
    return sweep_loop(block, scratch, visits, from, to, weights, sigma);
}

/// Blocks of one score and one step, whose rows may be so short that visits mostly wait for one another.
template <class Block>
concept Brief = requires(Block block, typename Block::Scratch scratch) {
    block.rows.brief();
    block.judge(Index(0), scratch);
    scratch.moved;
};

/// Visits as `sweep_loop` does, but adds up the score of the next example before the step of this one, and puts it
/// right after that:  w.x_j += a x_i' S x_j.
template <class Block>
inline Tally sweep_early_loop(Block& block, typename Block::Scratch& scratch, const Visits& visits, std::size_t from,
                              std::size_t to, const Weights& weights, double sigma) {
    Tally tally;
    double score = from < to ? block.rows.dot(visits.examples[from], weights.w) : 0.0;
    for (std::size_t p = from; p < to; ++p) {
        look_ahead(block, visits, p);
        const std::uint32_t i = visits.examples[p], j = visits.examples[std::min(p + 1, to - 1)];
        *block.scores(scratch) = score;
        scratch.moved = 0;
        score = block.rows.dot(j, weights.w);
        const double inner = block.rows.inner(i, j, weights.s);
        conclude(block, scratch, visits, p, block.judge(i, scratch), tally,
                 [&] { return block.step(i, weights, sigma, scratch); });
        score += sigma * scratch.moved * inner;
    }
    return tally;
}

template <class Block>
DUALSVM_WIDE Tally sweep_early_wide(Block& block, typename Block::Scratch& scratch, const Visits& visits,
                                    std::size_t from, std::size_t to, const Weights& weights, double sigma) {
    return sweep_early_loop(block, scratch, visits, from, to, weights, sigma);
}

/// Visits rows that have just been read, for all that is to be known of each while it is at hand.
template <class Block>
inline Tally meet_loop(Block& block, typename Block::Scratch& scratch, const Visits& visits, std::size_t from,
                       std::size_t to, const Weights& weights, double sigma, Meeting& meeting, Random& random) {
    Tally tally;
    const Weights come{meeting.come, meeting.come, nullptr, nullptr, nullptr, nullptr};
    const Weights gone{meeting.gone, meeting.gone, nullptr, nullptr, nullptr, nullptr};
    for (std::size_t p = from; p < to; ++p) {
        look_ahead(block, visits, p);
        const std::uint32_t i = visits.examples[p];
        const Look look = block.look(i, weights.w, scratch);
        tally.gap += look.gap;
        bool& counted = meeting.counted[i];
        const auto leave = [&] {
            counted = false;
            meeting.linear -= block.linear(i);
            block.deposit(i, gone, scratch);
        };
        visits.finds[p] = look.violation > 0 ? Find::gain : Find::rest;
        if (look.violation > 0) {
            if constexpr (Followed<Block>) {
                const double change = block.step(i, weights, sigma, scratch);
                tally.linear += change;
                if (counted) {
                    meeting.linear += change;
                    block.deposit_step(i, come, scratch);
                }
            } else {
                if (counted) leave();
                tally.linear += block.step(i, weights, sigma, scratch);
                block.look(i, weights.w, scratch);
            }
        }
        const double rest = block.rest(i, scratch);
        meeting.rank[i] = rest > 0 ? rest : -random.uniform();
        const bool stays = meeting.rank[i] < meeting.bar;
        if (stays && counted) leave();
        if (stays || counted) continue;
        counted = true;
        meeting.linear += block.linear(i);
        block.deposit(i, come, scratch);
    }
    return tally;
}

template <class Block>
DUALSVM_WIDE Tally meet_wide(Block& block, typename Block::Scratch& scratch, const Visits& visits, std::size_t from,
                             std::size_t to, const Weights& weights, double sigma, Meeting& meeting, Random& random) {
    return meet_loop(block, scratch, visits, from, to, weights, sigma, meeting, random);
}

/// Whether the primal of these blocks can be made smooth.
template <class Block>
concept Smooth = requires(Block block, typename Block::Scratch scratch) { block.answer(Index(0), 1.0, scratch); };

/// Whether a step of these blocks adds to a weight once.
template <class Block>
concept Once = Block::once;

/// Looks at examples, in the order of their rows, at a fixed w, and adds up their losses, and in u what their dual
/// variables make of it.
template <class Block>
inline Tally inspect_loop(Block& block, typename Block::Scratch& scratch, const Visits& visits, const double* w,
                          const Weights& u) {
    Tally tally;
    for (std::size_t p = 0; p < visits.n; ++p) {
        look_across(block, visits, p);
        const std::uint32_t i = visits.examples[p];
        const Look look = block.look(i, w, scratch);
        tally.loss += look.loss;
        tally.linear += block.linear(i);
        visits.finds[p] = look.violation > 0 ? Find::gain : Find::rest;
        block.deposit(i, u, scratch);
    }
    return tally;
}

template <class Block>
DUALSVM_WIDE Tally inspect_wide(Block& block, typename Block::Scratch& scratch, const Visits& visits, const double* w,
                                const Weights& u) {
    return inspect_loop(block, scratch, visits, w, u);
}

constexpr std::size_t kAnswers = 32;         // examples that answer before the first of them tells u,
constexpr std::size_t kAnswered = 16 << 10;  // if their rows take so many bytes at most

/// Has examples answer to a fixed w, in the order of their rows, and adds up their losses, and in u what their dual
/// variables then make of it: those of a few together that are not 0, as nobody could foretell which these are.
template <class Block>
inline Tally answer_loop(Block& block, typename Block::Scratch& scratch, const Visits& visits, const double* w,
                         const Weights& u, double width) {
    Tally tally;
    if constexpr (Smooth<Block>) {
        std::array<std::pair<std::uint32_t, double>, kAnswers> telling;
        const std::size_t bytes = std::size_t(block.rows.bytes() / block.size());
        const std::size_t together =
            std::clamp<std::size_t>(kAnswered / std::max<std::size_t>(bytes, 1), 1, kAnswers);
        for (std::size_t from = 0; from < visits.n; from += together) {
            std::size_t n = 0;
            for (std::size_t p = from; p < std::min(from + together, visits.n); ++p) {
                look_across(block, visits, p);
                const std::uint32_t i = visits.examples[p];
                tally.loss += block.look(i, w, scratch).loss;
                const Answer answer = block.answer(i, width, scratch);
                tally.smooth += answer.loss;
                tally.gap += answer.gap;
                tally.curve += block.curvature(i, width);
                tally.linear += block.linear(i);
                block.hold(i, scratch);
                telling[n] = {i, scratch.moved};
                n += scratch.moved != 0;
            }
            for (std::size_t k = 0; k < n; ++k) block.rows.add(telling[k].first, telling[k].second, u);
        }
    }
    return tally;
}

template <class Block>
DUALSVM_WIDE Tally answer_wide(Block& block, typename Block::Scratch& scratch, const Visits& visits, const double* w,
                               const Weights& u, double width) {
    return answer_loop(block, scratch, visits, w, u, width);
}

/// Has examples answer once more, adds to u what that changes, and adds up what it changes in the linear part, the
/// losses, and how much these differ from the tangents that the dual variables were before.
template <class Block>
inline Tally refine_loop(Block& block, typename Block::Scratch& scratch, const Visits& visits, const double* w,
                         const Weights& u, double width) {
    Tally tally;
    if constexpr (Smooth<Block>)
        for (std::size_t p = 0; p < visits.n; ++p) {
            look_across(block, visits, p);
            const std::uint32_t i = visits.examples[p];
            const Look look = block.look(i, w, scratch);
            const double tangent = look.loss - look.gap;
            tally.loss += look.gap;
            tally.linear -= block.linear(i);
            const Answer answer = block.answer(i, width, scratch);
            tally.smooth += answer.loss - tangent;
            tally.gap += answer.gap;
            tally.curve += block.curvature(i, width);
            tally.linear += block.linear(i);
            block.deposit_step(i, u, scratch);
        }
    return tally;
}

template <class Block>
DUALSVM_WIDE Tally refine_wide(Block& block, typename Block::Scratch& scratch, const Visits& visits, const double* w,
                               const Weights& u, double width) {
    return refine_loop(block, scratch, visits, w, u, width);
}

/// Adds up in u what the dual variables of some examples make of it, and their linear part.
template <class Block>
inline double gather_loop(const Block& block, typename Block::Scratch& scratch, const std::uint32_t* examples,
                          std::size_t n, const bool* which, double* u) {
    const Weights sum{u, u, nullptr, nullptr, nullptr, nullptr};
    double linear = 0;
    for (std::size_t p = 0; p < n; ++p) {
        const std::uint32_t i = examples[p];
        if (which && !which[i]) continue;
        linear += block.linear(i);
        block.deposit(i, sum, scratch);
    }
    return linear;
}

template <class Block>
DUALSVM_WIDE double gather_wide(const Block& block, typename Block::Scratch& scratch, const std::uint32_t* examples,
                                std::size_t n, const bool* which, double* u) {
    return gather_loop(block, scratch, examples, n, which, u);
}

/// Looks at examples, in the order of their rows, at a fixed w: their losses, and how far each is from having
/// anything to gain.
template <class Block, class Seen>
inline Tally survey_loop(const Block& block, typename Block::Scratch& scratch, const Visits& visits, const Seen& w,
                         double* rest) {
    Tally tally;
    for (std::size_t p = 0; p < visits.n; ++p) {
        look_across(block, visits, p);
        const std::uint32_t i = visits.examples[p];
        const Look look = block.look(i, w, scratch);
        tally.loss += look.loss;
        tally.gap += look.gap;
        visits.finds[p] = look.violation > 0 ? Find::gain : Find::rest;
        if (rest) rest[i] = block.rest(i, scratch);
    }
    return tally;
}

template <class Block, class Seen>
DUALSVM_WIDE Tally survey_wide(const Block& block, typename Block::Scratch& scratch, const Visits& visits,
                               const Seen& w, double* rest) {
    return survey_loop(block, scratch, visits, w, rest);
}

}  // namespace dualsvm
