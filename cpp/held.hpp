#pragma once

#include <cstring>

#include "maximise.hpp"
#include "parts.hpp"
#include "search.hpp"

namespace dualsvm {

/// The constraints held of one example, and their Gram matrix x' S x.
class Held {
public:
    struct Constraint {
        double l, alpha, before;  // before: the dual variable that the last passes came from
        Index idle;               // visits since it had a dual variable
        std::uint64_t print;
    };
    struct Scratch {
        std::vector<double> g, mass, first;
        Parts::Room room;
        void reserve(Index n) {
            if (Index(g.size()) >= n) return;
            for (auto* each : {&g, &mass, &first}) each->resize(std::size_t(n));
        }
    };
    struct Visit {
        double gain = 0, read = 0;
    };

    double cost = 0;
    double gap = 0;  // C max(0, max_j g_j) - sum_j alpha_j g_j, when it was last looked at
    std::vector<Constraint> all;

    Index size() const { return Index(all.size()); }
    Index bytes() const { return parts_.bytes() + Index(sizeof(Constraint) * all.size() + 8 * gram_.size()); }

    DUALSVM_AHEAD void ahead() const {
        prefetch(all.data(), Index(sizeof(Constraint) * all.size()));
        prefetch(gram_.data(), 8 * Index(gram_.size()));
        parts_.ahead();
    }

    /// The entries of a constraint, in the order of their columns.
    void sorted(Index j, std::vector<Entry>& out) const {
        out.clear();
        parts_.each(j, [&](std::int32_t column, double x) { out.push_back({column, x}); });
        std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.column < b.column; });
    }

    bool knows(const std::int32_t* column, const double* x, Index n, double l) const {
        const std::uint64_t print = fingerprint(column, x, n, l);
        std::vector<Entry> entries;
        for (Index j = 0; j < size(); ++j) {
            if (all[j].print != print || all[j].l != l) continue;
            sorted(j, entries);
            auto entry = entries.begin();
            bool same = true;
            for (Index k = 0; same && k < n; ++k) {
                if (x[k] == 0) continue;
                same = entry != entries.end() && entry->column == column[k] && entry->x == x[k];
                entry += same;
            }
            if (same && entry == entries.end()) return true;
        }
        return false;
    }

    /// `spread` has an entry for every weight, all of them 0, and is left like that.
    void add(const std::int32_t* column, const double* x, Index n, double l, double alpha, const double* s,
             std::vector<double>& spread, Scratch& t) {
        const Index m = size();
        if (m + 1 >= stride_) make_room(stride_ + std::max<Index>(kLane, stride_ / 2 / kLane * kLane));
        t.reserve(stride_);
        double own = 0;
        for (Index k = 0; k < n; ++k) {
            spread[column[k]] = s ? s[column[k]] * x[k] : x[k];
            own += spread[column[k]] * x[k];
        }
        std::fill_n(t.g.data(), m, 0.0);
        parts_.dots(spread.data(), t.g.data());
        for (Index k = 0; k < n; ++k) spread[column[k]] = 0;
        for (Index j = 0; j < m; ++j) at(m, j) = at(j, m) = t.g[j];
        at(m, m) = gram_[m + 1] = own;
        parts_.add(column, x, n, spread, t.room);
        all.push_back({l, alpha, alpha, 0, fingerprint(column, x, n, l)});
    }

    /// Takes constraint j out, the last one taking its place.
    void drop(Index j, Scratch& t) {
        const Index last = size() - 1;
        parts_.drop(j, t.room);
        if (j < last) {
            all[j] = all[last];
            for (Index k = 0; k < last; ++k)
                if (k != j) at(j, k) = at(k, j) = at(last, k);
            at(j, j) = gram_[j + 1] = at(last, last);
        }
        all.pop_back();
    }

    /// Adds a vector to all constraints or, if `scaled`, l times that.
    void move(const std::int32_t* column, const double* x, Index n, bool scaled, const double* s,
              std::vector<double>& spread, Scratch& t) {
        const Held before = std::move(*this);
        *this = {};
        cost = before.cost;
        std::vector<Entry> entries;
        std::vector<std::int32_t> columns;
        std::vector<double> values;
        for (Index j = 0; j < before.size(); ++j) {
            const Constraint& one = before.all[j];
            before.sorted(j, entries);
            for (Index k = 0; k < n; ++k) entries.push_back({column[k], scaled ? one.l * x[k] : x[k]});
            settle(entries);
            columns.clear();
            values.clear();
            for (const Entry& entry : entries) {
                columns.push_back(entry.column);
                values.push_back(entry.x);
            }
            add(columns.data(), values.data(), Index(values.size()), one.l, one.alpha, s, spread, t);
        }
    }

    /// Merges all constraints into their convex combination, which changes neither w nor the dual.
    void merge(const double* s, std::vector<double>& spread, Scratch& t) {
        double total = 0, l = 0;
        for (const Constraint& one : all) total += one.alpha;
        if (size() < 2 || !(total > 0)) return;
        std::vector<std::int32_t> column;
        for (Index j = 0; j < size(); ++j) {
            l += all[j].alpha / total * all[j].l;
            parts_.each(j, [&](std::int32_t k, double x) {
                column.push_back(k);
                spread[k] += all[j].alpha / total * x;
            });
        }
        std::sort(column.begin(), column.end());
        column.erase(std::unique(column.begin(), column.end()), column.end());
        std::vector<double> x;
        for (const std::int32_t k : column) {
            x.push_back(spread[k]);
            spread[k] = 0;
        }
        all.clear();
        gram_ = {};
        parts_ = {};
        stride_ = 0;
        add(column.data(), x.data(), Index(x.size()), l, total, s, spread, t);
    }

    /// The gradients at w, left in the scratch behind a place for the slack; returns the gap.
    __attribute__((always_inline)) inline double look(const double* w, Scratch& t) {
        t.reserve(std::max<Index>(stride_, 1));
        double* g = t.g.data();
        std::fill_n(g, size() + 1, 0.0);
        parts_.dots(w, g + 1);
        double worst = 0, total = 0, alpha_g = 0;
        for (Index j = 1; j <= size(); ++j) {
            const Constraint& one = all[j - 1];
            g[j] = one.l - g[j];
            worst = std::max(worst, g[j]);
            total += one.alpha;
            alpha_g += one.alpha * g[j];
        }
        t.mass[0] = remainder(cost, total);
        gap = losses(worst, cost, total, alpha_g, false).gap;
        return gap;
    }

    /// sum_j alpha_j g_j at w
    double pledged(const double* w, Scratch& t) const {
        t.reserve(std::max<Index>(stride_, 1));
        std::fill_n(t.g.data(), size(), 0.0);
        parts_.dots(w, t.g.data());
        double sum = 0;
        for (Index j = 0; j < size(); ++j) sum += all[j].alpha * (all[j].l - t.g[j]);
        return sum;
    }

    /// u += sum_j alpha_j x_j; returns sum_j alpha_j l_j.
    double deposit(Large<double>& u, Scratch& t) const {
        t.reserve(std::max<Index>(stride_, 1));
        double linear = 0;
        for (Index j = 0; j < size(); ++j) {
            t.mass[j] = all[j].alpha;
            linear += all[j].alpha * all[j].l;
        }
        parts_.carry(t.mass.data(), {u.data(), u.data(), nullptr, nullptr, nullptr, nullptr});
        return linear;
    }

    /// Maximises the dual over the block, and moves v.
    Visit visit(const Weights& moving, Scratch& t) {
        const Visit seen = wide() ? visit_wide(moving, t) : visit_loop(moving, t);
        for (Constraint& one : all) one.idle = one.alpha > 0 ? 0 : one.idle + 1;
        return seen;
    }

    /// With E = t (alpha - before), t as large as the block allows and `most` at most: along += S sum_j E_j x_j.
    /// Returns t and l.E.
    std::pair<double, double> stretch(double most, const Weights& along, Scratch& scratch, double& work) const {
        scratch.reserve(std::max<Index>(stride_, 1));
        double t = most, total = 0, more = 0, moved = 0, linear = 0;
        for (Index j = 0; j < size(); ++j) {
            const Constraint& one = all[j];
            const double d = scratch.g[j] = one.alpha - one.before;
            if (d < 0) t = std::min(t, one.alpha / -d);
            total += one.alpha;
            more += d;
            moved += std::abs(d);
            linear += d * one.l;
        }
        if (more > 1e-13 * cost) t = std::min(t, remainder(cost, total) / more);
        if (!(t > 0) || !(moved > 0)) return {0.0, 0.0};
        for (Index j = 0; j < size(); ++j) scratch.g[j] *= t;
        work += double(parts_.carry(scratch.g.data(), along));
        return {t, t * linear};
    }

    /// alpha += t (alpha - before), and begins anew from there.
    void follow(double t) {
        for (Constraint& one : all) one.before = one.alpha = std::max(0.0, one.alpha + t * (one.alpha - one.before));
    }

