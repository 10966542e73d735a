#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#if !defined(__cpp_lib_to_chars)
#include <locale>
#include <sstream>
#include <string>
#endif

// Decimal numbers from text, correctly rounded.

namespace dualsvm {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

/// What became of a number: read, none there, or one that no double comes near.
enum class Reading : int { number, none, overflow };

/// 10^0 .. 10^22, which are exact.
inline constexpr double kTens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/// 10^0 .. 10^8, to append digits.
inline constexpr std::uint64_t kShift[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/// How many of the next eight bytes are digits before another byte comes, and the number that they make. Without a
/// loop, whose end nobody could foretell: the digits are moved to the end of the word, behind zeros, and summed in
/// pairs, in fours and in eights.
inline int leading_digits(const char* p, std::uint64_t& number) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    std::uint64_t bytes;
    std::memcpy(&bytes, p, sizeof bytes);
    bytes ^= 0x3030303030303030u;
    const std::uint64_t others = ((bytes + 0x7676767676767676u) | bytes) & 0x8080808080808080u;
    const int n = others == 0 ? 8 : std::countr_zero(others) >> 3;
    if (n == 0) return number = 0, 0;
    bytes <<= 64 - 8 * n;
    bytes = bytes * 10 + (bytes >> 8);
    const std::uint64_t mask = 0x000000ff000000ffu;
    number = ((bytes & mask) * 0x000f424000000064u + ((bytes >> 16) & mask) * 0x0000271000000001u) >> 32;
    return n;
#else
    int n = 0;
    for (number = 0; n < 8 && is_digit(p[n]); ++n) number = 10 * number + std::uint64_t(p[n] - '0');
    return n;
#endif
}

/// Appends all digits that follow to m, and moves `p` behind them. More than 19 make m wrap around.
inline void append_digits(const char*& p, std::uint64_t& m) {
    std::uint64_t more;
    for (int n = 8; n == 8; p += n) {
        n = leading_digits(p, more);
        m = m * kShift[n] + more;
    }
}

/// The double nearest to the digits from `first` to `last`, whose magnitude is about 10^magnitude.
inline Reading nearest(const char* first, const char* last, std::int64_t magnitude, double& x) {
    bool beyond = false;
#if defined(__cpp_lib_to_chars)
    beyond = std::from_chars(first, last, x).ec == std::errc::result_out_of_range;
#else
    std::istringstream text(std::string(first, last));
    text.imbue(std::locale::classic());
    beyond = !(text >> x);
#endif
    if (!beyond) return Reading::number;
    x = 0;
    return magnitude > 0 ? Reading::overflow : Reading::number;
}

/// Reads a number as in -12.5e-3 and moves `p` behind it, or leaves it where the number should begin. Eight bytes
/// behind the text must be readable, and a byte that is no digit must follow it.
inline Reading read_number(const char*& p, double& x) {
    const char* at = p;
    const bool negative = *at == '-';
    at += negative || *at == '+';
    const char* const first = at;
    std::uint64_t m = 0;
    if (is_digit(*at) && !is_digit(at[1]))
        m = std::uint64_t(*at++ - '0');
    else
        append_digits(at, m);
    std::int64_t digits = at - first, exponent = 0;
    if (*at == '.') {
        const char* const point = ++at;
        append_digits(at, m);
        exponent = point - at;
        digits -= exponent;
    }
    if (digits == 0) return Reading::none;
    if ((*at | 0x20) == 'e') {
        const char* power = at + 1;
        const bool falling = *power == '-';
        power += falling || *power == '+';
        if (!is_digit(*power)) return Reading::none;
        std::int64_t e = 0;
        while (is_digit(*power)) e = e < 100000 ? 10 * e + (*power - '0') : e, ++power;
        exponent += falling ? -e : e;
        at = power;
    }
    // m has wrapped around only if there are more than 19 digits; products and quotients of exact numbers round once
    if (digits <= 19 && m <= (std::uint64_t(1) << 53) && exponent >= -22 && exponent <= 22) {
        x = exponent < 0 ? double(m) / kTens[-exponent] : double(m) * kTens[exponent];
    } else {
        for (const char* zero = first; *zero == '0' || *zero == '.'; ++zero) digits -= *zero == '0';
        const auto reading = nearest(first, at, digits + exponent, x);
        if (reading != Reading::number) return reading;
    }
    if (negative) x = -x;
    p = at;
    return Reading::number;
}

}  // namespace dualsvm
