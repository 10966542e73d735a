#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "crew.hpp"
#include "large.hpp"
#include "rows.hpp"

namespace dualsvm {

/// Weights of several classes as floats, the classes of a feature in a line of `stride` numbers, and whether what is
/// made of them is to be added up in double precision.
struct LightWeights {
    using Number = float;
    static constexpr const double* s = nullptr;

    float* at;
    Index stride;
    bool exactly;

    const LightWeights& seen() const { return *this; }
    LightWeights copied(Index from, Index n, float* room, bool wanted) const {
        if (!wanted) return *this;
        std::copy_n(at + from, n, room);
        return {room, stride, exactly};
    }
    void take(Index from, Index n, const float* room) const { std::copy_n(room, n, at + from); }
};

/// v and the weights offered as floats, for passes far from the optimum: what visits wait for is then half as large,
/// and a vector holds twice as much of it.
class Light {
public:
    static constexpr Index kBroad = 8;  // floats in a vector

    /// Those of features x classes, in lines of `line` numbers.
    Light(const Large<double>& v, const Large<double>& offer, Index line)
        : line_(line),
          stride_((line + kBroad - 1) / kBroad * kBroad),
          width_(Index(v.size()) / line),
          now_(std::size_t(width_ * stride_)),
          offer_(now_.size()) {
        const auto fill = [this](const Large<double>& from, Large<float>& to) {
            for (Index k = 0; k < width_; ++k)
                for (Index j = 0; j < line_; ++j)
                    to[std::size_t(k * stride_ + j)] = float(from[std::size_t(k * line_ + j)]);
        };
        fill(v, now_);
        fill(offer, offer_);
        square_ = squares(now_);
        offered_ = squares(offer_);
    }

    LightWeights now() { return {now_.data(), stride_, false}; }
    LightWeights offer() { return {offer_.data(), stride_, true}; }

    /// Squares of v, when it was blended last, and of the weights offered.
    double square() const { return square_; }
    double offered() const { return offered_; }

    /// offer += part (v - offer), each thread the weights that it moves.
    void blend(double part, const std::vector<std::size_t>& borders, Crew& crew) {
        const std::size_t shares = borders.size() + 1;
        const auto first = [&](std::size_t t) {
            return t == 0        ? 0
                   : t == shares ? now_.size()
                                 : borders[t - 1] / std::size_t(line_) * std::size_t(stride_);
        };
        std::vector<double> square(shares), offered(shares);
        crew.run(shares, [&](std::size_t t) {
            const float *now = now_.data(), by = float(part);
            float* offer = offer_.data();
            double a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
            for (std::size_t k = first(t); k < first(t + 1); ++k) {
                const float there = offer[k] + by * (now[k] - offer[k]);
                offer[k] = there;
                a += double(now[k]) * now[k];
                b += double(there) * there;
            }
            square[t] = a;
            offered[t] = b;
        });
        square_ = offered_ = 0;
        for (std::size_t t = 0; t < shares; ++t) {
            square_ += square[t];
            offered_ += offered[t];
        }
    }

    /// offer = v
    void restart() {
        offer_ = now_;
        square_ = offered_ = squares(now_);
    }

    /// What is offered, in double precision.
    void give(double* offer) const {
        for (Index k = 0; k < width_; ++k) std::copy_n(&offer_[std::size_t(k * stride_)], line_, offer + k * line_);
    }

private:
    static double squares(const Large<float>& weights) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::size_t k = 0; k < weights.size(); ++k) sum += double(weights[k]) * weights[k];
        return sum;
    }

    Index line_, stride_, width_;
    Large<float> now_, offer_;
    double square_ = 0, offered_ = 0;
};

}  // namespace dualsvm
