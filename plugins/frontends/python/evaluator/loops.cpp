#include "python/evaluator/loops.h"

#include <algorithm>

#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"
#include "python/segments/stepped_loops.h"

namespace tenon::python {
namespace {

/// Whether an instruction begins a loop over what the one before it gives.
bool begins_loop(const Frame& f, int instruction) { return f.code->instructions[instruction].op == Op::for_iter; }

/// The argument at a place, or by one of its names; null where it is not given.
PyObject* argument_of(const Arguments& arguments, std::size_t place, std::string_view given_names) {
  if (place < arguments.positional()) return arguments.values[place].get();
  for (std::size_t at = 0; at < arguments.named(); ++at)
    if (const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(arguments.names.get(), at)); name && is_among(name, given_names)) return arguments.values[arguments.positional() + at].get();
  PyErr_Clear();
  return nullptr;
}

std::size_t count_of(PyObject* number) {
  const long value = number && PyLong_CheckExact(number) ? PyLong_AsLong(number) : 0;
  PyErr_Clear();
  return value > 0 ? static_cast<std::size_t>(value) : 0;
}

/// The size along a dimension; 0 where it varies or there is none such.
std::size_t extent_of(PyObject* array, PyObject* dimension) {
  const Ref shape = Ref::steal(PyObject_GetAttrString(array, "shape"));
  const Ref place = dimension ? Ref::borrow(dimension) : checked(PyLong_FromLong(0));
  const Ref extent = shape && PyLong_CheckExact(place.get()) ? Ref::steal(PyObject_GetItem(shape.get(), place.get())) : Ref();
  PyErr_Clear();
  return extent ? count_of(extent.get()) : 0;
}

}  // namespace

void Loops::step_over_varying(const Frame& f) {
  if (!options_.stepped) return;
  const Slot& slot = f.stack.back();
  const SourceId source = slot.pending ? slot.pending : heap_.source_of(slot.object.get());
  PyObject* over = slot.object.get();
  if (!source || (!PyRange_Check(over) && !PyList_CheckExact(over) && !PyTuple_CheckExact(over))) return;
  const bool stepped = begins_loop(f, f.next) && options_.stepped->contains(f.code->object.get(), f.next);
  if (!stepped && !recorder_.items_keep_varying(source, heap_.guards())) return;
  if (begins_loop(f, f.next)) options_.stepped->add(f.code->object.get(), f.next);
  throw SteppedLoop(begins_loop(f, f.next) && options_.stepped->is_left(f.code->object.get(), f.next));
}

void Loops::step_over_varying_range(std::span<const Ref> bounds) {
  const Frame& f = core_.frame();
  if (!options_.stepped || core_.nested() > 1 || f.instruction().op != Op::call || f.code->instructions[f.next].op != Op::get_iter || !begins_loop(f, f.next + 1)) return;
  PyObject* code = f.code->object.get();
  if (!options_.stepped->contains(code, f.next + 1) && !recorder_.rounds_keep_varying(bounds)) return;
  if (std::ranges::none_of(bounds, [&](const Ref& bound) { return heap_.is_number(bound.get()); })) return;
  options_.stepped->add(code, f.next + 1);
  throw SteppedLoop(options_.stepped->is_left(code, f.next + 1));
}

void Loops::step_loop(const Frame& f) {
  if (!options_.stepped) return;
  PyObject* code = f.code->object.get();
  const SourceId source = heap_.source_of(f.stack.back().object.get());
  const SourceId older = f.stack.back().pending ? f.stack.back().pending : source;
  if (older && recorder_.items_keep_varying(older, heap_.guards())) options_.stepped->add(code, f.current);
  if (options_.stepped->contains(code, f.current)) throw SteppedLoop(options_.stepped->is_left(code, f.current));
}

void Loops::require_few_pieces(PyObject* result) {
  if (!options_.leave_loops || (!PyList_CheckExact(result) && !PyTuple_CheckExact(result))) return;
  const bool many = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(result)) > UnrolledLoops::kMostRounds;
  if (many && core_.is_stand_in(PySequence_Fast_GET_ITEM(result, 0))) UnrolledLoops::takes_apart(heap_.now);
}

void Loops::require_few_pieces_of(PyObject* callable, const Arguments& arguments) {
  PyObject* array = options_.leave_loops && arguments.positional() > 0 ? arguments.values[0].get() : nullptr;
  if (!array || !core_.is_stand_in(array)) return;
  const Recorder::Pieces how = recorder_.pieces_of(callable);
  if (how == Recorder::Pieces::none) return;
  const bool unbinds = how == Recorder::Pieces::by_dimension;
  PyObject* by = unbinds ? nullptr : argument_of(arguments, 1, " indices_or_sections split_size_or_sections split_size split_sizes chunks sections indices ");
  std::size_t pieces = 0;
  if (by && (PyList_CheckExact(by) || PyTuple_CheckExact(by))) {
    pieces = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(by)) + 1;
  } else if (how != Recorder::Pieces::by_count) {
    const std::size_t size = unbinds ? 1 : count_of(by), extent = extent_of(array, argument_of(arguments, unbinds ? 1 : 2, " dim axis "));
    pieces = size > 0 ? (extent + size - 1) / size : 0;
  } else {
    pieces = count_of(by);
  }
  if (pieces > UnrolledLoops::kMostRounds) UnrolledLoops::takes_apart(heap_.now);
}

}  // namespace tenon::python
