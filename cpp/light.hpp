#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "crew.hpp"
#include "large.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace dualsvm {

/// Weights of several classes as floats: of every feature `stride` numbers at `at`, and `rest` more at `beside`, and
/// whether what is made of them is to be added up in double precision.
struct LightWeights {
    using Number = float;
    static constexpr const double* s = nullptr;

    float *at, *beside;
    Index stride, rest;
    bool exactly;

    const LightWeights& seen() const { return *this; }
    LightWeights copied(Index from, Index n, float* room, bool wanted) const {
        if (!wanted) return *this;
        std::copy_n(at + from / n * stride, stride, room);
        std::copy_n(beside + from / n * rest, rest, room + stride);
        return {room, room + stride, stride, rest, exactly};
    }
    void take(Index from, Index n, const float* room) const {
        std::copy_n(room, stride, at + from / n * stride);
        std::copy_n(room + stride, rest, beside + from / n * rest);
    }
};

constexpr Index kOwned = 512;  // bytes ahead that a thread asks for what it is to write, as others may have read it

/// offer += part (now - offer) for n weights; returns the sums of their squares, of now and as offered.
template <class T>
inline std::pair<double, double> blend_loop(const T* now, T* offer, Index n, double part) {
    constexpr Index line = 64 / Index(sizeof(T)), ahead = kOwned / Index(sizeof(T));
    Lane a{}, b{};
    Index k = 0;
    for (; k + line <= n; k += line) {
        __builtin_prefetch(offer + std::min(k + ahead, n - 1), 1);
        for (Index j = k; j < k + line; j += kLane) {
            const Lane here = load(now + j), before = load(offer + j), there = before + part * (here - before);
            a += here * here;
            b += there * there;
            store(offer + j, there);
        }
    }
    double first = sum(a), second = sum(b);
    for (; k < n; ++k) {
        const double here = now[k], there = offer[k] + part * (here - offer[k]);
        first += here * here;
        second += there * there;
        offer[k] = T(there);
    }
    return {first, second};
}
template <class T>
DUALSVM_WIDE std::pair<double, double> blend_wide(const T* now, T* offer, Index n, double part) {
    return blend_loop(now, offer, n, part);
}
template <class T>
std::pair<double, double> blended(const T* now, T* offer, Index n, double part) {
    return wide() ? blend_wide(now, offer, n, part) : blend_loop(now, offer, n, part);
}

/// v and the weights offered as floats, for passes far from the optimum: what visits wait for is then half as large,
/// and a vector holds twice as much of it. Classes fill whole lines of the cache; where few are left of a feature,
/// they lie apart, with those of its neighbours: twenty classes then take little more than one line, and else two.
class Light {
public:
    static constexpr Index kBroad = 8;             // floats in a vector,
    static constexpr Index kWhole = 16, kFew = 8;  // in a line of the cache, and so few that they lie apart

    /// Zeros, for features x classes in lines of `line` numbers, so many in all.
    Light(std::size_t n, Index line)
        : line_(line),
          rest_(line > kWhole && line % kWhole <= kFew ? line % kWhole : 0),
          stride_((line - rest_ + kBroad - 1) / kBroad * kBroad),
          width_(Index(n) / line),
          now_(std::size_t(width_ * (stride_ + rest_))),
          offer_(now_.size()) {}

    /// Becomes these.
    void fill(const Large<double>& v, const Large<double>& offer) {
        const auto fill = [this](const Large<double>& from, Large<float>& to) {
            each(0, width_, [&](Index k, Index first, Index n, std::size_t place) {
                for (Index j = 0; j < n; ++j)
                    to[place + std::size_t(j)] = float(from[std::size_t(k * line_ + first + j)]);
            });
        };
        fill(v, now_);
        fill(offer, offer_);
        square_ = squares(now_.data(), Index(now_.size()));
        offered_ = squares(offer_.data(), Index(offer_.size()));
    }

    LightWeights now() { return tell(now_, false); }
    LightWeights offer() { return tell(offer_, true); }

    /// Squares of v, when it was blended last, and of the weights offered.
    double square() const { return square_; }
    double offered() const { return offered_; }

    /// offer += part (v - offer), each thread the weights that it moves.
    void blend(double part, const std::vector<std::size_t>& borders, Crew& crew) {
        std::vector<double> square(borders.size() + 1), offered(square.size());
        in_shares(borders, crew, [&](std::size_t t, Index from, Index to) {
            const auto [now, there] = blended(now_.data() + from, offer_.data() + from, to - from, part);
            square[t] += now;
            offered[t] += there;
        });
        square_ = std::accumulate(square.begin(), square.end(), 0.0);
        offered_ = std::accumulate(offered.begin(), offered.end(), 0.0);
    }

    /// offer = v
    void restart() {
        offer_ = now_;
        square_ = offered_ = squares(now_.data(), Index(now_.size()));
    }

    /// What is offered, in double precision: of the features that make up these weights, or of all.
    void give(double* offer, std::size_t from, std::size_t to) const {
        each(Index(from) / line_, Index(to) / line_, [&](Index k, Index first, Index n, std::size_t place) {
            std::copy_n(offer_.data() + place, n, offer + k * line_ + first);
        });
    }
    void give(double* offer) const { give(offer, 0, std::size_t(width_ * line_)); }

private:
    LightWeights tell(Large<float>& weights, bool exactly) const {
        return {weights.data(), weights.data() + width_ * stride_, stride_, rest_, exactly};
    }
    /// f(k, first, n, place): where n classes of feature k lie, from the first on, for some of the features.
    template <class F>
    void each(Index from, Index to, const F& f) const {
        for (Index k = from; k < to; ++k) f(k, 0, line_ - rest_, std::size_t(k * stride_));
        for (Index k = from; k < to && rest_ > 0; ++k)
            f(k, stride_, rest_, std::size_t(width_ * stride_ + k * rest_));
    }
    /// f(t, from, to) for what lies together of the weights that thread t moves.
    template <class F>
    void in_shares(const std::vector<std::size_t>& borders, Crew& crew, const F& f) const {
        const std::size_t shares = borders.size() + 1;
        const auto first = [&](std::size_t t) {
            return t == 0 ? 0 : t == shares ? width_ : Index(borders[t - 1]) / line_;
        };
        crew.run(shares, [&](std::size_t t) {
            f(t, first(t) * stride_, first(t + 1) * stride_);
            f(t, width_ * stride_ + first(t) * rest_, width_ * stride_ + first(t + 1) * rest_);
        });
    }

    Index line_, rest_, stride_, width_;
    Large<float> now_, offer_;
    double square_ = 0, offered_ = 0;
};

}  // namespace dualsvm
