// A graph over tensors, run on memory that is known to fit it: a gradient.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "python/call/late_outputs.h"
#include "python/call/program.h"
#include "python/graph/captured_graph.h"
#include "python/results/small_array.h"

namespace tenon::python {

/// Compiled when it first runs.
class GraphFunction {
 public:
  GraphFunction(std::shared_ptr<const CapturedGraph> captured, const Settings& settings) : captured_(std::move(captured)), settings_(settings) {}

  const CapturedGraph& captured() const { return *captured_; }
  const Settings& settings() const { return settings_; }
  std::size_t input_count() const { return captured_->graph().inputs().size(); }
  std::size_t output_count() const { return captured_->graph().outputs().size(); }

  bool is_compiled() const { return ready_.load(std::memory_order_acquire) != nullptr; }
  /// Needs the GIL, which others may have meanwhile. Throws PythonError.
  void compile();
  /// Once it is compiled, on any thread, without the GIL. `data`: by graph input, then by graph output, then one more. False where the graph could not run
  /// on these values: the host has said why.
  bool run(void** data, std::span<const std::int64_t> symbols) const;

  /// Calls make(index, output, shape, strides, data) for each tensor that is made, which sets where the graph writes it.
  template <class Make>
  void make_tensors(void** outputs, std::span<const std::int64_t> symbols, Make make) const {
    for (std::size_t i = 0; i < captured_->tensors.size(); ++i) {
      const TensorOutput& output = captured_->tensors[i];
      if (output.kind != TensorOutput::Kind::fresh) continue;
      if (output.varying_shape.empty()) {
        make(i, output, std::span<const std::int64_t>(output.shape), std::span<const std::int64_t>(output.strides), outputs[output.index]);
        continue;
      }
      SmallArray<std::int64_t, 12> sizes(2 * output.varying_shape.size());
      evaluate_layout(output, symbols, sizes.data());
      const std::size_t rank = output.varying_shape.size();
      make(i, output, std::span<const std::int64_t>(sizes.data(), rank), std::span<const std::int64_t>(sizes.data() + rank, rank), outputs[output.index]);
    }
  }

 private:
  std::shared_ptr<const CapturedGraph> captured_;
  Settings settings_;
  std::unique_ptr<const Program> program_;
  std::atomic<const Program*> ready_ = nullptr;
};

}  // namespace tenon::python
