#include "program.h"

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cstring>

#include "core/base/arena_plan.h"
#include "core/base/error.h"
#include "core/ops/catalog.h"
#include "core/ops/reference.h"
#include "fusion/layout.h"
#include "fusion/overwriting.h"
#include "fusion/statistics.h"
#include "step_times.h"

namespace tenon::llvm_backend {

using codegen::ChainStep;
using codegen::ContractionStep;
using codegen::KernelStep;
using codegen::LibraryStep;

namespace {

constexpr std::size_t kAlignment = 64;
std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }

}  // namespace

Program::Program(HostServices host, KernelCache& cache, ir::Graph graph, const ProgramOptions& options)
    : host_(host), log_times_(options.log_times), cache_(cache), graph_(std::move(graph)) {
  codegen::decompose_composites(graph_);
  codegen::share_statistics(graph_);
  codegen::choose_layouts(graph_);
  codegen::PlanOptions plan_options;
  plan_options.concatenations = codegen::join_concatenations(graph_);
  plan_options.fuse = options.fuse;
  plan_options.matrix_kernels = options.matrix_kernels;
  plan_options.relaxed = options.relaxed;
  plan_options.lanes = cache.target().lanes();
  if (options.log_fusion) plan_options.log = [this](const std::string& line) { host_.log(TENON_INFO, line, "fusion"); };
  plan_ = codegen::make_plan(graph_, plan_options);
  find_unread();
  place_values();
  drop_copies_in_place();
  compile_kernels(cache, options);
}

/// Kernels that are written out leave such results out.
void Program::find_unread() {
  unread_.assign(graph_.value_capacity(), false);
  const auto users = graph_.users();
  for (NodeId id : graph_.nodes()) {
    const ir::Node& node = graph_.node(id);
    const ops::Op* op = ops::find_op(node.op);
    if (!op || !op->kernel || node.results.size() < 2) continue;
    for (ValueId v : node.results)
      unread_[v.value] = users[v.value].empty() && std::ranges::none_of(graph_.outputs(), [&](const ir::Output& output) { return output.value == v; });
  }
}

std::vector<std::size_t> Program::last_uses() const {
  std::vector<std::size_t> last(places_.size(), 0);
  for (std::size_t s = 0; s < plan_.steps.size(); ++s)
    for (const bool written : {false, true})
      for (std::size_t v : codegen::values_of(plan_.steps[s], graph_, written)) last[v] = s;
  for (const auto& [value, output] : copies_) last[value.value] = plan_.steps.size();
  return last;
}

std::vector<Program::Intermediate> Program::intermediates() const {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const std::size_t graph_values = graph_.value_capacity();
  const auto last = last_uses();
  std::vector<std::size_t> piece(places_.size(), kNone);  // by value
  std::vector<Intermediate> found;
  auto bytes_of = [&](std::size_t v) {
    const bool temporary = v >= graph_values;
    const DType dtype = temporary ? plan_.temporaries[v - graph_values].dtype : graph_.type(ValueId(v)).dtype;
    return (temporary ? plan_.temporaries[v - graph_values].elements : graph_.type(ValueId(v)).element_count()) * Dim(static_cast<std::int64_t>(size_of(dtype)));
  };
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    for (const auto& [written, read] : codegen::overwritings(plan_.steps[s])) {
      const std::size_t over = piece[read.value];
      if (over == kNone || places_[written.value].kind != Place::Kind::none || piece[written.value] != kNone) continue;
      if (found[over].to != s || found[over].values.back() != read.value || !(found[over].bytes == bytes_of(written.value))) continue;
      piece[written.value] = over;
      found[over].values.push_back(written.value);
      found[over].to = last[written.value];
    }
    for (std::size_t v : codegen::values_of(plan_.steps[s], graph_, true)) {
      if (places_[v].kind != Place::Kind::none || piece[v] != kNone || (v < graph_values && unread_[v])) continue;
      piece[v] = found.size();
      found.push_back({{v}, bytes_of(v), s, last[v]});
    }
  }
  return found;
}

namespace {

/// True for a step that nothing can stop once it has started: it checks no index, and takes no memory.
bool always_succeeds(const codegen::Step& step) {
  const auto* kernel = std::get_if<KernelStep>(&step);
  return kernel && std::ranges::none_of(kernel->kernel.operations, [](const auto& op) { return op.kind == codegen::OperationKind::checked; }) &&
         std::ranges::none_of(kernel->kernel.buffers, [](const auto& b) { return b.row; });
}

}  // namespace

