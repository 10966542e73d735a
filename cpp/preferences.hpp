#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "rows.hpp"

namespace dualsvm {

/// The preference pairs of a list that a ranking by scores violates, counted without listing them, by sorting.
class Preferences {
public:
    /// Row i is preferred to row j where its grade is higher; the pair is violated where s_i - s_j < margin. Returns
    /// the sum of weight_i weight_j over the violated pairs (a null weight is 1), and leaves in `coef` the
    /// coefficients of the scores in the sum over those pairs of weight_i weight_j (s_i - s_j). Grades lie in 0 ..
    /// n-1.
    double violated(Index n, const double* s, const std::int32_t* grade, const double* weight, double margin,
                    double* coef) {
        if (std::any_of(s, s + n, [](double score) { return std::isnan(score); })) {
            std::fill_n(coef, n, std::numeric_limits<double>::quiet_NaN());
            return std::numeric_limits<double>::quiet_NaN();
        }
        order_.resize(std::size_t(n));
        for (Index p = 0; p < n; ++p) order_[p] = p;
        std::sort(order_.begin(), order_.end(), [&](Index p, Index q) { return s[p] < s[q]; });
        const Index grades = n == 0 ? 0 : 1 + *std::max_element(grade, grade + n);
        const auto worth = [&](Index p) { return weight ? weight[p] : 1.0; };

        // The preferred rows, from the highest score down: the rows that they do not beat by the margin only grow.
        double sum = 0;
        clear(grades);
        for (Index at = n - 1, next = n - 1; at >= 0; --at) {
            const Index i = order_[at];
            for (; next >= 0 && s[i] - s[order_[next]] < margin; --next)
                add(grade[order_[next]], worth(order_[next]));
            coef[i] = worth(i) * before(grade[i]);
            sum += coef[i];
        }
        // The others, from the lowest score up, with grades counted from the top.
        clear(grades);
        for (Index at = 0, next = 0; at < n; ++at) {
            const Index j = order_[at];
            for (; next < n && s[order_[next]] - s[j] < margin; ++next)
                add(grades - 1 - grade[order_[next]], worth(order_[next]));
            coef[j] -= worth(j) * before(grades - 1 - grade[j]);
        }
        return sum;
    }

    /// How near any pair is to the margin, either way, of the list that `violated` was last asked about.
    double nearest(Index n, const double* s, const std::int32_t* grade, double margin) const {
        double best = std::numeric_limits<double>::infinity();
        for (Index at = 0, next = 0; at < n; ++at) {
            const Index i = order_[at];
            const double wanted = s[i] - margin;
            while (next < n && s[order_[next]] < wanted) ++next;
            if (grade[i] == 0) continue;
            const auto meets = [&](Index j) {
                if (grade[j] < grade[i]) best = std::min(best, std::abs(s[j] - wanted));
            };
            for (Index q = next; q < n && s[order_[q]] - wanted < best; ++q) meets(order_[q]);
            for (Index q = next - 1; q >= 0 && wanted - s[order_[q]] < best; --q) meets(order_[q]);
        }
        return best;
    }

private:
    // sums over grades, in a tree: entry k holds the sum over the (k & -k) grades that end before grade k
    void clear(Index grades) { tree_.assign(std::size_t(grades + 1), 0.0); }
    void add(Index grade, double value) {
        for (Index k = grade + 1; k < Index(tree_.size()); k += k & -k) tree_[k] += value;
    }
    double before(Index grade) const {
        double sum = 0;
        for (Index k = grade; k > 0; k -= k & -k) sum += tree_[k];
        return sum;
    }

    std::vector<Index> order_;
    std::vector<double> tree_;
};

/// For every list, how many of its preference pairs the scores violate.
inline std::vector<double> swapped(const double* scores, const std::int32_t* grade, const Index* start, Index lists,
                                   double margin) {
    Preferences preferences;
    std::vector<double> out(static_cast<std::size_t>(lists)), coef(static_cast<std::size_t>(start[lists]));
    for (Index i = 0; i < lists; ++i)
        out[i] = preferences.violated(start[i + 1] - start[i], scores + start[i], grade + start[i], nullptr, margin,
                                      coef.data());
    return out;
}

}  // namespace dualsvm