private:
    double& at(Index j, Index k) { return gram_[(j + 2) * stride_ + k + 1]; }

    DUALSVM_WIDE Visit visit_wide(const Weights& moving, Scratch& t) { return visit_loop(moving, t); }

    Visit visit_loop(const Weights& moving, Scratch& t) {
        look(moving.w, t);
        Visit seen{0.0, double(parts_.columns())};
        if (!(gap > 0)) return seen;
        const Index m = size();
        double *g = t.g.data(), *mass = t.mass.data(), *first = t.first.data();
        for (Index j = 1; j <= m; ++j) {
            mass[j] = all[j - 1].alpha;
            first[j] = g[j];
        }
        for (Index j = m + 1; j % kLane; ++j) g[j] = -kInfinity, mass[j] = 0;
        maximise_stored(m + 1, gram_.data() + stride_, stride_, gram_.data(), g, mass);
        for (Index j = 1; j <= m; ++j) {
            const double a = mass[j] - all[j - 1].alpha;
            all[j - 1].alpha = mass[j];
            seen.gain += 0.5 * a * (first[j] + g[j]);
            mass[j] = a;
        }
        seen.read += double(parts_.carry(mass + 1, moving));
        return seen;
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

    void make_room(Index stride) {
        std::vector<double> gram(std::size_t((stride + 1) * stride));
        for (Index j = 0; j < (stride_ ? size() + 2 : 0); ++j)
            std::copy_n(gram_.data() + j * stride_, stride_, gram.data() + j * stride);
        gram_.swap(gram);
        stride_ = stride;
    }

    Parts parts_;
    std::vector<double> gram_;  // the diagonal, and then the rows, behind one of zeros for the slack, as is each row
    Index stride_ = 0;          // of rows: a multiple of kLane
};

}  // namespace dualsvm
