#include "graph.hpp"

#include "decoder.hpp"

namespace dualsvm {
namespace {

void expect_below(const std::int32_t* values, Index n, Index least, Index most, const char* what) {
    for (Index k = 0; values && k < n; ++k) expect(values[k] >= least && values[k] < most, what);
}

/// The types, features and slots of nodes or edges.
Terms terms_of(const nb::dict& spec, const char* name, Index slots) {
    const auto parts = nb::cast<nb::tuple>(spec[name]);  // types, features, weights of each, slots
    const Terms terms{nb::cast<Index>(parts[0]), nb::cast<Index>(parts[1]), nb::cast<Index>(parts[2]),
                      as_is<std::int32_t>(parts[3]).data()};
    constexpr Index most = std::numeric_limits<std::int32_t>::max();
    expect(Index(as_is<std::int32_t>(parts[3]).size()) == slots, "slots of other labels");
    expect(terms.types >= 0 && terms.features >= 0 && terms.weights >= 0 && terms.types <= most &&
               terms.features <= most && terms.weights <= most &&
               double(terms.types) * double(terms.features) * double(terms.weights) <= double(most) / 2,
           "more weights than the kernel counts");
    expect_below(terms.slot, slots, -1, terms.weights, "a slot of no weight");
    return terms;
}

template <class Rows>
std::unique_ptr<Decoder> graphs(const Rows& rows, const nb::dict& spec) {
    GraphSpec s{};
    s.n = length(spec, "start") - 1;
    s.L = length(spec, "cost");
    expect(s.n >= 0 && s.L > 0, "graphs need starts and labels");
    s.start = given<Index>(spec, "start", s.n + 1);
    expect(s.start[0] == 0, "nodes of other lengths");
    for (Index i = 0; i < s.n; ++i) expect(s.start[i] <= s.start[i + 1], "graphs that do not follow one another");
    const Index nodes = s.start[s.n], edges = length(spec, "edge");
    s.label = given<std::int32_t>(spec, "label", nodes);
    s.cost = given<double, 2>(spec, "cost", s.L * s.L);
    s.row = pointer<std::int32_t>(spec, "row", nodes);
    s.node_type = pointer<std::int32_t>(spec, "node_type", nodes);
    s.edge_type = pointer<std::int32_t>(spec, "edge_type", edges);
    s.edge = given<std::int32_t, 2>(spec, "edge", 2 * edges);
    s.edge_from = given<Index>(spec, "edge_from", s.n);
    s.edge_to = given<Index>(spec, "edge_to", s.n);
    s.node_terms = terms_of(spec, "node_terms", s.L);
    s.edge_terms = terms_of(spec, "edge_terms", s.L * s.L);
    s.normalized = nb::cast<bool>(spec["normalized"]);
    s.iterations = nb::cast<Index>(spec["iterations"]);
    expect(s.iterations > 0, "iterations must be positive");
    expect(s.node_terms.features == rows.width() && (s.row || rows.size() == nodes), "rows of other nodes");
    expect_below(s.label, nodes, -1, s.L, "a label of no class");
    expect_below(s.row, nodes, 0, rows.size(), "a node without a row");
    expect_below(s.node_type, nodes, 0, s.node_terms.types, "a node of no type");
    expect_below(s.edge_type, edges, 0, s.edge_terms.types, "an edge of no type");
    expect((s.node_type || s.node_terms.types > 0) && (s.edge_type || s.edge_terms.types > 0), "no types");
    for (Index i = 0; i < s.n; ++i) {
        expect(s.edge_from[i] >= 0 && s.edge_from[i] <= s.edge_to[i] && s.edge_to[i] <= edges, "edges that are not");
        const Index own = s.start[i + 1] - s.start[i];
        for (Index e = s.edge_from[i]; e < s.edge_to[i]; ++e) {
            const std::int32_t a = s.edge[2 * e], b = s.edge[2 * e + 1];
            expect(a >= 0 && a < own && b >= 0 && b < own && a != b, "an edge must join two nodes of its graph");
        }
    }
    const auto features = nb::cast<nb::tuple>(spec["edge_features"]);  // values, columns, starts
    const auto x = as_is<double>(features[0]);
    const auto column = as_is<std::int32_t>(features[1]);
    const auto start = as_is<Index>(features[2]);
    expect(x.size() == column.size() && Index(start.size()) == edges + 1 && start.data()[0] == 0 &&
               start.data()[edges] == Index(x.size()),
           "edge features of other lengths");
    for (Index e = 0; e < edges; ++e)
        expect(start.data()[e] <= start.data()[e + 1], "edge features that do not follow one another");
    expect_below(column.data(), Index(column.size()), 0, s.edge_terms.features, "an edge feature of no column");
    s.feature = x.data();
    s.feature_column = column.data();
    s.feature_start = start.data();
    return std::make_unique<Graphs<Rows>>(rows, s);
}

}  // namespace

HeldDecoder hold_graphs(nb::object rows, nb::dict spec) {
    return hold(std::move(rows), std::move(spec),
                [](const auto& view, const nb::dict& given) { return graphs(view, given); });
}

}  // namespace dualsvm
