#pragma once

#include <array>
#include <optional>
#include <type_traits>

#include "classes.hpp"
#include "maximise.hpp"

namespace dualsvm {

/// Crammer-Singer classes: example i of class y has the constraints x = phi(row, y) - phi(row, j) with
/// l = margin_i loss[y, j] for every other class j, and none of them is ever formed. Weights lie as features x
/// classes, the classes of a feature side by side and padded to whole vectors, so that the scores of all classes and
/// an update of all classes are each one run over the row.
///
/// Let d_j be the change of alpha_j and d_y = -sum of the others: what the slack gives. The dual over the block
/// is sum_j g_j d_j - h_j/2 d_j^2 over all classes, with g_y = 0, h_j = x' S_j x, sum_j d_j = 0 and
/// d_j >= -mass_j; `project` finds its maximum where all h_j are alike, and `share` else.
///
/// With slack rescaling both sides of a constraint are multiplied: x = loss[y, j] (phi(row, y) - phi(row, j)), and
/// the entries of the Gram matrix are x_j' S x_k = loss[y, j] loss[y, k] (h_y + h_j if j = k); see `maximise`.
template <class Rows>
struct Multiclass {
    struct Scratch {
        std::vector<double> g, d, mass, h;
        Large<float> light;
        std::vector<Index> free;
        typename Rows::Room room;
        typename Rows::Row row;  // of the example looked at last
        Index looked = -1;       // which that is
    };

    static constexpr bool once = true;

    Rows rows;
    const std::int32_t* label;
    const double* class_loss;
    const double* margins;  // null: all 1
    const double* costs;
    Index classes, stride;
    bool squared, rescaled;
    Large<double> alpha;        // examples x classes, padded; the entry of the true class stays 0
    std::vector<double> norms;  // x'x, or -1 where not yet known; with a prior variance, unused

    Multiclass(const Rows& rows, const std::int32_t* label, const double* class_loss, const double* margins,
               Index classes, const double* costs, bool squared, bool rescaled)
        : rows(rows),
          label(label),
          class_loss(class_loss),
          margins(margins),
          costs(costs),
          classes(classes),
          stride(padded(classes)),
          squared(squared),
          rescaled(rescaled),
          alpha(std::size_t(rows.size() * stride)),
          norms(std::size_t(rows.size()), -1.0),
          table_(std::size_t(classes * stride)) {
        for (Index y = 0; y < classes; ++y) std::copy_n(class_loss + y * classes, classes, &table_[y * stride]);
    }

    static Index padded(Index classes) { return (classes + kLane - 1) / kLane * kLane; }
    Index size() const { return rows.size(); }
    Index n_weights() const { return rows.width() * stride; }
    Index n_alpha() const { return size() * classes; }
    double cost(Index i) const { return costs[i]; }
    double margin(Index i) const { return margins ? margins[i] : 1.0; }
    Scratch scratch() const {
        const auto n = std::size_t(stride + Light::kBroad + 8);  // a line behind them, as others may follow
        const std::vector<double> zeros(n);
        return {zeros, zeros, zeros, zeros, Large<float>(n), std::vector<Index>(n), rows.room(), {}, -1};
    }
    DUALSVM_AHEAD void soon(Index i) const {
        prefetch(&alpha[i * stride], stride * Index(sizeof(double)));
        rows.soon(i);
    }
    DUALSVM_AHEAD void ahead(Index i) const { rows.ahead(i); }

    /// Whether passes may have light weights: whether nothing that they add up is too large for a float, nor all of
    /// it too small. With dual variables of at most C, |w_k| <= max |x| sum C and |w.x| <= max |x|^2 sum C times the
    /// width.
    bool light(const std::vector<std::uint32_t>& examples) {
        if (squared || rescaled) return false;
        if (!light_) {
            double all = 0;
            for (const std::uint32_t i : examples) all += costs[i];
            const double most = std::max(rows.largest(), 1.0);
            light_ = all > 1 / kLight && all * most * most * double(rows.width()) < kLight;
        }
        return *light_;
    }