/// Outputs that are written over an input when nothing reads it any more and nothing can fail.
std::vector<TenonAliasPermit> Program::aliases() const {
  const auto last = last_uses();
  std::vector<std::size_t> first(places_.size(), 0);  // the step that begins a value, of which others may write parts
  for (std::size_t s = plan_.steps.size(); s-- > 0;)
    for (std::size_t v : codegen::values_of(plan_.steps[s], graph_, true)) first[v] = s;
  std::vector<TenonAliasPermit> found;
  for (std::size_t s = plan_.steps.size(); s-- > 0 && always_succeeds(plan_.steps[s]);)
    for (const auto& [written, read] : codegen::overwritings(plan_.steps[s])) {
      const Place &to = places_[written.value], &from = places_[read.value];
      if (to.kind == Place::Kind::output && from.kind == Place::Kind::input && first[written.value] == s && last[read.value] == s) found.push_back({to.index, from.index});
    }
  return found;
}

void Program::place(const Intermediate& intermediate, std::size_t index) {
  for (std::size_t v : intermediate.values) places_[v] = {Place::Kind::workspace, static_cast<std::uint32_t>(index), nullptr};
}

/// Sizes are known: values share whatever bytes are free.
void Program::place_at_offsets(std::span<const Intermediate> values) {
  std::vector<ArenaRequest> requests;
  for (const Intermediate& v : values) {
    place(v, requests.size());
    requests.push_back({static_cast<std::size_t>(v.bytes.constant()), static_cast<std::uint32_t>(v.from), static_cast<std::uint32_t>(v.to)});
  }
  ArenaPlan arena = plan_arena(requests);
  offsets_ = std::move(arena.offsets), fixed_bytes_ = arena.bytes;
}

/// Values whose sizes come with the call take turns in slots that fit them at any size.
void Program::place_in_turn(const Intermediate& value) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].free_after >= value.from + 1) continue;
    const Dim spare = slots_[i].bytes - value.bytes;
    const bool fits = spare.is_constant() && spare.constant() >= 0 && (slots_[i].bytes.is_constant() ? spare.constant() <= value.bytes.constant() : true);
    if (!fits) continue;
    slots_[i].free_after = value.to + 1;
    return place(value, i);
  }
  place(value, slots_.size());
  slots_.push_back({value.bytes, value.to + 1});
}

void Program::place_values() {
  places_.resize(graph_.value_capacity() + plan_.temporaries.size());
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
    places_[graph_.inputs()[i].value] = {Place::Kind::input, static_cast<std::uint32_t>(i), nullptr};
  for (NodeId id : graph_.nodes()) {
    const ir::Node& node = graph_.node(id);
    if (node.op != "constant" || !node.operands.empty()) continue;
    const auto index = static_cast<std::size_t>(std::get<Dim>(*node.attribute("index")).constant());
    places_[node.results[0].value] = {Place::Kind::constant, 0, graph_.constants()[index].data};
  }
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId value = graph_.outputs()[i].value;
    Place& place = places_[value.value];
    if (place.kind == Place::Kind::none && graph_.value(value).kind == ir::ValueKind::result) place = {Place::Kind::output, static_cast<std::uint32_t>(i), nullptr};
    else copies_.emplace_back(value, static_cast<std::uint32_t>(i));
  }
  const auto values = intermediates();
  fixed_sizes_ = std::ranges::all_of(values, [](const Intermediate& v) { return v.bytes.is_constant(); });
  if (fixed_sizes_) return place_at_offsets(values);
  for (const Intermediate& v : values) place_in_turn(v);
}

/// Steps that copy memory onto itself: what they copy is needed by nobody else, so that it was given the same place.
void Program::drop_copies_in_place() {
  std::erase_if(plan_.steps, [&](const codegen::Step& step) {
    auto* kernel = std::get_if<KernelStep>(&step);
    const auto copied = kernel ? codegen::copied_value(*kernel) : std::nullopt;
    if (!copied) return false;
    const Place &from = places_[copied->read.value], &to = places_[copied->written.value];
    return from.kind == Place::Kind::workspace && to.kind == from.kind && to.index == from.index;
  });
  for (const codegen::Step& step : plan_.steps) {
    auto* kernel = std::get_if<KernelStep>(&step);
    const auto copied = kernel ? codegen::copied_value(*kernel) : std::nullopt;
    copied_.push_back(copied ? std::optional(std::pair(places_[copied->read.value], places_[copied->written.value])) : std::nullopt);
  }
}

/// Every kernel of the plan in a fixed order: of a product those that pack, then what follows it; of a chain those of its products, then
/// what is between them.
std::vector<const KernelStep*> Program::kernel_steps() const {
  std::vector<const KernelStep*> steps;
  auto add = [&](const ContractionStep& product) {
    for (const auto* part : {&product.a.pack, &product.a.table, &product.b.pack, &product.epilogue})
      if (*part) steps.push_back(&**part);
  };
  for (const codegen::Step& step : plan_.steps) {
    if (auto* kernel = std::get_if<KernelStep>(&step)) steps.push_back(kernel);
    if (auto* product = std::get_if<ContractionStep>(&step)) add(*product);
    if (auto* chain = std::get_if<ChainStep>(&step)) add(chain->first), add(chain->second), steps.push_back(&chain->between);
  }
  return steps;
}

