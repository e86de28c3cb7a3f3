// A graph over tensors, run on objects that are known to fit it: a gradient.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "python/call/program.h"
#include "python/graph/captured_graph.h"

namespace tenon::python {

/// Compiled when it first runs, on the thread that needs it.
class GraphFunction {
 public:
  GraphFunction(std::shared_ptr<const CapturedGraph> captured, Settings settings) : captured_(std::move(captured)), settings_(std::move(settings)) {}

  const CapturedGraph& captured() const { return *captured_; }
  const Settings& settings() const { return settings_; }

  /// The tensors of the captured graph. `inputs`: by graph input, laid out as it says (borrowed). Throws PythonError where it does not compile or run.
  std::vector<Ref> run(std::span<PyObject* const> inputs, std::span<const std::int64_t> symbols);

 private:
  const Program& program();

  std::shared_ptr<const CapturedGraph> captured_;
  Settings settings_;
  std::optional<Program> program_;
};

}  // namespace tenon::python
