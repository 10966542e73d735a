#pragma once

#include <cstring>

#include "maximise.hpp"

namespace dualsvm {

/// The constraints held of one example, as dense rows over the union of their columns: outputs of one example have
/// most of their features in common, so that a visit gathers w once, reads straight on, and scatters one sum. Beside
/// them their Gram matrix x' S x. Rows are floats as long as no constraint needs more.
class Held {
public:
    struct Constraint {
        double l, alpha;
        Index idle;  // visits since it had a dual variable
        std::uint64_t print;
    };
    struct Scratch {
        std::vector<double> local, g, mass, first;
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

    /// Calls f(j, k, x) for every entry of constraint j that is not 0, constraint by constraint.
    template <class F>
    void each(F&& f) const {
        rows([&](const auto* x) {
            for (Index j = 0; j < size(); ++j)
                for (Index p = 0; p < width(); ++p)
                    if (x[j * stride_ + p] != 0) f(j, column_[p], double(x[j * stride_ + p]));
        });
    }

    bool knows(const std::int32_t* column, const double* x, Index n, double l) const {
        const std::uint64_t print = fingerprint(column, x, n, l);
        for (Index j = 0; j < size(); ++j)
            if (all[j].print == print && all[j].l == l && same(j, column, x, n)) return true;
        return false;
    }

    /// `spread` has an entry for every weight, all of them 0, and is left like that.
    void add(const std::int32_t* column, const double* x, Index n, double l, double alpha, const double* s,
             std::vector<double>& spread) {
        widen(column, n);
        const bool exact = std::all_of(x, x + n, [](double value) { return double(float(value)) == value; });
        if (!exact && wide_.empty()) {
            wide_.assign(narrow_.begin(), narrow_.end());
            narrow_ = {};
        }
        const bool narrow = exact && wide_.empty();
        const Index m = size();
        all.push_back({l, alpha, 0, fingerprint(column, x, n, l)});
        for (Index k = 0; k < n; ++k) spread[column[k]] = x[k];
        const auto fill = [&](auto& rows) {
            rows.resize(std::size_t((m + 1) * stride_));
            for (Index p = 0; p < width(); ++p) rows[m * stride_ + p] = spread[column_[p]];
        };
        narrow ? fill(narrow_) : fill(wide_);
        if (m == room_) make_room(std::max<Index>(4, 2 * room_));
        rows([&](const auto* all_x) {
            for (Index j = 0; j <= m; ++j) {
                double sum = 0;
                for (Index p = 0; p < width(); ++p) {
                    const Index k = column_[p];
                    sum += double(all_x[j * stride_ + p]) * (s ? s[k] * spread[k] : spread[k]);
                }
                gram_[m * room_ + j] = gram_[j * room_ + m] = sum;
            }
        });
        for (Index k = 0; k < n; ++k) spread[column[k]] = 0;
    }

    /// Takes out those constraints for which `unwanted` holds.
    template <class F>
    void drop(F&& unwanted) {
        std::vector<Index> kept;
        for (Index j = 0; j < size(); ++j)
            if (!unwanted(all[j])) kept.push_back(j);
        if (Index(kept.size()) == size()) return;
        std::vector<Index> used;
        rows([&](const auto* x) {
            for (Index p = 0; p < width(); ++p)
                if (std::any_of(kept.begin(), kept.end(), [&](Index j) { return x[j * stride_ + p] != 0; }))
                    used.push_back(p);
        });
        const Index stride = padded(Index(used.size()));
        const auto select = [&](auto& x) {
            std::remove_reference_t<decltype(x)> next(kept.size() * std::size_t(stride));
            for (std::size_t j = 0; j < kept.size(); ++j)
                for (std::size_t p = 0; p < used.size(); ++p)
                    next[j * std::size_t(stride) + p] = x[kept[j] * stride_ + used[p]];
            x.swap(next);
        };
        wide_.empty() ? select(narrow_) : select(wide_);
        for (std::size_t p = 0; p < used.size(); ++p) column_[p] = column_[used[p]];
        column_.resize(used.size());
        stride_ = stride;
        for (std::size_t j = 0; j < kept.size(); ++j) {
            all[j] = all[kept[j]];
            for (std::size_t k = 0; k < kept.size(); ++k)  // upwards: nothing is read after it has been written
                gram_[Index(j) * room_ + Index(k)] = gram_[kept[j] * room_ + kept[k]];
        }
        all.resize(kept.size());
    }

