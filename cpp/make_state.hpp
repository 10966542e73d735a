#pragma once

#include <memory>

#include "rows.hpp"
#include "state.hpp"
#include "weights.hpp"

namespace dualsvm {

enum class Kind { single, pairs, two_sided, multiclass, group, lists };

/// A problem but for its rows. Pointers that a kind does not name are null.
struct Spec {
    Kind kind;
    bool squared;
    Shape shape;
    bool single_precision;  // the weights offered are to be floats
    std::uint64_t seed;
    const double* cost;              // one per example
    const double* margins;           // single, pairs, group: l, one per row; two_sided: y; multiclass: or null
    const signed char* sign;         // single: +1 or -1, or null
    const Index* pair;               // pairs: preferred, other, ...
    Index n_examples;                // pairs, group, lists
    double epsilon;                  // two_sided
    const std::int32_t* label;       // multiclass
    const double* class_loss;        // multiclass: classes x classes
    Index n_classes;                 // multiclass
    bool rescaled;                   // multiclass: by the slack
    const Index *start, *member;     // group, lists
    const std::int32_t* grade;       // lists: of the row at a place, from 0 within its list
    const double* weight;            // lists: of the row at a place, or null
    double margin;                   // lists
    std::shared_ptr<Moving> moving;  // of another state of the same problem, or null
};

template <class Rows>
std::unique_ptr<State> make_state(const Rows& rows, const Spec& spec);

}  // namespace dualsvm
