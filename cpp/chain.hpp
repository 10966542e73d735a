#pragma once

#include <cmath>

#include "emit.hpp"
#include "search.hpp"
#include "weights.hpp"

namespace dualsvm {

/// Sequences with a label at every position t. The joint feature vector of labels y is
///     sum_t  x_tf at f L + y_t,     then transitions at a L + b,     then starts and ends at y_1 and y_T,
/// so that the scores of all labels lie side by side. A label of -1 is missing: its position and the transitions at
/// it count nothing.
template <class Rows>
class Chains : public Decoder {
public:
    Rows rows;           // of all positions
    const Index* start;  // the positions of sequence i are start[i] .. start[i+1]
    const std::int32_t* label;
    const double* cost;  // L x L: true label, label
    Index n, L;
    bool normalized, ends;

    Chains(const Rows& rows, const Index* start, Index n, const std::int32_t* label, const double* cost, Index L,
           bool normalized, bool ends)
        : rows(rows), start(start), label(label), cost(cost), n(n), L(L), normalized(normalized), ends(ends) {}

    Index size() const override { return n; }
    Index n_weights() const override { return rows.width() * L + L * L + (ends ? 2 * L : 0); }
    Index length(Index i) const override { return start[i + 1] - start[i]; }

    Finding find(Index i, const double* w) const override {
        std::vector<std::int32_t> labels(std::size_t(length(i)));
        search(i, w, true, labels.data());
        Finding found;
        found.l = loss(i, labels.data());
        joint(i, label + start[i], 1.0, found.x, labels.data());
        settle(found, w);
        return found;
    }

    void decode(Index i, const double* w, bool augmented, std::int32_t* labels) const override {
        search(i, w, augmented, labels);
    }

    double loss(Index i, const std::int32_t* labels) const override {
        check(i, labels);
        double sum = 0;
        for (Index t = 0; t < length(i); ++t) {
            const std::int32_t own = label[start[i] + t];
            if (own >= 0 && labels[t] >= 0) sum += cost[own * L + labels[t]];
        }
        return sum * share(i);
    }

    void joint(Index i, const std::int32_t* y, double factor, std::vector<Entry>& out) const override {
        check(i, y);
        joint(i, y, factor, out, nullptr);
    }

    /// The k best labellings and their scores, best first; fewer where there are not so many.
    std::vector<double> best(Index i, const double* w, Index k, std::vector<std::int32_t>& labels) const override {
        struct Path {
            double score;
            std::int32_t label, rank;  // at the position before
        };
        const Index T = length(i), stride = lanes() * kLane;
        if (T == 0) return {0.0};
        const double* pass = w + rows.width() * L;
        std::vector<double> s(std::size_t(T * stride));
        scores(i, w, false, s.data());
        std::vector<std::vector<Path>> paths(std::size_t(T * L));  // of every position and label, best first
        std::vector<Path> some;
        const auto keep = [&](std::vector<Path>& kept) {
            const auto count = std::min<std::size_t>(some.size(), std::size_t(k));
            const auto better = [](const Path& a, const Path& b) {
                return a.score != b.score   ? a.score > b.score
                       : a.label != b.label ? a.label < b.label
                                            : a.rank < b.rank;
            };
            std::partial_sort(some.begin(), some.begin() + std::ptrdiff_t(count), some.end(), better);
            kept.assign(some.begin(), some.begin() + std::ptrdiff_t(count));
            some.clear();
        };
        for (Index t = 0; t < T; ++t) {
            for (Index b = 0; b < L; ++b) {
                if (t == 0) some.push_back({s[b], -1, 0});
                for (Index a = 0; t > 0 && a < L; ++a)
                    for (std::size_t r = 0; r < paths[(t - 1) * L + a].size(); ++r)
                        some.push_back({paths[(t - 1) * L + a][r].score + pass[a * L + b] + s[t * stride + b],
                                        std::int32_t(a), std::int32_t(r)});
                keep(paths[t * L + b]);
            }
        }
        for (Index a = 0; a < L; ++a)
            for (std::size_t r = 0; r < paths[(T - 1) * L + a].size(); ++r)
                some.push_back({paths[(T - 1) * L + a][r].score, std::int32_t(a), std::int32_t(r)});
        std::vector<Path> last;
        keep(last);
        std::vector<double> values;
        labels.assign(last.size() * std::size_t(T), 0);
        for (std::size_t r = 0; r < last.size(); ++r) {
            values.push_back(last[r].score);
            Path at = last[r];
            for (Index t = T - 1; t >= 0; --t) {
                labels[r * std::size_t(T) + std::size_t(t)] = at.label;
                at = paths[t * L + at.label][at.rank];
            }
        }
        return values;
    }

private:
    void check(Index i, const std::int32_t* labels) const {
        for (Index t = 0; t < length(i); ++t)
            if (labels[t] < -1 || labels[t] >= L) throw std::invalid_argument("a label of no class");
    }

    Index lanes() const { return (L + kLane - 1) / kLane; }
    double share(Index i) const { return normalized && length(i) > 0 ? 1.0 / double(length(i)) : 1.0; }

