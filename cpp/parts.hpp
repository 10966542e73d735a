#pragma once

#include <cmath>

#include "rows.hpp"

namespace dualsvm {

/// The constraints x_j of one example, whose outputs are much alike: what they have in common is kept once. Columns
/// in which they are in proportion form a part p,
///     x_jk = share_pj scale_k     for the columns k of p,
/// so that  w.x_j = sum_p share_pj (sum_k scale_k w_k)  reads every column once, however many constraints have it,
/// and an update of w by several constraints writes it once. A new constraint divides parts, one that goes lets them
/// merge again. Products of shares and scales are the very entries: what is not exact becomes a part of one column.
class Parts {
public:
    Index size() const { return members_; }
    Index columns() const { return Index(column_.size()); }
    Index bytes() const {
        return 4 * Index(column_.size()) + 8 * Index(scale_.size()) + Index(sizeof(Part) * part_.size()) +
               Index(sizeof(Share) * share_.size());
    }

    /// Asks for what the next look will read.
    DUALSVM_AHEAD void ahead() const {
        prefetch(part_.data(), Index(sizeof(Part) * part_.size()));
        prefetch(share_.data(), Index(sizeof(Share) * share_.size()));
        for (std::size_t k = 0; k < column_.size(); k += 16) __builtin_prefetch(column_.data() + k);
        for (std::size_t k = 0; k < scale_.size(); k += 8) __builtin_prefetch(scale_.data() + k);
    }

    /// out_j += w.x_j
    __attribute__((always_inline)) inline void dots(const double* w, double* out) const {
        const std::int32_t* column = column_.data();
        const double* scale = scale_.empty() ? nullptr : scale_.data();
        const Share* share = share_.data();
        Index k = 0;
        for (const Part& part : part_) {
            const double sum = scale ? total(column, scale, w, k, part.columns) : total(column, w, k, part.columns);
            for (const Share* end = share_.data() + part.shares; share != end; ++share)
                out[share->member] += share->value * sum;
            k = part.columns;
        }
    }

    /// v += S sum_j a_j x_j; returns how many columns that touched
    __attribute__((always_inline)) inline Index carry(const double* a, const Weights& moving) const {
        const std::int32_t* column = column_.data();
        const double* scale = scale_.empty() ? nullptr : scale_.data();
        const bool plain = !moving.s && !moving.m;
        const Share* share = share_.data();
        Index k = 0, touched = 0;
        for (const Part& part : part_) {
            double sum = 0;
            for (const Share* end = share_.data() + part.shares; share != end; ++share)
                sum += share->value * a[share->member];
            if (sum != 0) {
                touched += part.columns - k;
                if (!plain) {
                    for (Index c = k; c < part.columns; ++c) move(moving, column[c], scale ? scale[c] * sum : sum);
                } else if (scale) {
                    for (Index c = k; c < part.columns; ++c) moving.v[column[c]] += scale[c] * sum;
                } else {
                    for (Index c = k; c < part.columns; ++c) moving.v[column[c]] += sum;
                }
            }
            k = part.columns;
        }
        return touched;
    }

    struct Room;

    /// Adds a constraint, which becomes the last one. `spread` has room for all columns, and is zero before and
    /// after.
    inline void add(const std::int32_t* column, const double* x, Index n, std::vector<double>& spread, Room& room);

    /// Takes constraint j out, the last one taking its place.
    inline void drop(Index j, Room& room);

    /// Calls f(column, x) for the entries of constraint j, in no order.
    template <class F>
    void each(Index j, const F& f) const {
        Index k = 0, q = 0;
        for (const Part& part : part_) {
            for (; q < part.shares; ++q) {
                if (share_[q].member != j) continue;
                for (Index c = k; c < part.columns; ++c)
                    f(column_[c], scale_.empty() ? share_[q].value : share_[q].value * scale_[c]);
            }
            k = part.columns;
        }
    }

private:
    struct Part {
        std::int32_t columns, shares;  // where it ends
    };
    struct Share {
        std::int32_t member;
        double value;
        bool operator<(const Share& other) const {
            return member != other.member ? member < other.member : value < other.value;
        }
    };
    struct Entry {
        double value, scale;  // the ratio of a new constraint to the scale
        std::int32_t column;
        bool operator<(const Entry& other) const {
            return value != other.value ? value < other.value : column < other.column;
        }
    };

    static double total(const std::int32_t* column, const double* w, Index k, Index end) {
        double a = 0, b = 0;
        for (; k + 2 <= end; k += 2) {
            a += w[column[k]];
            b += w[column[k + 1]];
        }
        return k < end ? a + b + w[column[k]] : a + b;
    }
    static double total(const std::int32_t* column, const double* scale, const double* w, Index k, Index end) {
        double a = 0, b = 0;
        for (; k + 2 <= end; k += 2) {
            a += scale[k] * w[column[k]];
            b += scale[k + 1] * w[column[k + 1]];
        }
        return k < end ? a + b + scale[k] * w[column[k]] : a + b;
    }

    void clear() {
        members_ = 0;
        any_scale_ = false;
        column_.clear();
        scale_.clear();
        part_.clear();
        share_.clear();
    }
    void put(std::int32_t column, double scale) {
        column_.push_back(column);
        scale_.push_back(scale);
        any_scale_ |= scale != 1;
    }
    void close() { part_.push_back({std::int32_t(column_.size()), std::int32_t(share_.size())}); }

    /// Becomes what another one is, in as little memory as that takes.
    void take(const Parts& other) {
        members_ = other.members_;
        any_scale_ = other.any_scale_;
        column_ = std::vector(other.column_);
        scale_ = any_scale_ ? std::vector(other.scale_) : std::vector<double>();
        part_ = std::vector(other.part_);
        share_ = std::vector(other.share_);
    }

