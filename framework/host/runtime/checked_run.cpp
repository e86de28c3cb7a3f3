#include "host/runtime/checked_run.h"

#include <algorithm>
#include <cstring>

#include "host/machine/strided_copy.h"

namespace tenon::host {
namespace {

constexpr std::size_t kMargin = 4096;  // bytes watched on either side of a block
constexpr int kMostRuns = 5;           // a byte that was written equals the marks of all of them once in 2^40 times

/// The byte that marks a position. No bool has such a value.
std::byte mark(std::size_t position, unsigned seed) {
  std::uint64_t x = (position + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
  x ^= x >> 29, x *= 0x94d049bb133111ebu, x ^= x >> 32;
  return static_cast<std::byte>(x | 2);
}

/// Memory with marks around it.
class MarkedBlock {
 public:
  /// The block begins as far past a multiple of 64 as `like` does.
  MarkedBlock(std::size_t bytes, unsigned seed, const void* like = nullptr) : storage_(bytes + 2 * kMargin + 128), bytes_(bytes), seed_(seed) {
    const auto first = reinterpret_cast<std::uintptr_t>(storage_.data()) + kMargin;
    begin_ = kMargin + (64 - first % 64) % 64 + reinterpret_cast<std::uintptr_t>(like) % 64;
    for (std::size_t i = 0; i < storage_.size(); ++i) storage_[i] = mark(i, seed_);
  }

  std::byte* data() { return storage_.data() + begin_; }
  std::size_t size() const { return bytes_; }
  bool is_marked(std::size_t byte) const { return storage_[begin_ + byte] == mark(begin_ + byte, seed_); }
  bool surroundings_are_marked() const { return marked(0, begin_) && marked(begin_ + bytes_, storage_.size()); }

 private:
  bool marked(std::size_t from, std::size_t to) const {
    for (std::size_t i = from; i < to; ++i)
      if (storage_[i] != mark(i, seed_)) return false;
    return true;
  }

  std::vector<std::byte> storage_;
  std::size_t begin_, bytes_;
  unsigned seed_;
};

/// One run of the group.
class Trial {
 public:
  Trial(RunContext& context, std::uint32_t s, unsigned seed) : context_(context), step_(*context.plan.steps()[s]), state_(*context.steps[s]), seed_(seed) {
    for (std::size_t i = 0; i < step_.inputs.size(); ++i) add_input(i);
    for (std::size_t o = 0; o < step_.outputs.size(); ++o) add_output(o);
    if (state_.args.workspace) workspace_.emplace_back(step_.artefact->workspace_bytes(state_.symbols.data(), DeviceList::host().memory_bytes()).value(), seed);
  }

  std::int32_t run() {
    TenonExecuteArgs args = state_.args;
    args.inputs = input_pointers_.data();
    args.outputs = output_pointers_.data();
    if (!workspace_.empty()) args.workspace = workspace_[0].data();
    return step_.artefact->execute(args);
  }

  /// What was touched that may not be; empty when nothing was.
  std::string trespass() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].size() && std::memcmp(inputs_[i].data(), lowest_of(i), inputs_[i].size()) != 0) return fmt::format("it wrote into its input %{}", name(step_.inputs[i]));
      if (!inputs_[i].surroundings_are_marked()) return fmt::format("it wrote outside of its input %{}", name(step_.inputs[i]));
    }
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      if (!outputs_[o].surroundings_are_marked()) return fmt::format("it wrote outside of its output %{}", name(step_.outputs[o]));
    for (const MarkedBlock& workspace : workspace_)
      if (!workspace.surroundings_are_marked()) return "it wrote outside of its workspace";
    return {};
  }

  /// By output: the elements whose bytes are all as they were before the run.
  std::vector<std::vector<std::size_t>> unwritten() const {
    std::vector<std::vector<std::size_t>> found(outputs_.size());
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      for (std::size_t e = 0; e < outputs_[o].size() / element_bytes(o); ++e)
        if (is_unwritten(o, e)) found[o].push_back(e);
    return found;
  }

  bool is_unwritten(std::size_t o, std::size_t element) const {
    const std::size_t size = element_bytes(o);
    for (std::size_t b = 0; b < size; ++b)
      if (!outputs_[o].is_marked(element * size + b)) return false;
    return true;
  }

  void hand_outputs_on() {
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      if (outputs_[o].size()) std::memcpy(state_.args.outputs[o], outputs_[o].data(), outputs_[o].size());
  }

  const std::string& name_of_output(std::size_t o) const { return name(step_.outputs[o]); }

 private:
  const PlanValue& value(std::uint32_t v) const { return context_.plan.values()[v]; }
  const std::string& name(std::uint32_t v) const { return value(v).name; }
  std::size_t element_bytes(std::size_t o) const { return size_of(value(step_.outputs[o]).dtype); }

  /// Where an input begins in memory: before its first element, if strides are negative.
  const std::byte* lowest_of(std::size_t i) const {
    const PlanValue& input = value(step_.inputs[i]);
    const std::vector<std::int64_t> sizes = context_.sizes_of(input);
    return static_cast<const std::byte*>(state_.args.inputs[i]) - bytes_before_first(sizes, context_.strides_of(input, sizes), size_of(input.dtype));
  }

  void add_input(std::size_t i) {
    const auto* original = static_cast<const std::byte*>(state_.args.inputs[i]);
    const std::size_t bytes = original ? context_.bytes_of(value(step_.inputs[i])) : 0;
    const std::byte* lowest = bytes ? lowest_of(i) : original;
    MarkedBlock& copy = inputs_.emplace_back(bytes, seed_, lowest);
    if (bytes) std::memcpy(copy.data(), lowest, bytes);
    input_pointers_.push_back(original ? copy.data() + (original - lowest) : nullptr);
  }

  /// An output whose size depends on data gets its memory while it runs, from the host.
  void add_output(std::size_t o) {
    void* given = state_.args.outputs[o];
    MarkedBlock& block = outputs_.emplace_back(given ? context_.bytes_of(value(step_.outputs[o])) : 0, seed_);
    output_pointers_.push_back(given ? block.data() : nullptr);
  }

  RunContext& context_;
  const Step& step_;
  StepState& state_;
  unsigned seed_;
  std::vector<MarkedBlock> inputs_, outputs_, workspace_;
  std::vector<const void*> input_pointers_;
  std::vector<void*> output_pointers_;
};

}  // namespace

std::int32_t run_checked(RunContext& context, std::uint32_t s, std::string& defect) {
  Trial first(context, s, 1);
  const std::int32_t code = first.run();
  if (code != TENON_OK || !context.steps[s]->call_state.defect.empty()) return code;
  defect = first.trespass();
  std::vector<std::vector<std::size_t>> suspects = first.unwritten();
  const auto any = [&] { return std::ranges::any_of(suspects, [](const auto& elements) { return !elements.empty(); }); };
  for (unsigned seed = 2; defect.empty() && any() && seed <= kMostRuns; ++seed) {
    Trial again(context, s, seed);
    if (const std::int32_t failed = again.run(); failed != TENON_OK) return failed;
    for (std::size_t o = 0; o < suspects.size(); ++o) std::erase_if(suspects[o], [&](std::size_t element) { return !again.is_unwritten(o, element); });
  }
  for (std::size_t o = 0; o < suspects.size() && defect.empty(); ++o)
    if (!suspects[o].empty()) defect = fmt::format("it did not write element {} of its output %{}", suspects[o].front(), first.name_of_output(o));
  if (defect.empty()) first.hand_outputs_on();
  return code;
}

}  // namespace tenon::host
