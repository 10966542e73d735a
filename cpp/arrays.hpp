#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

// What the files that bind the kernel to Python share.

namespace dualsvm {

namespace nb = nanobind;

template <class T, int N = 1>
using Array = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline void expect(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

/// An array as it is: the kernel keeps pointers into it, so that a converted copy would not do.
template <class T, int N = 1>
Array<T, N> as_is(nb::handle array) {
    return nb::cast<Array<T, N>>(array, false);
}

/// The pointer of the named array with the given number of entries (any number if negative); null if absent.
template <class T, int N = 1>
const T* pointer(const nb::dict& spec, const char* name, std::int64_t size) {
    if (!spec.contains(name) || spec[name].is_none()) return nullptr;
    const auto array = as_is<T, N>(spec[name]);
    if (size >= 0 && std::int64_t(array.size()) != size)
        throw std::invalid_argument(std::string(name) + " has another length than it should");
    return array.data();
}

/// The named array, which must be there.
template <class T, int N = 1>
const T* given(const nb::dict& spec, const char* name, std::int64_t size) {
    expect(spec.contains(name) && !spec[name].is_none(), name);
    return pointer<T, N>(spec, name, size);
}

inline std::int64_t length(const nb::dict& spec, const char* name) {
    return spec.contains(name) ? std::int64_t(nb::len(nb::object(spec[name]))) : 0;
}

/// A vector as an array, which owns it.
template <class T, class Memory>
nb::ndarray<nb::numpy, T, nb::ndim<1>> array_of(std::vector<T, Memory>&& values) {
    auto* kept = new std::vector(std::move(values));
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T, Memory>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

void bind_structured(nb::module_& m);
void bind_text(nb::module_& m);

}  // namespace dualsvm
