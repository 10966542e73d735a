#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "light.hpp"
#include "random.hpp"
#include "weights.hpp"

namespace dualsvm {

/// What a run over some examples adds up.
struct Tally {
    double linear = 0, loss = 0, gap = 0;
    double smooth = 0;  // the losses with their kinks rounded off,
    double curve = 0;   // and what they count in the Hessian

    void operator+=(const Tally& other) {
        linear += other.linear;
        loss += other.loss;
        smooth += other.smooth;
        curve += other.curve;
        gap += other.gap;
    }
};

/// What is to be found out of rows that have just been read, beside raising the dual over them: who is to stay in
/// memory, and what the dual variables of all others make.
struct Meeting {
    double bar;     // who ranks below stays
    bool* counted;  // whose dual variables count among the others', before and after
    double *come,
        *gone;     // what those make that count is added to one, what those made that do not any more to the other
    double* rank;  // of each: how far its gradients are from anything to gain, or below 0, at random
    double linear = 0;  // the change of the linear part
};

constexpr std::int64_t kFew = 16;  // visits per example
constexpr double kFall = 1e-6;     // of the dual, or of its linear part

/// What every step moves, whichever rows it comes from: v, w, and the part of the dual that is linear in alpha.
/// States over different rows of one problem share it.
struct Moving {
    Regulariser prior;
    Regulariser drawn;      // what the steps obey: the prior, or more than that
    double sigma = 1;       // variance of that in units of the prior's
    double scale = 0;       // the last upper bound
    bool leaning = false;   // drawn tells of other shares of the examples
    bool single_precision;  // the weights offered are to be floats
    Random random;
    Large<double> v, w;                // w is empty where it is v
    Large<double> offer;               // the weights offered to the caller, if they are not those of now
    std::int64_t blended = 0;          // passes blended into them
    bool foreign = false;              // they came from outside
    std::vector<std::size_t> borders;  // between those that are moved by one thread each
    double linear = 0;
    std::int64_t moves = 0;  // visits since v was last built from alpha,
    double least = 0;        // and the dual then, which has risen since
    double risen = 0;        // the dual after the last pass, or as v was built
    bool judged = false;     // whether `loss` is that of the weights offered
    double loss = 0;
    double known = kInfinity;      // the relative gap when everybody was looked at last
    double truth = 1;              // that gap, in units of what the pass before it had seen
    std::int64_t since = 0;        // visits since then
    double little = -1;            // what the calendars take for little to gain, in the present pass
    std::unique_ptr<Light> light;  // where there is one, it takes the place of v and of the offer,
    std::int64_t rough = 0;        // as it has for so many visits

    Moving(const Shape& shape, std::size_t n, bool single_precision, std::uint64_t seed)
        : prior(shape, n), drawn(prior), single_precision(single_precision), random(seed), v(n) {
        if (prior.apart()) {
            w.resize(n);
            risen = dual();
        }
        prior.place(v, w);
        restart();
    }

    const Large<double>& weights() const { return drawn.apart() ? w : v; }
    const Large<double>& offered() const { return offer.empty() ? weights() : offer; }
    double rounded(double weight) const { return single_precision ? double(float(weight)) : weight; }
    bool pulled() const { return sigma < 1 && !leaning; }
    bool loose() const { return pulled() || leaning; }
    double dual() const { return linear + (light ? -0.5 * light->square() : prior.conjugate(v, sigma)); }
    double dual(Crew& crew) const {
        if (light) return dual();
        std::vector<double> sums(shares());
        in_shares(crew, [&](std::size_t t, std::size_t from, std::size_t to) {
            sums[t] = prior.conjugate(v, sigma, from, to);
        });
        return std::accumulate(sums.begin(), sums.end(), linear);
    }
    /// Whether the dual has fallen to this in a pass, by more than rounding explains.
    bool fallen(double now) const {
        return !(now >= risen - kFall * std::max(std::abs(risen), std::abs(linear))) || !std::isfinite(now);
    }
    double distance() const { return light ? 0.5 * light->offered() : prior.distance(offered()); }

    /// What steps are to move; `regain` must follow them.
    Weights moving() { return drawn.moving(v, w, loose()); }
    void regain() {
        if (loose()) drawn.regain(v, w);
    }

    /// Whether v is as exact as if it had just been built from alpha, by as many additions as there are examples:
    /// whether there have been few visits since then, each of which adds to a weight once, and v has not been much
    /// larger on the way. With a dual D of 0 or more, which does not fall, and |v - v*|^2 / 2 <= D* - D for the v* of
    /// the optimum D*, which is at least |v*|^2 / 2, |v|^2 <= 8 D* all the way.
    bool fresh(std::size_t examples) const {
        return !prior.apart() && !loose() && least >= 0 && moves <= kFew * std::int64_t(examples);
    }

    /// Whether all weights are 0: their square is what the linear part of the dual lacks.
    bool none() const { return !prior.apart() && offer.empty() && linear == 0 && risen == 0 && moves == 0; }

    /// Whether v is just as it was built from alpha.
    bool built() const { return moves == 0 && !prior.apart() && !loose(); }

    /// v and w of u = sum alpha x, and with them the linear part.
    void rebuild(Large<double> u, double linear_part) {
        v = prior.scaled(std::move(u));
        for (double& value : v) value *= sigma;
        drawn.place(v, w);
        rebuilt(linear_part);
    }
    void rebuilt(double linear_part) {
        linear = linear_part;
        moves = 0;
        least = risen = dual();
    }

    /// The weights offered are a running mean of w, mostly over the last ten passes: the primal of w itself goes
    /// up and down from pass to pass, and lies further from the optimum. Confined, as a mean may round out of the
    /// box.
    void blend(Crew& crew) {
        const double part = std::max(0.1, 8.0 / (7.0 + double(++blended)));
        judged = false;
        if (light) return light->blend(part, borders, crew);
        const Large<double>& now = weights();
        offer.resize(now.size());
        in_shares(crew, [&](std::size_t, std::size_t from, std::size_t to) {
            dualsvm::blended(now.data() + from, offer.data() + from, Index(to - from), part);
            prior.confine(offer, from, to);
        });
    }

    /// Runs f(t, from, to) over all weights, each thread those that it has moved itself.
    std::size_t shares() const { return borders.size() + 1; }
    template <class F>
    void in_shares(Crew& crew, const F& f) const {
        crew.run(shares(), [&](std::size_t t) {
            f(t, t > 0 ? borders[t - 1] : 0, t < borders.size() ? borders[t] : v.size());
        });
    }

    /// Has the weights offered, as they are bounded, whatever becomes of those of now.
    void fix() {
        if (light) return;
        if (offer.empty()) offer = weights();
        if (single_precision)
            for (double& w : offer) w = rounded(w);
    }
    void restart() {
        light ? light->restart() : offer.clear();
        blended = 0;
        foreign = judged = false;
    }
};

}  // namespace dualsvm
