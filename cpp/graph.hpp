#pragma once

#include <limits>

#include "emit.hpp"
#include "labelling.hpp"
#include "search.hpp"

namespace dualsvm {

/// What a kind of node or edge has: features, and weights for each of them.
struct Terms {
    Index types, features, weights;  // `weights` for every feature of every type
    const std::int32_t* slot;        // which of them belongs to a label, or to a pair of labels; -1: none
    Index size() const { return types * features * weights; }
};

/// The graphs of all examples.
struct GraphSpec {
    const Index* start;                               // the nodes of example i are start[i] .. start[i+1]
    const Index *edge_from, *edge_to;                 // its edges; examples may share them
    const std::int32_t* edge;                         // two nodes each, counted within the example
    const std::int32_t *row, *node_type, *edge_type;  // of nodes and edges; null: nodes one by one, type 0
    const Index* feature_start;                       // features of the edges, in compressed rows
    const std::int32_t* feature_column;
    const double* feature;
    const std::int32_t* label;  // of the nodes
    const double* cost;         // L x L: true label, label
    Index n, L;
    Terms node_terms, edge_terms;
    bool normalized;
    Index iterations;  // of message passing
};

/// Graphs with a label at every node. The joint feature vector of labels y is
///     sum_s  x_sf at (type_s F + f) U + slot(y_s),   then   sum_(s,t)  x_ste at (type_st E + e) P + slot(y_s, y_t),
/// with F and E features of nodes and edges and, where slots are not shared, U = L and P = L L, so that the scores of
/// all labels lie side by side. A label of -1 is missing: its node and the edges at it count nothing.
template <class Rows>
class Graphs : public Decoder, private GraphSpec {
public:
    Graphs(const Rows& rows, const GraphSpec& spec) : GraphSpec(spec), rows(rows) {}

    Index size() const override { return n; }
    Index n_weights() const override { return node_terms.size() + edge_terms.size(); }
    Index length(Index i) const override { return start[i + 1] - start[i]; }

    Finding find(Index i, const double* w) const override {
        std::vector<std::int32_t> labels(std::size_t(length(i)));
        const double beside = search(i, w, true, labels.data());
        Finding found;
        found.l = loss(i, labels.data());
        gather(i, label + start[i], 1.0, found.x, labels.data());
        settle(found, w);
        found.bound += beside;
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
        gather(i, y, factor, out, nullptr);
    }

private:
    Rows rows;

    /// The model of an example under some weights, and which of its nodes are in it.
    struct Posed {
        Model model;
        std::vector<double> tables;
        std::vector<std::int32_t> node;
    };
    struct Features {
        const double* x;
        const std::int32_t* column;
        Index n;
        bool operator==(const Features& other) const {
            return n == other.n && std::equal(x, x + n, other.x) && std::equal(column, column + n, other.column);
        }
    };

    double share(Index i) const { return normalized && length(i) > 0 ? 1.0 / double(length(i)) : 1.0; }
    Index row_of(Index node) const { return row ? row[node] : node; }
    Index node_first(Index node) const { return node_type ? node_type[node] * node_terms.features : 0; }
    Index edge_first(Index e) const { return edge_type ? edge_type[e] * edge_terms.features : 0; }
    Features features(Index e) const {
        const Index from = feature_start[e];
        return {feature + from, feature_column + from, feature_start[e + 1] - from};
    }

    void check(Index i, const std::int32_t* labels) const {
        for (Index t = 0; t < length(i); ++t)
            if (labels[t] < -1 || labels[t] >= L) throw std::invalid_argument("a label of no class");
    }

    /// phi of y or, with `other` labels, phi(y) - phi(other) at the nodes whose label is known.
    void gather(Index i, const std::int32_t* y, double factor, std::vector<Entry>& out,
                const std::int32_t* other) const {
        const auto put = [&](Index first, std::int32_t own, std::int32_t instead, double x) {
            if (own >= 0) out.push_back({std::int32_t(first + own), factor * x});
            if (instead >= 0) out.push_back({std::int32_t(first + instead), -factor * x});
        };
        for (Index t = 0; t < length(i); ++t) {
            if (y[t] < 0) continue;
            const std::int32_t own = node_terms.slot[y[t]], instead = other ? node_terms.slot[other[t]] : -1;
            if (own == instead) continue;
            const Index node = start[i] + t, first = node_first(node);
            rows.each(row_of(node),
                      [&](Index f, double x) { put((first + f) * node_terms.weights, own, instead, x); });
        }
        const std::int32_t* slot = edge_terms.slot;
        const Index base = node_terms.size();
        for (Index e = edge_from[i]; e < edge_to[i]; ++e) {
            const std::int32_t a = edge[2 * e], b = edge[2 * e + 1];
            if (y[a] < 0 || y[b] < 0) continue;
            const std::int32_t own = slot[y[a] * L + y[b]], instead = other ? slot[other[a] * L + other[b]] : -1;
            if (own == instead) continue;
            const Features some = features(e);
            for (Index k = 0; k < some.n; ++k)
                put(base + (edge_first(e) + some.column[k]) * edge_terms.weights, own, instead, some.x[k]);
        }
    }

