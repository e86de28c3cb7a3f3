#include "python/call/capture_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "python/call/plain_cost.h"
#include "python/capture/capture.h"

namespace tenon::python {

CapturePoint::CapturePoint(const LiveChain& chain, const ChainSlots& slots) : bound_(slots.bound) {
  for (std::size_t depth = 0; depth < chain.depth(); ++depth) {
    const LiveChain::Link& link = chain[depth];
    links_.push_back({Ref::borrow(reinterpret_cast<PyObject*>(compat::code_of(link.frame))), link.instruction, link.completion, compat::stack_size(link.frame)});
  }
}

bool CapturePoint::is_at(const LiveChain& chain, const ChainSlots& slots) const {
  if (chain.depth() != links_.size() || slots.bound != bound_) return false;
  for (std::size_t depth = 0; depth < links_.size(); ++depth) {
    const LiveChain::Link& live = chain[depth];
    const Link& link = links_[depth];
    const bool same = link.instruction == live.instruction && link.code.is(reinterpret_cast<PyObject*>(compat::code_of(live.frame))) &&
                      link.completion == live.completion && link.stack_size == compat::stack_size(live.frame);
    if (!same) return false;
  }
  return true;
}

void CapturePoint::expect_other_numbers(const LiveChain& chain, const DrawnNumbers& drawn) {
  for (std::size_t at = 0; at < chain.depth(); ++at) {
    compat::RealFrame* frame = chain[at].frame;
    PyCodeObject* code = compat::code_of(frame);
    const int end = code->co_nlocalsplus + compat::stack_size(frame);
    for (int slot = 0; slot < end; ++slot)
      if (drawn.holds(compat::slots_of(frame)[slot])) numbers.vary_below(name_of_slot(code, slot));
  }
}

std::size_t CapturePoint::hash(const LiveChain& chain) {
  std::size_t hash = chain.depth();
  for (std::size_t depth = 0; depth < chain.depth(); ++depth) {
    const std::size_t place = reinterpret_cast<std::uintptr_t>(compat::code_of(chain[depth].frame)) + static_cast<std::size_t>(chain[depth].instruction);
    hash = (hash ^ place) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

bool CapturePoint::holds(const EntryRef& entry, const TorchState& state, const CallArguments& values) {
  const bool before = std::exchange(checking_, true);
  const bool holds = entry->matches(state, values);
  checking_ = before;
  return holds;
}

EntryRef CapturePoint::find(const TorchState& state, const CallArguments& values) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    EntryRef entry = entries_[i];  // what a check comes to may reset the function
    if (!holds(entry, state, values)) continue;
    if (i > 0 && i < entries_.size()) {
      reused_ += !std::exchange(entry->came_again, true);
      std::rotate(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(i), entries_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    return entry;
  }
  return {};
}

bool CapturePoint::is_of_elements() const {
  constexpr double kWorthAVariant = 3 * kStepCost;
  const auto does_little = [](const EntryRef& entry) { return entry->plain().nanoseconds < kWorthAVariant; };
  const auto takes_element = [](const EntryRef& entry) { return entry->plain().takes_element; };
  return std::ranges::any_of(entries_, takes_element) && std::ranges::all_of(entries_, does_little);
}

void CapturePoint::drop_outlived() {
  const auto first = std::stable_partition(entries_.begin(), entries_.end(), [](const EntryRef& entry) { return !entry->outlived(); });
  const std::vector<EntryRef> gone(std::make_move_iterator(first), std::make_move_iterator(entries_.end()));
  entries_.erase(first, entries_.end());
  outlived += gone.size();
}

void CapturePoint::note_refusal(const EntryRef& entry, bool whole) {
  constexpr std::size_t kMostRefusals = 2, kMostSkippedSteps = 4;  // of training, in a row
  const auto found = std::ranges::find(entries_, entry);
  const std::size_t refusals = entry->has_assumptions() ? ++unlike : entry->has_late_sizes() ? ++entry->refusals : 0;
  if (whole || refusals < (entry->walks() ? kMostSkippedSteps : kMostRefusals) || found == entries_.end()) return;
  if (entry->has_late_sizes()) numbers.late_sizes = false;
  if (entry->has_assumptions()) numbers.branches_assumed = false;
  entries_.erase(found);
}

std::vector<EntryRef> CapturePoint::clear() {
  failures = outlived = unlike = reused_ = past_limit = 0;
  limit_reported = left_to_python = false;
  numbers.clear();
  return std::exchange(entries_, {});
}

std::string CapturePoint::describe() const {
  if (links_.empty()) return {};
  auto* code = reinterpret_cast<PyCodeObject*>(links_.back().code.get());
  const int line = decoded(code)->line_of(links_.back().instruction);
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();  // a name that is no text
  return fmt::format(" (continued at line {} of {}, in {})", line, PyUnicode_AsUTF8(code->co_name), file ? file : "?");
}

}  // namespace tenon::python
