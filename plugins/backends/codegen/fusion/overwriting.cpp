#include "fusion/overwriting.h"

#include <algorithm>
#include <span>
#include <unordered_map>

namespace tenon::codegen {
namespace {

/// True when a run of the kernel reads the buffer only where the store writes: each element then by the one point that writes there.
bool reads_only_at(const KernelStep& step, std::size_t run, std::size_t buffer, const Store& store) {
  const auto start = [&](std::size_t b) { return step.starts.empty() ? 0 : step.starts[run * step.buffers.size() + b]; };
  const Dim offset = store.offset + Dim(start(store.buffer) - start(buffer));
  return std::ranges::all_of(step.kernel.operations, [&](const Operation& op) { return op.kind != OperationKind::load || op.payload != buffer || op.offset == offset; });
}

/// Where an index has the variables of loops: as they are, divided, or what a division leaves.
struct Variables {
  std::vector<ir::SymbolId> plain, divided, left;

  void collect(const Dim& index, std::vector<ir::SymbolId>& into) {
    for (const ir::DimTerm& term : index.terms())
      for (const ir::DimAtom& atom : term.atoms) {
        if (atom.op == ir::DimOp::symbol) into.push_back(atom.symbol);
        for (const Dim& operand : atom.operands) collect(operand, atom.op == ir::DimOp::floor_div ? divided : atom.op == ir::DimOp::mod ? left : into);
      }
  }
};

/// True when rounds of a loop store to the same place: all but the first would read there what the first has written.
bool returns_to_a_place(const Store& store) {
  Variables variables;
  variables.collect(store.offset, variables.plain);
  const auto among = [](const std::vector<ir::SymbolId>& all, ir::SymbolId symbol) { return std::ranges::find(all, symbol) != all.end(); };
  const auto only_in = [&](const std::vector<ir::SymbolId>& some, const std::vector<ir::SymbolId>& others) {
    return std::ranges::any_of(some, [&](ir::SymbolId symbol) { return !among(variables.plain, symbol) && !among(others, symbol); });
  };
  return only_in(variables.divided, variables.left) || only_in(variables.left, variables.divided);
}

/// The buffers that the stages from one on load, at whatever point.
std::vector<bool> loaded_from(const Kernel& kernel, std::size_t first) {
  const std::vector<bool> needed = needed_by(kernel, std::span(kernel.stages).subspan(first));
  std::vector<bool> loaded(kernel.buffers.size(), false);
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i] && kernel.operations[i].kind == OperationKind::load) loaded[kernel.operations[i].payload] = true;
  return loaded;
}

/// What a store writes over what the kernel reads, where no later stage loads that. At a point of a stage all values are computed before the first is
/// stored.
std::vector<Overwriting> of_store(const KernelStep& step, std::size_t run, const Store& store, const std::vector<bool>& loaded_later) {
  const auto& buffers = step.kernel.buffers;
  const auto& values = run == 0 ? step.buffers : step.others[run - 1];
  std::vector<Overwriting> found;
  if (returns_to_a_place(store)) return found;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &from = buffers[i], &to = buffers[store.buffer];
    if (loaded_later[i] || from.written || from.row || to.row || is_local(values[i]) || size_of(from.dtype) != size_of(to.dtype)) continue;
    if (reads_only_at(step, run, i, store)) found.push_back({values[store.buffer], values[i]});
  }
  return found;
}

/// Runs of a kernel start together: what one of them writes over, the others may not read.
std::vector<Overwriting> of_runs(const KernelStep& step) {
  if (step.kernel.scatter || step.kernel.stages.empty()) return {};
  std::unordered_map<std::uint32_t, std::size_t> readers;
  auto count = [&](const std::vector<ValueId>& run) {
    for (ValueId value : run) ++readers[value.value];
  };
  count(step.buffers);
  std::ranges::for_each(step.others, count);
  std::vector<Overwriting> found;
  const auto& stages = step.kernel.stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (s + 1 < stages.size() && stages[s].kind != StageKind::row) continue;  // a point of an inner loop has others behind it
    const auto loaded_later = loaded_from(step.kernel, s + 1);
    for (const Store& store : stages[s].stores)
      for (std::size_t run = 0; run <= step.others.size(); ++run)
        for (const Overwriting& o : of_store(step, run, store, loaded_later))
          if (readers[o.read.value] == 1) found.push_back(o);
  }
  return found;
}

bool checks(const std::vector<Operation>& operations) {
  return std::ranges::any_of(operations, [](const Operation& op) { return op.kind == OperationKind::checked; });
}

bool checks(const ContractionStep& step) {
  return (step.sums && checks(step.sums->kernel.kernel.operations)) || checks(step.product.operations) || (step.epilogue && checks(step.epilogue->kernel.operations)) || (step.pooling && checks(step.pooling->kernel.kernel.operations));
}

bool reads(const Product& product, ValueId value) {
  const auto needs = [&](const ProductOperand& operand) {
    const auto values = product.reads(operand);
    return std::ranges::find(values, value) != values.end();
  };
  return needs(product.a) || needs(product.b);
}

}  // namespace

std::vector<Overwriting> overwritings(const Step& step) {
  if (auto* kernel = std::get_if<KernelStep>(&step)) return of_runs(*kernel);
  auto* product = std::get_if<ContractionStep>(&step);
  if (!product || !product->epilogue || product->pooling) return {};
  auto found = of_runs(*product->epilogue);
  const auto is_summed = [&](ValueId value) { return product->sums && std::ranges::find(product->sums->kernel.buffers, value) != product->sums->kernel.buffers.end(); };
  std::erase_if(found, [&](const Overwriting& o) { return reads(product->product, o.read) || is_summed(o.read); });
  return found;
}

bool may_stop(const Step& step) {
  if (auto* kernel = std::get_if<KernelStep>(&step)) return checks(kernel->kernel.operations);
  if (auto* product = std::get_if<ContractionStep>(&step)) return checks(*product);
  auto* chain = std::get_if<ChainStep>(&step);
  return !chain || checks(chain->first.operations) || checks(chain->between.kernel.operations) || checks(chain->second);
}

std::optional<Overwriting> copied_value(const KernelStep& step) {
  const Kernel& kernel = step.kernel;
  if (!step.others.empty() || kernel.scatter || kernel.stages.size() != 1 || kernel.stages[0].kind != StageKind::row || kernel.stages[0].stores.size() != 1) return {};
  const Store& store = kernel.stages[0].stores[0];
  const Operation& op = kernel.operations[store.value];
  if (op.kind != OperationKind::load || op.masked || kernel.buffers[op.payload].dtype != kernel.buffers[store.buffer].dtype) return {};
  return reads_only_at(step, 0, op.payload, store) ? std::optional(Overwriting{step.buffers[store.buffer], step.buffers[op.payload]}) : std::nullopt;
}

}  // namespace tenon::codegen