    /// Labels for all nodes, those that have no true one excepted if the loss counts; returns by how much better
    /// ones there may be.
    double search(Index i, const double* w, bool augmented, std::int32_t* labels) const {
        const Posed posed = wide() ? pose_wide(i, w, augmented) : pose(i, w, augmented);
        std::vector<std::int32_t> y(posed.node.size());
        for (std::size_t s = 0; augmented && s < y.size(); ++s) y[s] = label[start[i] + posed.node[s]];
        const double beside = wide() ? solve_labels_wide(posed.model, iterations, augmented, y.data())
                                     : solve_labels(posed.model, iterations, augmented, y.data());
        std::fill_n(labels, length(i), 0);
        for (std::size_t s = 0; s < y.size(); ++s) labels[posed.node[s]] = y[s];
        return beside;
    }
    DUALSVM_WIDE Posed pose_wide(Index i, const double* w, bool augmented) const { return pose(i, w, augmented); }

    Posed pose(Index i, const double* w, bool augmented) const {
        const auto padded = [](Index n) { return (n + kLane - 1) / kLane * kLane; };
        Posed posed;
        Model& m = posed.model;
        m.L = L;
        m.stride = padded(L);
        std::vector<std::int32_t> place(std::size_t(length(i)), -1);
        for (Index t = 0; t < length(i); ++t) {
            if (augmented && label[start[i] + t] < 0) continue;
            place[t] = std::int32_t(m.n++);
            posed.node.push_back(std::int32_t(t));
        }
        m.unary.assign(std::size_t(m.n * m.stride), -kInfinity);
        std::vector<double> sums(std::size_t(padded(std::max(node_terms.weights, edge_terms.weights))));
        auto room = rows.room();
        for (Index s = 0; s < m.n; ++s) {
            const Index node = start[i] + posed.node[s];
            const double* own = w + node_first(node) * node_terms.weights;
            if (node_terms.weights == 1)
                sums[0] = rows.dot(row_of(node), own);
            else
                emit(rows.entries(row_of(node), room), own, node_terms.weights, sums.data());
            double* line = m.unary.data() + s * m.stride;
            for (Index a = 0; a < L; ++a) line[a] = node_terms.slot[a] >= 0 ? sums[node_terms.slot[a]] : 0.0;
            if (augmented)
                for (Index a = 0; a < L; ++a) line[a] += share(i) * cost[label[node] * L + a];
        }
        add_links(i, w + node_terms.size(), place, sums, posed);
        return posed;
    }

    /// The links and their tables; edges with the same features share one, if they follow one another.
    __attribute__((always_inline)) void add_links(Index i, const double* w, const std::vector<std::int32_t>& place,
                                                  std::vector<double>& sums, Posed& posed) const {
        Model& m = posed.model;
        std::vector<Index> last(2 * std::size_t(edge_terms.types), -1);  // edge with a table, by type and direction
        std::vector<Index> table(last.size());
        Index tables = 0;
        for (Index e = edge_from[i]; e < edge_to[i]; ++e) {
            const std::int32_t a = place[edge[2 * e]], b = place[edge[2 * e + 1]];
            if (a < 0 || b < 0) continue;
            const std::size_t kind = 2 * std::size_t(edge_type ? edge_type[e] : 0) + (a > b);
            const Features some = features(e);
            if (last[kind] < 0 || !(features(last[kind]) == some)) {
                last[kind] = e;
                table[kind] = tables++;
                posed.tables.resize(std::size_t(2 * tables * L * m.stride), -kInfinity);
                emit(some, w + edge_first(e) * edge_terms.weights, edge_terms.weights, sums.data());
                double* straight = posed.tables.data() + (2 * table[kind] + (a > b)) * L * m.stride;
                double* turned = posed.tables.data() + (2 * table[kind] + (a < b)) * L * m.stride;
                for (Index p = 0; p < L; ++p) {
                    for (Index q = 0; q < L; ++q) {
                        const std::int32_t slot = edge_terms.slot[p * L + q];
                        straight[p * m.stride + q] = turned[q * m.stride + p] = slot >= 0 ? sums[slot] : 0.0;
                    }
                }
            }
            m.links.push_back({std::min(a, b), std::max(a, b), table[kind]});
        }
        m.tables = posed.tables.data();
    }
};

}  // namespace dualsvm
