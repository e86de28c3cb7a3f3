// The compiled entries of one function, and what happens when none of them holds.
#pragma once

#include <array>
#include <string>
#include <unordered_set>
#include <vector>

#include "python/call/cache_entry.h"
#include "python/call/settings.h"
#include "python/symbols/number_facts.h"

namespace tenon::python {

/// Lives in a CompiledFunction. All use needs the GIL.
class FunctionCache {
 public:
  FunctionCache(Ref callable, Settings settings);
  ~FunctionCache() { clear(); }
  FunctionCache(const FunctionCache&) = delete;
  FunctionCache& operator=(const FunctionCache&) = delete;

  PyObject* callable() const { return x_callable.get(); }

  /// Calls the function through its entries. Null with an exception set.
  PyObject* call(PyObject* const* values, std::size_t nargsf, PyObject* keyword_names);
  /// Visits every object that is held, for the garbage collector.
  int traverse(visitproc visit, void* arg) const;
  /// Forgets everything compiled.
  void clear();

 private:
  PyObject* run(CacheEntry* entry, const CallArguments& call);
  PyObject* miss(const CallArguments& call);
  PyObject* broken(const CaptureBreak& why, const CallArguments& call);
  PyObject* loudly(const CallArguments& call);
  PyObject* eagerly(const CallArguments& call);
  PyObject* failed_to_compile(const CallArguments& call);
  void report_recompile(const TorchState& state, const CallArguments& call);
  bool limit_reached(const TorchState& state);
  void report_capture(CacheEntry& entry);

  Ref x_callable;
  Settings x_settings;
  std::string x_name;
  std::vector<CacheEntry*> x_entries;          // most recently used first
  std::array<std::size_t, 8> x_breaks{};       // captures that ended early, by torch's autograd state
  std::string x_last_break;
  std::unordered_set<std::string> x_reported;  // breaks that were logged
  bool x_limit_reported = false;
  NumberHistory x_numbers;
};

/// Runs the renderer of the package over a graph; empty with an exception set when it fails.
Ref render(PyObject* traced);
void take_renderer(Ref renderer);

}  // namespace tenon::python
