#include "program.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

#include "core/base/error.h"
#include "core/memory/row_major.h"
#include "core/ops/catalog.h"
#include "core/ops/reference/reference.h"
#include "fusion/overwriting.h"
#include "fusion/step_nodes.h"
#include "fusion/step_outline.h"
#include "fusion/step_times.h"
#include "graph/planning.h"
#include "lane_parts.h"

namespace tenon::llvm_backend {

using codegen::ChainStep;
using codegen::ContractionStep;
using codegen::KernelStep;
using codegen::LibraryStep;

Program::Program(HostServices host, KernelCache& cache, ir::Graph graph, const ProgramOptions& options)
    : host_(host), profiling_(host), log_times_(options.log_times), cache_(cache), graph_(std::make_unique<ir::Graph>(std::move(graph))) {
  const auto pause = [this] { stop_if_cancelled(host_); };
  codegen::PlanOptions plan_options;
  plan_options.fuse = options.fuse;
  plan_options.matrix_kernels = options.matrix_kernels;
  plan_options.relaxed = options.relaxed;
  plan_options.keeps_flags = cache.target().quiet_comparisons;
  plan_options.pause = pause;
  if (options.log_fusion) plan_options.log = [this](const std::string& line) { host_.log(TENON_INFO, line, "fusion"); };
  const CpuMachine machine(cache.target());
  const auto log = plan_options.log;
  plan_ = codegen::plan_graph(*graph_, machine, std::move(plan_options));
  pause();
  placement_ = Placement(*graph_, plan_);
  pause();
  drop_copies_in_place();
  make_tiles(machine, log);
  compile_kernels(cache, options);
  aliases_ = placement_.aliases(*graph_, plan_);
  if (options.log_steps || log_times_) say_steps();
  name_steps();
  drop_what_only_compiling_needs(options);
}

Program::~Program() {
  code_.clear();
  cache_.look_for_idle();
}

void Program::say_steps() {
  number_ = codegen::next_program_number();
  if (!host_.log_enabled("steps")) return;
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) host_.log(TENON_INFO, codegen::step_outline(*graph_, plan_, number_, s), "steps");
  host_.log(TENON_INFO, codegen::memory_line(*graph_, plan_, number_), "steps");
}

void Program::name_steps() {
  for (const codegen::Step& step : plan_.steps) {
    const ir::Node* placed = codegen::placed_node(*graph_, codegen::nodes_of(step));
    step_names_ += codegen::name_of(*graph_, codegen::computed_nodes(*graph_, plan_, step)) + '\0' + (placed ? fmt::format("{}:{}", placed->location->file, placed->location->line) : std::string()) + '\0';
  }
  step_names_.shrink_to_fit();
}

void Program::begin_range(Range& range, std::size_t step) const {
  const char* name = step_names_.c_str();
  for (std::size_t skipped = 0; skipped < 2 * step; ++skipped) name += std::strlen(name) + 1;
  range.begin(profiling_, name, name + std::strlen(name) + 1);
}

/// What profilers call the code of kernels; nothing where nobody asks.
std::vector<std::shared_ptr<const CodeName>> Program::code_names(const std::vector<const KernelStep*>& steps) const {
  std::vector<std::shared_ptr<const CodeName>> names;
  if (!profiling_.takes_code()) return names;
  for (const KernelStep* step : steps) {
    const ir::Node* placed = codegen::placed_node(*graph_, step->nodes);
    CodeName name{"tenon: " + codegen::name_of(*graph_, codegen::computed_nodes(*graph_, plan_, *step)), {}, 0};
    if (placed) name.file = placed->location->file, name.line = static_cast<int>(placed->location->line);
    names.push_back(std::make_shared<const CodeName>(std::move(name)));
  }
  return names;
}

