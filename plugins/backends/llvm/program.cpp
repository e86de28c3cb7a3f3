#include "program.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/error.h"
#include "core/ops/reference.h"
#include "fusion/cost.h"

namespace tenon::llvm_backend {

using codegen::ContractionStep;
using codegen::KernelStep;
using codegen::LibraryStep;

namespace {

constexpr std::size_t kAlignment = 64;
/// Cheap element-operations below which one thread is faster than two.
constexpr double kSerialWork = 64 * 1024;
/// The least of them that a thread takes at once.
constexpr double kGrainWork = 32 * 1024;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }

/// What an empty tensor's null pointer is replaced by: code may read ahead of a loop that then runs zero times.
alignas(64) std::array<std::byte, 4096> empty_tensor{};

}  // namespace

/// The memory of one call.
struct Program::Call {
  const TenonExecuteArgs& args;
  const std::size_t* offsets;
};

Program::Program(HostServices host, KernelCache& cache, ir::Graph graph, const ProgramOptions& options)
    : host_(host), cache_(cache), graph_(std::move(graph)) {
  codegen::decompose_composites(graph_);
  codegen::PlanOptions plan_options;
  plan_options.fuse = options.fuse;
  plan_options.matrix_kernels = options.matrix_kernels;
  plan_options.lanes = cache.target().lanes();
  if (options.log_fusion) plan_options.log = [this](const std::string& line) { host_.log(TENON_INFO, line, "fusion"); };
  plan_ = codegen::make_plan(graph_, plan_options);
  place_values();
  compile_kernels(cache, options);
}

std::vector<std::size_t> Program::values_of(const codegen::Step& step, bool written) const {
  std::vector<std::size_t> values;
  if (auto* kernel = std::get_if<KernelStep>(&step)) {
    for (std::size_t i = 0; i < kernel->buffers.size(); ++i)
      if (kernel->kernel.buffers[i].written == written) values.push_back(kernel->buffers[i].value);
  } else if (auto* product = std::get_if<ContractionStep>(&step)) {
    if (written) values = {product->c.value};
    else values = {product->a.value.value, product->b.value.value};
  } else {
    const ir::Node& node = graph_.node(std::get<LibraryStep>(step).node);
    for (ValueId v : written ? node.results : node.operands)
      if (graph_.value(v).kind != ir::ValueKind::literal) values.push_back(v.value);
  }
  return values;
}

std::vector<std::size_t> Program::last_uses() const {
  std::vector<std::size_t> last(places_.size(), 0);
  for (std::size_t s = 0; s < plan_.steps.size(); ++s)
    for (const bool written : {false, true})
      for (std::size_t v : values_of(plan_.steps[s], written)) last[v] = s;
  for (const auto& [value, output] : copies_) last[value.value] = plan_.steps.size();
  return last;
}

void Program::place_in_workspace(std::size_t value, const Dim& bytes, std::size_t from, std::size_t to) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].free_after >= from) continue;
    const Dim spare = slots_[i].bytes - bytes;
    const bool fits = spare.is_constant() && spare.constant() >= 0 && (slots_[i].bytes.is_constant() ? spare.constant() <= bytes.constant() : true);
    if (!fits) continue;
    slots_[i].free_after = to;
    places_[value] = {Place::Kind::workspace, static_cast<std::uint32_t>(i), nullptr};
    return;
  }
  places_[value] = {Place::Kind::workspace, static_cast<std::uint32_t>(slots_.size()), nullptr};
  slots_.push_back({bytes, to});
}

void Program::place_values() {
  const std::size_t graph_values = graph_.value_capacity();
  places_.resize(graph_values + plan_.temporaries.size());
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
  const auto last = last_uses();
  for (std::size_t s = 0; s < plan_.steps.size(); ++s)
    for (std::size_t v : values_of(plan_.steps[s], true)) {
      if (places_[v].kind != Place::Kind::none) continue;
      const bool temporary = v >= graph_values;
      const DType dtype = temporary ? plan_.temporaries[v - graph_values].dtype : graph_.type(ValueId(v)).dtype;
      const Dim elements = temporary ? plan_.temporaries[v - graph_values].elements : graph_.type(ValueId(v)).element_count();
      place_in_workspace(v, elements * Dim(static_cast<std::int64_t>(size_of(dtype))), s + 1, last[v] + 1);
    }
  for (const Slot& slot : slots_) fixed_sizes_ = fixed_sizes_ && slot.bytes.is_constant();
  if (!fixed_sizes_) return;
  for (const Slot& slot : slots_) {
    offsets_.push_back(fixed_bytes_);
    fixed_bytes_ += aligned(static_cast<std::size_t>(slot.bytes.constant()));
  }
}

