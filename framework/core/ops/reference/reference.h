// The reference evaluator: computes nodes and graphs from the definitions of their ops. It is the oracle of every test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/op.h"

namespace tenon::ops {

/// How floats are computed. `judge` computes every float in float64 from the definitions: results that should be float16,
/// bfloat16 or float32 are then float64 tensors, and rounding casts between floats do not round. It judges other results.
enum class Precision : std::uint8_t { native, judge };

/// A row-major tensor in host memory that owns its bytes (aligned to 64).
struct HostTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;

  HostTensor() = default;
  /// Allocates zeroed memory for the given shape.
  HostTensor(DType dtype, std::vector<std::int64_t> shape);

  std::int64_t element_count() const;
  std::size_t byte_count() const { return static_cast<std::size_t>(element_count()) * size_of(dtype); }
  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }
  template <class T>
  T* as() { return static_cast<T*>(data()); }
  template <class T>
  const T* as() const { return static_cast<const T*>(data()); }
  /// A view of the whole tensor. It borrows the memory.
  TensorView view() const;

 private:
  struct Release {
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Release> data_;
};

/// What running one node needs besides the node.
struct NodeRun {
  std::span<const TensorView> inputs;   // one an operand; literals' entries are ignored
  std::span<TensorView> outputs;        // one a result, allocated; null data where the size depends on values, and where nobody reads one
                                        // of several results of a written-out kernel
  std::span<const std::int64_t> symbols;  // by SymbolId
  /// Gives the memory of an output whose size depends on values. Needed for such ops only.
  std::function<TensorView&(std::size_t output, std::vector<std::int64_t> shape)> allocate;
  Precision precision = Precision::native;
};

/// Runs one node: by its loop nest, scatter, kernel, or decomposition. Throws (invalid_argument) where the op's definition says
/// that values are not allowed (an index out of range); throws (unsupported) for opaque, random and control nodes.
/// Outputs must not overlap inputs.
void run_node(const ir::Graph& graph, ir::NodeId node, const NodeRun& run);

/// Runs a whole graph. Symbols are bound from the shapes of the inputs (a dimension that is exactly the symbol); `symbols` gives
/// those that no input binds. Gives the values of all outputs in order, updates too.
std::vector<HostTensor> evaluate(const ir::Graph& graph, std::span<const TensorView> inputs, Precision precision = Precision::native,
                                 std::span<const std::int64_t> symbols = {});

}  // namespace tenon::ops
