// A captured graph made runnable: by libtenon, or by a backend that is a Python function.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "python/graph/captured_graph.h"
#include "python/library/float32_rounding.h"
#include "python/session/settings.h"
#include "tenon/host.h"

namespace tenon::python {

/// Owns one of the two kinds of compiled graph.
class Program {
 public:
  Program() = default;
  Program(Program&& other) noexcept;
  Program& operator=(Program&& other) noexcept;
  ~Program();

  TenonProgram* native() const { return native_; }
  PyObject* callable() const { return callable_.get(); }
  /// Whether the callable was made of a graph of ops (graph/graph_of_ops.h).
  bool is_of_ops() const { return of_ops_; }
  /// Calls the callable. `inputs`: by graph input; those that were null when it was compiled are left out. Empty with the exception set that it raised.
  Ref call(std::span<PyObject* const> inputs) const;
  /// By graph output, which of what the callable gives it is.
  std::span<const std::uint32_t> places() const { return places_; }

 private:
  friend std::optional<Program> compile_natively(const CapturedGraph&, const Settings&, Float32Rounding);
  friend std::optional<Program> compile_with_callable(const CapturedGraph&, const Settings&, const std::string&, std::span<PyObject* const>);
  TenonProgram* native_ = nullptr;
  Ref callable_;
  bool of_ops_ = false;
  std::vector<bool> given_;           // by graph input
  std::vector<std::uint32_t> places_;
};

/// Compiles with the backends that the settings or the configuration name. Results that eager execution lays out in another order than
/// row-major are written in that order. Nothing, with an exception set, on failure; nothing, with what a signal's handler raised kept
/// (compat::take_interrupt), where that stopped it. Releases the GIL meanwhile. `rounding`: of what is computed on devices.
std::optional<Program> compile_natively(const CapturedGraph& captured, const Settings& settings, Float32Rounding rounding);

/// Asks the Python function of the settings. `inputs`: the objects of this call, by graph input; null for those that nothing reads. A failure of the
/// function becomes a CompileError that names it and has the failure as its cause. Throws GraphBreak where the graph cannot be told in calls.
std::optional<Program> compile_with_callable(const CapturedGraph& captured, const Settings& settings, const std::string& name,
                                             std::span<PyObject* const> inputs);

}  // namespace tenon::python
