#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "random.hpp"

namespace dualsvm {

/// What a visit finds of an example.
enum class Find : std::uint8_t { gain, little, rest };

/// Who is visited when. An example with something to gain is due in the next pass; one that rests at a bound
/// is left alone for about 2, 4, 8, ... 64 passes, longer each time that it is found resting, and one with little to
/// gain for 2. This is shrinking that undoes itself: nobody is away for long, and a visit that finds a gain
/// ends the naps at once.
class Calendar {
    static constexpr std::uint8_t kLongest = 6;

public:
    static constexpr std::size_t kDays = (std::size_t(1) << kLongest) + 1;  // by then everybody has been due

    void reset(const std::vector<std::uint32_t>& examples, std::size_t n) {
        naps_.assign(n, 0);
        wake(examples);
    }

    /// All of `examples`, and nobody else, are due in the next pass.
    void wake(const std::vector<std::uint32_t>& examples) {
        for (auto& page : pages_) page.clear();
        page(1) = examples;
    }

    /// Turns to the next pass and hands over who is due.
    void turn(std::vector<std::uint32_t>& due) {
        due.clear();
        ++today_;
        due.swap(page(0));
    }

    void enter(std::uint32_t example, Find find, Random& random) {
        std::uint8_t& naps = naps_[example];
        const std::uint8_t most = find == Find::gain ? 0 : find == Find::little ? kShort : kLongest;
        naps = naps < most ? std::uint8_t(naps + 1) : most;
        std::uint32_t passes = std::uint32_t(1) << naps;
        if (passes > 2) passes -= random.below(passes / 4 + 1);  // so that not all come back at once
        page(passes).push_back(example);
    }

private:
    static constexpr std::uint8_t kShort = 1;
    std::vector<std::uint32_t>& page(std::size_t ahead) { return pages_[(today_ + ahead) % pages_.size()]; }

    std::array<std::vector<std::uint32_t>, kDays> pages_;
    std::size_t today_ = 0;
    std::vector<std::uint8_t> naps_;  // how often in a row the example was found resting
};

}  // namespace dualsvm
