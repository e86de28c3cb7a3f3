// Faults in how memory is read and written.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "mutant.h"

namespace tenon::mutants {
namespace {

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<std::int64_t>(shape[d], 1);
  return strides;
}

/// Runs `change` on the view of every input.
template <class Change>
auto on_inputs(Change change) {
  return [change](Run& run) {
    for (ops::TensorView& input : run.inputs) change(input);
  };
}

std::int64_t elements(const ops::TensorView& view) {
  std::int64_t n = 1;
  for (std::int64_t size : view.shape) n *= size;
  return n;
}

/// Reads a smaller operand's first element wherever it is broadcast to a larger one.
void read_first_when_broadcast(Run& run) {
  std::int64_t most = 0;
  for (const ops::TensorView& input : run.inputs) most = std::max(most, elements(input));
  for (ops::TensorView& input : run.inputs)
    if (elements(input) < most) std::fill(input.strides.begin(), input.strides.end(), 0);
}

void write_past_end(Run& run) {
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    if (run.args.outputs[i]) std::memset(static_cast<std::byte*>(run.args.outputs[i]) + run.outputs[i].byte_count(), 0, size_of(run.outputs[i].dtype));
}

void write_before_start(Run& run) {
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    if (run.args.outputs[i]) static_cast<std::byte*>(run.args.outputs[i])[-1] = std::byte{0};
}

void crash_when_misaligned(Run& run) {
  for (const ops::TensorView& input : run.inputs)
    if (elements(input) > 0 && reinterpret_cast<std::uintptr_t>(input.data) % 16 != 0 && input.strides == row_major(input.shape)) std::abort();
}

void read_from_aligned_address(Run& run) {
  for (ops::TensorView& input : run.inputs) input.data = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(input.data) & ~std::uintptr_t{15});
}

/// The byte behind each input, of those that lie in one piece.
void read_past_inputs(Run& run) {
  for (const ops::TensorView& input : run.inputs)
    if (elements(input) > 0 && input.strides == row_major(input.shape))
      static_cast<void>(*(static_cast<volatile const std::byte*>(input.data) + elements(input) * static_cast<std::int64_t>(size_of(input.dtype))));
}

/// What was there before the run stays there.
void skip_last_element(Run& run) {
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    const std::size_t bytes = run.outputs[i].byte_count(), size = size_of(run.outputs[i].dtype);
    if (run.args.outputs[i] && bytes) std::memcpy(static_cast<std::byte*>(run.outputs[i].data()) + bytes - size, static_cast<const std::byte*>(run.args.outputs[i]) + bytes - size, size);
  }
}

}  // namespace

std::vector<Mutant> memory_faults() {
  return {
      {.name = "ignores_strides", .before = on_inputs([](ops::TensorView& view) { view.strides = row_major(view.shape); })},
      {.name = "negative_strides_as_positive", .before = on_inputs([](ops::TensorView& view) { for (auto& s : view.strides) s = std::abs(s); })},
      {.name = "zero_strides_as_one", .before = on_inputs([](ops::TensorView& view) { for (auto& s : view.strides) s = s ? s : 1; })},
      {.name = "column_major_inputs", .before = on_inputs([](ops::TensorView& view) { if (view.shape.size() == 2) view.strides = {1, view.shape[0]}; })},
      {.name = "wrong_broadcast", .before = read_first_when_broadcast},
      {.name = "reads_from_second_element", .before = on_inputs([](ops::TensorView& view) { if (elements(view) > 1) view.data = static_cast<std::byte*>(view.data) + size_of(view.dtype); })},
      {.name = "ignores_constant_byte_offset", .constant = [](DLTensor& constant) { constant.byte_offset = 0; }},
      {.name = "wants_aligned_inputs", .before = crash_when_misaligned},
      {.name = "rounds_addresses_down", .before = read_from_aligned_address},
      {.name = "writes_past_the_end", .written = write_past_end},
      {.name = "writes_before_the_start", .written = write_before_start},
      {.name = "changes_an_input", .written = [](Run& run) {
         if (!run.inputs.empty() && elements(run.inputs[0]) > 0) *static_cast<std::uint8_t*>(run.inputs[0].data) ^= 1;
       }},
      {.name = "overruns_its_workspace", .written = [](Run& run) { std::memset(static_cast<std::byte*>(run.args.workspace) + 250, 1, 20); }},
      {.name = "reads_past_an_input", .before = read_past_inputs},
      {.name = "skips_the_last_element", .after = skip_last_element},
      {.name = "leaves_output_unwritten", .after = [](Run& run) {
         for (std::size_t i = 0; i < run.outputs.size(); ++i)
           if (run.args.outputs[i] && run.outputs[i].byte_count()) std::memcpy(run.outputs[i].data(), run.args.outputs[i], run.outputs[i].byte_count());
       }},
  };
}

}  // namespace tenon::mutants
