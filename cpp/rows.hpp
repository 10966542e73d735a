#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "simd.hpp"

// Row views. A row is a feature vector x; every view offers the same verbs, so that nothing above this
// file knows whether rows are dense or sparse, float or double:
//   dot(i, w) = w.x_i      add(i, a, weights): v += a S x_i      norm(i, s) = x_i' S x_i
//   inner(i, j, s) = x_i' S x_j      each(i, f): f(k, x_ik) wherever x_ik is not 0
//   merge(i, j, f): f(k, x_ik, x_jk) for every k that either row stores      fold(i, j, f): the sum of those
//   entries(i, room): the stored entries that are not 0, kept in `room` where they do not lie side by side
//   soon(i), ahead(i): ask for what will be read, first for where row i lies and a little later for the row
//   brief(): whether rows are so short that a product of two is cheap (dense ones only)
//   bytes(): what all rows take      largest(): the largest number in them, without its sign
// `bias`, where it is not zero, is the value of a constant feature behind the last stored column.

namespace dualsvm {

using Index = std::int64_t;

/// What moves: v = S u and w = clip(m + v, lo, hi). `s` is null where S is the identity; `m`, `lo` and `hi` are null
/// together, where there is neither a mean nor a bound, and `w` is then `v` itself.
struct Weights {
    using Number = double;

    double* v;
    double* w;
    const double* s;
    const double* m;
    const double* lo;
    const double* hi;

    const double* seen() const { return w; }

    /// `n` of them, from one on, in room for twice as many, and there with the values of now where these are wanted.
    Weights copied(Index from, Index n, double* room, bool wanted) const {
        if (!wanted) return *this;
        std::copy_n(v + from, n, room);
        std::copy_n(w + from, n, room + n);
        const auto at = [from](const double* all) { return all ? all + from : nullptr; };
        return {room, v == w ? room : room + n, at(s), at(m), at(lo), at(hi)};
    }
    /// Has the values of such a copy.
    void take(Index from, Index n, const double* room) const {
        std::copy_n(room, n, v + from);
        if (v != w) std::copy_n(room + n, n, w + from);
    }
};

inline void move(const Weights& t, Index k, double change) {
    if (t.s) change *= t.s[k];
    t.v[k] += change;
    if (t.m) t.w[k] = std::min(std::max(t.m[k] + t.v[k], t.lo[k]), t.hi[k]);
}

// Prefetching changes nothing that a program can see: unless these functions are inlined at once, GCC finds that
// they do nothing and drops the calls.
#define DUALSVM_AHEAD __attribute__((always_inline)) inline

constexpr Index kBrief = 32;    // numbers
constexpr Index kRun = 8;       // entries of a dense row that are looked at together
constexpr Index kShort = 1024;  // bytes that are asked for as a whole,
constexpr Index kHead = 512;    // and of more, the first; the hardware follows the rest of the run

DUALSVM_AHEAD void prefetch(const void* from, Index bytes) {
    const Index n = bytes <= kShort ? bytes : kHead;
    const char* at = static_cast<const char*>(from);
    __builtin_prefetch(at);
    for (Index b = 64; b < n; b += 256)  // some lines at a time, as nobody foretells how many there are
        for (Index line = b; line < b + 256; line += 64) __builtin_prefetch(at + std::min(line, n - 1));
    if (n > 1) __builtin_prefetch(at + n - 1);  // the line in which it ends
}

/// The largest of some numbers and one more, without their signs.
template <class T>
double largest_of(const T* x, Index n, double beside) {
    T most = T(std::abs(beside));
#pragma omp simd reduction(max : most)
    for (Index k = 0; k < n; ++k) most = std::max(most, std::abs(x[k]));
    return double(most);
}

template <class T, class I>
struct Entries {
    const T* x;
    const I* column;
    Index n;
};

template <class T>
struct Dense {
    using Value = T;
    using Row = Entries<T, std::int32_t>;
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    struct Room {
        std::vector<T> x;
        std::vector<std::int32_t> column;
    };

    const T* x;
    Index n, d;
    double bias;

    Index size() const { return n; }
    Index width() const { return d + (bias != 0); }
    Index bytes() const { return n * d * Index(sizeof(T)); }
    bool brief() const { return d <= kBrief; }
    double largest() const { return largest_of(x, n * d, bias); }
    const T* row(Index i) const { return x + i * d; }

    double dot(Index i, const double* w) const {
        const T* r = row(i);
        Lane a{}, b{}, c{}, e{};  // independent sums, so that additions overlap
        Index k = 0;
        for (; k + 4 * kLane <= d; k += 4 * kLane) {
            a += load(r + k) * load(w + k);
            b += load(r + k + kLane) * load(w + k + kLane);
            c += load(r + k + 2 * kLane) * load(w + k + 2 * kLane);
            e += load(r + k + 3 * kLane) * load(w + k + 3 * kLane);
        }
        for (; k + kLane <= d; k += kLane) a += load(r + k) * load(w + k);
        double rest = bias != 0 ? bias * w[d] : 0.0;
        for (; k < d; ++k) rest += double(r[k]) * w[k];
        return rest + sum((a + b) + (c + e));
    }