void Program::compile_kernels(KernelCache& cache, const ProgramOptions& options) {
  std::vector<const codegen::Kernel*> wanted;
  for (const codegen::Step& step : plan_.steps)
    if (auto* kernel = std::get_if<KernelStep>(&step)) wanted.push_back(&kernel->kernel);
  std::function<void(const std::string&)> listing;
  if (options.log_code) listing = [this](const std::string& text) { host_.log(TENON_INFO, text, "kernel_code"); };
  const auto functions = cache.kernels(wanted, listing);
  kernels_.resize(plan_.steps.size());
  std::size_t next = 0;
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    if (auto* product = std::get_if<ContractionStep>(&plan_.steps[s])) {
      MatrixKernel& matrix = product->dtype == DType::f64 ? matrix_f64_ : matrix_f32_;
      if (!matrix.function) matrix = {cache.microkernel(product->dtype), codegen::tile_shape(cache.target(), product->dtype), product->dtype};
    }
    auto* step = std::get_if<KernelStep>(&plan_.steps[s]);
    if (!step) continue;
    CompiledKernel& compiled = kernels_[s];
    compiled.function = functions[next++];
    compiled.units = codegen::unit_count(step->kernel);
    compiled.points = codegen::points_per_unit(step->kernel);
    compiled.work = std::max(1.0, codegen::work_per_point(step->kernel) / 4);
    compiled.ordered = step->kernel.scatter;
    for (ValueId v : step->buffers) compiled.buffers.push_back(places_[v.value]);
  }
}

std::size_t Program::workspace_bytes(std::span<const std::int64_t> symbols) {
  if (fixed_sizes_) return fixed_bytes_;
  std::size_t bytes = 0;
  for (const Slot& slot : slots_) bytes += aligned(static_cast<std::size_t>(slot.bytes.evaluate(symbols)));
  return bytes;
}

void* Program::address(const Place& place, const Call& call) const {
  void* found = nullptr;
  switch (place.kind) {
    case Place::Kind::input: found = const_cast<void*>(call.args.inputs[place.index]); break;
    case Place::Kind::output: found = call.args.outputs[place.index]; break;
    case Place::Kind::workspace: return static_cast<std::byte*>(call.args.workspace) + call.offsets[place.index];
    case Place::Kind::constant: found = const_cast<void*>(place.address); break;
    case Place::Kind::none: break;
  }
  return found ? found : empty_tensor.data();
}

void Program::execute(const TenonExecuteArgs& args) {
  thread_local std::vector<std::size_t> sized;
  std::vector<std::size_t> own;
  const std::size_t* offsets = offsets_.data();
  if (!fixed_sizes_) {
    own.swap(sized);  // its memory is used again; a nested call on this thread finds an empty one
    own.clear();
    std::size_t bytes = 0;
    for (const Slot& slot : slots_) {
      own.push_back(bytes);
      bytes += aligned(static_cast<std::size_t>(slot.bytes.evaluate({args.symbols, graph_.symbols().size()})));
    }
    offsets = own.data();
  }
  const Call call{args, offsets};
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    if (kernels_[s].function) run_kernel(kernels_[s], call);
    else if (auto* product = std::get_if<ContractionStep>(&plan_.steps[s])) run_product(*product, call);
    else run_library(std::get<LibraryStep>(plan_.steps[s]), call);
  }
  copy_outputs(call);
  if (!fixed_sizes_) sized.swap(own);
}

