#include "python/segments/unrolled_loops.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::python {

UnrolledLoop::UnrolledLoop(std::string reason, std::size_t stop_before)
    : GraphBreak(std::move(reason) + ": written out, they would take long to compile",
                 "the loop runs as plain Python; an operation on whole tensors (a cumulative sum, a convolution) would be compiled"),
      stop_before_(stop_before) {}

void UnrolledLoops::goes_back(const void* code, std::int32_t target, std::size_t now, std::size_t recorded) {
  constexpr std::uintptr_t kSpread = 0x9E3779B97F4A7C15u;
  const auto [found, fresh] = loops_.try_emplace(reinterpret_cast<std::uintptr_t>(code) * kSpread + static_cast<std::uintptr_t>(target), Loop{0, now, recorded});
  Loop& loop = found->second;
  if (++loop.rounds > kMostRounds && recorded - loop.recorded >= loop.rounds)
    throw UnrolledLoop(fmt::format("a loop goes round more than {} times, and each time records operations", kMostRounds), loop.first);
}

void UnrolledLoops::takes_apart(std::size_t now) {
  throw UnrolledLoop(fmt::format("an array is taken apart into more than {} items", kMostRounds), now);
}

namespace {

/// How many items an iterator has given. Asks the array for nothing, which may be a stand-in of a capture that has ended.
std::size_t items_given(PyObject* iterator, std::size_t count) {
  if (!PySeqIter_Check(iterator)) return count - static_cast<std::size_t>(std::max<Py_ssize_t>(0, PyObject_LengthHint(iterator, 0)));
  Ref parts = Ref::steal(PyObject_CallMethod(iterator, "__reduce__", nullptr));
  if (!parts || PyTuple_GET_SIZE(parts.get()) < 3) return count;  // at its end
  return PyLong_AsSize_t(PyTuple_GET_ITEM(parts.get(), 2));
}

}  // namespace

std::optional<std::size_t> UnrolledLoops::unfinished() const {
  for (const Elements& each : elements_)
    if (each.count > items_given(each.iterator.get(), each.count) + kMostElementsPastBreak) return each.since;
  PyErr_Clear();
  return std::nullopt;
}

}  // namespace tenon::python
