#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "random.hpp"

// In which order examples are visited: a random one, but such that rows lie near rows that have just been read.

namespace dualsvm {

constexpr std::size_t kStream = 8;      // neighbours in a stream
constexpr std::size_t kStreams = 128;   // streams that are read side by side
constexpr double kScattered = 4 << 20;  // bytes of their rows: fewer are in the caches soon

class Order {
public:
    /// Mixes examples whose rows take so many bytes each. Where those are many, they become streams of neighbours,
    /// which follow in a random order and begin at other places each time, and of which some are read side by side,
    /// an example of each in turn: as good as a random order, as nobody is visited right after a neighbour, but
    /// memory is read in the order in which it lies. Every stream begins with any of its examples, as examples may
    /// alternate.
    void mix(std::vector<std::uint32_t>& examples, double bytes, Random& random) {
        const std::size_t n = examples.size();
        if (n < kStream * kStreams || !(double(n) * bytes >= kScattered)) return random.shuffle(examples);
        sort(examples);
        const std::size_t shift = random.below(kStream), streams = (n + shift) / kStream + 1;
        begin_.resize(streams);
        for (std::size_t s = 0; s < streams; ++s) begin_[s] = std::uint32_t(s * kStream) + random.below(kStream);
        random.shuffle(begin_);
        room_.resize(n);
        std::size_t p = 0;
        for (std::size_t first = 0; first < streams; first += kStreams)
            for (std::uint32_t k = 0; k < kStream; ++k)
                for (std::size_t s = first; s < std::min(first + kStreams, streams); ++s) {
                    const std::size_t q = begin_[s] / kStream * kStream + (begin_[s] + k) % kStream;
                    if (q >= shift && q - shift < n) room_[p++] = examples[q - shift];
                }
        examples.swap(room_);
    }

private:
    /// Sorts by the lowest digits first.
    void sort(std::vector<std::uint32_t>& keys) {
        constexpr int bits = 11;
        constexpr std::uint32_t last = (1u << bits) - 1;
        if (std::is_sorted(keys.begin(), keys.end())) return;
        const std::uint64_t largest = *std::max_element(keys.begin(), keys.end());
        room_.resize(keys.size());
        for (int shift = 0; largest >> shift; shift += bits) {
            std::array<std::uint32_t, last + 1> place{};
            for (const std::uint32_t key : keys) ++place[(key >> shift) & last];
            std::uint32_t sum = 0;
            for (std::uint32_t& count : place) sum += std::exchange(count, sum);
            for (const std::uint32_t key : keys) room_[place[(key >> shift) & last]++] = key;
            keys.swap(room_);
        }
    }

    std::vector<std::uint32_t> begin_, room_;
};

}  // namespace dualsvm