std::vector<Place> Program::places_of(const KernelStep& step) const {
  std::vector<Place> places;
  auto add = [&](ValueId v) {
    if (v == codegen::kRow) places.push_back({Place::Kind::row, 0, nullptr});
    else places.push_back(v == codegen::kPanel ? Place{Place::Kind::panel, 0, nullptr} : places_[v.value]);
  };
  std::for_each(step.buffers.begin(), step.buffers.end(), add);
  for (const auto& run : step.others) std::for_each(run.begin(), run.end(), add);
  for (std::size_t i = 0; i < step.starts.size(); ++i)
    places[i].start = step.starts[i] * static_cast<std::int64_t>(size_of(step.kernel.buffers[i % step.buffers.size()].dtype));
  return places;
}

void Program::compile_kernels(KernelCache& cache, const ProgramOptions& options) {
  const auto steps = kernel_steps();
  std::vector<const codegen::Kernel*> wanted;
  for (const KernelStep* step : steps) wanted.push_back(&step->kernel);
  std::function<void(const std::string&)> listing;
  if (options.log_code) listing = [this](const std::string& text) { host_.log(TENON_INFO, text, "kernel_code"); };
  MatrixParts products;
  for (const codegen::Step& step : plan_.steps) {
    if (auto* product = std::get_if<ContractionStep>(&step)) add_parts(*product, products);
    if (auto* chain = std::get_if<ChainStep>(&step)) add_parts(chain->first, products), add_parts(chain->second, products);
  }
  const auto code = cache.kernels(host_, {wanted, products, listing, options.swap_tiers});
  std::size_t next = 0;
  auto take = [&]() {
    const KernelStep& step = *steps[next];
    return compiled(step.kernel, *code[next++], places_of(step), 1 + step.others.size());
  };
  auto take_product = [&](const ContractionStep& product) {
    CompiledProduct mine;
    mine.matrix = cache.matrix_kernel(host_, product.dtype, products);
    if (product.a.pack) mine.pack_a = take();
    if (!product.a.pack || product.a.packs_rows_of_value) mine.a = places_[product.a.value.value];
    if (product.a.table) mine.table = take();
    if (product.b.pack) mine.pack_b = take();
    else mine.b = places_[product.b.value.value];
    if (product.epilogue) mine.epilogue = take();
    else mine.c = places_[product.c.value];
    return mine;
  };
  for (const codegen::Step& step : plan_.steps) {
    if (std::holds_alternative<KernelStep>(step)) {
      code_.emplace_back(take());
    } else if (auto* product = std::get_if<ContractionStep>(&step)) {
      code_.emplace_back(take_product(*product));
    } else if (auto* chain = std::get_if<ChainStep>(&step)) {
      CompiledProduct first = take_product(chain->first), second = take_product(chain->second);
      code_.emplace_back(CompiledChain{std::move(first), std::move(second), take()});
    } else {
      code_.emplace_back();
    }
  }
}

std::size_t Program::workspace_bytes(std::span<const std::int64_t> symbols) {
  if (fixed_sizes_) return fixed_bytes_;
  std::size_t bytes = 0;
  for (const Slot& slot : slots_) bytes += aligned(static_cast<std::size_t>(slot.bytes.evaluate(symbols)));
  return bytes;
}

void Program::execute(const TenonExecuteArgs& args) {
  if (fixed_sizes_) return execute(args, offsets_.data());
  thread_local std::vector<std::size_t> sized;
  std::vector<std::size_t> own;
  own.swap(sized);  // its memory is used again; a nested call on this thread finds an empty one
  own.clear();
  std::size_t bytes = 0;
  for (const Slot& slot : slots_) {
    own.push_back(bytes);
    bytes += aligned(static_cast<std::size_t>(slot.bytes.evaluate({args.symbols, graph_.symbols().size()})));
  }
  execute(args, own.data());
  sized.swap(own);
}

void Program::execute(const TenonExecuteArgs& args, const std::size_t* offsets) {
  const Call call{args, offsets, {args.symbols, graph_.symbols().size()}};
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const bool onto_itself = copied_[s] && call.address(copied_[s]->first) == call.address(copied_[s]->second);
    if (!onto_itself) run_step(s, call);
  }
  copy_outputs(call);
}

