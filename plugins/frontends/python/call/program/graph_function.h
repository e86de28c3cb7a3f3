// A graph over tensors, run on memory that is known to fit it: a gradient.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "python/call/program/late_outputs.h"
#include "python/call/program/program.h"
#include "python/graph/captured_graph.h"
#include "python/results/small_array.h"

namespace tenon::python {

/// Compiled when it first runs.
class GraphFunction {
 public:
  /// `name`: for a backend written in Python. `rounding`: of what is computed on devices.
  GraphFunction(std::shared_ptr<const CapturedGraph> captured, const Settings& settings, std::string name, Float32Rounding rounding)
      : captured_(std::move(captured)), settings_(settings), name_(std::move(name)), rounding_(rounding) {}

  const CapturedGraph& captured() const { return *captured_; }
  /// Once it is compiled: what a backend written in Python made of it, or null.
  PyObject* callable() const { return ready_.load(std::memory_order_acquire)->callable(); }
  std::size_t input_count() const { return captured_->graph().inputs().size(); }
  std::size_t output_count() const { return captured_->graph().outputs().size(); }

  bool is_compiled() const { return ready_.load(std::memory_order_acquire) != nullptr; }
  /// Needs the GIL, which others may have meanwhile. `examples`: by graph input, null for those that nothing reads; where a backend is written in Python.
  /// Throws PythonError, and GraphBreak where that one cannot be told what the graph does.
  void compile(std::span<PyObject* const> examples = {});
  /// What a backend written in Python made of it, without gradients, whatever mode the thread is in. Gives its tensors. Throws PythonError.
  std::vector<Ref> call(std::span<PyObject* const> inputs) const;
  /// Once it is compiled, on any thread, without the GIL. `data`: by graph input, then by graph output, then one more. False where the graph could not run
  /// on these values: the host has said why.
  bool run(void** data, std::span<const std::int64_t> symbols) const;

  int traverse(visitproc visit, void* arg) const;

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
  std::string name_;
  Float32Rounding rounding_;
  std::unique_ptr<const Program> program_;
  std::atomic<const Program*> ready_ = nullptr;
};

}  // namespace tenon::python