void Program::run_kernel(const CompiledKernel& kernel, const Call& call) const {
  const std::span<const std::int64_t> symbols(call.args.symbols, graph_.symbols().size());
  const std::int64_t units = kernel.units.evaluate(symbols);
  if (units <= 0) return;
  std::array<void*, 32> few;
  std::vector<void*> many;
  void** buffers = few.data();
  if (kernel.buffers.size() > few.size()) {
    many.resize(kernel.buffers.size());
    buffers = many.data();
  }
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) buffers[i] = address(kernel.buffers[i], call);
  codegen::IndexFault fault;
  const double work = kernel.work * static_cast<double>(std::max<std::int64_t>(1, kernel.points.evaluate(symbols)));
  if (kernel.ordered || units == 1 || work * static_cast<double>(units) < kSerialWork) {
    kernel.function(buffers, call.args.symbols, 0, units, &fault);
  } else {
    const auto grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(kGrainWork / work));
    host_.parallel_for(0, units, grain, [&](std::int64_t first, std::int64_t last) {
      kernel.function(buffers, call.args.symbols, first, last, &fault);
    });
  }
  if (!fault.raised) return;
  throw Failure(TENON_INVALID_ARGUMENT, fmt::format("index {} is out of bounds for dimension {} with size {}", fault.index, fault.dimension, fault.size));
}

void Program::run_product(const ContractionStep& step, const Call& call) const {
  const std::span<const std::int64_t> symbols(call.args.symbols, graph_.symbols().size());
  auto size = [&](const Dim& d) { return d.evaluate(symbols); };
  const MatrixKernel& kernel = step.dtype == DType::f64 ? matrix_f64_ : matrix_f32_;
  const auto bytes = static_cast<std::int64_t>(size_of(step.dtype));
  auto at = [&](ValueId value, std::int64_t elements) { return static_cast<std::byte*>(address(places_[value.value], call)) + elements * bytes; };
  MatrixProduct p{size(step.m), size(step.n), size(step.k), nullptr, size(step.a.row_stride), size(step.a.column_stride),
                  nullptr, size(step.b.row_stride), size(step.b.column_stride), nullptr, size(step.c_row_stride)};
  std::int64_t count = 1;
  for (const Dim& d : step.batch) count *= size(d);
  auto one = [&](std::int64_t number, bool parallel) {
    std::int64_t a = size(step.a.offset), b = size(step.b.offset), c = 0;
    for (std::size_t i = step.batch.size(); i-- > 0;) {
      const std::int64_t extent = size(step.batch[i]), index = number % extent;
      number /= extent;
      a += index * size(step.a.batch_strides[i]);
      b += index * size(step.b.batch_strides[i]);
      c += index * size(step.c_batch_strides[i]);
    }
    MatrixProduct mine = p;
    mine.a = at(step.a.value, a), mine.b = at(step.b.value, b), mine.c = at(step.c, c);
    multiply(host_, kernel, mine, parallel);
  };
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const bool over_batch = count >= 2 * host_.thread_count() && work * static_cast<double>(count) > kSerialWork;
  if (!over_batch) {
    for (std::int64_t i = 0; i < count; ++i) one(i, true);
    return;
  }
  host_.parallel_for(0, count, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) one(i, false);
  });
}

void Program::run_library(const LibraryStep& step, const Call& call) const {
  const ir::Node& node = graph_.node(step.node);
  const std::span<const std::int64_t> symbols(call.args.symbols, graph_.symbols().size());
  auto view = [&](ValueId value) {
    const ir::Type& type = graph_.type(value);
    ops::TensorView v;
    v.dtype = type.dtype;
    for (const Dim& d : type.shape) v.shape.push_back(d.evaluate(symbols));
    for (const Dim& d : type.resolved_strides()) v.strides.push_back(d.evaluate(symbols));
    v.data = address(places_[value.value], call);
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
    if (!v.data) v.data = empty_tensor.data();
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
  const std::span<const std::int64_t> symbols(call.args.symbols, graph_.symbols().size());
  for (const auto& [value, output] : copies_) {
    const ir::Type& type = graph_.type(value);
    std::vector<std::int64_t> shape, strides;
    for (const Dim& d : type.shape) shape.push_back(d.evaluate(symbols));
    for (const Dim& d : type.resolved_strides()) strides.push_back(d.evaluate(symbols));
    copy_rows(static_cast<std::byte*>(call.args.outputs[output]), static_cast<const std::byte*>(address(places_[value.value], call)), shape, strides, size_of(type.dtype));
  }
}

}  // namespace tenon::llvm_backend
