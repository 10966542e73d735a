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
    static constexpr std::size_t kPage = 2 << 20, kLine = 64;

    Pages() = default;
    template <class U>
    Pages(const Pages<U>&) {}

    T* allocate(std::size_t n) {
        const std::size_t bytes = n * sizeof(T);
        void* const memory = ::operator new(bytes, alignment(bytes));
#if defined(__linux__)
        if (bytes >= kPage) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: without it the pages are small
#endif
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t n) { ::operator delete(memory, alignment(n * sizeof(T))); }
    friend bool operator==(const Pages&, const Pages&) { return true; }

private:
    static std::align_val_t alignment(std::size_t bytes) { return std::align_val_t(bytes < kPage ? kLine : kPage); }
};

template <class T>
using Large = std::vector<T, Pages<T>>;

/// The same for numbers that are not 0 at first, but whatever there was: where all of them are written in any case,
/// and maybe by threads, which then are also those that are given the pages.
template <class T>
struct Unfilled : Pages<T> {
    template <class U>
    struct rebind {
        using other = Unfilled<U>;
    };
    Unfilled() = default;
    template <class U>
    Unfilled(const Unfilled<U>&) {}

    void construct(T* at) { ::new (at) T; }
    void construct(T* at, const T& value) { ::new (at) T(value); }
};

template <class T>
using Raw = std::vector<T, Unfilled<T>>;

}  // namespace dualsvm
