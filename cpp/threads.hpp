#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace dualsvm {

/// Calls f(k) for every k below n, in as many threads as the system gives, up to a number. What comes out must not
/// depend on which thread calls.
template <class F>
void in_threads(std::int64_t n, int threads, const F& f) {
    std::atomic<std::int64_t> next{0};
    std::exception_ptr failed;
    std::mutex lock;
    const auto work = [&] {
        try {
            for (std::int64_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < n;) f(k);
        } catch (...) {
            next = n;
            const std::lock_guard guard(lock);
            failed = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    try {
        for (int t = 1; t < threads && t < n; ++t) others.emplace_back(work);
    } catch (const std::exception&) {  // then those that there are do it all
    }
    work();
    for (std::thread& other : others) other.join();
    if (failed) std::rethrow_exception(failed);
}

}  // namespace dualsvm