    template <class Seen>
    Look look(Index i, const Seen& w, Scratch& t) const {
        t.row = rows.entries(i, t.room);
        t.looked = i;
        score(w, t);
        return judge(i, t);
    }
    static double* scores(Scratch& t) { return t.g.data(); }
    Index n_scores(const Weights&) const { return stride; }
    static Index n_scores(const LightWeights& w) { return w.stride + w.rest; }
    Index n_kept() const { return stride; }
    void keep(Index i, double* to) const { std::copy_n(&alpha[i * stride], stride, to); }
    void recall(Index i, const double* from) { std::copy_n(from, stride, &alpha[i * stride]); }
    template <class Some>
    void part(const Some& rows, Index r, const double* w, double* score) const {
        auto room = rows.room();
        score_classes(rows, rows.entries(r, room), table(w), score);
    }
    template <class Some, class Number>
    void part(const Some& rows, Index r, const LightWeights& w, Number* score) const {
        auto room = rows.room();
        score_classes(rows, rows.entries(r, room), class_table(w), score);
    }

    /// What the scores in g say; leaves the gradients there.
    Look judge(Index i, Scratch& t) const {
        double* g = t.g.data();
        double* mass = t.mass.data();
        const Index y = label[i];
        const double* l = table_.data() + y * stride;
        const double* a = &alpha[i * stride];
        std::fill(g + classes, g + stride, kFar);
        const double own = g[y], asked = margin(i);
        Lane total{}, alpha_g{}, worst{}, least = Lane{} + kInfinity;
        for (Index j = 0; j < stride; j += kLane) {
            const Lane away = load(g + j) - own, held = load(a + j);
            const Lane here = rescaled ? load(l + j) * (away + asked) : load(l + j) * asked + away;
            const Lane low = held > Lane{} ? here : Lane{} + kInfinity;
            store(g + j, here);
            store(mass + j, held);
            total += held;
            alpha_g += held * here;
            worst = here > worst ? here : worst;
            least = low < least ? low : least;
        }
        const double held = sum(total), pull = squared ? held / (2 * costs[i]) : 0.0;
        Look look = losses(most(worst), costs[i], held, sum(alpha_g), squared);
        if (squared) {
            for (Index j = 0; j < stride; j += kLane) store(g + j, load(g + j) - pull);
            put_one(g, y, 0.0);
        }
        const double own_mass = squared ? kInfinity : remainder(costs[i], held);
        put_one(mass, y, own_mass);
        const double up = std::max(most(worst) - pull, 0.0), down = -most(-least) - pull;  // the true class: 0
        look.violation = std::max(up - (own_mass > 0 ? std::min(down, 0.0) : down), 0.0);
        return look;
    }

    template <class Moved>
    double step(Index i, const Moved& weights, double sigma, Scratch& t) {
        const double change = solve(i, weights.s, sigma, t);
        spread(rows, t.row, weights, t);
        return change;
    }
    void measure(Index i, const double* s) {
        if (!s && norms[i] < 0) norms[i] = rows.norm(i, nullptr);
    }
    /// Raises the dual over the block; leaves in d what the classes get of the row.
    double solve(Index i, const double* s, double sigma, Scratch& t) {
        const double curve = squared ? 1 / (2 * costs[i]) : 0.0;
        curvatures(i, s, sigma, t);
        double* d = t.d.data();
        const Index y = label[i];
        const double* l = table_.data() + y * stride;
        double* a = &alpha[i * stride];
        if (rescaled) {
            const auto gram = [&](Index j, Index k) {
                return j == y || k == y ? 0.0 : l[j] * l[k] * (t.h[y] + (j == k ? t.h[j] : 0.0)) + curve;
            };
            maximise(classes, y, gram, t.g.data(), t.mass.data());
            for (Index j = 0; j < classes; ++j) d[j] = t.mass[j] - a[j];
        } else if (squared || s) {
            t.h[y] += curve;
            share(t);
        } else {
            const double far = t.mass[y] < costs[i] ? kPast : 1.0;  // all of them at once, as h / kPast were h
            project(stride, t.h[0] / far, t.g.data(), t.mass.data(), d);
        }
        put_one(d, y, 0.0);
        double* to = t.mass.data();
        const Lane none{};
        Lane gain{}, old{}, now{};
        for (Index j = 0; j < stride; j += kLane) {
            const Lane from = load(a + j), mass = from + load(d + j), kept = mass > none ? mass : none;
            store(to + j, kept);
            old += from;
            now += kept;
        }
        double before = sum(old), after = sum(now);
        // tiny curvatures make long steps, and those may round past the cap
        const double fit = !squared && after > costs[i] ? costs[i] / after : 1.0;
        after *= fit;
        for (Index j = 0; j < stride; j += kLane) {
            const Lane mass = fit * load(to + j), change = mass - load(a + j);
            store(a + j, mass);
            store(d + j, sigma * change);
            gain += load(l + j) * change;
        }
        exchange(y, d);
        return margin(i) * sum(gain) - 0.5 * curve * (after - before) * (after + before);
    }

