#pragma once

#include <cstring>

#include "maximise.hpp"

namespace dualsvm {

/// The constraints held of one example: their entries one behind the other, so that a visit reads straight on, and
/// their Gram matrix x' S x. Entries are floats as long as no constraint needs more.
class Held {
public:
    struct Constraint {
        Index n;  // entries
        double l, alpha;
        Index idle;  // visits since it had a dual variable
        std::uint64_t print;
    };
    struct Scratch {
        std::vector<double> g, mass, first;
    };
    struct Visit {
        double gain = 0, read = 0;
    };

    double cost = 0;
    double gap = 0;  // C max(0, max_j g_j) - sum_j alpha_j g_j, when it was last looked at
    std::vector<Constraint> all;

    Index size() const { return Index(all.size()); }
    Index bytes() const {
        return Index(all.size() * sizeof(Constraint) + column_.size() * 4 + narrow_.size() * 4 + wide_.size() * 8 +
                     gram_.size() * 8);
    }

    DUALSVM_AHEAD void ahead() const {
        prefetch(all.data(), kPrefetchBytes);
        prefetch(column_.data(), kPrefetchBytes);
        prefetch(wide_.empty() ? static_cast<const void*>(narrow_.data()) : wide_.data(), kPrefetchBytes);
        prefetch(gram_.data(), 64);
    }

    /// Calls f(constraint, columns, entries) for every constraint.
    template <class F>
    void each(F&& f) const {
        Index at = 0;
        for (const Constraint& one : all) {
            if (wide_.empty())
                f(one, column_.data() + at, narrow_.data() + at);
            else
                f(one, column_.data() + at, wide_.data() + at);
            at += one.n;
        }
    }

    bool knows(const std::int32_t* column, const double* x, Index n, double l) const {
        const std::uint64_t print = fingerprint(column, x, n, l);
        bool found = false;
        each([&](const Constraint& one, const std::int32_t* c, const auto* value) {
            found = found || (one.print == print && one.l == l && one.n == n && std::equal(column, column + n, c) &&
                              std::equal(x, x + n, value));
        });
        return found;
    }

    /// `spread` has an entry for every weight, all of them 0, and is left like that.
    void add(const std::int32_t* column, const double* x, Index n, double l, double alpha, const double* s,
             std::vector<double>& spread) {
        if (size() == room_) make_room(std::max<Index>(4, 2 * room_));
        append(column_, column, n);
        if (wide_.empty() && std::all_of(x, x + n, [](double value) { return double(float(value)) == value; })) {
            append(narrow_, x, n);
        } else {
            wide_.insert(wide_.end(), narrow_.begin(), narrow_.end());
            narrow_ = {};
            append(wide_, x, n);
        }
        all.push_back({n, l, alpha, 0, fingerprint(column, x, n, l)});
        for (Index k = 0; k < n; ++k) spread[column[k]] = s ? s[column[k]] * x[k] : x[k];
        const Index m = size() - 1;
        Index j = 0;
        each([&](const Constraint& one, const std::int32_t* c, const auto* value) {
            gram_[m * room_ + j] = gram_[j * room_ + m] = dot(c, value, one.n, spread.data());
            ++j;
        });
        for (Index k = 0; k < n; ++k) spread[column[k]] = 0;
    }

    /// Takes out those constraints for which `unwanted` holds.
    template <class F>
    void drop(F&& unwanted) {
        Index kept = 0, from = 0, to = 0;
        for (Index j = 0; j < size(); ++j) {
            const Constraint one = all[j];
            if (!unwanted(one)) {
                if (kept < j) {
                    shift(column_, from, to, one.n);
                    shift(narrow_, from, to, one.n);
                    shift(wide_, from, to, one.n);
                    for (Index k = 0; k < size(); ++k) gram_[kept * room_ + k] = gram_[j * room_ + k];
                    for (Index k = 0; k < size(); ++k) gram_[k * room_ + kept] = gram_[k * room_ + j];
                    all[kept] = one;
                }
                ++kept;
                to += one.n;
            }
            from += one.n;
        }
        all.resize(std::size_t(kept));
        column_.resize(std::size_t(to));
        (wide_.empty() ? narrow_.resize(std::size_t(to)) : wide_.resize(std::size_t(to)));
    }

