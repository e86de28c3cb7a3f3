// The tensors that a case runs on.
#pragma once

#include <vector>

#include "core/memory/row_major.h"
#include "core/ops/reference/sample.h"
#include "test_memory.h"

namespace tenon::conformance {

struct TestInput {
  TestMemory memory;
  std::vector<std::byte> original;  // what the memory held before the run
  ops::TensorView view;             // of the kit's copy

  /// The first element as the backend reaches it.
  const void* address() const { return static_cast<const std::byte*>(memory.address()) + (static_cast<const std::byte*>(view.data) - memory.data()); }
  /// Whether the memory is as it was, where the backend reaches it.
  bool unchanged() const;
};

struct Placement {
  const DeviceUnderTest* device = nullptr;  // null: the host
  bool row_major = false;   // copy strided operands, as a host does for a backend that takes no strides
  bool misaligned = false;  // first elements are aligned to their element only
  bool at_page_end = false; // their memory ends where a page begins that cannot be read
};

/// The inputs for the graph of a sample; equal seeds give equal values.
std::vector<TestInput> make_inputs(const ops::Sample& sample, std::uint64_t seed, Placement placement);

std::vector<ops::TensorView> views_of(const std::vector<TestInput>& inputs);
std::vector<std::vector<std::int64_t>> shapes_of(const std::vector<TestInput>& inputs);

}  // namespace tenon::conformance