    template <class Some, class Moved>
    void follow(const Some& rows, Index r, const Moved& weights, double, Scratch& t) const {
        auto room = rows.room();
        spread(rows, rows.entries(r, room), weights, t);
    }

    double rest(Index, const Scratch& t) const { return distance_to_gain(t.g.data(), t.mass.data(), classes); }

    void hold(Index i, Scratch& t) const {
        std::copy_n(&alpha[i * stride], stride, t.d.data());
        exchange(label[i], t.d.data());
    }
    void deposit(Index i, const Weights& u, Scratch& t) const {
        if (t.looked != i) t.row = rows.entries(i, t.room);
        t.looked = i;
        hold(i, t);
        spread(rows, t.row, u, t);
    }
    double linear(Index i) const {
        const double* l = class_loss + label[i] * classes;
        const double* a = &alpha[i * stride];
        double sum = 0, mass = 0;
        for (Index j = 0; j < classes; ++j) {
            sum += a[j] * l[j];
            mass += a[j];
        }
        return margin(i) * sum - (squared ? mass * (mass / (4 * costs[i])) : 0.0);
    }
    void set_alpha(Index i, const double* from) {
        std::copy_n(from + i * classes, classes, &alpha[i * stride]);
        alpha[i * stride + label[i]] = 0;
    }
    void get_alpha(Index i, double* to) const { std::copy_n(&alpha[i * stride], classes, to + i * classes); }

private:
    ClassTable<const double> table(const double* w) const { return {w, stride}; }

    /// The scores of all classes, left in g.
    void score(const double* w, Scratch& t) const { score_classes(rows, t.row, table(w), scores(t)); }
    void score(const LightWeights& w, Scratch& t) const {
        if (w.exactly) return score_classes(rows, t.row, class_table(w), scores(t));
        score_classes(rows, t.row, class_table(w), t.light.data());
        for (Index j = 0; j < n_scores(w); ++j) t.g[std::size_t(j)] = double(t.light[std::size_t(j)]);
    }

    /// Turns dual variables, or changes of them, 0 for the true class, into what the classes get of the row: class j
    /// loses its own, times its loss where the constraints are rescaled, and the true class receives the sum.
    void exchange(Index y, double* d) const {
        const double* l = table_.data() + y * stride;
        Lane received{};
        for (Index j = 0; j < stride; j += kLane) {
            const Lane lost = rescaled ? load(l + j) * load(d + j) : load(d + j);
            received += lost;
            store(d + j, -lost);
        }
        put_one(d, y, sum(received));
    }

    /// v[:, j] += d_j x
    template <class Some>
    void spread(const Some& rows, const typename Some::Row& row, const LightWeights& v, Scratch& t) const {
        float* d = t.light.data();
        for (Index j = 0; j < stride; ++j) d[j] = float(t.d[std::size_t(j)]);
        for (Index j = stride; j < n_scores(v); ++j) d[j] = 0;
        spread_classes(rows, row, v, d);
    }

    void curvatures(Index i, const double* s, double sigma, Scratch& t) {
        double* h = t.h.data();
        if (s) {
            score_classes(rows, t.row, table(s), h, [](double value) { return value * value; });
        } else {
            measure(i, s);
            std::fill(h, h + stride, norms[i]);
        }
        for (Index j = 0; j < stride; ++j) h[j] = std::max(sigma * h[j], 1e-290);  // a row of zeros: next to nothing
    }