    /// Merges all constraints into their convex combination, which changes neither w nor the dual.
    void merge(const double* s, std::vector<double>& spread) {
        double total = 0, l = 0;
        for (const Constraint& one : all) total += one.alpha;
        if (size() < 2 || !(total > 0)) return;
        std::vector<std::int32_t> column = column_;
        each([&](const Constraint& one, const std::int32_t* c, const auto* x) {
            l += one.alpha / total * one.l;
            for (Index k = 0; k < one.n; ++k) spread[c[k]] += one.alpha / total * double(x[k]);
        });
        std::sort(column.begin(), column.end());
        column.erase(std::unique(column.begin(), column.end()), column.end());
        std::vector<double> x;
        for (const std::int32_t k : column) {
            x.push_back(spread[k]);
            spread[k] = 0;
        }
        all.clear();
        column_ = {};
        narrow_ = {};
        wide_ = {};
        gram_ = {};
        room_ = 0;
        add(column.data(), x.data(), Index(x.size()), l, total, s, spread);
    }

    /// The gradients at w, left in the scratch, and the gap.
    double look(const double* w, Scratch& t) {
        t.g.clear();
        double worst = 0, total = 0, alpha_g = 0;
        each([&](const Constraint& one, const std::int32_t* c, const auto* x) {
            const double g = one.l - dot(c, x, one.n, w);
            t.g.push_back(g);
            worst = std::max(worst, g);
            total += one.alpha;
            alpha_g += one.alpha * g;
        });
        gap = losses(worst, cost, total, alpha_g, false).gap;
        return gap;
    }

    /// Maximises the dual over the block, and moves v.
    Visit visit(const Weights& moving, Scratch& t) {
        Visit seen;
        look(moving.w, t);
        seen.read = double(column_.size());
        if (gap > 0) {
            const Index m = size();
            double total = 0;
            t.mass.clear();
            for (const Constraint& one : all) {
                t.mass.push_back(one.alpha);
                total += one.alpha;
            }
            t.first = t.g;
            t.g.push_back(0);
            t.mass.push_back(remainder(cost, total));
            const auto gram = [&](Index j, Index k) { return j < m && k < m ? gram_[j * room_ + k] : 0.0; };
            maximise(m + 1, m, gram, t.g.data(), t.mass.data());
            Index j = 0;
            each([&](const Constraint& one, const std::int32_t* c, const auto* x) {
                const double a = t.mass[j] - one.alpha;
                if (a != 0) {
                    seen.gain += 0.5 * a * (t.first[j] + t.g[j]);
                    seen.read += double(one.n);
                    carry(c, x, one.n, a, moving);
                }
                ++j;
            });
            for (Index k = 0; k < m; ++k) all[k].alpha = t.mass[k];
        }
        for (Constraint& one : all) one.idle = one.alpha > 0 ? 0 : one.idle + 1;
        return seen;
    }

    template <class T>
    static double dot(const std::int32_t* column, const T* x, Index n, const double* w) {
        double sum[4] = {};
        Index k = 0;
        for (; k + 4 <= n; k += 4)
            for (Index q = 0; q < 4; ++q) sum[q] += double(x[k + q]) * w[column[k + q]];
        for (; k < n; ++k) sum[0] += double(x[k]) * w[column[k]];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

private:
    /// v += a S x
    template <class T>
    static void carry(const std::int32_t* column, const T* x, Index n, double a, const Weights& moving) {
        if (moving.s || moving.m) {
            for (Index k = 0; k < n; ++k) move(moving, column[k], a * double(x[k]));
        } else {
            double* v = moving.v;
            for (Index k = 0; k < n; ++k) v[column[k]] += a * double(x[k]);
        }
    }

    static std::uint64_t fingerprint(const std::int32_t* column, const double* x, Index n, double l) {
        std::uint64_t print = 0x9e3779b97f4a7c15u;
        const auto mix = [&](double value, std::uint64_t place) {
            std::uint64_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            print = (print ^ bits ^ (place << 32)) * 0xff51afd7ed558ccdu;
            print ^= print >> 33;
        };
        mix(l, 0);
        for (Index k = 0; k < n; ++k) mix(x[k], std::uint64_t(column[k]));
        return print;
    }

    void make_room(Index room) {
        std::vector<double> gram(std::size_t(room * room));
        for (Index j = 0; j < size(); ++j) std::copy_n(gram_.data() + j * room_, size(), gram.data() + j * room);
        gram_.swap(gram);
        room_ = room;
    }

    template <class T, class U>
    static void append(std::vector<T>& to, const U* from, Index n) {
        to.reserve(to.size() + std::size_t(n));  // constraints come seldom and stay long
        for (Index k = 0; k < n; ++k) to.push_back(T(from[k]));
    }

    template <class T>
    static void shift(std::vector<T>& values, Index from, Index to, Index n) {
        if (!values.empty()) std::copy_n(values.data() + from, n, values.data() + to);
    }

    std::vector<std::int32_t> column_;
    std::vector<float> narrow_;
    std::vector<double> wide_;  // one of the two is empty
    std::vector<double> gram_;  // room x room
    Index room_ = 0;
};

}  // namespace dualsvm
