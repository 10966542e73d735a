#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "large.hpp"
#include "rows.hpp"

namespace dualsvm {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The prior and the box on the weights as the caller has them; a null pointer stands for the default.
struct Shape {
    const double *mean, *variance, *lower, *upper;
};

/// What the prior and the box make of u = sum alpha x: v = S u, and w = clip(m + v, lo, hi). The mean stays out of
/// v: beside a large mean, a small v would lose its digits, and with them the bound.
class Regulariser {
public:
    Regulariser(const Shape& shape, std::size_t n) : n_(n), boxed_(shape.lower || shape.upper) {
        const auto copy = [n](const double* from, double otherwise) {
            return from ? std::vector<double>(from, from + n) : std::vector<double>(n, otherwise);
        };
        if (shape.variance) variance_ = copy(shape.variance, 1.0);
        if (shape.mean || shape.lower || shape.upper) {
            mean_ = copy(shape.mean, 0.0);
            lower_ = copy(shape.lower, -kInfinity);
            upper_ = copy(shape.upper, kInfinity);
        }
    }

    /// The same with another term 1/2 kappa (w - c)' S^-1 (w - c), which makes the variance 1 / (1 + kappa) of what
    /// it was (that is left to the caller) and the mean (m + kappa c) / (1 + kappa).
    Regulariser drawn(const double* centre, double kappa) const {
        Regulariser other = *this;
        other.part();
        for (std::size_t k = 0; k < n_; ++k) other.mean_[k] = (other.mean_[k] + kappa * centre[k]) / (1 + kappa);
        return other;
    }

    /// The same around another mean.
    Regulariser around(const double* mean) const {
        Regulariser other = *this;
        other.part();
        other.mean_.assign(mean, mean + n_);
        return other;
    }

    /// Whether w is another vector than v.
    bool apart() const { return !mean_.empty(); }
    bool boxed() const { return boxed_; }
    bool varied() const { return !variance_.empty(); }

    /// With `loose`, and where no bound forbids it, only w moves: `regain` then finds v. That reads and writes less,
    /// but rounds v as coarsely as w.
    Weights moving(Large<double>& v, Large<double>& w, bool loose) const {
        const double* s = variance_.empty() ? nullptr : variance_.data();
        if (!apart()) return {v.data(), v.data(), s, nullptr, nullptr, nullptr};
        if (loose && !boxed_) return {w.data(), w.data(), s, nullptr, nullptr, nullptr};
        return {v.data(), w.data(), s, mean_.data(), lower_.data(), upper_.data()};
    }

    void regain(Large<double>& v, const Large<double>& w) const {
        if (apart() && !boxed_)
            for (std::size_t k = 0; k < w.size(); ++k) v[k] = w[k] - mean_[k];
    }

    Large<double> scaled(Large<double> u) const {
        for (std::size_t k = 0; k < variance_.size(); ++k) u[k] *= variance_[k];
        return u;
    }
    void unscaled(const Large<double>& v, double sigma, double* u) const {
        for (std::size_t k = 0; k < n_; ++k) u[k] = v[k] / (variance_.empty() ? sigma : sigma * variance_[k]);
    }
    void place(const Large<double>& v, Large<double>& w) const {
        for (std::size_t k = 0; k < w.size(); ++k) w[k] = clip(mean_[k] + v[k], k);
    }
    void confine(Large<double>& w, std::size_t from, std::size_t to) const {
        if (apart())
            for (std::size_t k = from; k < to; ++k) w[k] = clip(w[k], k);
    }

    /// 1/2 (w-m)' S^-1 (w-m)
    double distance(const Large<double>& w) const {
        if (!apart() && variance_.empty()) return 0.5 * squares(w.data(), std::ptrdiff_t(n_));
        double sum = 0;
        for (std::size_t k = 0; k < n_; ++k) {
            const double away = apart() ? w[k] - mean_[k] : w[k];
            sum += variance_.empty() ? away * away : away * away / variance_[k];
        }
        return 0.5 * sum;
    }

    /// With u = S^-1 v / sigma, min over w in the box of 1/2 (w-m)' S^-1 (w-m) - w.u: what the dual adds to l.alpha.
    /// Where the minimum is inside the box it is -(m u + s u^2 / 2), which does not need w.
    double conjugate(const Large<double>& v, double sigma = 1.0) const { return conjugate(v, sigma, 0, n_); }
    /// The part of some of the weights.
    double conjugate(const Large<double>& v, double sigma, std::size_t from, std::size_t to) const {
        if (!apart() && variance_.empty())
            return -0.5 * squares(v.data() + from, std::ptrdiff_t(to - from)) / (sigma * sigma);
        double sum = 0;
        for (std::size_t k = from; k < to; ++k) {
            const double s = variance_.empty() ? 1.0 : variance_[k], m = apart() ? mean_[k] : 0.0;
            const double full = v[k] / sigma, u = full / s, free = m + full, w = apart() ? clip(free, k) : free;
            sum += w == free ? -u * (m + 0.5 * full) : 0.5 * (w - m) * ((w - m) / s) - w * u;
        }
        return sum;
    }

private:
    /// Sees that there are a mean and bounds.
    void part() {
        if (apart()) return;
        mean_.resize(n_);
        lower_.assign(n_, -kInfinity);
        upper_.assign(n_, kInfinity);
    }
    double clip(double value, std::size_t k) const { return std::min(std::max(value, lower_[k]), upper_[k]); }

    std::size_t n_;
    bool boxed_;
    std::vector<double> mean_, variance_, lower_, upper_;  // empty: 0, 1, none; mean and bounds come together
};

}  // namespace dualsvm
