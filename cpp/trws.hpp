#pragma once

#include <cmath>

#include "pairwise.hpp"

namespace dualsvm {

constexpr Index kVisits = 1 << 14;  // choices of a label that are tried where messages leave a gap

/// Sequential tree-reweighted message passing. Whatever the messages M_ts(a) to a node s along its links are,
///     score(y) = sum_s hat_s(y_s) + sum_(s,t) hat_st(y_s, y_t),
///     hat_s(a) = unary_s(a) + sum_t M_ts(a),    hat_st(a, b) = table_st(a, b) - M_ts(a) - M_st(b).
/// A sweep visits the nodes in their order, or back. It gives the links to nodes that come later equal shares of
/// hat_s, 1/k_s each with k_s the larger number of links before or after s, and sends along each
///     M_st(b) = max_a (hat_s(a) / k_s + table_st(a, b) - M_ts(a)) - delta_st,   delta_st such that max_b M_st(b) =
///     0.
/// After it, hat_s / k_s + hat_st is delta_st at most, so that no labels score more than
///     bound = sum_s ((1 - later_s / k_s) max hat_s + sum_(t later) delta_st),
/// and no sweep raises that. Where all of it is attained by one labelling, that one is the best.
class Trws {
public:
    Trws(const Model& m, const Neighbours& around)
        : m_(m),
          around_(around),
          message_(2 * m.links.size() * std::size_t(m.stride)),
          hat_(std::size_t(m.stride)),
          line_(std::size_t(m.stride)),
          y_(std::size_t(m.n)),
          most_(std::size_t(m.n)) {}

    /// Runs one sweep; returns the bound. `labels` are then chosen one after the other, by the nodes before and the
    /// messages from those behind.
    __attribute__((always_inline)) double sweep(bool back) {
        double bound = 0;
        for (Index k = 0; k < m_.n; ++k) bound += visit(back ? m_.n - 1 - k : k, back);
        return bound;
    }
    const std::vector<std::int32_t>& labels() const { return y_; }

    /// What the computed bound may lack of a bound, and more.
    double rounding() const {
        double size = 0;
        Index degree = 0;
        const auto largest = [&](const double* line) {
            double most = 0;
            for (Index a = 0; a < m_.L; ++a) most = std::max(most, std::abs(line[a]));
            return most;
        };
        for (Index s = 0; s < m_.n; ++s) {
            size += largest(m_.line(s));
            degree = std::max(degree, around_.degree(s));
        }
        for (std::size_t k = 0; k < m_.links.size(); ++k) {
            const double* table = m_.table(m_.links[k], false);
            double most = 0;
            for (Index a = 0; a < m_.L; ++a) most = std::max(most, largest(table + a * m_.stride));
            size += most + largest(message(Index(k), 0)) + largest(message(Index(k), 1));
        }
        const double terms = double(m_.n) + double(m_.links.size()) + 8.0 * double(degree + 4);
        return std::numeric_limits<double>::epsilon() * terms * size;
    }

    /// Looks for labels that score more than `best`, which is that of y, after a sweep back. With labels for the
    /// nodes before it, node t has  hat_t(b) + sum_(s before) hat_st(y_s, b),  which falls short of its part of the
    /// bound by a loss of 0 at least; labels whose losses add up to less than bound - best are all there is to be
    /// looked at, those with the least loss first. Whether `visits` sufficed: then y are the best labels.
    bool branch(double bound, double best, Index visits, std::int32_t* y) {
        struct Choice {
            double loss;
            std::int32_t label;
        };
        const Index n = m_.n, L = m_.L;
        std::vector<Choice> choices(std::size_t(n * L));
        std::vector<double> lost(std::size_t(n) + 1);
        std::vector<Index> next(lost.size());
        const auto open = [&](Index t) {
            collect(t);
            for (Index p = around_.start[t]; p < around_.middle[t]; ++p) {
                const Index k = around_.link[p], s = m_.links[k].lo;
                const double* table = m_.table(m_.links[k], false) + y_[s] * m_.stride;
                const double *to_s = message(k, 0), *to_t = message(k, 1);
                for (Index b = 0; b < L; ++b) hat_[b] += table[b] - to_s[y_[s]] - to_t[b];
            }
            Choice* own = choices.data() + t * L;
            for (Index b = 0; b < L; ++b) {
                const double loss = most_[t] - hat_[b];
                own[b] = {loss > 0 ? loss : 0.0, std::int32_t(b)};  // never NaN, which cannot be sorted
            }
            std::sort(own, own + L, [](const Choice& a, const Choice& b) {
                return a.loss != b.loss ? a.loss < b.loss : a.label < b.label;
            });
            next[t] = 0;
        };
        open(0);
        for (Index t = 0; t >= 0;) {
            const Choice* own = choices.data() + t * L + next[t];
            if (next[t] == L || lost[t] + own->loss >= bound - best) {
                --t;
                continue;
            }
            if (visits-- == 0) return false;
            ++next[t];
            lost[t + 1] = lost[t] + own->loss;
            y_[t] = own->label;
            if (t + 1 < n) {
                open(++t);
            } else if (const double score = m_.score(y_.data()); score > best) {
                best = score;
                std::copy(y_.begin(), y_.end(), y);
            }
        }
        return true;
    }

private:
    const Model& m_;
    const Neighbours& around_;
    std::vector<double> message_;  // to the lower and to the higher end of every link
    std::vector<double> hat_, line_;
    std::vector<std::int32_t> y_;
    std::vector<double> most_;  // the part of the bound that a node and its links to those before it have

