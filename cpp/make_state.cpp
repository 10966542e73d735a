// Compiled once for each kind of row, named by DUALSVM_ROWS: see CMakeLists.txt.

#include "make_state.hpp"

#include "group.hpp"
#include "lists.hpp"
#include "multiclass.hpp"
#include "optimize.hpp"
#include "single.hpp"
#include "twosided.hpp"

namespace dualsvm {

template <class Block>
static std::unique_ptr<State> hold(Block block, const Spec& spec) {
    return std::make_unique<StateOf<Block>>(std::move(block), spec.shape, spec.single_precision, spec.seed,
                                            spec.moving);
}

template <class Rows>
std::unique_ptr<State> make_state(const Rows& rows, const Spec& s) {
    switch (s.kind) {
        case Kind::single:
            return hold(Single<Rows>(rows, s.sign, s.margins, s.cost, s.squared), s);
        case Kind::pairs: {
            using Pairs = Difference<Rows>;
            return hold(Single<Pairs>(Pairs{rows, s.pair, s.n_examples}, s.sign, s.margins, s.cost, s.squared), s);
        }
        case Kind::two_sided:
            return hold(TwoSided<Rows>(rows, s.margins, s.epsilon, s.cost, s.squared), s);
        case Kind::multiclass:
            return hold(
                Multiclass<Rows>(rows, s.label, s.class_loss, s.margins, s.n_classes, s.cost, s.squared, s.rescaled),
                s);
        case Kind::group:
            return hold(Group<Rows>(rows, s.start, s.member, s.n_examples, s.margins, s.cost, s.squared), s);
        case Kind::lists:
            return hold(
                Lists<Rows>(rows, s.start, s.member, s.n_examples, s.grade, s.weight, s.margin, s.cost, s.squared),
                s);
    }
    return nullptr;
}

template std::unique_ptr<State> make_state(const DUALSVM_ROWS&, const Spec&);

}  // namespace dualsvm
