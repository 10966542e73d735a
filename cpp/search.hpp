#pragma once

#include <stdexcept>
#include <vector>

#include "rows.hpp"
#include "threads.hpp"

namespace dualsvm {

/// Entries of a joint feature vector, gathered in any order and then put in that of the columns.
struct Entry {
    std::int32_t column;
    double x;
};

/// Sorts by columns, byte by byte where there are many: a comparison that nobody can foretell costs more.
inline void sort(std::vector<Entry>& entries) {
    if (entries.size() < 64) {
        std::stable_sort(entries.begin(), entries.end(),
                         [](const Entry& a, const Entry& b) { return a.column < b.column; });
        return;
    }
    std::int32_t all = 0;
    for (const Entry& entry : entries) all |= entry.column;
    std::vector<Entry> other(entries.size());
    for (int shift = 0; shift < 32 && all >> shift; shift += 8) {
        std::size_t start[257] = {};
        for (const Entry& entry : entries) ++start[((entry.column >> shift) & 255) + 1];
        for (int digit = 0; digit < 256; ++digit) start[digit + 1] += start[digit];
        for (const Entry& entry : entries) other[start[(entry.column >> shift) & 255]++] = entry;
        entries.swap(other);
    }
}

inline void settle(std::vector<Entry>& entries) {
    sort(entries);
    std::size_t kept = 0;
    for (std::size_t k = 0; k < entries.size();) {
        Entry sum = entries[k++];
        while (k < entries.size() && entries[k].column == sum.column) sum.x += entries[k++].x;
        if (sum.x != 0) entries[kept++] = sum;
    }
    entries.resize(kept);
}

/// The worst constraint that was found for an example, x = phi(x_i, y_i) - phi(x_i, h) and l = loss(y_i, h), and
/// value = l - w.x. No other h has more than `bound`, which is the value itself where the search is exact.
struct Finding {
    std::vector<Entry> x;
    double l = 0, value = 0, bound = 0;
};

/// Completes a finding whose entries are gathered and whose l is known, of an exact search.
inline void settle(Finding& found, const double* w) {
    settle(found.x);
    found.value = found.l;
    for (const Entry& entry : found.x) found.value -= entry.x * w[entry.column];
    found.bound = found.value;
}

/// Examples whose outputs, vectors of labels, can be searched: `find` for the worst constraint, `decode` for the best
/// output or, augmented by the loss, for that of `find`. `w` has kLane entries to spare behind its last.
class Decoder {
public:
    virtual ~Decoder() = default;
    virtual Index size() const = 0;
    virtual Index n_weights() const = 0;
    virtual Index length(Index i) const = 0;  // labels of an output
    virtual Finding find(Index i, const double* w) const = 0;
    virtual void decode(Index i, const double* w, bool augmented, std::int32_t* labels) const = 0;
    virtual void joint(Index i, const std::int32_t* labels, double factor, std::vector<Entry>& out) const = 0;
    virtual double loss(Index i, const std::int32_t* labels) const = 0;

    /// The k best outputs, one behind the other, and their scores; fewer where there are not so many.
    virtual std::vector<double> best(Index, const double*, Index, std::vector<std::int32_t>&) const {
        throw std::invalid_argument("only the best output can be found here");
    }
};

}  // namespace dualsvm
