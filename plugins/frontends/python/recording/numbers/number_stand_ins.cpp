#include "python/recording/numbers/number_stand_ins.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "python/objects/graph_break.h"
#include "python/stand_ins/late_text.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {

PyTypeObject* type_of_number(PyObject* stand_in) {
  if (is_late_text(stand_in)) return late_text_of(stand_in).type;
  if (is_symbolic_scalar(stand_in)) return scalar_of(stand_in).integral ? &PyLong_Type : &PyFloat_Type;
  return is_symbolic_int(stand_in) ? &PyLong_Type : nullptr;
}

namespace {

/// In the next capture an input that such a number is made of is a constant, unless that has worn out.
void fix_roots(Symbols& symbols, const ScalarValue& scalar, const char* use) {
  if (scalar.of_data && !scalar.step) symbols.note_needed(scalar.value);
  if (!scalar.of_data && !symbols.wear_out(scalar.roots))
    for (const std::string& root : scalar.roots) symbols.fix(root, use);
}

std::string needs_value(const char* use) { return fmt::format("{} of a number that the graph computes needs its value while the program runs", use); }

}  // namespace

void need_scalar(Symbols& symbols, const ScalarValue& scalar, const char* use) {
  fix_roots(symbols, scalar, use);
  throw ElementsNeeded(needs_value(use), kBranchHint);
}

void need_scalar_for_call(Symbols& symbols, const ScalarValue& scalar) {
  constexpr const char* kUse = "a call that the library makes itself";
  fix_roots(symbols, scalar, kUse);
  throw NumberNeeded(needs_value(kUse), kBranchHint);
}

void need_text(Symbols& symbols, PyObject* text, const char* use) {
  ScalarValue all;
  for (PyObject* number : inputs_of_text(text)) {
    if (is_late_text(number)) all.roots.push_back(late_text_of(number).name);
    else std::ranges::move(is_symbolic_int(number) ? symbols.names_of(*integer_of(number)) : scalar_of(number).roots, std::back_inserter(all.roots));
    all.of_data |= is_symbolic_scalar(number) && scalar_of(number).of_data;
  }
  need_scalar(symbols, all, use);
}

}  // namespace tenon::python
