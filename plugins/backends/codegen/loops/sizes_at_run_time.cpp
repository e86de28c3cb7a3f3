#include "loops/sizes_at_run_time.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

namespace tenon::codegen {
namespace {

class Sizes {
 public:
  std::vector<std::int64_t> values;

  Dim symbol_of(std::int64_t size) {
    values.push_back(size);
    return Dim::symbol(SymbolId(static_cast<std::uint32_t>(values.size() - 1)));
  }

  Dim extent(const Dim& extent) { return extent.is_constant() && extent.constant() > 1 ? symbol_of(extent.constant()) : extent; }

  Dim place(const Dim& place) {
    Dim sum = place.offset() == 0 ? Dim(0) : symbol_of(place.offset());
    for (const ir::DimTerm& term : place.terms()) {
      if (std::abs(term.coefficient) <= 1) sum = sum + term_of(term);
      else sum = sum + symbol_of(term.coefficient) * term_of({1, term.atoms});
    }
    return sum;
  }
};

/// Limits that an index is compared with (of a padding, of a part that is written).
void take_limits(Kernel& kernel, Sizes& sizes) {
  std::set<OpId> limits;
  auto is = [&](OpId id, OperationKind kind) { return kernel.operations[id].kind == kind; };
  for (const Operation& op : kernel.operations) {
    if (op.kind != OperationKind::primitive || op.primitive < ops::Primitive::eq || op.primitive > ops::Primitive::ge) continue;
    for (const auto& [index, limit] : {std::pair(op.args[0], op.args[1]), std::pair(op.args[1], op.args[0])})
      if (is(index, OperationKind::index) && is(limit, OperationKind::constant) && kernel.operations[limit].payload > 1) limits.insert(limit);
  }
  for (OpId id : limits) {
    const auto limit = static_cast<std::int64_t>(kernel.operations[id].payload);
    kernel.operations[id] = {.kind = OperationKind::index, .dtype = DType::i64, .offset = sizes.symbol_of(limit)};
  }
}

bool has_own_symbols(const Kernel& kernel) {
  bool found = false;
  auto look = [&](const Dim& dim) { dim.for_each_symbol([&](SymbolId s) { found = found || is_graph_symbol(s); }); };
  for (const auto* loops : {&kernel.outer, &kernel.inner})
    for (const Loop& l : *loops) look(l.extent);
  for (const Operation& op : kernel.operations) look(op.offset);
  for (const Stage& stage : kernel.stages)
    for (const Store& store : stage.stores) look(store.offset);
  for (const Buffer& buffer : kernel.buffers) look(buffer.bytes);
  for (const Reduction& reduction : kernel.reductions)
    for (const ops::ScalarProgram* program : {&reduction.reducer.init, &reduction.reducer.combine, &reduction.reducer.finish})
      for (const Dim& dim : program->dims) look(dim);
  return found;
}

}  // namespace

std::optional<SizedKernel> with_sizes_at_run_time(const Kernel& kernel) {
  if (has_own_symbols(kernel)) return {};
  Kernel general = kernel;
  Sizes sizes;
  for (auto* loops : {&general.outer, &general.inner})
    for (Loop& l : *loops) l.extent = sizes.extent(l.extent);
  take_limits(general, sizes);
  for (Operation& op : general.operations) op.offset = sizes.place(op.offset);
  for (Stage& stage : general.stages)
    for (Store& store : stage.stores) store.offset = sizes.place(store.offset);
  return SizedKernel{std::move(general), std::move(sizes.values)};
}

std::vector<std::optional<SizedKernel>> shared_by_sizes(const std::vector<const Kernel*>& kernels, std::size_t least) {
  std::vector<std::optional<SizedKernel>> shared(kernels.size());
  if (kernels.size() < least) return shared;
  std::map<std::string, std::set<std::string>> served;  // by text of what serves them
  std::vector<std::string> texts(kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i]) shared[i] = with_sizes_at_run_time(*kernels[i]);
    if (!shared[i]) continue;
    texts[i] = to_text(shared[i]->kernel);
    served[texts[i]].insert(to_text(*kernels[i]));
  }
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (shared[i] && served[texts[i]].size() < least) shared[i].reset();
  return shared;
}

}  // namespace tenon::codegen
