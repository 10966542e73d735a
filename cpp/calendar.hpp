#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace dualsvm {

/// What a visit finds of an example; of one that dozes, that its step has led to a bound, where it may rest from now
/// on.
enum class Find : std::uint8_t { gain, little, rest, doze };

/// What is found of one with something to gain, without a branch, which nobody could foretell.
inline Find found(bool little, bool dozes) {
    static_assert(int(Find::gain) == 0 && int(Find::little) == 1 && int(Find::doze) == 3);
    return Find(3 * int(dozes) | int(little));
}

/// Who is visited when. An example with something to gain, or that dozes, is due in the next pass, one with little to
/// gain in the pass after that; one that rests at a bound sleeps until somebody looks whether it still does.
class Calendar {
public:
    /// All of `examples` are due in the next pass, and nobody sleeps.
    void wake(const std::vector<std::uint32_t>& examples, std::size_t n) {
        next_ = examples;
        later_.clear();
        asleep_.assign(n, false);
    }

    /// Turns to the next pass with anybody due, and hands over who is.
    void turn(std::vector<std::uint32_t>& due) {
        due.clear();
        if (next_.empty()) next_.swap(later_);
        due.swap(next_);
        next_.swap(later_);
    }

    /// Takes note of what was found of some, without branches, which nobody could foretell; returns how many do not
    /// rest, and how many doze.
    std::pair<std::size_t, std::size_t> enter(const std::vector<std::uint32_t>& examples, const Find* finds) {
        std::size_t next = next_.size(), later = later_.size(), dozing = 0;
        const std::size_t before = next + later;
        next_.resize(next + examples.size() + 1);
        later_.resize(later + examples.size() + 1);
        for (std::size_t p = 0; p < examples.size(); ++p) {
            const std::uint32_t example = examples[p];
            const Find find = finds[p];
            asleep_[example] = find == Find::rest;
            next_[next] = later_[later] = example;
            next += (find == Find::gain) | (find == Find::doze);
            later += find == Find::little;
            dozing += find == Find::doze;
        }
        next_.resize(next);
        later_.resize(later);
        return {next + later - before, dozing};
    }

    /// The same for those only who slept so far; returns how many do no longer.
    std::int64_t rouse(const std::vector<std::uint32_t>& examples, const Find* finds) {
        const std::size_t before = next_.size();
        for (std::size_t p = 0; p < examples.size(); ++p) {
            const std::uint32_t example = examples[p];
            if (!(asleep_[example] & std::uint8_t(finds[p] != Find::rest))) continue;  // most, as one can foretell
            asleep_[example] = false;
            next_.push_back(example);
        }
        return std::int64_t(next_.size() - before);
    }

    /// How many sleep.
    std::size_t sleeping() const { return std::size_t(std::count(asleep_.begin(), asleep_.end(), 1)); }

    /// Those who sleep, in the order of their rows.
    void sleepers(std::vector<std::uint32_t>& out) const {
        out.clear();
        for (std::size_t i = 0; i < asleep_.size(); ++i)
            if (asleep_[i]) out.push_back(std::uint32_t(i));
    }

private:
    std::vector<std::uint32_t> next_, later_;
    std::vector<std::uint8_t> asleep_;
};

}  // namespace dualsvm