/// Steps that copy memory onto itself: what they copy is needed by nobody else, so that it was given the same place.
void Program::drop_copies_in_place() {
  std::erase_if(plan_.steps, [&](const codegen::Step& step) {
    auto* kernel = std::get_if<KernelStep>(&step);
    const auto copied = kernel ? codegen::copied_value(*kernel) : std::nullopt;
    if (!copied) return false;
    const Place &from = placement_[copied->read], &to = placement_[copied->written];
    return from.kind == Place::Kind::workspace && to.kind == from.kind && to.index == from.index;
  });
  for (const codegen::Step& step : plan_.steps) {
    auto* kernel = std::get_if<KernelStep>(&step);
    const auto copied = kernel ? codegen::copied_value(*kernel) : std::nullopt;
    copied_.push_back(copied ? std::optional(std::pair(placement_[copied->read], placement_[copied->written])) : std::nullopt);
  }
  if (std::ranges::none_of(copied_, [](const auto& copied) { return copied.has_value(); })) copied_ = decltype(copied_)();
}

void Program::make_tiles(const CpuMachine& machine, const std::function<void(const std::string&)>& log) {
  plan_.algebra.add_symbols(kTileSymbols);
  const TilingContext context{*graph_, machine, plan_.algebra, {graph_->symbols().size()}};
  tiles_.resize(plan_.steps.size());
  for (std::size_t s = 0; s < tiles_.size(); ++s) {
    if (auto* product = std::get_if<ContractionStep>(&plan_.steps[s])) tiles_[s] = tiled(*product, context);
    if (auto* chain = std::get_if<ChainStep>(&plan_.steps[s])) tiles_[s] = on_panels(*chain, context, log);
  }
}

/// Thousands of small programs may be alive: most of them are a few kernels, which know all that a call needs.
void Program::drop_what_only_compiling_needs(const ProgramOptions& options) {
  symbol_count_ = graph_->symbols().size();
  if (options.keep_plan || log_times_) return;
  bool has_library_calls = false, has_products = false;
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    codegen::Step& step = plan_.steps[s];
    const bool library_call = std::holds_alternative<LibraryStep>(step);
    has_library_calls |= library_call;
    has_products |= !std::holds_alternative<std::monostate>(tiles_[s]);
    if (!library_call) step = KernelStep();
  }
  plan_.algebra = {};
  if (!has_library_calls) plan_ = {};
  if (!has_products) tiles_ = decltype(tiles_)();  // with its memory
  if (has_library_calls || !placement_.copies().empty()) return;
  placement_.forget_values();
  graph_.reset();
}

/// Every kernel of the plan in a fixed order: of a product those that pack, then what follows it, what adds it up and what pools it; of a chain those of its products, then
/// what is between them.
std::vector<const KernelStep*> Program::kernel_steps() const {
  std::vector<const KernelStep*> steps;
  auto add = [&](const TiledProduct& product) {
    for (const auto* part : {&product.a.pack, &product.a.table, &product.b.pack, &product.b.table, &product.epilogue, &product.sums})
      if (*part) steps.push_back(&**part);
    if (product.pooling) steps.push_back(&product.pooling->pooling.kernel);
  };
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    if (auto* kernel = std::get_if<KernelStep>(&plan_.steps[s])) steps.push_back(kernel);
    if (auto* with = product(s)) add(*with);
    if (auto* with = chain(s)) add(with->first), add(with->second), steps.push_back(&with->between);
  }
  return steps;
}

std::vector<Place> Program::places_of(const KernelStep& step) const {
  std::vector<Place> places;
  auto add = [&](ValueId v) {
    places.push_back(codegen::is_local(v) ? codegen::local_place(v) : placement_[v]);
  };
  std::for_each(step.buffers.begin(), step.buffers.end(), add);
  for (const auto& run : step.others) std::for_each(run.begin(), run.end(), add);
  for (std::size_t i = 0; i < step.starts.size(); ++i)
    places[i].start = step.starts[i] * static_cast<std::int64_t>(size_of(step.kernel.buffers[i % step.buffers.size()].dtype));
  return places;
}

