#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "svmlight.hpp"

namespace dualsvm {
namespace {

/// The first n entries as an array, which owns them all.
template <class T>
nb::object first(std::unique_ptr<T[]>& values, std::int64_t n) {
    T* const kept = values.release();
    const nb::capsule owner(kept, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept, {std::size_t(n)}, owner));
}

template <class T>
nb::dict read_svmlight(const Array<std::uint8_t>& text, std::int64_t size, const svmlight::Options& options,
                       int threads) {
    svmlight::Rows<T> found;
    {
        nb::gil_scoped_release release;
        found = svmlight::read<T>(reinterpret_cast<const char*>(text.data()), size, options, threads);
    }
    const bool queries = found.queries == svmlight::Queries::present;
    nb::dict out;
    out["values"] = first(found.value, found.entries);
    out["indices"] = first(found.column, found.entries);
    out["indptr"] = first(found.start, found.rows + 1);
    out["target"] = first(found.target, found.rows);
    out["qid"] = queries ? first(found.query, found.rows) : nb::none();
    out["where"] = first(found.where, found.rows);
    out["lines"] = found.lines;
    out["least"] = found.most < 0 ? std::int64_t(-1) : found.least;
    out["most"] = found.most;
    out["queries"] = int(found.queries);
    out["bad_lines"] = found.bad_lines;
    out["bad"] = std::tuple(int(found.bad.fault), found.bad.begin, found.bad.at, found.bad.line);
    return out;
}

}  // namespace

void bind_text(nb::module_& m) {
    m.def("read_svmlight", [](const Array<std::uint8_t>& text, std::int64_t size, std::int64_t base,
                              std::int64_t width, bool skip, int queries, bool single, int threads) {
        expect(size >= 0 && size + 8 <= std::int64_t(text.size()), "eight bytes must follow the text");
        expect(size < (std::int64_t(1) << 31), "a block of text must be smaller than 2 GB");
        expect(size == 0 || text.data()[size - 1] == '\n', "the text must end with a line");
        expect((base == 0 || base == 1) && width >= 0 && width + base <= 0x80000000, "indices out of range");
        expect(queries >= 0 && queries <= 2 && threads >= 1, "an unknown option");
        const svmlight::Options options{base, width, skip, svmlight::Queries(queries)};
        return single ? read_svmlight<float>(text, size, options, threads)
                      : read_svmlight<double>(text, size, options, threads);
    });
}

}  // namespace dualsvm
