#include "python/call/capture_point.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::python {

CapturePoint::CapturePoint(const LiveChain& chain, const ChainSlots& slots) : x_bound(slots.bound) {
  for (std::size_t depth = 0; depth < chain.depth(); ++depth) {
    const LiveChain::Link& link = chain[depth];
    x_links.push_back({Ref::borrow(reinterpret_cast<PyObject*>(compat::code_of(link.frame))), link.instruction, link.completion, compat::stack_size(link.frame)});
  }
}

bool CapturePoint::is_at(const LiveChain& chain, const ChainSlots& slots) const {
  if (chain.depth() != x_links.size() || slots.bound != x_bound) return false;
  for (std::size_t depth = 0; depth < x_links.size(); ++depth) {
    const LiveChain::Link& live = chain[depth];
    const Link& link = x_links[depth];
    const bool same = link.instruction == live.instruction && link.code.is(reinterpret_cast<PyObject*>(compat::code_of(live.frame))) &&
                      link.completion == live.completion && link.stack_size == compat::stack_size(live.frame);
    if (!same) return false;
  }
  return true;
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

CacheEntry* CapturePoint::find(const TorchState& state, const CallArguments& values) {
  for (std::size_t i = 0; i < x_entries.size(); ++i) {
    CacheEntry* entry = x_entries[i];
    if (!entry->matches(state, values)) continue;
    if (i > 0) std::rotate(x_entries.begin(), x_entries.begin() + static_cast<std::ptrdiff_t>(i), x_entries.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return entry;
  }
  return nullptr;
}

void CapturePoint::clear() {
  std::vector<CacheEntry*> entries = std::move(x_entries);
  x_entries.clear();
  failures = 0;
  limit_reported = false;
  numbers.clear();
  for (CacheEntry* entry : entries) entry->release();
}

std::string CapturePoint::describe() const {
  if (x_links.empty()) return {};
  auto* code = reinterpret_cast<PyCodeObject*>(x_links.back().code.get());
  const int line = PyCode_Addr2Line(code, 2 * decoded(code).instructions[x_links.back().instruction].unit);
  return fmt::format(" (continued at line {} of {})", line, PyUnicode_AsUTF8(code->co_name));
}

}  // namespace tenon::python
