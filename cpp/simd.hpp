#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

// The hot loops exist twice in the library, once for the plainest machine and once, on x86-64, for AVX2
// with FMA; `wide()` picks at run time. A function marked DUALSVM_WIDE has all that it calls inlined, so
// that the shared loop body is compiled again with the wide instructions.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define DUALSVM_WIDE __attribute__((target("avx2,fma,prfchw"), flatten))
#else
#define DUALSVM_WIDE
#endif

namespace dualsvm {

/// Four doubles in a vector register, or in two where registers are narrower. GCC and Clang understand both. The
/// functions must be inlined: how a Lane is returned depends on the instructions that the caller may use.
using Lane = double __attribute__((vector_size(32)));
constexpr int kLane = 4;

/// 32 bytes of numbers of either type.
template <class T>
struct TileOf;
template <>
struct TileOf<float> {
    typedef float type __attribute__((vector_size(32)));
};
template <>
struct TileOf<double> {
    typedef double type __attribute__((vector_size(32)));
};
template <class T>
constexpr int kTile = int(sizeof(typename TileOf<T>::type) / sizeof(T));

/// Four numbers of either type.
template <class T>
struct FourOf;
template <>
struct FourOf<float> {
    typedef float type __attribute__((vector_size(16)));
};
template <>
struct FourOf<double> {
    typedef Lane type;
};

template <class Vector, class T>
__attribute__((always_inline)) inline Vector vector(const T* p) {
    Vector x;
    std::memcpy(&x, p, sizeof x);
    return x;
}
__attribute__((always_inline)) inline Lane load(const double* p) { return vector<Lane>(p); }
template <class T>
__attribute__((always_inline)) inline typename TileOf<T>::type tile(const T* p) {
    return vector<typename TileOf<T>::type>(p);
}
template <class Vector, class T>
__attribute__((always_inline)) inline void put(T* p, Vector x) {
    std::memcpy(p, &x, sizeof x);
}
/// Entry by entry: of this GCC makes one instruction in the wide loops, but several of __builtin_convertvector, which
/// it takes apart before it knows how wide the registers are.
__attribute__((always_inline)) inline Lane load(const float* p) {
    return Lane{double(p[0]), double(p[1]), double(p[2]), double(p[3])};
}
__attribute__((always_inline)) inline void store(double* p, Lane x) { put(p, x); }
__attribute__((always_inline)) inline void store(float* p, Lane x) {
    put(p, FourOf<float>::type{float(x[0]), float(x[1]), float(x[2]), float(x[3])});
}

/// x[j] = value, for an x whose numbers come in whole vectors: who then reads such a vector would have to wait for a
/// store that is narrower than that.
__attribute__((always_inline)) inline void put_one(double* x, std::ptrdiff_t j, double value) {
    const std::ptrdiff_t first = j / kLane * kLane;
    const Lane places{0.0, 1.0, 2.0, 3.0};
    store(x + first, places == double(j - first) ? Lane{} + value : load(x + first));
}

__attribute__((always_inline)) inline double sum(Lane x) { return (x[0] + x[1]) + (x[2] + x[3]); }
__attribute__((always_inline)) inline double most(Lane x) {
    return std::max(std::max(x[0], x[1]), std::max(x[2], x[3]));
}

/// The sum of the squares of some numbers: several sums, as each addition has to wait for the last of its own.
template <class T>
__attribute__((always_inline)) inline double squares_loop(const T* x, std::ptrdiff_t n) {
    Lane a{}, b{}, c{}, d{};
    std::ptrdiff_t k = 0;
    for (; k + 4 * kLane <= n; k += 4 * kLane) {
        a += load(x + k) * load(x + k);
        b += load(x + k + kLane) * load(x + k + kLane);
        c += load(x + k + 2 * kLane) * load(x + k + 2 * kLane);
        d += load(x + k + 3 * kLane) * load(x + k + 3 * kLane);
    }
    for (; k + kLane <= n; k += kLane) a += load(x + k) * load(x + k);
    double rest = 0;
    for (; k < n; ++k) rest += double(x[k]) * double(x[k]);
    return sum((a + b) + (c + d)) + rest;
}

template <class T>
DUALSVM_WIDE double squares_wide(const T* x, std::ptrdiff_t n) {
    return squares_loop(x, n);
}

/// Whether the wide loops run here. DUALSVM_BASELINE=1 in the environment turns them off.
inline bool wide() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    static const bool yes = [] {
        const char* baseline = std::getenv("DUALSVM_BASELINE");
        return !(baseline && baseline[0] == '1') && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }();
    return yes;
#else
    return false;
#endif
}

template <class T>
double squares(const T* x, std::ptrdiff_t n) {
    return wide() ? squares_wide(x, n) : squares_loop(x, n);
}

}  // namespace dualsvm