    /// Merges all constraints into their convex combination, which changes neither w nor the dual.
    void merge(const double* s, std::vector<double>& spread) {
        double total = 0, l = 0;
        for (const Constraint& one : all) total += one.alpha;
        if (size() < 2 || !(total > 0)) return;
        std::vector<double> x(column_.size());
        rows([&](const auto* value) {
            for (Index j = 0; j < size(); ++j) {
                l += all[j].alpha / total * all[j].l;
                for (Index p = 0; p < width(); ++p) x[p] += all[j].alpha / total * double(value[j * stride_ + p]);
            }
        });
        const std::vector<std::int32_t> column = std::move(column_);
        all.clear();
        column_ = {};
        narrow_ = {};
        wide_ = {};
        gram_ = {};
        room_ = stride_ = 0;
        add(column.data(), x.data(), Index(x.size()), l, total, s, spread);
    }

    /// The gradients at w, left in the scratch, and the gap.
    double look(const double* w, Scratch& t) {
        gather(w, t);
        rows([&](const auto* x) { gradients(x, t); });
        return gap;
    }

    /// sum_j alpha_j g_j at w
    double pledged(const double* w, Scratch& t) const {
        gather(w, t);
        double sum = 0;
        rows([&](const auto* x) {
            for (Index j = 0; j < size(); ++j)
                if (all[j].alpha > 0) sum += all[j].alpha * (all[j].l - dot(x + j * stride_, t.local.data()));
        });
        return sum;
    }

    /// u += sum_j alpha_j x_j; returns sum_j alpha_j l_j.
    double deposit(std::vector<double>& u, Scratch& t) const {
        t.local.assign(std::size_t(stride_), 0.0);
        double linear = 0;
        rows([&](const auto* x) {
            for (Index j = 0; j < size(); ++j) {
                if (!(all[j].alpha > 0)) continue;
                linear += all[j].alpha * all[j].l;
                for (Index p = 0; p < width(); ++p) t.local[p] += all[j].alpha * double(x[j * stride_ + p]);
            }
        });
        for (Index p = 0; p < width(); ++p) u[column_[p]] += t.local[p];
        return linear;
    }

    /// Maximises the dual over the block, and moves v.
    Visit visit(const Weights& moving, Scratch& t) { return wide() ? visit_wide(moving, t) : visit_loop(moving, t); }

private:
    Index width() const { return Index(column_.size()); }
    static Index padded(Index width) { return (width + 2 * kLane - 1) / (2 * kLane) * (2 * kLane); }

    /// Calls f with the rows, as whatever they are.
    template <class F>
    void rows(F&& f) const {
        wide_.empty() ? f(narrow_.data()) : f(wide_.data());
    }

    DUALSVM_WIDE Visit visit_wide(const Weights& moving, Scratch& t) { return visit_loop(moving, t); }

    Visit visit_loop(const Weights& moving, Scratch& t) {
        gather(moving.w, t);
        Visit seen;
        seen.read = double((size() + 2) * width());
        wide_.empty() ? raise(narrow_.data(), moving, t, seen) : raise(wide_.data(), moving, t, seen);
        for (Constraint& one : all) one.idle = one.alpha > 0 ? 0 : one.idle + 1;
        return seen;
    }