void Program::run_step(std::size_t step, const Call& call) const {
  using Clock = std::chrono::steady_clock;
  const auto start = log_times_ ? Clock::now() : Clock::time_point();
  if (auto* kernel = std::get_if<CompiledKernel>(&code_[step])) run(host_, *kernel, call);
  else if (auto* product = std::get_if<CompiledProduct>(&code_[step])) run(host_, std::get<ContractionStep>(plan_.steps[step]), *product, call);
  else if (auto* chain = std::get_if<CompiledChain>(&code_[step])) run(host_, std::get<ChainStep>(plan_.steps[step]), *chain, call);
  else run_library(std::get<LibraryStep>(plan_.steps[step]), call);
  if (!log_times_) return;
  const double microseconds = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  host_.log(TENON_INFO, step_line(graph_, plan_, step, call.symbols, microseconds), "kernel_times");
}

namespace {

/// Forgets the floating-point flags that come of comparing NaNs while it lives.
class QuietFlags {
 public:
  QuietFlags() { std::fegetexceptflag(&flags_, FE_ALL_EXCEPT); }
  ~QuietFlags() { std::fesetexceptflag(&flags_, FE_ALL_EXCEPT); }
  QuietFlags(const QuietFlags&) = delete;
  QuietFlags& operator=(const QuietFlags&) = delete;

 private:
  std::fexcept_t flags_{};
};

}  // namespace

/// Sorts, searches: nothing that computes numbers.
void Program::run_library(const LibraryStep& step, const Call& call) const {
  const QuietFlags quiet;
  const ir::Node& node = graph_.node(step.node);
  const std::span<const std::int64_t> symbols = call.symbols;
  auto view = [&](ValueId value) {
    const ir::Type& type = graph_.type(value);
    ops::TensorView v;
    v.dtype = type.dtype;
    for (const Dim& d : type.shape) v.shape.push_back(d.evaluate(symbols));
    for (const Dim& d : type.resolved_strides()) v.strides.push_back(d.evaluate(symbols));
    v.data = unread_[value.value] ? nullptr : call.address(places_[value.value]);
    return v;
  };
  std::vector<ops::TensorView> inputs, outputs;
  for (ValueId v : node.operands) inputs.push_back(graph_.value(v).kind == ir::ValueKind::literal ? ops::TensorView{} : view(v));
  for (ValueId v : node.results) {
    const Place& place = places_[v.value];
    const bool sized_later = place.kind == Place::Kind::output && !call.args.outputs[place.index] && defines_symbols(v);
    outputs.push_back(sized_later ? ops::TensorView{nullptr, graph_.type(v).dtype, {}, {}} : view(v));
  }
  ops::NodeRun run;
  run.inputs = inputs;
  run.outputs = outputs;
  run.symbols = symbols;
  run.allocate = [&](std::size_t output, std::vector<std::int64_t> shape) -> ops::TensorView& {
    const Place& place = places_[node.results[output].value];
    ops::TensorView& v = outputs[output];
    v.data = call.args.call->allocate_output(call.args.call->self, place.index, shape.data(), shape.size());
    if (!v.data) v.data = call.address({});
    v.strides.assign(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) v.strides[i - 1] = v.strides[i] * std::max<std::int64_t>(1, shape[i]);
    v.shape = std::move(shape);
    return v;
  };
  ops::run_node(graph_, step.node, run);
}

/// True when the type has a symbol that no input binds: the size is known only after the node has run.
bool Program::defines_symbols(ValueId value) const {
  bool found = false;
  for (const Dim& d : graph_.type(value).shape) d.for_each_symbol([&](SymbolId s) {
    bool bound = false;
    for (ValueId input : graph_.inputs())
      for (const Dim& i : graph_.type(input).shape) bound = bound || i.as_symbol() == s;
    found = found || !bound;
  });
  return found;
}

namespace {

/// Copies a strided tensor to row-major memory.
void copy_rows(std::byte* to, const std::byte* from, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::size_t bytes) {
  std::int64_t count = 1;
  for (std::int64_t d : shape) count *= d;
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * static_cast<std::int64_t>(bytes), from + offset * static_cast<std::int64_t>(bytes), bytes);
    for (std::size_t d = shape.size(); d-- > 0;) {
      offset += strides[d];
      if (++index[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

void Program::copy_outputs(const Call& call) const {
  const std::span<const std::int64_t> symbols = call.symbols;
  for (const auto& [value, output] : copies_) {
    const ir::Type& type = graph_.type(value);
    std::vector<std::int64_t> shape, strides;
    for (const Dim& d : type.shape) shape.push_back(d.evaluate(symbols));
    for (const Dim& d : type.resolved_strides()) strides.push_back(d.evaluate(symbols));
    copy_rows(static_cast<std::byte*>(call.args.outputs[output]), static_cast<const std::byte*>(call.address(places_[value.value])), shape, strides, size_of(type.dtype));
  }
}

}  // namespace tenon::llvm_backend