/// By kernel: the one that runs in its place, where many small ones differ in sizes alone (a loop over rows of a triangle).
std::vector<std::optional<codegen::SizedKernel>> Program::shared_kernels(const std::vector<const KernelStep*>& steps, std::size_t least) const {
  std::set<const KernelStep*> alone;  // those of products take sizes of their own
  for (const codegen::Step& step : plan_.steps)
    if (auto* kernel = std::get_if<KernelStep>(&step)) alone.insert(kernel);
  std::vector<const codegen::Kernel*> small;
  for (const KernelStep* step : steps) small.push_back(alone.contains(step) && is_small(step->kernel) ? &step->kernel : nullptr);
  return codegen::shared_by_sizes(small, least);
}

void Program::compile_kernels(KernelCache& cache, const ProgramOptions& options) {
  const auto steps = kernel_steps();
  auto shared = shared_kernels(steps, options.least_shared);
  std::vector<const codegen::Kernel*> wanted;
  for (std::size_t i = 0; i < steps.size(); ++i) wanted.push_back(shared[i] ? &shared[i]->kernel : &steps[i]->kernel);
  std::function<void(const std::string&)> listing;
  if (options.log_code) listing = [this](const std::string& text) { host_.log(TENON_INFO, text, "kernel_code"); };
  MatrixParts products;
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    if (auto* with = product(s)) add_parts(*with, products);
    if (auto* with = chain(s)) add_parts(with->first, products), add_parts(with->second, products);
  }
  const auto code = cache.kernels(host_, {wanted, products, listing, options.swap_tiers, code_names(steps)});
  code_.reserve(plan_.steps.size());
  std::size_t next = 0;
  auto take = [&]() {
    const KernelStep& step = *steps[next];
    CompiledKernel kernel = compiled(step.kernel, code[next], places_of(step), 1 + step.others.size());
    if (auto& with_sizes = shared[next++]) kernel.sizes = std::move(with_sizes->sizes);
    return kernel;
  };
  auto take_product = [&](const TiledProduct& product) {
    CompiledProduct mine;
    mine.matrix = cache.matrix_kernel(host_, product.dtype, products);
    if (product.a.pack) mine.pack_a = take();
    if (!product.a.pack || product.a.packs_rows_of_value) mine.a = placement_[product.a.value];
    if (product.a.table) mine.table = take();
    if (product.b.pack) mine.pack_b = take();
    else mine.b = placement_[product.b.value];
    if (product.b.table) mine.table_b = take();
    if (product.epilogue) mine.epilogue = take();
    else if (!product.pooling) mine.c = placement_[product.c];
    if (product.sums) mine.sums = take();
    if (product.pooling) mine.pooling = take();
    return mine;
  };
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    if (std::holds_alternative<KernelStep>(plan_.steps[s])) {
      code_.emplace_back(take());
    } else if (auto* with = product(s)) {
      code_.emplace_back(std::make_unique<CompiledProduct>(take_product(*with)));
    } else if (auto* of_two = chain(s)) {
      CompiledProduct first = take_product(of_two->first), second = take_product(of_two->second);
      code_.emplace_back(std::make_unique<CompiledChain>(CompiledChain{std::move(first), std::move(second), take()}));
    } else {
      code_.emplace_back();
    }
  }
}

std::size_t Program::workspace_bytes(std::span<const std::int64_t> symbols) { return placement_.workspace_bytes(symbols); }

void Program::execute(const TenonExecuteArgs& args) {
  if (placement_.has_fixed_sizes()) return execute(args, placement_.fixed_offsets());
  thread_local std::vector<std::size_t> sized;
  std::vector<std::size_t> own;
  own.swap(sized);  // its memory is used again; a nested call on this thread finds an empty one
  placement_.find_offsets({args.symbols, symbol_count_}, own);
  execute(args, own.data());
  sized.swap(own);
}

void Program::execute(const TenonExecuteArgs& args, const std::size_t* offsets) {
  const Call call{args, offsets, {args.symbols, symbol_count_}};
  for (std::size_t s = 0; s < code_.size(); ++s) {
    const bool onto_itself = !copied_.empty() && copied_[s] && call.address(copied_[s]->first) == call.address(copied_[s]->second);
    if (!onto_itself) run_step(s, call);
  }
  copy_outputs(call);
}