    template <class T>
    void raise(const T* x, const Weights& moving, Scratch& t, Visit& seen) {
        gradients(x, t);
        if (!(gap > 0)) return;
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
        double* sum = t.local.data();
        std::fill(t.local.begin(), t.local.end(), 0.0);
        for (Index j = 0; j < m; ++j) {
            const double a = t.mass[j] - all[j].alpha;
            if (a == 0) continue;
            seen.gain += 0.5 * a * (t.first[j] + t.g[j]);
            all[j].alpha = t.mass[j];
            const T* row = x + j * stride_;
            for (Index p = 0; p < stride_; p += kLane) store(sum + p, load(sum + p) + a * load(row + p));
        }
        if (moving.s || moving.m) {
            for (Index p = 0; p < width(); ++p) move(moving, column_[p], sum[p]);
        } else {
            double* v = moving.v;
            const std::int32_t* column = column_.data();
            for (Index p = 0; p < width(); ++p) v[column[p]] += sum[p];
        }
    }

    void gather(const double* w, Scratch& t) const {
        t.local.resize(std::size_t(stride_));
        const std::int32_t* column = column_.data();
        double* local = t.local.data();
        const Index n = width();
        for (Index p = 0; p < n; ++p) local[p] = w[column[p]];
        std::fill(t.local.begin() + n, t.local.end(), 0.0);
    }

    template <class T>
    void gradients(const T* x, Scratch& t) {
        t.g.clear();
        double worst = 0, total = 0, alpha_g = 0;
        for (Index j = 0; j < size(); ++j) {
            const double g = all[j].l - dot(x + j * stride_, t.local.data());
            t.g.push_back(g);
            worst = std::max(worst, g);
            total += all[j].alpha;
            alpha_g += all[j].alpha * g;
        }
        gap = losses(worst, cost, total, alpha_g, false).gap;
    }

    template <class T>
    double dot(const T* x, const double* local) const {
        Lane a{}, b{};
        for (Index p = 0; p < stride_; p += 2 * kLane) {
            a += load(x + p) * load(local + p);
            b += load(x + p + kLane) * load(local + p + kLane);
        }
        const Lane sum = a + b;
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    bool same(Index j, const std::int32_t* column, const double* x, Index n) const {
        bool equal = true;
        rows([&](const auto* value) {
            Index k = 0;
            for (Index p = 0; p < width() && equal; ++p) {
                const double here = double(value[j * stride_ + p]);
                if (here == 0) continue;
                equal = k < n && column[k] == column_[p] && x[k] == here;
                ++k;
            }
            equal = equal && k == n;
        });
        return equal;
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

    /// Makes the columns, which increase, part of the union.
    void widen(const std::int32_t* column, Index n) {
        std::vector<std::int32_t> more;
        std::set_union(column_.begin(), column_.end(), column, column + n, std::back_inserter(more));
        if (more.size() == column_.size()) return;
        const Index stride = padded(Index(more.size()));
        std::vector<Index> to;
        for (std::size_t p = 0, q = 0; p < column_.size(); ++p) {
            while (more[q] != column_[p]) ++q;
            to.push_back(Index(q));
        }
        const auto spread = [&](auto& x) {
            std::remove_reference_t<decltype(x)> next(std::size_t(size() * stride));
            for (Index j = 0; j < size(); ++j)
                for (Index p = 0; p < width(); ++p) next[j * stride + to[p]] = x[j * stride_ + p];
            x.swap(next);
        };
        wide_.empty() ? spread(narrow_) : spread(wide_);
        column_.swap(more);
        column_.shrink_to_fit();
        stride_ = stride;
    }

    void make_room(Index room) {
        std::vector<double> gram(std::size_t(room * room));
        for (Index j = 0; j < room_; ++j) std::copy_n(gram_.data() + j * room_, room_, gram.data() + j * room);
        gram_.swap(gram);
        room_ = room;
    }

    std::vector<std::int32_t> column_;  // the union of the columns, which increase
    std::vector<float> narrow_;         // constraints x stride
    std::vector<double> wide_;          // the same; one of the two is empty
    std::vector<double> gram_;          // room x room
    Index stride_ = 0, room_ = 0;
};

}  // namespace dualsvm
