#include "test_inputs.h"

#include <algorithm>
#include <cstring>

#include "core/memory/row_major.h"

namespace tenon::conformance {
namespace {

/// Copies the elements of a view, in row-major order, to `to`.
void pack(const ops::TensorView& view, std::byte* to) {
  const std::size_t size = size_of(view.dtype);
  std::vector<std::int64_t> index(view.shape.size(), 0);
  if (std::ranges::find(view.shape, 0) != view.shape.end()) return;
  for (;;) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * view.strides[d];
    std::memcpy(to, static_cast<const std::byte*>(view.data) + offset * static_cast<std::int64_t>(size), size);
    to += size;
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] == view.shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

std::size_t element_count(const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  return count;
}

TestMemory memory_for(std::size_t bytes, DType dtype, Placement placement) {
  const std::size_t misalignment = placement.misaligned ? 3 * size_of(dtype) % 64 : 0;
  return TestMemory(placement.device, bytes, misalignment, placement.at_page_end ? GuardedMemory::Start::page_end : GuardedMemory::Start::aligned);
}

TestInput packed(const ops::SampleInput& input, Placement placement) {
  const ops::TensorView& from = input.view;
  TestInput made{memory_for(element_count(from.shape) * size_of(from.dtype), from.dtype, placement), {}, from};
  pack(from, made.memory.data());
  made.view.data = made.memory.data();
  made.view.strides = row_major_strides(from.shape);
  return made;
}

TestInput copied(const ops::SampleInput& input, Placement placement) {
  TestInput made{memory_for(input.storage.byte_count(), input.view.dtype, placement), {}, input.view};
  const auto* storage = static_cast<const std::byte*>(input.storage.data());
  if (input.storage.byte_count()) std::memcpy(made.memory.data(), storage, input.storage.byte_count());
  made.view.data = made.memory.data() + (static_cast<const std::byte*>(input.view.data) - storage);
  return made;
}

}  // namespace

bool TestInput::unchanged() const { return memory.holds(original); }

std::vector<TestInput> make_inputs(const ops::Sample& sample, std::uint64_t seed, Placement placement) {
  std::vector<TestInput> inputs;
  for (const ops::SampleInput& input : ops::sample_inputs(sample, seed)) {
    TestInput& made = inputs.emplace_back(placement.row_major ? packed(input, placement) : copied(input, placement));
    made.original.assign(made.memory.data(), made.memory.data() + made.memory.size());
    made.memory.send();
  }
  return inputs;
}

std::vector<ops::TensorView> views_of(const std::vector<TestInput>& inputs) {
  std::vector<ops::TensorView> views;
  for (const TestInput& input : inputs) views.push_back(input.view);
  return views;
}

std::vector<std::vector<std::int64_t>> shapes_of(const std::vector<TestInput>& inputs) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const TestInput& input : inputs) shapes.push_back(input.view.shape);
  return shapes;
}

}  // namespace tenon::conformance
