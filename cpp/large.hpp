#pragma once

#include <cstddef>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace dualsvm {

/// Memory for arrays that may be large. On Linux, megabytes are asked for in huge pages: to be given a page for the
/// first time takes about as long as to fill it, and there are 512 times fewer of those.
template <class T>
struct Pages {
    using value_type = T;
    static constexpr std::size_t kPage = 2 << 20;

    Pages() = default;
    template <class U>
    Pages(const Pages<U>&) {}

    T* allocate(std::size_t n) {
        const std::size_t bytes = n * sizeof(T);
        if (bytes < kPage) return static_cast<T*>(::operator new(bytes));
        void* const memory = ::operator new(bytes, std::align_val_t(kPage));
#if defined(__linux__)
        madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: without it the pages are small
#endif
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t n) {
        if (n * sizeof(T) < kPage) return ::operator delete(memory);
        ::operator delete(memory, std::align_val_t(kPage));
    }
    friend bool operator==(const Pages&, const Pages&) { return true; }
};

template <class T>
using Large = std::vector<T, Pages<T>>;

}  // namespace dualsvm
