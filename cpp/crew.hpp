#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

namespace dualsvm {

/// Threads for shares of the work, hired when there is first something to share. Between two calls they are ready for
/// a while, as it takes longer to wake a thread than to look at some thousand examples, and then sleep.
class Crew {
public:
    explicit Crew(int threads) : threads_(threads > 1 ? std::size_t(threads) : 1) {}
    Crew(const Crew&) = delete;
    ~Crew() {
        call_ = nullptr;
        begin();
        for (std::thread& hand : hands_) hand.join();
    }

    std::size_t threads() const { return threads_; }

    /// Whether the system gives that many threads, which then run together.
    bool gather(std::size_t n) {
        hire(n - 1);
        return hands_.size() + 1 >= n;
    }

    /// Runs f(0) .. f(n-1), each on a thread of its own where the system gives one. f must not throw.
    template <class F>
    void run(std::size_t n, F&& f) noexcept {
        if (n > 1) hire(n - 1);
        const std::size_t together = std::min(n, hands_.size() + 1);
        if (together > 1) {
            call_ = [](void* what, std::size_t t) { (*static_cast<std::remove_reference_t<F>*>(what))(t); };
            what_ = &f;
            shares_ = together;
            left_.store(hands_.size(), std::memory_order_relaxed);
            begin();
        }
        f(0);
        for (std::size_t t = together; t < n; ++t) f(t);
        if (together > 1)
            while (left_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
    }

private:
    static constexpr std::chrono::milliseconds kReady{20};

    void begin() {
        turn_.fetch_add(1, std::memory_order_release);
        turn_.notify_all();
    }

    void hire(std::size_t n) {
        try {
            while (hands_.size() < n)
                hands_.emplace_back([this, t = hands_.size() + 1, seen = turn_.load()] { serve(t, seen); });
        } catch (const std::exception&) {  // then those that there are do it all
        }
    }

    void serve(std::size_t t, std::uint32_t seen) {
        for (;; ++seen) {
            const auto tired = std::chrono::steady_clock::now() + kReady;
            for (std::uint32_t k = 1; turn_.load(std::memory_order_acquire) == seen; ++k)
                if (k % 1024 == 0) {  // others may need the core
                    std::this_thread::yield();
                    if (std::chrono::steady_clock::now() > tired) turn_.wait(seen);
                }
            if (!call_) return;
            if (t < shares_) call_(what_, t);
            left_.fetch_sub(1, std::memory_order_release);
        }
    }

    std::size_t threads_;
    std::vector<std::thread> hands_;
    std::atomic<std::uint32_t> turn_{0};          // calls that were shared so far, and the end
    std::atomic<std::size_t> left_{0};            // hands who are not done with it
    void (*call_)(void*, std::size_t) = nullptr;  // null: nothing is to come
    void* what_ = nullptr;
    std::size_t shares_ = 0;
};

}  // namespace dualsvm
