#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "number.hpp"
#include "threads.hpp"

// Lines of svmlight text:  target [qid:integer] {index:value} [# comment]  with increasing indices.

namespace dualsvm::svmlight {

/// What is wrong with a line. Python knows the words.
enum class Fault : int {
    none = 0,
    target,      // no number at the beginning
    token,       // neither index:value nor a comment
    value,       // no number behind the colon
    not_finite,  // a number beyond 1e150, or beyond what float32 holds
    zero,        // index 0, though indices begin at 1
    width,       // an index beyond the declared width
    index,       // an index of more than 18 digits
    repeated,    // the index before once more
    order,       // an index smaller than the one before
    query,       // no integer behind qid:
    no_query,    // no qid, though other lines have one
    new_query,   // a qid, though other lines have none
};

enum class Queries : int { unknown = 0, absent, present };

struct Options {
    std::int64_t base;   // of the indices: 0 or 1
    std::int64_t width;  // no index may reach base + width
    bool skip;           // bad lines are left out and counted; else the first one ends the reading
    Queries queries;     // whether lines must have a qid
};

/// The first bad line: where it begins, where in it the fault was met, and how many lines came before.
struct Bad {
    Fault fault = Fault::none;
    std::int64_t begin = 0, at = 0, line = 0;
};

/// What a part of the text may write to, and what it has written.
template <class T>
struct Part {
    const char *begin, *end;
    T* value;
    std::int32_t* column;
    std::int32_t* stop;  // of each row, counted from the first entry of the part
    double* target;
    std::int64_t* query;
    std::int64_t* where;  // the line of each row, counted from the first byte of the text
    std::int64_t rows = 0, entries = 0, lines = 0, bad_lines = 0;
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = -1;  // index
    Queries queries = Queries::unknown;
    Bad bad;
};

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Whether nothing but a comment may follow.
inline bool is_end(const char* p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }

inline bool is_between(const char* p) { return is_blank(*p) || is_end(p); }

template <class T>
bool fits(double x) {
    return std::abs(x) <= (sizeof(T) == sizeof(float) ? double(std::numeric_limits<float>::max()) : 1e150);
}

/// An integer of at most 18 digits; false, with `p` where it was, if there is none.
inline bool read_integer(const char*& p, std::int64_t& out) {
    const char* at = p;
    const bool negative = *at == '-';
    at += negative;
    const char* const first = at;
    std::int64_t n = 0;
    while (is_digit(*at) && at - first < 18) n = 10 * n + (*at++ - '0');
    if (at == first || is_digit(*at)) return false;
    out = negative ? -n : n;
    p = at;
    return true;
}

/// Reads one line that is neither blank nor a comment. `p` ends at the line's end, or where the fault is.
template <class T>
Fault read_line(const char*& p, Part<T>& part, const Options& options, std::int64_t& entries) {
    double x = 0;
    const char* before = p;
    const Reading reading = read_number(p, x);
    if (reading == Reading::overflow) return Fault::not_finite;
    if (reading == Reading::none || !is_between(p)) return p = before, Fault::target;
    if (!fits<double>(x)) return p = before, Fault::not_finite;
    part.target[part.rows] = x;
    while (is_blank(*p)) ++p;

    Queries queries = Queries::absent;
    if (std::strncmp(p, "qid:", 4) == 0) {
        queries = Queries::present;
        const char* number = p + 4;
        if (!read_integer(number, part.query[part.rows]) || !is_between(number)) return Fault::query;
        if (options.queries == Queries::absent || part.queries == Queries::absent) return Fault::new_query;
        p = number;
        while (is_blank(*p)) ++p;
    } else if (options.queries == Queries::present || part.queries == Queries::present) {
        return Fault::no_query;
    }

    std::int64_t first = -1, last = -1;
    const std::int64_t most = options.base + options.width - 1;
    T* value = part.value + entries;
    std::int32_t* column = part.column + entries;
    while (!is_end(p)) {
        before = p;
        if (!is_digit(*p)) return Fault::token;
        std::uint64_t index = 0;
        append_digits(p, index);
        if (*p != ':') return p = before, Fault::token;
        if (p - before > 18) return p = before, Fault::index;
        const char* const number = ++p;
        const Reading found = read_number(p, x);
        if (found == Reading::overflow) return p = number, Fault::not_finite;
        if (found == Reading::none || !is_between(p)) return p = number, Fault::value;
        const auto i = std::int64_t(index);
        if (i <= last || i < options.base || i > most) {
            p = before;
            if (i < options.base) return Fault::zero;
            if (i > most) return Fault::width;
            return i == last ? Fault::repeated : Fault::order;
        }
        if (!fits<T>(x)) return p = number, Fault::not_finite;
        if (last < 0) first = i;
        last = i;
        *column = std::int32_t(i - options.base);
        *value = T(x);
        const bool kept = *value != 0;
        column += kept;
        value += kept;
        while (is_blank(*p)) ++p;
    }
    if (first >= 0) part.least = std::min(part.least, first);
    part.most = std::max(part.most, last);
    part.queries = queries;
    entries = value - part.value;
    return Fault::none;
}

template <class T>
void read_part(Part<T>& part, const char* text, const Options& options) {
    const char* p = part.begin;
    while (p < part.end) {
        const char* const begin = p;
        while (is_blank(*p)) ++p;
        if (!is_end(p)) {
            std::int64_t entries = part.entries;
            const Fault fault = read_line(p, part, options, entries);
            if (fault == Fault::none) {
                part.where[part.rows] = begin - text;
                part.stop[part.rows++] = std::int32_t(entries);
                part.entries = entries;
            } else {
                if (part.bad_lines++ == 0) part.bad = {fault, begin - text, p - text, part.lines};
                if (!options.skip) return;
            }
        }
        p = static_cast<const char*>(std::memchr(p, '\n', std::size_t(part.end - p))) + 1;
        ++part.lines;
    }
}

inline std::int64_t count(const char* begin, const char* end, char wanted) {
    std::int64_t n = 0;
    while (begin < end) {
        const char* const stop = begin + std::min<std::ptrdiff_t>(end - begin, 255);
        unsigned char some = 0;
        for (; begin < stop; ++begin) some = static_cast<unsigned char>(some + (*begin == wanted));
        n += some;
    }
    return n;
}

/// The rows of a text, with room for more in every array.
template <class T>
struct Rows {
    std::unique_ptr<T[]> value;
    std::unique_ptr<std::int32_t[]> column, start;
    std::unique_ptr<double[]> target;
    std::unique_ptr<std::int64_t[]> query, where;
    std::int64_t rows = 0, entries = 0, lines = 0, bad_lines = 0;
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = -1;
    Queries queries = Queries::unknown;
    Bad bad;
};

/// Reads `size` bytes, of which the last ends a line; eight more must be readable. In several threads, each of
/// which takes a share of the text and writes to a share of the arrays that must suffice: a line has at most one row,
/// a colon at most one entry. What is left free between the shares is closed up.
template <class T>
Rows<T> read(const char* text, std::int64_t size, const Options& options, int threads) {
    std::vector<Part<T>> parts;
    for (const char *p = text, *end = text + size; p < end;) {
        const auto share = (end - p) / std::max<std::ptrdiff_t>(1, threads - std::ptrdiff_t(parts.size()));
        const char* from = p + std::max<std::ptrdiff_t>(share, 1) - 1;
        const char* to = static_cast<const char*>(std::memchr(from, '\n', std::size_t(end - from))) + 1;
        parts.push_back({p, to, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
        p = to;
    }
    std::vector<std::int64_t> colons(parts.size()), lines(parts.size());
    const auto n_parts = std::int64_t(parts.size());
    in_threads(n_parts, threads, [&](std::int64_t part) {
        const auto k = std::size_t(part);
        colons[k] = count(parts[k].begin, parts[k].end, ':');
        lines[k] = count(parts[k].begin, parts[k].end, '\n');
    });

    std::int64_t most_entries = 0, most_rows = 0;
    for (const auto n : colons) most_entries += n;
    for (const auto n : lines) most_rows += n;
    Rows<T> all;
    all.value.reset(new T[std::size_t(most_entries)]);
    all.column.reset(new std::int32_t[std::size_t(most_entries)]);
    all.start.reset(new std::int32_t[std::size_t(most_rows) + 1]);
    all.target.reset(new double[std::size_t(most_rows)]);
    all.query.reset(new std::int64_t[std::size_t(most_rows)]);
    all.where.reset(new std::int64_t[std::size_t(most_rows)]);
    std::int64_t entry = 0, row = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        Part<T>& part = parts[k];
        part.value = all.value.get() + entry;
        part.column = all.column.get() + entry;
        part.stop = all.start.get() + 1 + row;
        part.target = all.target.get() + row;
        part.query = all.query.get() + row;
        part.where = all.where.get() + row;
        entry += colons[k];
        row += lines[k];
    }
    in_threads(n_parts, threads, [&](std::int64_t k) { read_part(parts[std::size_t(k)], text, options); });

    all.start[0] = 0;
    all.queries = options.queries;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        Part<T>& part = parts[k];
        const bool clash =
            part.queries != Queries::unknown && all.queries != Queries::unknown && part.queries != all.queries;
        if (clash) {  // the threads did not know of each other: once more, with what the text before says
            Options wiser = options;
            wiser.queries = all.queries;
            part.rows = part.entries = part.lines = part.bad_lines = 0;
            part.least = std::numeric_limits<std::int64_t>::max(), part.most = -1;
            part.queries = Queries::unknown;
            read_part(part, text, wiser);
        }
        std::copy_n(part.value, part.entries, all.value.get() + all.entries);
        std::copy_n(part.column, part.entries, all.column.get() + all.entries);
        for (std::int64_t r = 0; r < part.rows; ++r)
            all.start[std::size_t(all.rows + r + 1)] = std::int32_t(part.stop[r] + all.entries);
        std::copy_n(part.target, part.rows, all.target.get() + all.rows);
        std::copy_n(part.query, part.rows, all.query.get() + all.rows);
        std::copy_n(part.where, part.rows, all.where.get() + all.rows);
        if (part.bad_lines > 0 && all.bad_lines == 0) {
            all.bad = part.bad;
            all.bad.line += all.lines;
        }
        all.rows += part.rows;
        all.entries += part.entries;
        all.lines += part.lines;
        all.bad_lines += part.bad_lines;
        all.least = std::min(all.least, part.least);
        all.most = std::max(all.most, part.most);
        if (part.queries != Queries::unknown) all.queries = part.queries;
        if (part.bad_lines > 0 && !options.skip) break;
    }
    return all;
}

}  // namespace dualsvm::svmlight