    void add(Index i, double a, const Weights& t) const {
        const T* r = row(i);
        double* v = t.v;
        double* w = t.w;
        const double *s = t.s, *m = t.m, *lo = t.lo, *hi = t.hi;
        if (!s) {
#pragma omp simd
            for (Index k = 0; k < d; ++k) v[k] += a * double(r[k]);
        } else {
#pragma omp simd
            for (Index k = 0; k < d; ++k) v[k] += a * s[k] * double(r[k]);
        }
        if (m) {
#pragma omp simd
            for (Index k = 0; k < d; ++k) w[k] = std::min(std::max(m[k] + v[k], lo[k]), hi[k]);
        }
        if (bias != 0) move(t, d, a * bias);
    }

    double norm(Index i, const double* s) const { return s ? inner(i, i, s) : squares_loop(row(i), d) + bias * bias; }

    double inner(Index i, Index j, const double* s) const {
        const T *p = row(i), *q = row(j);
        double sum = 0;
        if (s) {
#pragma omp simd reduction(+ : sum)
            for (Index k = 0; k < d; ++k) sum += s[k] * double(p[k]) * double(q[k]);
        } else {
#pragma omp simd reduction(+ : sum)
            for (Index k = 0; k < d; ++k) sum += double(p[k]) * double(q[k]);
        }
        return bias != 0 ? sum + bias * bias * (s ? s[d] : 1.0) : sum;
    }

    template <class F>
    void each(Index i, F&& f) const {
        const T* r = row(i);
        for (Index k = 0; k < d; ++k)
            if (r[k] != 0) f(k, double(r[k]));
        if (bias != 0) f(d, bias);
    }

    Room room() const {
        return {std::vector<T>(std::size_t(d) + kRun), std::vector<std::int32_t>(std::size_t(d) + kRun)};
    }
    Row entries(Index i, Room& room) const {
        const T* r = row(i);
        T* x = room.x.data();
        std::int32_t* column = room.column.data();
        Index n = 0, k = 0;
        const auto keep = [&](Index k) {  // without a branch that nobody could foretell
            x[n] = r[k];
            column[n] = std::int32_t(k);
            n += (std::bit_cast<Bits>(r[k]) << 1) != 0;  // the sign of a zero does not matter
        };
        for (; k + kRun <= d; k += kRun) {
            std::uint64_t any = 0;
            for (std::size_t b = 0; b < kRun * sizeof(T); b += sizeof any) {
                std::uint64_t bits;
                std::memcpy(&bits, reinterpret_cast<const char*>(r + k) + b, sizeof bits);
                any |= bits;
            }
            if (any)
                for (Index e = 0; e < kRun; ++e) keep(k + e);
        }
        for (; k < d; ++k) keep(k);
        return {x, column, n};
    }

    template <class F>
    void merge(Index i, Index j, F&& f) const {
        const T *p = row(i), *q = row(j);
        for (Index k = 0; k < d; ++k) f(k, double(p[k]), double(q[k]));
        if (bias != 0) f(d, bias, bias);
    }

    template <class F>
    double fold(Index i, Index j, F&& f) const {
        const T *p = row(i), *q = row(j);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index k = 0; k < d; ++k) sum += f(k, double(p[k]), double(q[k]));
        return bias != 0 ? sum + f(d, bias, bias) : sum;
    }

    DUALSVM_AHEAD void soon(Index) const {}
    DUALSVM_AHEAD void ahead(Index i) const { prefetch(row(i), d * Index(sizeof(T))); }
};

/// Compressed sparse rows; within a row the column indices increase.
template <class T, class I>
struct Csr {
    using Value = T;
    using Row = Entries<T, I>;
    struct Room {};

    const T* x;
    const I* column;
    const I *start, *stop;  // of every row: of a whole one, stop is the start of the next
    Index n, d;
    double bias;

    Index size() const { return n; }
    Index width() const { return d + (bias != 0); }
    Index numbers() const { return Index(start[n]); }
    Index bytes() const { return numbers() * Index(sizeof(T) + sizeof(I)); }
    double largest() const { return largest_of(x, Index(start[n]), bias); }

    double dot(Index i, const double* w) const {
        double s0 = bias != 0 ? bias * w[d] : 0.0, s1 = 0, s2 = 0, s3 = 0;
        Index p = Index(start[i]);
        const Index end = Index(stop[i]);
        for (; p + 4 <= end; p += 4) {
            s0 += double(x[p]) * w[column[p]];
            s1 += double(x[p + 1]) * w[column[p + 1]];
            s2 += double(x[p + 2]) * w[column[p + 2]];
            s3 += double(x[p + 3]) * w[column[p + 3]];
        }
        if (end > Index(start[i])) {  // what is left, without a branch that nobody could foretell
            const auto rest = [&](Index k) {
                const Index q = std::min(p + k, end - 1);
                return double(p + k < end) * double(x[q]) * w[column[q]];
            };
            s0 += rest(0);
            s1 += rest(1);
            s2 += rest(2);
        }
        return (s0 + s1) + (s2 + s3);
    }

