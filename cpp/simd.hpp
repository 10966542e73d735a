#pragma once

#include <cstdlib>

// The hot loops exist twice in the library, once for the plainest machine and once, on x86-64, for AVX2
// with FMA; `wide()` picks at run time. A function marked DUALSVM_WIDE has all that it calls inlined, so
// that the shared loop body is compiled again with the wide instructions.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define DUALSVM_WIDE __attribute__((target("avx2,fma"), flatten))
#else
#define DUALSVM_WIDE
#endif

namespace dualsvm {

/// Four doubles in a vector register, or in two where registers are narrower. GCC and Clang understand both.
using Lane = double __attribute__((vector_size(32), aligned(8), may_alias));
using FloatLane = float __attribute__((vector_size(16), aligned(4), may_alias));
constexpr int kLane = 4;

inline Lane& lane(double* p) { return *reinterpret_cast<Lane*>(p); }
inline Lane load(const double* p) { return *reinterpret_cast<const Lane*>(p); }
inline Lane load(const float* p) { return __builtin_convertvector(*reinterpret_cast<const FloatLane*>(p), Lane); }

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

}  // namespace dualsvm
