#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "calendar.hpp"
#include "state.hpp"

namespace dualsvm {

constexpr double kLittle = 0.1;  // times the mean part of the gap in the last pass: little to gain

constexpr std::size_t kRunLength = 32;  // examples of one of several states that are visited one after the other

/// Some of those who are due in one of several states.
struct Run {
    State* state;
    std::size_t from, to;
};

/// Who is due on the next day with anybody due at all, in a random order: of several states in short runs, as all of
/// one state would first draw the weights to itself.
static std::vector<Run> turn(const std::vector<State*>& states, Random& random) {
    std::vector<Run> runs;
    for (std::size_t day = 0; day < Calendar::kDays && runs.empty(); ++day) {
        for (State* state : states) {
            const std::size_t due = state->turn(), most = states.size() > 1 ? kRunLength : due;
            for (std::size_t from = 0; from < due; from += most)
                runs.push_back({state, from, std::min(from + most, due)});
        }
    }
    if (states.size() > 1)
        for (std::size_t i = runs.size(); i > 1; --i) std::swap(runs[i - 1], runs[random.below(std::uint32_t(i))]);
    return runs;
}

/// One pass over those who are due, the first state's for the first time if there is a meeting.
static Pass pass(const std::vector<State*>& states, Meeting* meeting) {
    Moving& moving = *states[0]->moving();
    const auto began = std::chrono::steady_clock::now();
    const std::vector<Run> runs = turn(states, moving.random);
    if (runs.empty()) return {};
    std::int64_t due = 0;
    Tally tally;
    for (const Run& run : runs) {
        tally += run.state->visit(run.from, run.to, run.state == states[0] ? meeting : nullptr);
        due += std::int64_t(run.to - run.from);
    }
    moving.regain();
    moving.linear += tally.linear;
    moving.blend();
    const double lower = moving.dual();
    const double whole = moving.loose() && moving.scale > 0 ? moving.scale : std::abs(lower + tally.gap);
    const double estimate = tally.gap / std::max(whole, std::numeric_limits<double>::min());
    std::int64_t awake = 0;
    moving.little = moving.pulled() ? -1.0 : kLittle * tally.gap / double(due);
    for (State* state : states) awake += state->note();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return {due, awake, lower, estimate, took.count()};
}

std::vector<Pass> optimize(const std::vector<State*>& states, std::int64_t max_passes, std::int64_t max_visits,
                           double goal) {
    std::vector<Pass> passes;
    while (!states.empty() && std::int64_t(passes.size()) < max_passes && max_visits > 0) {
        const Pass last = pass(states, nullptr);
        if (last.visited == 0) break;
        passes.push_back(last);
        max_visits -= last.visited;
        if (last.estimate <= goal) break;
    }
    return passes;
}

std::vector<Pass> meet(const std::vector<State*>& states, std::int64_t passes, Meeting& meeting) {
    std::vector<Pass> all;
    for (std::int64_t k = 0; k < passes; ++k) all.push_back(pass(states, &meeting));
    return all;
}

}  // namespace dualsvm
