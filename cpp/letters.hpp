#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <thread>

#include "large.hpp"
#include "rows.hpp"

namespace dualsvm {

/// What threads tell one another: from each of them the last few letters, which begin with their turn.
class Letters {
public:
    Letters(std::size_t senders, std::size_t bytes)
        : senders_(senders), size_((kHead + bytes + kLine - 1) / kLine * kLine), memory_(senders * kKept * size_) {
        for (std::size_t k = 0; k < senders * kKept; ++k) new (&memory_[k * size_]) Turn(0);
    }

    std::size_t senders() const { return senders_; }
    template <class Number>
    Number* at(std::size_t sender, std::uint64_t turn) {
        return reinterpret_cast<Number*>(letter(sender, turn) + kHead);
    }
    void send(std::size_t sender, std::uint64_t turn) {
        head(sender, turn).store(turn + 1, std::memory_order_release);
    }
    void await(std::size_t sender, std::uint64_t turn) {
        for (std::uint32_t k = 1; head(sender, turn).load(std::memory_order_acquire) <= turn; ++k)
            if (k % 512 == 0) std::this_thread::yield();  // others may need the core
    }
    /// Asks for what others have sent, and for the paper of the letter after the next: else who writes waits until
    /// the others have let go of every line of it.
    DUALSVM_AHEAD void ahead(std::size_t own, std::uint64_t turn) {
        for (std::size_t k = 0; k < senders_; ++k)
            for (std::size_t b = 0; k != own && b < size_; b += kLine) __builtin_prefetch(letter(k, turn) + b);
        for (std::size_t b = 0; b < size_; b += kLine) __builtin_prefetch(letter(own, turn + 2) + b, 1);
    }

private:
    using Turn = std::atomic<std::uint64_t>;
    // Who sends one has read those of two turns before, and so has nobody left to read those of four turns before. As
    // many again are kept, so that paper can be asked for early.
    static constexpr std::size_t kKept = 8, kHead = sizeof(Turn), kLine = 64;

    std::byte* letter(std::size_t sender, std::uint64_t turn) {
        return memory_.data() + (sender * kKept + turn % kKept) * size_;
    }
    Turn& head(std::size_t sender, std::uint64_t turn) { return *reinterpret_cast<Turn*>(letter(sender, turn)); }

    std::size_t senders_, size_;
    Large<std::byte> memory_;
};

}  // namespace dualsvm
