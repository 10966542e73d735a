#pragma once

#include <numeric>

#include "maxflow.hpp"
#include "trws.hpp"

namespace dualsvm {

constexpr double kListed = 4096;  // so many labellings are looked at one by one

/// The connected parts of a model: their number, and the part of every node.
inline Index parts_of(const Model& m, std::vector<Index>& part) {
    part.resize(std::size_t(m.n));
    std::iota(part.begin(), part.end(), 0);
    const auto root = [&](Index s) {
        while (part[s] != s) s = part[s] = part[part[s]];
        return s;
    };
    for (const Link& link : m.links) {  // the first node of a part stands for it
        const Index a = root(link.lo), b = root(link.hi);
        part[std::max(a, b)] = std::min(a, b);
    }
    for (Index s = 0; s < m.n; ++s) part[s] = root(s);
    Index parts = 0;
    for (Index s = 0; s < m.n; ++s) part[s] = part[s] == s ? parts++ : part[part[s]];
    return parts;
}

/// Good labels of a connected model that is no tree.
inline double solve_connected(const Model& m, Index iterations, bool started, std::int32_t* y) {
    if (submodular(m)) return solve_cut(m, y);
    const Neighbours around(m);
    if (double(m.n) * std::log(double(m.L)) > std::log(kListed) + 1e-9)
        return solve_messages(m, around, iterations, started, y);
    solve_listed(m, around, y);
    return 0;
}

/// The best labels, or good ones; returns by how much better labels there may be. Every connected part is searched
/// by itself: trees by dynamic programming, two labels that attract each other by a cut, few nodes by listing all
/// labellings, and the rest by message passing, which is not always exact. `started` tells that y holds labels.
inline double solve_labels(const Model& m, Index iterations, bool started, std::int32_t* y) {
    if (m.L == 1 || m.n == 0) {
        std::fill_n(y, m.n, 0);
        return 0;
    }
    std::vector<Index> part;
    const Index parts = parts_of(m, part);
    if (Index(m.links.size()) == m.n - parts) {
        solve_forest(m, Neighbours(m), y);
        return 0;
    }
    if (parts == 1) return solve_connected(m, iterations, started, y);
    std::vector<Model> models(std::size_t(parts), Model{0, m.L, m.stride, {}, {}, m.tables});
    std::vector<std::vector<std::int32_t>> labels(models.size());
    std::vector<std::int32_t> place(std::size_t(m.n));
    for (Index s = 0; s < m.n; ++s) {
        Model& own = models[part[s]];
        place[s] = std::int32_t(own.n++);
        own.unary.insert(own.unary.end(), m.line(s), m.line(s) + m.stride);
        labels[part[s]].push_back(started ? y[s] : 0);
    }
    for (const Link& link : m.links)
        models[part[link.lo]].links.push_back({place[link.lo], place[link.hi], link.table});
    double beside = 0;
    for (Index p = 0; p < parts; ++p) {
        const Model& own = models[p];
        if (Index(own.links.size()) == own.n - 1)
            solve_forest(own, Neighbours(own), labels[p].data());
        else
            beside += solve_connected(own, iterations, started, labels[p].data());
    }
    for (Index s = 0; s < m.n; ++s) y[s] = labels[part[s]][place[s]];
    return beside;
}

DUALSVM_WIDE inline double solve_labels_wide(const Model& m, Index iterations, bool started, std::int32_t* y) {
    return solve_labels(m, iterations, started, y);
}

}  // namespace dualsvm
