#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace dualsvm {

/// Threads that wait for shares of the work. Between two calls they are ready for a while, as it takes longer to wake
/// a thread than to look at some thousand examples, and then sleep.
class Hands {
public:
    Hands() = default;
    Hands(const Hands&) = delete;
    ~Hands() {
        call_ = nullptr;
        begin();
        for (std::thread& hand : hands_) hand.join();
    }

    std::size_t size() const { return hands_.size(); }

    /// Has so many of them, if the system gives that many.
    void hire(std::size_t n) {
        try {
            while (hands_.size() < n)
                hands_.emplace_back([this, t = hands_.size() + 1, seen = turn_.load()] { serve(t, seen); });
        } catch (const std::exception&) {  // then those that there are do it all
        }
    }

    /// Whether they are to sleep as soon as they have nothing to do.
    void rest(bool now) { resting_.store(now, std::memory_order_relaxed); }

    /// Runs f(0) here and f(1) .. f(n-1) on n - 1 of them.
    template <class F>
    void run(std::size_t n, F& f) noexcept {
        call_ = [](void* what, std::size_t t) { (*static_cast<F*>(what))(t); };
        what_ = &f;
        shares_ = n;
        left_.store(hands_.size(), std::memory_order_relaxed);
        begin();
        f(0);
        while (left_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
    }

private:
    static constexpr std::chrono::milliseconds kReady{20};

    void begin() {
        turn_.fetch_add(1, std::memory_order_release);
        turn_.notify_all();
    }

    void serve(std::size_t t, std::uint32_t seen) {
        for (;; ++seen) {
            const auto tired = std::chrono::steady_clock::now() + kReady;
            for (std::uint32_t k = 1; turn_.load(std::memory_order_acquire) == seen; ++k) {
                if (resting_.load(std::memory_order_relaxed)) turn_.wait(seen);
                if (k % 1024 == 0) {  // others may need the core
                    std::this_thread::yield();
                    if (std::chrono::steady_clock::now() > tired) turn_.wait(seen);
                }
            }
            if (!call_) return;
            if (t < shares_) call_(what_, t);
            left_.fetch_sub(1, std::memory_order_release);
        }
    }

    std::vector<std::thread> hands_;
    std::atomic<std::uint32_t> turn_{0};          // calls so far, and the end
    std::atomic<std::size_t> left_{0};            // hands who are not done with it
    std::atomic<bool> resting_{false};            // whether nothing is to come for long
    void (*call_)(void*, std::size_t) = nullptr;  // null: nothing is to come at all
    void* what_ = nullptr;
    std::size_t shares_ = 0;
};

/// Threads that nobody needs now: to start and to end one takes as long as a pass over some thousand examples. They
/// are never ended with the process, but forgotten.
class Idle {
public:
    /// Some of those that there are, `n` at most, or none yet.
    static std::unique_ptr<Hands> take(std::size_t n) {
        Idle& idle = all();
        if (const std::unique_lock guard(idle.lock_, std::try_to_lock); guard) {  // held for ever in a forked process
            idle.part();
            const auto found = std::find_if(idle.hands_.begin(), idle.hands_.end(),
                                            [n](const auto& hands) { return hands->size() <= n; });
            if (found != idle.hands_.end()) {
                std::unique_ptr<Hands> hands = std::move(*found);
                idle.hands_.erase(found);
                hands->rest(false);
                return hands;
            }
        }
        return std::make_unique<Hands>();
    }
    static void give(std::unique_ptr<Hands> hands) {
        Idle& idle = all();
        const std::unique_lock guard(idle.lock_, std::try_to_lock);
        if (!guard || hands->size() == 0 || hands->size() >= std::max(2u, std::thread::hardware_concurrency()))
            return;
        idle.part();
        hands->rest(true);
        idle.hands_.push_back(std::move(hands));
        if (idle.hands_.size() > kMost) idle.hands_.erase(idle.hands_.begin());  // the oldest
    }

private:
    static constexpr std::size_t kMost = 4;

    Idle() { hands_.reserve(kMost + 1); }
    static Idle& all() {
        static Idle* const idle = new Idle;
        return *idle;
    }

    /// Forgets those of another process: one that was forked has none of them.
    void part() {
#if defined(__unix__) || defined(__APPLE__)
        const pid_t now = getpid();
        if (now != process_)
            for (auto& hands : hands_) static_cast<void>(hands.release());
        if (now != process_) hands_.clear();
        process_ = now;
#endif
    }

    std::mutex lock_;
    std::vector<std::unique_ptr<Hands>> hands_;
#if defined(__unix__) || defined(__APPLE__)
    pid_t process_ = 0;
#endif
};

/// Threads for shares of the work, found when there is first something to share.
class Crew {
public:
    explicit Crew(int threads) : threads_(threads > 1 ? std::size_t(threads) : 1) {}
    Crew(const Crew&) = delete;
    ~Crew() {
        if (hands_) Idle::give(std::move(hands_));
    }

    std::size_t threads() const { return threads_; }

    /// Whether the system gives that many threads, which then run together.
    bool gather(std::size_t n) {
        if (n < 2) return true;
        if (!hands_) hands_ = Idle::take(threads_ - 1);
        hands_->hire(n - 1);
        return hands_->size() + 1 >= n;
    }

    /// Runs f(0) .. f(n-1), each on a thread of its own where the system gives one. f must not throw.
    template <class F>
    void run(std::size_t n, F&& f) noexcept {
        const std::size_t together = gather(n) ? n : hands_->size() + 1;
        if (together > 1)
            hands_->run(together, f);
        else
            f(0);
        for (std::size_t t = together; t < n; ++t) f(t);
    }

private:
    std::size_t threads_;
    std::unique_ptr<Hands> hands_;
};

}  // namespace dualsvm
