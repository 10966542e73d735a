#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace dualsvm {

/// SplitMix64: small, fast, and the same numbers on every machine.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    /// A number below n, for n < 2^32, uniform to within 2^-32.
    std::uint32_t below(std::uint32_t n) { return std::uint32_t(((next() >> 32) * n) >> 32); }

    /// A number from 0 up to 1.
    double uniform() { return double(next() >> 11) * 0x1p-53; }

    void shuffle(std::vector<std::uint32_t>& items) {
        for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(std::uint32_t(i))]);
    }

private:
    std::uint64_t state_;
};

}  // namespace dualsvm
