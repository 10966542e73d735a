#include <chrono>
#include <cmath>
#include <limits>

#include "calendar.hpp"
#include "state.hpp"

namespace dualsvm {

constexpr double kLittle = 0.1;  // times the mean part of the gap in the last pass: little to gain

/// Who is due on the next day with anybody due at all.
static std::int64_t turn(const std::vector<State*>& states) {
    std::size_t due = 0;
    for (std::size_t day = 0; day < Calendar::kDays && due == 0; ++day)
        for (State* state : states) due += state->turn();
    return std::int64_t(due);
}

std::vector<Pass> optimize(std::vector<State*> states, std::int64_t max_passes, std::int64_t max_visits,
                           double goal) {
    std::vector<Pass> passes;
    if (states.empty()) return passes;
    Moving& moving = *states[0]->moving();
    while (std::int64_t(passes.size()) < max_passes && max_visits > 0) {
        const auto began = std::chrono::steady_clock::now();
        const std::int64_t due = turn(states);
        if (due == 0) break;
        for (std::size_t i = states.size(); i > 1; --i)
            std::swap(states[i - 1], states[moving.random.below(std::uint32_t(i))]);
        Tally tally;
        for (State* state : states) tally += state->visit();
        moving.linear += tally.linear;
        moving.blend();
        const double lower = moving.dual();
        const double whole = moving.pulled() && moving.scale > 0 ? moving.scale : std::abs(lower + tally.gap);
        const double estimate = tally.gap / std::max(whole, std::numeric_limits<double>::min());
        std::int64_t awake = 0;
        moving.little = moving.pulled() ? -1.0 : kLittle * tally.gap / double(due);
        for (State* state : states) awake += state->note();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        passes.push_back({due, awake, lower, estimate, took.count()});
        max_visits -= due;
        if (estimate <= goal) break;
    }
    return passes;
}

}  // namespace dualsvm