    inline void divide(Index from, Index to, Index first, Index last, std::vector<double>& spread, Room& room) const;
    inline void admit(std::vector<Entry>& found, bool scaled, Index member);

    Index members_ = 0;
    bool any_scale_ = false;
    std::vector<std::int32_t> column_;
    std::vector<double> scale_;  // empty where all are 1
    std::vector<Part> part_;
    std::vector<Share> share_;
};

/// What a change needs beside the parts.
struct Parts::Room {
    Parts next;
    std::vector<Entry> found;
    std::vector<Share> share;
    std::vector<std::pair<std::int32_t, std::int32_t>> range;
    std::vector<std::int32_t> order;
};

inline void Parts::add(const std::int32_t* column, const double* x, Index n, std::vector<double>& spread,
                       Room& room) {
    for (Index k = 0; k < n; ++k) spread[column[k]] = x[k];
    Parts& finer = room.next;
    finer.clear();
    finer.members_ = members_ + 1;
    Index from = 0, first = 0;
    for (const Part& part : part_) {
        divide(from, part.columns, first, part.shares, spread, room);
        from = part.columns;
        first = part.shares;
    }
    room.found.clear();
    for (Index k = 0; k < n; ++k) {
        if (spread[column[k]] != 0) room.found.push_back({x[k], 1.0, column[k]});
        spread[column[k]] = 0;
    }
    finer.admit(room.found, !scale_.empty(), members_);
    take(finer);
}

/// Divides a part by the ratios of a new constraint to its scales.
inline void Parts::divide(Index from, Index to, Index first, Index last, std::vector<double>& spread,
                          Room& room) const {
    Parts& finer = room.next;
    std::vector<Entry>& found = room.found;
    found.clear();
    bool alike = true;
    for (Index k = from; k < to; ++k) {
        const std::int32_t column = column_[k];
        const double scale = scale_.empty() ? 1.0 : scale_[k], x = spread[column], ratio = x / scale;
        spread[column] = 0;
        if (ratio * scale != x) {  // a part of its own, of the entries as they are
            for (Index q = first; q < last; ++q) finer.share_.push_back({share_[q].member, share_[q].value * scale});
            finer.share_.push_back({std::int32_t(members_), x});
            finer.put(column, 1.0);
            finer.close();
            continue;
        }
        found.push_back({ratio, scale, column});
        alike &= ratio == found[0].value;
    }
    if (!alike) std::sort(found.begin(), found.end());
    for (std::size_t k = 0; k < found.size(); ++k) {
        finer.put(found[k].column, found[k].scale);
        if (k + 1 < found.size() && found[k + 1].value == found[k].value) continue;
        finer.share_.insert(finer.share_.end(), share_.begin() + first, share_.begin() + last);
        if (found[k].value != 0) finer.share_.push_back({std::int32_t(members_), found[k].value});
        finer.close();
    }
}

/// Makes parts of columns that no other constraint has: by their entries where these are few different numbers, and
/// else two, for the positive and for the negative ones.
inline void Parts::admit(std::vector<Entry>& found, bool scaled, Index member) {
    std::sort(found.begin(), found.end());
    std::size_t different = 0;
    for (std::size_t k = 0; k < found.size(); ++k) different += k == 0 || found[k].value != found[k - 1].value;
    if (scaled || different > 2 + found.size() / 8) {
        for (Entry& entry : found) {
            entry.scale = std::abs(entry.value);
            entry.value = entry.value < 0 ? -1.0 : 1.0;
        }
    }
    for (std::size_t k = 0; k < found.size(); ++k) {
        put(found[k].column, found[k].scale);
        if (k + 1 < found.size() && found[k + 1].value == found[k].value) continue;
        share_.push_back({std::int32_t(member), found[k].value});
        close();
    }
}

inline void Parts::drop(Index j, Room& room) {
    const Index last = --members_;
    std::vector<Share>& share = room.share;
    std::vector<std::int32_t>& order = room.order;
    auto& range = room.range;
    share.clear();
    range.clear();
    order.clear();
    Index q = 0;
    for (std::size_t p = 0; p < part_.size(); ++p) {
        const std::size_t begin = share.size();
        for (; q < part_[p].shares; ++q) {
            Share one = share_[q];
            if (one.member == j) continue;
            if (one.member == last) one.member = std::int32_t(j);
            share.push_back(one);
        }
        std::sort(share.begin() + std::ptrdiff_t(begin), share.end());
        range.emplace_back(begin, share.size());
        if (begin < share.size()) order.push_back(std::int32_t(p));
    }
    const auto less = [&](std::int32_t a, std::int32_t b) {
        const Share* s = share.data();
        const auto [from, to] = range[a];
        const auto [begin, end] = range[b];
        return std::lexicographical_compare(s + from, s + to, s + begin, s + end);
    };
    std::sort(order.begin(), order.end(),
              [&](std::int32_t a, std::int32_t b) { return less(a, b) || (!less(b, a) && a < b); });
    Parts& coarser = room.next;
    coarser.clear();
    coarser.members_ = members_;
    for (std::size_t r = 0; r < order.size(); ++r) {
        const std::int32_t p = order[r];
        for (Index k = p == 0 ? 0 : part_[p - 1].columns; k < part_[p].columns; ++k)
            coarser.put(column_[k], scale_.empty() ? 1.0 : scale_[k]);
        if (r + 1 < order.size() && !less(p, order[r + 1])) continue;
        coarser.share_.insert(coarser.share_.end(), share.begin() + range[p].first, share.begin() + range[p].second);
        coarser.close();
    }
    take(coarser);
}

}  // namespace dualsvm
