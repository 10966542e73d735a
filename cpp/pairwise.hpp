#pragma once

#include <vector>

#include "weights.hpp"

namespace dualsvm {

/// An edge between nodes lo < hi, and the number of its table.
struct Link {
    std::int32_t lo, hi;
    Index table;
};

/// Nodes with one of L labels each, and the score of labels y, which is to be maximised:
///     score(y) = sum_s unary[s, y_s] + sum_(s, t) table[y_s, y_t].
/// Lines have `stride` entries, which fills lanes; those behind the L-th are -inf.
struct Model {
    Index n = 0, L = 0, stride = 0;
    std::vector<double> unary;  // n x stride
    std::vector<Link> links;
    const double* tables = nullptr;  // each twice, L x stride: by the label of lo, then by that of hi

    const double* line(Index s) const { return unary.data() + s * stride; }
    /// The scores of a link by the label of lo or, turned, by that of hi.
    const double* table(const Link& link, bool turned) const {
        return tables + (2 * link.table + turned) * L * stride;
    }

    double score(const std::int32_t* y) const {
        double sum = 0;
        for (Index s = 0; s < n; ++s) sum += line(s)[y[s]];
        for (const Link& link : links) sum += table(link, false)[y[link.lo] * stride + y[link.hi]];
        return sum;
    }
};

/// The links of every node, from start[s]: first those to nodes before it, from middle[s] those to nodes after it.
struct Neighbours {
    std::vector<Index> start, middle, link;

    explicit Neighbours(const Model& m)
        : start(std::size_t(m.n) + 1), middle(std::size_t(m.n)), link(2 * m.links.size()) {
        for (const Link& l : m.links) {
            ++start[l.lo + 1];
            ++start[l.hi + 1];
        }
        for (Index s = 0; s < m.n; ++s) start[s + 1] += start[s];
        std::vector<Index> next(start.begin(), start.end() - 1);
        for (std::size_t k = 0; k < m.links.size(); ++k) link[next[m.links[k].hi]++] = Index(k);
        std::copy(next.begin(), next.end(), middle.begin());
        for (std::size_t k = 0; k < m.links.size(); ++k) link[next[m.links[k].lo]++] = Index(k);
    }
    Index degree(Index s) const { return start[s + 1] - start[s]; }
};

/// out[b] = max_a (h[a] + table[a, b]) for Q lanes of b.
template <int Q>
__attribute__((always_inline)) inline void push(const double* h, const double* table, Index L, Index stride,
                                                double* out) {
    Lane best[Q];
    for (int q = 0; q < Q; ++q) best[q] = h[0] + load(table + q * kLane);
    for (Index a = 1; a < L; ++a) {
        for (int q = 0; q < Q; ++q) {
            const Lane value = h[a] + load(table + a * stride + q * kLane);
            best[q] = value > best[q] ? value : best[q];
        }
    }
    for (int q = 0; q < Q; ++q) store(out + q * kLane, best[q]);
}

__attribute__((always_inline)) inline void push(const double* h, const double* table, Index L, Index stride,
                                                double* out) {
    for (Index k = 0; k < stride; k += 4 * kLane) {
        switch (std::min<Index>(4, (stride - k) / kLane)) {
            case 4:
                push<4>(h, table + k, L, stride, out + k);
                break;
            case 3:
                push<3>(h, table + k, L, stride, out + k);
                break;
            case 2:
                push<2>(h, table + k, L, stride, out + k);
                break;
            default:
                push<1>(h, table + k, L, stride, out + k);
        }
    }
}

/// The best labels of a tree, or of several, by maxima that are passed from the leaves to a root and back.
inline void solve_forest(const Model& m, const Neighbours& around, std::int32_t* y) {
    std::vector<Index> order,
        parent(std::size_t(m.n), -1);  // the link to the node before it on the way from the root
    std::vector<char> seen(std::size_t(m.n));
    order.reserve(std::size_t(m.n));
    for (Index root = 0; root < m.n; ++root) {
        if (seen[root]) continue;
        seen[root] = 1;
        order.push_back(root);
        for (std::size_t k = order.size() - 1; k < order.size(); ++k) {
            for (Index p = around.start[order[k]]; p < around.start[order[k] + 1]; ++p) {
                const Link& link = m.links[around.link[p]];
                const Index other = link.lo == order[k] ? link.hi : link.lo;
                if (seen[other]) continue;
                seen[other] = 1;
                parent[other] = around.link[p];
                order.push_back(other);
            }
        }
    }
    std::vector<double> best(m.unary), message(std::size_t(m.stride));
    for (Index k = m.n - 1; k >= 0; --k) {
        const Index s = order[k];
        if (parent[s] < 0) continue;
        const Link& link = m.links[parent[s]];
        push(best.data() + s * m.stride, m.table(link, link.hi == s), m.L, m.stride, message.data());
        double* to = best.data() + (link.lo == s ? link.hi : link.lo) * m.stride;
        for (Index a = 0; a < m.L; ++a) to[a] += message[a];
    }
    for (const Index s : order) {
        double* line = best.data() + s * m.stride;
        if (parent[s] >= 0) {
            const Link& link = m.links[parent[s]];
            const double* row = m.table(link, link.lo == s) + y[link.lo == s ? link.hi : link.lo] * m.stride;
            for (Index a = 0; a < m.L; ++a) line[a] += row[a];
        }
        y[s] = std::int32_t(std::max_element(line, line + m.L) - line);
    }
}

/// The best labels among all of them.
inline void solve_listed(const Model& m, const Neighbours& around, std::int32_t* y) {
    std::vector<std::int32_t> at(std::size_t(m.n), -1);
    std::vector<double> sum(std::size_t(m.n) + 1);  // of the first nodes
    double best = -kInfinity;
    for (Index s = 0; s >= 0;) {
        if (++at[s] == m.L) {
            at[s--] = -1;
            continue;
        }
        sum[s + 1] = sum[s] + m.line(s)[at[s]];
        for (Index p = around.start[s]; p < around.middle[s]; ++p) {
            const Link& link = m.links[around.link[p]];
            sum[s + 1] += m.table(link, false)[at[link.lo] * m.stride + at[s]];
        }
        if (s + 1 < m.n) {
            ++s;
        } else if (sum[m.n] > best) {
            best = sum[m.n];
            std::copy(at.begin(), at.end(), y);
        }
    }
}

/// Changes single labels as long as that raises the score.
inline void climb(const Model& m, const Neighbours& around, std::int32_t* y) {
    std::vector<double> line(std::size_t(m.L));
    bool moved = true;
    for (int sweep = 0; moved && sweep < 100; ++sweep) {
        moved = false;
        for (Index s = 0; s < m.n; ++s) {
            std::copy_n(m.line(s), m.L, line.data());
            for (Index p = around.start[s]; p < around.start[s + 1]; ++p) {
                const Link& link = m.links[around.link[p]];
                const bool lo = link.lo == s;
                const double* row = m.table(link, lo) + y[lo ? link.hi : link.lo] * m.stride;
                for (Index a = 0; a < m.L; ++a) line[a] += row[a];
            }
            const auto best = std::int32_t(std::max_element(line.begin(), line.end()) - line.begin());
            if (line[best] > line[y[s]]) {
                y[s] = best;
                moved = true;
            }
        }
    }
}

}  // namespace dualsvm
