#include "python/recording/graph/recorded_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/recording/graph/varying_input.h"

namespace tenon::python {
namespace {

/// "x", "self.lin.weight", made an identifier of the text form.
std::string graph_name(std::string_view source) {
  std::string name;
  for (char c : source) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    if (fits) name += c;
    else if (!name.empty() && name.back() != '_') name += '_';
  }
  while (!name.empty() && (name.back() == '_' || name.back() == '.')) name.pop_back();
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) || name.front() == '.') name = "input_" + name;
  return name;
}

/// Whether a tensor may carry marks of torch's own compiler.
bool is_marked(const TensorSpec& spec, const TorchLibrary* torch) {
  return torch && spec.kind == TensorKind::torch && is_imported("torch._dynamo");
}

}  // namespace

std::string RecordedInputs::words_of(SourceId source, GuardSet& guards) {
  const std::string words = guards.sources().describe(source);
  std::vector<SourceId>& same = named_[words];
  const auto found = std::ranges::find(same, source);
  const auto at = found - same.begin();
  if (found == same.end()) same.push_back(source);
  return at == 0 ? words : fmt::format("{} ({})", words, at + 1);
}

ir::ValueId RecordedInputs::add_to_graph(ir::Type type, std::string_view name) { return graph_.add_input(std::move(type), graph_name(name)); }

Ref RecordedInputs::add(PyObject* real, SourceId source, GuardSet& guards) {
  auto read = read_spec(real);
  if (const auto* odd = std::get_if<std::string>(&read)) throw GraphBreak(*odd + " as an input", "give the compiled function dense tensors and arrays of numbers; convert it before the call");
  TensorSpec& spec = std::get<TensorSpec>(read);
  places_.require_served(spec.device);
  const std::string name = words_of(source, guards);
  const TorchLibrary* torch = known_torch_library();
  const bool parameter = torch && reinterpret_cast<PyObject*>(spec.type) == torch->parameter.get();
  const ir::Type type = type_of_input(spec, name, source, symbols_, guards.sources().from_argument(source) && !parameter, is_marked(spec, torch) ? size_marks(real) : SizeMarks());
  StandIn stand_in = stand_in_of(spec, add_to_graph(type, name));
  stand_in.writeable = spec.writeable;
  stand_in.requires_grad = spec.requires_grad;
  stand_in.input = static_cast<std::uint32_t>(inputs_.size());
  stand_in.source = source;
  stand_in.inference = spec.is_inference();
  guards.add_value_check(source, std::make_shared<TensorCheck>(spec));
  if (spec.kind != TensorKind::scalar) guards.add_distinct(source);
  std::shared_ptr<FrozenTensor> frozen;
  const bool may_get_gradient = spec.requires_grad && torch_state().value_or(TorchState{}).grad_enabled();
  if (freeze_ && !may_get_gradient && may_freeze(spec, guards.sources(), source)) {
    frozen = std::make_shared<FrozenTensor>(spec, real);
    guards.add_value_check(source, frozen);
  }
  const Index index = stand_ins_.add_owner(std::move(stand_in));
  inputs_.push_back(index);
  specs_.push_back(std::move(spec));
  frozen_.push_back(std::move(frozen));
  objects_.push_back(Ref::borrow(real));
  const auto input = static_cast<std::uint32_t>(inputs_.size() - 1);
  for (std::uint32_t other : near(input))
    if (stand_ins_.storage_of(inputs_[other]).version > 0) require_apart(other, input);
  note_place(input);
  return stand_ins_[index].object;
}

ir::ValueId RecordedInputs::add_float(FloatTape::Position step) {
  TensorSpec spec;
  spec.kind = TensorKind::scalar;
  spec.dtype = DType::f64;
  spec.type = &PyFloat_Type;
  StandIn stand_in = stand_in_of(spec, add_to_graph(ir::Type::tensor(DType::f64, {}), symbols_.floats().words(step)));
  const ir::ValueId value = stand_in.value;
  stand_in.input = static_cast<std::uint32_t>(inputs_.size());
  inputs_.push_back(stand_ins_.add_owner(std::move(stand_in)));
  specs_.push_back(std::move(spec));
  frozen_.emplace_back();
  objects_.push_back(checked(PyFloat_FromDouble(symbols_.floats().value(step))));
  steps_.resize(inputs_.size());
  steps_.back() = step;
  return value;
}

/// The places of a tensor that was there before the call.
ElementPlaces RecordedInputs::places_of(std::uint32_t input) const {
  const TensorSpec& spec = specs_[input];
  return {data_of(spec, objects_[input].get(), nullptr), size_of(spec.dtype), spec.shape, spec.strides};
}

void RecordedInputs::note_write(Index index) {
  const auto input = stand_ins_[stand_ins_.owner(index)].input;
  if (!input) return;
  if (is_copied_on_write(specs_[*input], objects_[*input].get())) throw GraphBreak("a write to a tensor that is copied when it is written");
  for (std::uint32_t other : near(*input)) require_apart(*input, other);
}

void RecordedInputs::note_place(std::uint32_t input) {
  if (specs_[input].kind == TensorKind::scalar) return;
  const ByteRange range = range_of(places_of(input));
  by_place_.emplace(reinterpret_cast<std::uintptr_t>(range.low), input);
  longest_ = std::max(longest_, static_cast<std::uintptr_t>(range.high - range.low));
}

/// The tensors, among them itself, whose bytes lie between those of a tensor: of the hundreds that a network and its optimizer have, few.
std::vector<std::uint32_t> RecordedInputs::near(std::uint32_t input) const {
  std::vector<std::uint32_t> found;
  if (specs_[input].kind == TensorKind::scalar) return found;
  const ByteRange range = range_of(places_of(input));
  const auto low = reinterpret_cast<std::uintptr_t>(range.low), high = reinterpret_cast<std::uintptr_t>(range.high);
  for (auto at = by_place_.lower_bound(low - std::min(low, longest_)); at != by_place_.end() && at->first < high; ++at) found.push_back(at->second);
  return found;
}

void RecordedInputs::require_apart(std::uint32_t written, std::uint32_t other) const {
  if (written == other || specs_[other].kind == TensorKind::scalar) return;
  if (may_share_memory(places_of(written), places_of(other)))
    throw GraphBreak("a write to a tensor that shares memory with another input of the graph", "give the compiled function tensors with memory of their own: x.clone()");
}

void RecordedInputs::give(CapturedGraph& captured) {
  for (const TensorUpdate& update : captured.updates)
    if (auto frozen = std::exchange(frozen_[update.input], nullptr)) frozen->thaw();
  captured.inputs = std::move(specs_);
  captured.input_steps = std::move(steps_);
  captured.input_steps.resize(captured.inputs.size());
  captured.frozen = std::move(frozen_);
}

}  // namespace tenon::python