void Program::run_step(std::size_t step, const Call& call) const {
  using Clock = std::chrono::steady_clock;
  Range range;
  if (profiling_.takes_ranges()) [[unlikely]] begin_range(range, step);
  const auto start = log_times_ ? Clock::now() : Clock::time_point();
  if (auto* kernel = std::get_if<CompiledKernel>(&code_[step])) run(host_, *kernel, call);
  else if (auto* product = std::get_if<std::unique_ptr<CompiledProduct>>(&code_[step])) run(host_, std::get<TiledProduct>(tiles_[step]), **product, call);
  else if (auto* chain = std::get_if<std::unique_ptr<CompiledChain>>(&code_[step])) run(host_, std::get<PanelChain>(tiles_[step]), **chain, call);
  else run_library(std::get<LibraryStep>(plan_.steps[step]), call);
  if (!log_times_) return;
  const double microseconds = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  host_.log(TENON_INFO, codegen::step_line(*graph_, plan_, number_, step, call.symbols, microseconds), "kernel_times");
}

/// Sorts, searches: nothing that computes numbers.
void Program::run_library(const LibraryStep& step, const Call& call) const {
  const ir::Node& node = graph_->node(step.node);
  const std::span<const std::int64_t> symbols = call.symbols;
  auto view = [&](ValueId value) {
    const ir::Type& type = graph_->type(value);
    ops::TensorView v;
    v.dtype = type.dtype;
    for (const Dim& d : type.shape) v.shape.push_back(d.evaluate(symbols));
    for (const Dim& d : type.resolved_strides()) v.strides.push_back(d.evaluate(symbols));
    v.data = placement_.unread(value) ? nullptr : call.address(placement_[value]);
    return v;
  };
  std::vector<ops::TensorView> inputs, outputs;
  for (ValueId v : node.operands) inputs.push_back(graph_->value(v).kind == ir::ValueKind::literal ? ops::TensorView{} : view(v));
  for (ValueId v : node.results) {
    const Place& place = placement_[v];
    const bool sized_later = place.kind == Place::Kind::output && !call.args.outputs[place.index] && defines_symbols(v);
    outputs.push_back(sized_later ? ops::TensorView{nullptr, graph_->type(v).dtype, {}, {}} : view(v));
  }
  ops::NodeRun run;
  run.inputs = inputs;
  run.outputs = outputs;
  run.symbols = symbols;
  run.allocate = [&](std::size_t output, std::vector<std::int64_t> shape) -> ops::TensorView& {
    const Place& place = placement_[node.results[output]];
    ops::TensorView& v = outputs[output];
    v.data = call.args.call->allocate_output(call.args.call->self, place.index, shape.data(), shape.size());
    if (!v.data) v.data = call.address({});
    v.strides = row_major_strides(shape);
    v.shape = std::move(shape);
    return v;
  };
  run_in_parts(host_, *graph_, step.node, run);
}

/// True when the type has a symbol that no input binds: the size is known only after the node has run.
bool Program::defines_symbols(ValueId value) const {
  bool found = false;
  for (const Dim& d : graph_->type(value).shape) d.for_each_symbol([&](SymbolId s) {
    bool bound = false;
    for (ValueId input : graph_->inputs())
      for (const Dim& i : graph_->type(input).shape) bound = bound || i.as_symbol() == s;
    found = found || !bound;
  });
  return found;
}

void Program::copy_outputs(const Call& call) const {
  const std::span<const std::int64_t> symbols = call.symbols;
  for (const auto& [value, output] : placement_.copies()) {
    const ir::Type& type = graph_->type(value);
    std::vector<std::int64_t> shape, strides;
    for (const Dim& d : type.shape) shape.push_back(d.evaluate(symbols));
    for (const Dim& d : type.resolved_strides()) strides.push_back(d.evaluate(symbols));
    copy_to_row_major(call.args.outputs[output], call.address(placement_[value]), shape, strides, size_of(type.dtype));
  }
}

}  // namespace tenon::llvm_backend