    /// Maximises sum_j g_j d_j - h_j/2 d_j^2 over sum_j d_j = 0, d_j >= -mass_j. Classes that fall below their bound
    /// are clipped there for good; what they give up, M, goes to the others:
    ///     d_j = (g_j - mean g) / h_j + M / (h_j sum_k 1/h_k),     the mean weighted by 1/h
    /// With tiny rows a rounding error of the mean, divided by h, would be larger than the whole mass: so gradients
    /// are counted from that of the class with the smallest h, where the error would count most.
    void share(Scratch& t) const {
        const double *g = t.g.data(), *h = t.h.data(), *mass = t.mass.data();
        Index* free = t.free.data();
        double given = 0;
        Index n = classes;
        for (Index j = 0; j < n; ++j) free[j] = j;
        for (Index before = n + 1; n < before;) {
            before = n;
            const Index first = *std::min_element(
                free, free + n, [&](Index j, Index k) { return h[j] < h[k] || (h[j] == h[k] && g[j] > g[k]); });
            double sum = 0, weight = 0;
            for (Index q = 0; q < n; ++q) {
                const double part = h[first] / h[free[q]];
                sum += (g[free[q]] - g[first]) * part;
                weight += part;
            }
            const double mean = sum / weight, gift = given / weight;
            n = 0;
            for (Index q = 0; q < before; ++q) {
                const Index j = free[q];
                t.d[j] = (g[j] - g[first] - mean) / h[j] + gift * (h[first] / h[j]);
                if (t.d[j] < -mass[j]) {
                    t.d[j] = -mass[j];
                    given += mass[j];
                } else {
                    free[n++] = j;
                }
            }
        }
    }

    /// v[:, j] += d_j S x for every class.
    template <class Some>
    void spread(const Some& rows, const typename Some::Row& row, const Weights& t, Scratch& scratch) const {
        const double* d = scratch.d.data();
        if (t.s || t.m) {
            each_entry(rows, row, [&](Index k, double x) {
                const Index at = k * stride;
                double *v = t.v + at, *w = t.w + at;
                if (const double* s = t.s ? t.s + at : nullptr) {
#pragma omp simd
                    for (Index j = 0; j < stride; ++j) v[j] += x * d[j] * s[j];
                } else {
#pragma omp simd
                    for (Index j = 0; j < stride; ++j) v[j] += x * d[j];
                }
                if (!t.m) return;
                const double *m = t.m + at, *lo = t.lo + at, *hi = t.hi + at;
#pragma omp simd
                for (Index j = 0; j < stride; ++j) w[j] = std::min(std::max(m[j] + v[j], lo[j]), hi[j]);
            });
            return;
        }
        const Lane none{};
        Lane moves{};
        for (Index j = 0; j < stride; j += kLane) moves += load(d + j) != none ? none + 1.0 : none;
        const double n = sum(moves);
        if (n == 0) return;
        double* v = t.v;
        std::array<Index, 4> moved{};
        if (n <= 3)
            for (Index j = 0, m = 0; j < classes; ++j) {  // without a branch that nobody could foretell
                moved[std::min<Index>(m, 3)] = j;
                m += d[j] != 0;
            }
        const auto few = [&]<int N>(std::integral_constant<int, N>) {
            std::array<double, N> by;
            for (int m = 0; m < N; ++m) by[m] = d[moved[m]];
            each_entry(rows, row, [v, moved, by, stride = stride](Index k, double x) {
                for (int m = 0; m < N; ++m) v[k * stride + moved[m]] += x * by[m];
            });
        };
        if (n == 2) return few(std::integral_constant<int, 2>());
        if (n == 3) return few(std::integral_constant<int, 3>());
        in_lanes(stride, kLane, [&]<int N>(Index from, std::integral_constant<int, N>) {
            Lane by[N];
            for (int j = 0; j < N; ++j) by[j] = load(d + from + j * kLane);
            each_entry(rows, row, [&by, v = v + from, stride = stride](Index k, double x) {
                double* at = v + k * stride;
                for (int j = 0; j < N; ++j) store(at + j * kLane, load(at + j * kLane) + x * by[j]);
            });
        });
    }

    static constexpr double kFar = -1e300;  // where no class is
    static constexpr double kLight = 1e30;  // that fits into a float, and one over it, with room to spare
    std::optional<bool> light_;             // once that is known
    std::vector<double> table_;             // the losses, padded
};

}  // namespace dualsvm