    void add(Index i, double a, const Weights& t) const {
        if (t.s || t.m)
            each(i, [&](Index k, double value) { move(t, k, a * value); });
        else {
            Index p = Index(start[i]);
            const Index end = Index(stop[i]);
            double* const v = t.v;
            for (; p + 4 <= end; p += 4)  // the inner loop is unrolled
                for (Index k = p; k < p + 4; ++k) v[column[k]] += a * double(x[k]);
            for (; p < end; ++p) v[column[p]] += a * double(x[p]);
            if (bias != 0) v[d] += a * bias;
        }
    }

    double norm(Index i, const double* s) const {
        double sum = 0;
        if (s) {
            each(i, [&](Index k, double value) { sum += s[k] * value * value; });
            return sum;
        }
        return squares_loop(x + start[i], Index(stop[i]) - Index(start[i])) + bias * bias;
    }

    double inner(Index i, Index j, const double* s) const {
        Index p = Index(start[i]), q = Index(start[j]);
        const Index p_end = Index(stop[i]), q_end = Index(stop[j]);
        double sum = bias != 0 ? bias * bias * (s ? s[d] : 1.0) : 0.0;
        while (p < p_end && q < q_end) {
            const I a = column[p], b = column[q];
            if (a == b) sum += (s ? s[a] : 1.0) * double(x[p]) * double(x[q]);
            p += a <= b;  // without a branch that nobody could foretell
            q += b <= a;
        }
        return sum;
    }

    template <class F>
    void each(Index i, F&& f) const {
        const Index end = Index(stop[i]);
        for (Index p = Index(start[i]); p < end; ++p) f(Index(column[p]), double(x[p]));
        if (bias != 0) f(d, bias);
    }

    Room room() const { return {}; }
    Row entries(Index i, Room&) const { return {x + start[i], column + start[i], Index(stop[i]) - Index(start[i])}; }

    template <class F>
    void merge(Index i, Index j, F&& f) const {
        Index p = Index(start[i]), q = Index(start[j]);
        const Index p_end = Index(stop[i]), q_end = Index(stop[j]);
        while (p < p_end || q < q_end) {
            const bool left = q == q_end || (p < p_end && column[p] <= column[q]);
            const bool right = p == p_end || (q < q_end && column[q] <= column[p]);
            const Index k = Index(left ? column[p] : column[q]);
            f(k, left ? double(x[p]) : 0.0, right ? double(x[q]) : 0.0);
            p += left;
            q += right;
        }
        if (bias != 0) f(d, bias, bias);
    }

    template <class F>
    double fold(Index i, Index j, F&& f) const {
        double sum = 0;
        merge(i, j, [&](Index k, double a, double b) { sum += f(k, a, b); });
        return sum;
    }

    DUALSVM_AHEAD void soon(Index i) const {
        prefetch(start + i, 1);
        if (stop != start + 1) prefetch(stop + i, 1);
    }
    DUALSVM_AHEAD void ahead(Index i) const {
        const Index nonzeros = Index(stop[i]) - Index(start[i]);
        prefetch(x + start[i], nonzeros * Index(sizeof(T)));
        prefetch(column + start[i], nonzeros * Index(sizeof(I)));
    }
};

/// Row i is the difference of two rows of another view, which is never formed: preference pairs.
template <class Rows>
struct Difference {
    using Value = typename Rows::Value;

    Rows rows;
    const Index* pair;  // preferred, other, preferred, other, ...
    Index n;

    Index size() const { return n; }
    Index width() const { return rows.width(); }
    Index bytes() const { return rows.bytes(); }
    Index better(Index i) const { return pair[2 * i]; }
    Index worse(Index i) const { return pair[2 * i + 1]; }

    // entry by entry, as what the two rows have in common may be far larger than their difference
    double dot(Index i, const double* w) const {
        return rows.fold(better(i), worse(i), [w](Index k, double a, double b) { return w[k] * (a - b); });
    }
    void add(Index i, double a, const Weights& t) const {
        rows.merge(better(i), worse(i), [&](Index k, double b, double c) {
            if (b != c) move(t, k, a * (b - c));
        });
    }
    double norm(Index i, const double* s) const {
        if (!s) return rows.fold(better(i), worse(i), [](Index, double a, double b) { return (a - b) * (a - b); });
        return rows.fold(better(i), worse(i), [s](Index k, double a, double b) { return s[k] * (a - b) * (a - b); });
    }
    template <class F>
    void each(Index i, F&& f) const {
        rows.merge(better(i), worse(i), [&](Index k, double a, double b) {
            if (a != b) f(k, a - b);
        });
    }
    DUALSVM_AHEAD void soon(Index i) const { prefetch(pair + 2 * i, 1); }
    DUALSVM_AHEAD void ahead(Index i) const {
        rows.ahead(better(i));
        rows.ahead(worse(i));
    }
};

}  // namespace dualsvm