    /// phi of y or, with `other` labels, phi(y) - phi(other) at the positions whose label is known.
    void joint(Index i, const std::int32_t* y, double factor, std::vector<Entry>& out,
               const std::int32_t* other) const {
        const Index T = length(i), first = rows.width() * L, at_start = first + L * L, at_end = at_start + L;
        const auto put = [&](Index column, double x) { out.push_back({std::int32_t(column), x}); };
        for (Index t = 0; t < T; ++t) {
            if (y[t] < 0) continue;
            const bool differs = !other || other[t] != y[t];
            if (differs) {
                rows.each(start[i] + t, [&](Index f, double x) {
                    put(f * L + y[t], factor * x);
                    if (other) put(f * L + other[t], -factor * x);
                });
            }
            if (ends && t == 0 && differs) {
                put(at_start + y[t], factor);
                if (other) put(at_start + other[t], -factor);
            }
            if (ends && t == T - 1 && differs) {
                put(at_end + y[t], factor);
                if (other) put(at_end + other[t], -factor);
            }
            if (t + 1 < T && y[t + 1] >= 0 && (differs || other[t + 1] != y[t + 1])) {
                put(first + y[t] * L + y[t + 1], factor);
                if (other) put(first + other[t] * L + other[t + 1], -factor);
            }
        }
    }

    void search(Index i, const double* w, bool augmented, std::int32_t* labels) const {
        if (wide())
            search_wide(i, w, augmented, labels);
        else
            search_loop(i, w, augmented, labels);
    }
    DUALSVM_WIDE void search_wide(Index i, const double* w, bool augmented, std::int32_t* labels) const {
        search_loop(i, w, augmented, labels);
    }

    /// The score of every label at every position, with its loss where that is asked for, T x (lanes kLane).
    void scores(Index i, const double* w, bool augmented, double* s) const {
        const Index T = length(i), stride = lanes() * kLane;
        const double* at_start = w + rows.width() * L + L * L;
        auto room = rows.room();
        for (Index t = 0; t < T; ++t, s += stride) {
            const std::int32_t own = label[start[i] + t];
            for (Index y = 0; y < stride; ++y) s[y] = y < L ? 0.0 : -kInfinity;
            if (augmented && own < 0) continue;
            const auto entries = rows.entries(start[i] + t, room);
            emit(entries, w, L, s);
            for (Index y = L; y < stride; ++y) s[y] = -kInfinity;
            if (ends && t == 0)
                for (Index y = 0; y < L; ++y) s[y] += at_start[y];
            if (ends && t == T - 1)
                for (Index y = 0; y < L; ++y) s[y] += at_start[L + y];
            if (augmented)
                for (Index y = 0; y < L; ++y) s[y] += share(i) * cost[own * L + y];
        }
    }

    /// Viterbi: delta_t[b] = s_t[b] + max_a (delta_(t-1)[a] + transition[a, b]); the way back finds its maxima again.
    void search_loop(Index i, const double* w, bool augmented, std::int32_t* labels) const {
        const Index T = length(i), stride = lanes() * kLane;
        if (T == 0) return;
        const double* pass = w + rows.width() * L;
        std::vector<double> delta(std::size_t(T * stride));
        scores(i, w, augmented, delta.data());
        const auto apart = [&](Index t) {  // whether nothing is paid for the transition from t - 1 to t
            return augmented && (label[start[i] + t - 1] < 0 || label[start[i] + t] < 0);
        };
        for (Index t = 1; t < T; ++t) {
            const double* before = delta.data() + (t - 1) * stride;
            double* here = delta.data() + t * stride;
            if (apart(t)) {
                const double best = *std::max_element(before, before + L);
                for (Index b = 0; b < L; ++b) here[b] += best;
                continue;
            }
            for (Index q = 0; q < lanes(); q += 4) {
                switch (std::min<Index>(4, lanes() - q)) {
                    case 4:
                        follow<4>(before, pass + q * kLane, here + q * kLane);
                        break;
                    case 3:
                        follow<3>(before, pass + q * kLane, here + q * kLane);
                        break;
                    case 2:
                        follow<2>(before, pass + q * kLane, here + q * kLane);
                        break;
                    default:
                        follow<1>(before, pass + q * kLane, here + q * kLane);
                }
            }
        }
        const double* last = delta.data() + (T - 1) * stride;
        Index b = std::max_element(last, last + L) - last;
        labels[T - 1] = std::int32_t(b);
        for (Index t = T - 1; t > 0; --t) {
            const double* before = delta.data() + (t - 1) * stride;
            const bool free = apart(t);
            Index a = 0;
            double best = -kInfinity;
            for (Index c = 0; c < L; ++c) {
                const double value = before[c] + (free ? 0.0 : pass[c * L + b]);
                if (value > best) best = value, a = c;
            }
            labels[t - 1] = std::int32_t(b = a);
        }
    }

    template <int Q>
    __attribute__((always_inline)) inline void follow(const double* before, const double* pass, double* here) const {
        Lane best[Q];
        for (int q = 0; q < Q; ++q) best[q] = before[0] + load(pass + q * kLane);
        for (Index a = 1; a < L; ++a) {
            for (int q = 0; q < Q; ++q) {
                const Lane value = before[a] + load(pass + a * L + q * kLane);
                best[q] = value > best[q] ? value : best[q];
            }
        }
        for (int q = 0; q < Q; ++q) store(here + q * kLane, load(here + q * kLane) + best[q]);
    }
};

}  // namespace dualsvm
