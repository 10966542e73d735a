#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

#include "crew.hpp"

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
    Crew crew(threads);
    crew.run(std::size_t(std::min<std::int64_t>(n, std::max(threads, 1))), [&](std::size_t) { work(); });
    if (failed) std::rethrow_exception(failed);
}

}  // namespace dualsvm
