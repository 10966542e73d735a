#include <memory>

#include "chain.hpp"

// Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher, 2013), as plainly as the paper states
// it, on the same compiled search as ours; a peer for benchmarks, built on first use. It minimises
//
//     lambda / 2 |w|^2 + 1/n sum_i max_y (loss_i(y) - w.psi_i(y)),      psi_i(y) = phi(x_i, y_i) - phi(x_i, y)
//
// and holds w = sum_i w_i and l = sum_i l_i, one dense w_i and one l_i for every example. A step asks for the worst y
// of example i, w_s = psi_i(y) / (lambda n) and l_s = loss_i(y) / n, and goes the best part of the way there:
//
//     gamma = clip((lambda (w_i - w_s).w - l_i + l_s) / (lambda |w_i - w_s|^2), 0, 1)
//     w_i += gamma (w_s - w_i),   w += gamma (w_s - w_i),   l likewise;        dual = l - lambda / 2 |w|^2
//
// The averages weigh step k by k, so that those after k steps are  k / (k + 2) of the last and 2 / (k + 2) of w and
// l.

namespace {

using dualsvm::Index;

class FrankWolfe {
public:
    FrankWolfe(std::unique_ptr<dualsvm::Decoder> oracle, double lambda, bool averaged)
        : oracle_(std::move(oracle)),
          lambda_(lambda),
          averaged_(averaged),
          n_(oracle_->size()),
          d_(oracle_->n_weights()),
          w_(std::size_t(d_ + dualsvm::kLane)),
          mean_(averaged ? w_.size() : 0),
          own_(std::size_t(n_ * d_)),
          toward_(std::size_t(d_)),
          l_(std::size_t(n_)) {}

    void pass(const Index* order) {
        for (Index k = 0; k < n_; ++k) step(order[k]);
    }

    /// The bounds at w or, where there are averages, at those; and the weights.
    void certify(double* lower, double* upper, double* weights) const {
        const std::vector<double>& w = averaged_ ? mean_ : w_;
        double squares = 0, losses = 0;
        for (Index k = 0; k < d_; ++k) squares += w[k] * w[k];
        for (Index i = 0; i < n_; ++i) losses += std::max(0.0, oracle_->find(i, w.data()).value);
        *lower = (averaged_ ? mean_l_ : sum_l_) - 0.5 * lambda_ * squares;
        *upper = 0.5 * lambda_ * squares + losses / double(n_);
        std::copy_n(w.data(), d_, weights);
    }

private:
    void step(Index i) {
        const dualsvm::Finding found = oracle_->find(i, w_.data());
        const double scale = 1.0 / (lambda_ * double(n_)), l = found.l / double(n_);
        double* own = own_.data() + i * d_;
        double* toward = toward_.data();
        double* w = w_.data();
#pragma omp simd
        for (Index k = 0; k < d_; ++k) toward[k] = -own[k];
        for (const dualsvm::Entry& entry : found.x) toward[entry.column] += scale * entry.x;
        double along = 0, length = 0;
#pragma omp simd reduction(+ : along, length)
        for (Index k = 0; k < d_; ++k) {
            along += toward[k] * w[k];
            length += toward[k] * toward[k];
        }
        const double rise = l - l_[i] - lambda_ * along;
        const double gamma = length > 0 ? std::clamp(rise / (lambda_ * length), 0.0, 1.0) : rise > 0 ? 1.0 : 0.0;
#pragma omp simd
        for (Index k = 0; k < d_; ++k) {
            own[k] += gamma * toward[k];
            w[k] += gamma * toward[k];
        }
        sum_l_ += gamma * (l - l_[i]);
        l_[i] += gamma * (l - l_[i]);
        if (averaged_) {
            const double part = 2.0 / (double(steps_++) + 2.0);
            double* mean = mean_.data();
#pragma omp simd
            for (Index k = 0; k < d_; ++k) mean[k] += part * (w[k] - mean[k]);
            mean_l_ += part * (sum_l_ - mean_l_);
        }
    }

    std::unique_ptr<dualsvm::Decoder> oracle_;
    double lambda_;
    bool averaged_;
    Index n_, d_;
    std::vector<double> w_, mean_, own_, toward_, l_;
    double sum_l_ = 0, mean_l_ = 0;
    Index steps_ = 0;
};

}  // namespace

extern "C" {

/// x: positions x width, of all sequences; those of sequence i are start[i] .. start[i+1].
void* bcfw_open(const double* x, Index positions, Index width, const Index* start, Index n, const std::int32_t* label,
                const double* cost, Index L, double lambda, int averaged) {
    using Rows = dualsvm::Dense<double>;
    const Rows rows{x, positions, width, 0.0};
    auto oracle = std::make_unique<dualsvm::Chains<Rows>>(rows, start, n, label, cost, L, true, true);
    return new FrankWolfe(std::move(oracle), lambda, averaged != 0);
}

void bcfw_pass(void* self, const Index* order) { static_cast<FrankWolfe*>(self)->pass(order); }

void bcfw_certify(const void* self, double* lower, double* upper, double* weights) {
    static_cast<const FrankWolfe*>(self)->certify(lower, upper, weights);
}

void bcfw_close(void* self) { delete static_cast<FrankWolfe*>(self); }
}
