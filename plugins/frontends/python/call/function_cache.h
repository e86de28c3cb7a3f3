// The compiled entries of one function, and what happens when none of them holds.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "python/call/cache_entry.h"
#include "python/call/settings.h"

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
  /// Forgets everything compiled.
  void clear();

 private:
  PyObject* run(CacheEntry* entry, const CallArguments& call);
  PyObject* miss(const CallArguments& call);
  PyObject* broken(const CaptureBreak& why, const CallArguments& call, std::uint64_t key);
  PyObject* eagerly(const CallArguments& call);
  PyObject* failed_to_compile(const CallArguments& call);
  void report_recompile(const TorchState& state, const CallArguments& call);
  bool limit_reached();
  void report_capture(CacheEntry& entry);

  Ref x_callable;
  Settings x_settings;
  std::string x_name;
  std::vector<CacheEntry*> x_entries;          // most recently used first
  std::unordered_set<std::uint64_t> x_broken;  // calls whose capture broke, by `call_key`
  std::unordered_set<std::string> x_reported;  // breaks that were logged
  bool x_limit_reported = false;
};

/// Runs the renderer of the package over a graph; empty with an exception set when it fails.
Ref render(PyObject* traced);
void take_renderer(Ref renderer);

}  // namespace tenon::python
