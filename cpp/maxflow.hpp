#pragma once

#include "pairwise.hpp"

namespace dualsvm {

/// The largest flow from a source to a sink and the smallest cut, by Dinic's algorithm. A push takes the least of
/// what is left along its way, so that something is left with exactly 0: rounding can neither make it run for ever
/// nor leave a way open.
class MaxFlow {
public:
    explicit MaxFlow(Index n) : n_(n), from_(std::size_t(n)), to_(std::size_t(n)), start_(std::size_t(n) + 1) {}

    /// Room for c from the source to v or, where it is negative, for -c from v to the sink.
    void terminal(Index v, double c) { (c > 0 ? from_ : to_)[v] += std::abs(c); }
    void arc(Index a, Index b, double capacity) {
        ends_.push_back(std::int32_t(a));
        ends_.push_back(std::int32_t(b));
        capacity_.push_back(capacity);
        ++start_[a + 1];
        ++start_[b + 1];
    }

    void run() {
        arrange();
        for (Index v = 0; v < n_; ++v) {  // what can go straight through
            const double through = std::min(from_[v], to_[v]);
            from_[v] -= through;
            to_[v] -= through;
        }
        while (reach()) fill();
    }
    /// After `run`: whether a node lies on the source's side of a smallest cut.
    bool with_source(Index v) const { return level_[v] >= 0; }

private:
    Index n_;
    std::vector<double> from_, to_;   // what is left from the source and to the sink
    std::vector<std::int32_t> ends_;  // of the arcs, as they were given
    std::vector<double> capacity_;
    std::vector<Index> start_, back_, cursor_, queue_, way_;  // arcs of a node, each with the number of its reverse
    std::vector<std::int32_t> head_, level_;
    std::vector<double> left_;
    std::int32_t last_ = 0;  // the level of the nodes before the sink

    void arrange() {
        for (Index v = 0; v < n_; ++v) start_[v + 1] += start_[v];
        cursor_.assign(start_.begin(), start_.end() - 1);
        const std::size_t m = 2 * capacity_.size();
        head_.resize(m);
        back_.resize(m);
        left_.resize(m);
        level_.resize(std::size_t(n_));
        for (std::size_t k = 0; k < capacity_.size(); ++k) {
            const std::int32_t a = ends_[2 * k], b = ends_[2 * k + 1];
            const Index there = cursor_[a]++, here = cursor_[b]++;
            head_[there] = b;
            head_[here] = a;
            back_[there] = here;
            back_[here] = there;
            left_[there] = capacity_[k];
            left_[here] = 0;
        }
    }

    /// Levels: the fewest steps from the source. Whether the sink can be reached.
    bool reach() {
        std::fill(level_.begin(), level_.end(), -1);
        queue_.clear();
        last_ = -1;
        for (Index v = 0; v < n_; ++v) {
            if (from_[v] > 0) {
                level_[v] = 0;
                queue_.push_back(v);
            }
        }
        for (std::size_t k = 0; k < queue_.size(); ++k) {
            const Index v = queue_[k];
            if (last_ >= 0 && level_[v] > last_) break;
            if (to_[v] > 0) last_ = level_[v];
            for (Index p = start_[v]; p < start_[v + 1]; ++p) {
                if (left_[p] > 0 && level_[head_[p]] < 0) {
                    level_[head_[p]] = level_[v] + 1;
                    queue_.push_back(head_[p]);
                }
            }
        }
        return last_ >= 0;
    }

    /// Pushes along ways that rise by one level a step, until none is left.
    void fill() {
        std::copy(start_.begin(), start_.end() - 1, cursor_.begin());
        for (Index root = 0; root < n_; ++root) {
            way_.clear();
            for (Index v = root; level_[root] == 0 && from_[root] > 0;) {
                if (level_[v] == last_ && to_[v] > 0) {
                    v = push_along(root, v);
                } else if (Index& p = cursor_[v]; level_[v] < last_ && p < start_[v + 1]) {
                    if (left_[p] > 0 && level_[head_[p]] == level_[v] + 1) {
                        way_.push_back(p);
                        v = head_[p];
                    } else {
                        ++p;
                    }
                } else if (way_.empty()) {
                    break;
                } else {  // nothing leads on from here
                    v = head_[back_[way_.back()]];
                    way_.pop_back();
                    ++cursor_[v];
                }
            }
        }
    }

    /// Pushes what the way from the root to v allows; returns the node from where to go on, before what is used up.
    Index push_along(Index root, Index v) {
        double flow = std::min(from_[root], to_[v]);
        for (const Index p : way_) flow = std::min(flow, left_[p]);
        from_[root] -= flow;
        to_[v] -= flow;
        std::size_t kept = way_.size();
        for (std::size_t k = way_.size(); k-- > 0;) {
            left_[way_[k]] -= flow;
            left_[back_[way_[k]]] += flow;
            if (left_[way_[k]] == 0) kept = k;
        }
        way_.resize(kept);
        return way_.empty() ? root : Index(head_[way_.back()]);
    }
};

/// By how much two labels gain by being equal over being different: table[0, 0] + table[1, 1] - table[0, 1] - ...
inline double attraction(const Model& m, const Link& link) {
    const double *zero = m.table(link, false), *one = zero + m.stride;
    return (zero[0] + one[1]) - (zero[1] + one[0]);
}

/// Whether two labels attract each other along every link, but for rounding.
inline bool submodular(const Model& m) {
    if (m.L != 2) return false;
    for (const Link& link : m.links) {
        const double *zero = m.table(link, false), *one = zero + m.stride;
        const double size = std::abs(zero[0]) + std::abs(zero[1]) + std::abs(one[0]) + std::abs(one[1]);
        if (!(attraction(m, link) >= -1e-12 * size)) return false;
    }
    return true;
}

/// The best labels of a submodular model, 0 on the source's side of a smallest cut, by
///     table[a, b] = t00 + (t10 - t00) a + (t11 - t10) b - attraction (1 - a) b.
/// Returns by how much better labels there may still be, for the sake of attractions that are a little negative.
inline double solve_cut(const Model& m, std::int32_t* y) {
    MaxFlow flow(m.n);
    double beside = 0;
    std::vector<double> one(std::size_t(m.n));  // what label 1 has more than 0
    for (Index s = 0; s < m.n; ++s) one[s] = m.line(s)[1] - m.line(s)[0];
    for (const Link& link : m.links) {
        const double* t = m.table(link, false);
        const double pull = attraction(m, link);
        one[link.lo] += t[m.stride] - t[0];
        one[link.hi] += t[m.stride + 1] - t[m.stride];
        if (pull > 0)
            flow.arc(link.lo, link.hi, pull);
        else
            beside -= pull;
    }
    for (Index s = 0; s < m.n; ++s) flow.terminal(s, -one[s]);
    flow.run();
    for (Index s = 0; s < m.n; ++s) y[s] = flow.with_source(s) ? 0 : 1;
    return beside;
}

}  // namespace dualsvm
