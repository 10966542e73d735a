#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "state.hpp"

namespace dualsvm {

constexpr double kLittle = 0.2;  // times the mean part of the gap in the last pass: little to gain

// Everybody is looked at again when the gap that the visits see has come down to kFiner of what it was then, unless
// the goal is so near that it will soon be time for that, or to kNear of the goal; but then there must have been
// kSeldom visits per example since, or kPulled where a certificate follows in any case, as a look at everybody has
// its price; and at the latest after kOften. Far from the goal, where less than kMost of them sleep, only those are
// looked at. Where kCrowd of them doze, as most do after a first pass if examples cost little, a look shows who may
// sleep: in the order of rows and in threads, it costs less than to visit them.
constexpr double kFiner = 0.3, kClose = 4, kNear = 0.9, kSeldom = 0.1, kPulled = 1, kOften = 3, kMost = 0.5,
                 kCrowd = 0.25;

constexpr std::size_t kRunLength = 32;  // examples of one of several states that are visited one after the other

/// Some of those who are due in one of several states.
struct Run {
    State* state;
    std::size_t from, to;
};

/// Who is due in the next pass, in a random order: of several states in short runs, as all of one state would first
/// draw the weights to itself.
static std::vector<Run> turn(const std::vector<State*>& states, Random& random) {
    std::vector<Run> runs;
    for (State* state : states) {
        const std::size_t due = state->turn(), most = states.size() > 1 ? kRunLength : due;
        for (std::size_t from = 0; from < due; from += most)
            runs.push_back({state, from, std::min(from + most, due)});
    }
    if (states.size() > 1)
        for (std::size_t i = runs.size(); i > 1; --i) std::swap(runs[i - 1], runs[random.below(std::uint32_t(i))]);
    return runs;
}

/// One pass over those who are due, the first state's for the first time if there is a meeting; and, when it is time,
/// a look at those who sleep. `reached` is whether the gap is at most `goal`.
static Pass pass(const std::vector<State*>& states, Meeting* meeting, double goal, Crew& crew, bool alone,
                 bool& reached) {
    Moving& moving = *states[0]->moving();
    const auto began = std::chrono::steady_clock::now();
    std::int64_t n = 0, visited = 0, awake = 0;
    for (const State* state : states) n += std::int64_t(state->size());
    if (n == 0) return {};
    Tally tally;
    Crew nobody(1);
    for (const Run& run : turn(states, moving.random)) {
        Crew& hands = alone ? crew : nobody;
        tally += run.state->visit(run.from, run.to, run.state == states[0] ? meeting : nullptr, hands);
        visited += std::int64_t(run.to - run.from);
    }
    moving.regain();
    moving.moves += visited;
    if (moving.light) moving.rough += visited;
    moving.linear += tally.linear;
    visited > 0 ? moving.blend(crew) : moving.restart();
    double lower = moving.dual(crew);
    const double scale = moving.loose() && moving.scale > 0 ? moving.scale : std::abs(lower + tally.gap);
    const double unit = std::max(scale, std::numeric_limits<double>::min());
    if (visited > 0) moving.little = moving.pulled() ? -1.0 : kLittle * tally.gap / double(visited);
    for (State* state : states) awake += state->note();
    if (alone && !moving.loose() && moving.fallen(lower) && states[0]->unite(crew)) {
        lower = moving.dual();
        awake = n;
    }
    moving.risen = lower;

    double gap = tally.gap / unit;
    reached = moving.pulled() && gap <= goal;
    moving.since += visited;
    const double now = moving.truth * gap, since = double(moving.since) / double(n);
    const bool coarse = visited < n && now <= kFiner * moving.known && now > kClose * goal;
    const bool finer = since >= (moving.pulled() ? kPulled : kSeldom) && (coarse || now <= kNear * goal);
    const bool sees = alone && !moving.loose();
    const bool settle = sees && double(states[0]->dozing()) >= kCrowd * double(n);
    const bool screens = settle || meeting || visited == 0 || finer || since >= kOften;
    if (screens) {
        const bool most = !coarse || double(states[0]->sleeping()) >= kMost * double(n);
        const bool exact = settle || (sees && most);
        Screening all{0, 0, exact ? 0.0 : tally.gap};
        for (State* state : states) {
            if (meeting && state == states[0]) continue;  // its examples are met
            const Screening one = exact ? state->screen_all(settle, crew) : state->screen(crew);
            all = {all.looks + one.looks, all.woken + one.woken, all.gap + one.gap};
        }
        moving.truth = exact && gap > 0 ? std::clamp(all.gap / unit / gap, 0.1, 10.0) : 1.0;
        gap = all.gap / (exact ? std::max(std::abs(lower + all.gap), std::numeric_limits<double>::min()) : unit);
        reached = gap <= goal;
        moving.since = 0;
        if (settle || visited == 0) awake = all.woken;
        if (visited == 0) visited = all.looks;
    }
    if (screens || visited == n) moving.known = gap;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return {visited, awake, moving.light ? -kInfinity : lower, gap, took.count()};
}

Course optimize(const std::vector<State*>& states, std::int64_t max_passes, std::int64_t max_visits, double goal,
                int threads, bool alone) {
    Course course;
    Crew crew(threads);
    while (!states.empty() && std::int64_t(course.passes.size()) < max_passes && max_visits > 0 && !course.reached) {
        if (alone) states[0]->lighten(crew);
        const Pass last = pass(states, nullptr, goal, crew, alone, course.reached);
        if (last.visited == 0) break;
        course.passes.push_back(last);
        max_visits -= last.visited;
    }
    return course;
}

std::vector<Pass> meet(const std::vector<State*>& states, std::int64_t passes, Meeting& meeting) {
    std::vector<Pass> all;
    Crew crew(1);
    bool reached = false;
    for (std::int64_t k = 0; k < passes; ++k) all.push_back(pass(states, &meeting, 0.0, crew, false, reached));
    return all;
}

}  // namespace dualsvm
