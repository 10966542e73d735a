#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "crew.hpp"
#include "large.hpp"
#include "loops.hpp"
#include "outer.hpp"
#include "simd.hpp"

namespace dualsvm {

/// For Newton's method: which examples answered last and over which width of the kinks, whose losses were curved
/// there, and what each of them counts in the Hessian.
template <class Block>
class Answered {
public:
    /// Of every `stride` runs of examples the first is to answer, over this width.
    void begin(double width, std::int64_t stride) {
        width_ = width;
        stride_ = std::size_t(std::max<std::int64_t>(stride, 1));
        curved_.clear();
    }
    bool all() const { return stride_ == 1; }

    /// Calls f with the examples that answer.
    template <class F>
    void each(const std::vector<std::uint32_t>& examples, const F& f) const {
        const std::size_t run = all() ? examples.size() : kTogether;
        for (std::size_t from = 0; from < examples.size(); from += stride_ * run)
            for (std::size_t p = from; p < std::min(from + run, examples.size()); ++p) f(examples[p]);
    }

    /// Those whose losses were curved, who are to answer once more, over this width.
    const std::vector<std::uint32_t>& curved(const Block& block, const std::vector<std::uint32_t>& examples,
                                             double width) {
        const auto curved = [&](std::uint32_t i) { return block.curvature(i, width_) > 0; };
        std::erase_if(curved_, std::not_fn(curved));
        if (curved_.empty())
            each(examples, [&](std::uint32_t i) {
                if (curved(i)) curved_.push_back(i);
            });
        width_ = width;
        return curved_;
    }

    /// Adds to a d x d Hessian what has changed in it, in threads; returns how many examples count in it.
    std::int64_t curve(const Block& block, const std::vector<std::uint32_t>& examples, double* sum, std::size_t d,
                       Crew& crew) {
        std::int64_t count = 0;
        counted_.resize(std::size_t(block.size()));
        // those that count for more come first, as it is cheaper to add or to subtract many rows at once; listed
        // without branches, which nobody could foretell
        std::vector<std::uint32_t> changed(examples.size());
        std::size_t more = 0, less = changed.size();
        each(examples, [&](std::uint32_t i) {
            const double c = block.curvature(i, width_);
            count += c > 0;
            changed[more] = changed[less - 1] = i;
            more += c > counted_[i];
            less -= c < counted_[i];
        });
        changed.erase(changed.begin() + std::ptrdiff_t(more), changed.begin() + std::ptrdiff_t(less));
        std::vector<double> by(changed.size());
        for (std::size_t p = 0; p < changed.size(); ++p) {
            const std::uint32_t i = changed[p];
            const double c = block.curvature(i, width_);
            by[p] = c - counted_[i];
            counted_[i] = c;
        }
        const std::size_t n = changed.size(), shares = std::min(shares_of(changed, crew), kMostSums);
        std::vector<std::vector<double>> parts(shares - 1, std::vector<double>(d * d));
        std::vector<Outer<std::remove_cvref_t<decltype(block.rows)>>> outers;
        for (std::size_t t = 0; t < shares; ++t) outers.emplace_back(block.rows, t > 0 ? parts[t - 1].data() : sum);
        crew.run(shares, [&](std::size_t t) {
            auto& outer = outers[t];
            const std::size_t from = n * t / shares, to = n * (t + 1) / shares;
            wide() ? outer.add_wide(changed, by, from, to) : outer.add_loop(changed, by, from, to);
        });
        for (const auto& part : parts)
            for (std::size_t k = 0; k < d * d; ++k) sum[k] += part[k];
        return count;
    }

private:
    static constexpr std::size_t kMostSums = 4;   // threads that each keep a Hessian of their own
    static constexpr std::size_t kTogether = 16;  // examples side by side that answer where not all do

    double width_ = 1;
    std::size_t stride_ = 1;
    std::vector<std::uint32_t> curved_;
    Large<double> counted_;
};

}  // namespace dualsvm
