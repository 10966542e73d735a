#pragma once

#include <atomic>
#include <thread>

namespace dualsvm {

/// Where threads wait for one another, many times in a millisecond: waking a thread that sleeps would take longer
/// than what it then has to do, so they do not fall asleep, but give way to others where the wait is long.
class Meeting {
public:
    explicit Meeting(int threads) : threads_(threads) {}

    void wait() {
        const unsigned round = round_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        for (int turns = 0; round_.load(std::memory_order_acquire) == round; ++turns)
            if (turns > kPatience) std::this_thread::yield();
    }

private:
    static constexpr int kPatience = 2000;

    const int threads_;
    std::atomic<int> arrived_{0};
    std::atomic<unsigned> round_{0};
};

}  // namespace dualsvm