    double* message(Index link, int side) { return message_.data() + (2 * link + side) * m_.stride; }
    const double* message(Index link, int side) const { return message_.data() + (2 * link + side) * m_.stride; }

    __attribute__((always_inline)) void collect(Index s) {
        const Index stride = m_.stride;
        std::copy_n(m_.line(s), stride, hat_.data());
        for (Index p = around_.start[s]; p < around_.start[s + 1]; ++p) {
            const double* in = message(around_.link[p], p < around_.middle[s]);
            for (Index a = 0; a < stride; a += kLane) store(hat_.data() + a, load(hat_.data() + a) + load(in + a));
        }
    }

    /// Chooses the label of a node and sends its messages; returns its part of the bound.
    __attribute__((always_inline)) double visit(Index s, bool back) {
        const Index L = m_.L, stride = m_.stride;
        const Index from = around_.start[s], middle = around_.middle[s], to = around_.start[s + 1];
        collect(s);
        std::copy_n(hat_.data(), L, line_.data());  // with tables in place of messages from those that have a label
        for (Index p = back ? middle : from; p < (back ? to : middle); ++p) {
            const Link& link = m_.links[around_.link[p]];
            const double* row = m_.table(link, back) + y_[back ? link.hi : link.lo] * stride;
            const double* in = message(around_.link[p], !back);
            for (Index a = 0; a < L; ++a) line_[a] += row[a] - in[a];
        }
        y_[s] = std::int32_t(std::max_element(line_.begin(), line_.begin() + L) - line_.begin());
        const Index later = back ? middle - from : to - middle;
        const Index k = std::max<Index>({middle - from, to - middle, 1});
        double bound = double(k - later) / double(k) * *std::max_element(hat_.begin(), hat_.begin() + L);
        for (Index p = back ? from : middle; p < (back ? middle : to); ++p) {
            const double* in = message(around_.link[p], back);
            double* out = message(around_.link[p], !back);
            for (Index a = 0; a < L; ++a) line_[a] = hat_[a] / double(k) - in[a];
            push(line_.data(), m_.table(m_.links[around_.link[p]], back), L, stride, out);
            const double delta = *std::max_element(out, out + L);
            for (Index b = 0; b < L; ++b) out[b] -= delta;
            bound += delta;
        }
        return most_[s] = bound;
    }
};

/// Good labels, by message passing; returns by how much better labels there may be. `started` tells that y holds
/// labels to compare with.
inline double solve_messages(const Model& m, const Neighbours& around, Index iterations, bool started,
                             std::int32_t* y) {
    Trws passing(m, around);
    double bound = kInfinity, best = started ? m.score(y) : -kInfinity;
    const auto offer = [&](const std::int32_t* labels) {
        const double score = m.score(labels);
        if (score <= best) return;
        best = score;
        if (labels != y) std::copy_n(labels, m.n, y);
    };
    const auto closed = [&] { return std::isfinite(bound) && bound - best <= 1e-9 * std::abs(bound); };
    for (Index k = 0; k < iterations && !closed(); ++k) {
        const double before = bound, found = best;
        passing.sweep(false);
        offer(passing.labels().data());
        bound = passing.sweep(true);
        offer(passing.labels().data());
        // at this pace, all that are left would close next to nothing of the gap
        if (best == found && (before - bound) * double(iterations - k) <= 0.02 * (bound - best)) break;
    }
    if (!closed()) {
        std::vector<std::int32_t> labels(y, y + m.n);
        climb(m, around, labels.data());
        offer(labels.data());
    }
    const double rounding = passing.rounding();
    if (!closed() && passing.branch(bound, best, kVisits + 4 * m.n, y)) return rounding;
    return std::max(bound - m.score(y), 0.0) + rounding;
}

}  // namespace dualsvm
