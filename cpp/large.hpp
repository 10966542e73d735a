#pragma once

#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace dualsvm {

/// Huge pages that nobody needs now. To be given a page for the first time takes about as long as to fill it, and
/// several times as long where other threads run, so that some are kept for whoever next asks for as many; the system
/// may have what is in them back meanwhile.
class Spare {
public:
    static constexpr std::size_t kPage = 2 << 20;

    static void* take(std::size_t bytes) {
        bytes = whole(bytes);
        Spare& spare = all();
        if (const std::unique_lock guard(spare.lock_, std::try_to_lock); guard)  // held for ever in a forked process
            for (std::size_t k = spare.blocks_.size(); k-- > 0;)
                if (spare.blocks_[k].bytes == bytes) return spare.remove(k);
        void* const memory = ::operator new(bytes, std::align_val_t(kPage));
#if defined(__linux__)
        madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: without it the pages are small
#endif
        return memory;
    }

    static void give(void* memory, std::size_t bytes) noexcept {
        if (bytes = whole(bytes); !keep(memory, bytes)) release(memory);
    }

    /// Keeps none of them any more.
    static void clear() {
        Spare& spare = all();
        if (const std::unique_lock guard(spare.lock_, std::try_to_lock); guard)
            while (!spare.blocks_.empty()) release(spare.remove(0));
    }

private:
    static constexpr std::size_t kMost = 64 << 20;  // bytes

    struct Block {
        void* memory;
        std::size_t bytes;
    };

    static std::size_t whole(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
    static void release(void* memory) noexcept { ::operator delete(memory, std::align_val_t(kPage)); }
    static Spare& all() {
        static Spare* const spare = new Spare;  // never deleted, as others may give back after that
        return *spare;
    }

    static bool keep([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__) && defined(MADV_FREE) && !defined(__SANITIZE_ADDRESS__)
        Spare& spare = all();
        const std::unique_lock guard(spare.lock_, std::try_to_lock);
        if (!guard || bytes > kMost || madvise(memory, bytes, MADV_FREE) != 0) return false;
        try {
            spare.blocks_.push_back({memory, bytes});
        } catch (const std::bad_alloc&) {
            return false;
        }
        spare.held_ += bytes;
        while (spare.held_ > kMost) release(spare.remove(0));  // the oldest
        return true;
#else
        return false;
#endif
    }
    void* remove(std::size_t k) {
        const Block block = blocks_[k];
        blocks_.erase(blocks_.begin() + std::ptrdiff_t(k));
        held_ -= block.bytes;
        return block.memory;
    }

    std::mutex lock_;
    std::vector<Block> blocks_;
    std::size_t held_ = 0;
};

/// Memory for arrays that may be large: on Linux, a megabyte and more are asked for in huge pages.
template <class T>
struct Pages {
    using value_type = T;
    static constexpr std::size_t kLarge = 1 << 20, kLine = 64;  // bytes

    Pages() = default;
    template <class U>
    Pages(const Pages<U>&) {}

    T* allocate(std::size_t n) {
        const std::size_t bytes = n * sizeof(T);
        void* const memory = bytes < kLarge ? ::operator new(bytes, std::align_val_t(kLine)) : Spare::take(bytes);
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t n) noexcept {
        const std::size_t bytes = n * sizeof(T);
        bytes < kLarge ? ::operator delete(memory, std::align_val_t(kLine)) : Spare::give(memory, bytes);
    }
    friend bool operator==(const Pages&, const Pages&) { return true; }
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
