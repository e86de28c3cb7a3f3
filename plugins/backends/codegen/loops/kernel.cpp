#include "loops/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <map>
#include <optional>

namespace tenon::codegen {
namespace {

/// Outputs from which their size decides how they are stored.
constexpr double kLargeOutput = 1 << 20;

/// Writes a kernel with loop variables renamed in the order of the loops.
class Writer {
 public:
  explicit Writer(const Kernel& kernel) : kernel_(kernel) {
    for (const Loop& l : kernel.outer) name(l.variable, 'o');
    for (const Loop& l : kernel.inner) name(l.variable, 'i');
  }

  std::string text() {
    out_ += kernel_.schedule ? kernel_.schedule->title(kernel_) : kernel_.scatter ? "scatter kernel" : "kernel";
    out_ += '\n';
    for (const Loop& l : kernel_.outer) out_ += fmt::format("  outer {} < {}\n", dim(Dim::symbol(l.variable)), dim(l.extent));
    for (const Loop& l : kernel_.inner) out_ += fmt::format("  inner {} < {}\n", dim(Dim::symbol(l.variable)), dim(l.extent));
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) buffer(i);
    if (written_bytes(kernel_) >= kLargeOutput) out_ += fmt::format("  {} bytes written\n", written_bytes(kernel_));
    for (std::size_t i = 0; i < kernel_.operations.size(); ++i) operation(i);
    for (std::size_t i = 0; i < kernel_.reductions.size(); ++i) reduction(i);
    for (const Stage& s : kernel_.stages) stage(s);
    return std::move(out_);
  }

 private:
  void name(SymbolId s, char kind) { names_.emplace(s.value, fmt::format("{}{}", kind, names_.size())); }

  std::string dim(const Dim& d) {
    return d.to_string([&](SymbolId s) {
      if (is_value(s)) return fmt::format("v{}", s.value - kFirstValue);
      if (is_graph_symbol(s)) return fmt::format("s{}", s.value);
      // What nothing needs may stand at a loop that was another kernel's.
      return names_.try_emplace(s.value, fmt::format("l{}", names_.size())).first->second;
    });
  }

  void buffer(std::size_t i) {
    const Buffer& b = kernel_.buffers[i];
    out_ += fmt::format("  buffer b{}: {}{}{}\n", i, name_of(b.dtype), b.row ? " row" : b.written ? " written" : "", b.is_narrow() ? " narrow" : "");
  }

  void operation(std::size_t i) {
    const Operation& op = kernel_.operations[i];
    out_ += fmt::format("  v{}: {} = ", i, name_of(op.dtype));
    switch (op.kind) {
      case OperationKind::primitive: out_ += ops::name_of(op.primitive); break;
      case OperationKind::constant: out_ += fmt::format("constant 0x{:x}", op.payload); break;
      case OperationKind::index: out_ += fmt::format("index {}", dim(op.offset)); break;
      case OperationKind::load: out_ += fmt::format("load b{}[{}]", op.payload, dim(op.offset)); break;
      case OperationKind::checked: out_ += fmt::format("checked {} < {} in dimension {}", op.args[0], dim(op.offset), op.payload); break;
      case OperationKind::reduced: out_ += fmt::format("reduced r{}.{}", op.payload >> 16, op.payload & 0xffff); break;
      case OperationKind::product: out_ += "product"; break;
      case OperationKind::old_value: out_ += "old"; break;
    }
    if (op.masked) out_ += " masked";
    for (OpId a : op.args)
      if (a != kNoOp) out_ += fmt::format(" v{}", a);
    out_ += '\n';
  }

  void program(const char* title, const ops::ScalarProgram& p) {
    out_ += fmt::format("    {}:", title);
    for (const auto& i : p.instructions)
      out_ += fmt::format(" {}.{}({:x} {} {} {})", ops::name_of(i.op), name_of(i.dtype), i.payload, i.args[0], i.args[1], i.args[2]);
    for (const Dim& d : p.dims) out_ += fmt::format(" dim {}", dim(d));
    for (auto r : p.results) out_ += fmt::format(" -> {}", r);
    out_ += '\n';
  }

  void reduction(std::size_t i) {
    const Reduction& r = kernel_.reductions[i];
    out_ += fmt::format("  reduction r{} of", i);
    for (std::size_t k = 0; k < r.elements.size(); ++k) out_ += fmt::format(" v{}: {}", r.elements[k], name_of(r.reducer.accumulators[k]));
    out_ += '\n';
    program("init", r.reducer.init);
    program("combine", r.reducer.combine);
    program("finish", r.reducer.finish);
  }

  void stage(const Stage& s) {
    static constexpr const char* kNames[] = {"row", "reduce", "map"};
    out_ += fmt::format("  {}", kNames[static_cast<int>(s.kind)]);
    for (auto r : s.reductions) out_ += fmt::format(" r{}", r);
    for (const Store& st : s.stores) out_ += fmt::format(" b{}[{}]=v{}", st.buffer, dim(st.offset), st.value);
    out_ += '\n';
  }

  const Kernel& kernel_;
  std::map<std::uint32_t, std::string> names_;
  std::string out_;
};

}  // namespace

double number_of(const Operation& op) {
  if (op.kind != OperationKind::constant) return std::numeric_limits<double>::quiet_NaN();
  if (op.dtype == DType::f64) return std::bit_cast<double>(op.payload);
  if (is_float(op.dtype)) return std::bit_cast<float>(static_cast<std::uint32_t>(op.payload));
  return static_cast<double>(static_cast<std::int64_t>(op.payload));
}

bool is_number(const Operation& op, double number) { return is_float(op.dtype) && number_of(op) == number; }

std::string to_text(const Kernel& kernel) { return Writer(kernel).text(); }

double written_bytes(const Kernel& kernel) {
  double bytes = 0;
  for (const Stage& stage : kernel.stages) {
    double points = 1;
    for (const Loop& l : kernel.outer) points *= l.extent.is_constant() ? static_cast<double>(l.extent.constant()) : 1;
    if (stage.kind == StageKind::map)
      for (const Loop& l : kernel.inner) points *= l.extent.is_constant() ? static_cast<double>(l.extent.constant()) : 1;
    for (const Store& s : stage.stores) {
      const Buffer& b = kernel.buffers[s.buffer];
      if (!b.row && b.bytes.is_constant()) bytes += std::min(static_cast<double>(b.bytes.constant()), points * static_cast<double>(size_of(b.dtype)));
    }
  }
  return bytes;
}

namespace {

/// True when the place is never before its constant part: what is added are multiples of loop variables.
bool only_goes_on(const Dim& place) {
  return std::ranges::all_of(place.terms(), [](const ir::DimTerm& term) {
    return term.coefficient > 0 && std::ranges::all_of(term.atoms, [](const ir::DimAtom& atom) { return atom.op == ir::DimOp::symbol; });
  });
}

}  // namespace

std::vector<std::int64_t> take_out_starts(Kernel& kernel) {
  constexpr std::int64_t kLine = 64;  // bytes: large outputs are written whole lines at a time
  std::vector<std::optional<std::int64_t>> least(kernel.buffers.size());
  std::vector<bool> movable(kernel.buffers.size(), true);
  auto for_each_place = [&](auto visit) {
    for (Operation& op : kernel.operations)
      if (op.kind == OperationKind::load) visit(op.payload, op.offset);
    for (Stage& stage : kernel.stages)
      for (Store& store : stage.stores) visit(store.buffer, store.offset);
  };
  for_each_place([&](std::size_t buffer, const Dim& offset) {
    least[buffer] = std::min(least[buffer].value_or(offset.offset()), offset.offset());
    movable[buffer] = movable[buffer] && only_goes_on(offset);
  });
  const bool whole_lines = written_bytes(kernel) >= kLargeOutput;
  std::vector<std::int64_t> starts(kernel.buffers.size(), 0);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (kernel.buffers[i].row || !least[i] || !movable[i]) continue;
    const std::int64_t granule = whole_lines ? kLine / static_cast<std::int64_t>(size_of(kernel.buffers[i].dtype)) : 1;
    starts[i] = *least[i] - (*least[i] % granule + granule) % granule;
  }
  for_each_place([&](std::size_t buffer, Dim& offset) { offset = offset - Dim(starts[buffer]); });
  return starts;
}

double cost_of(ops::Primitive primitive, DType dtype) {
  using P = ops::Primitive;
  if (primitive >= P::exp && primitive <= P::lgamma) return primitive == P::pow || primitive == P::lgamma ? 20 : 8;
  switch (primitive) {
    case P::div: case P::sqrt: case P::rsqrt: return dtype == DType::f64 ? 4 : 2;
    case P::floor_div: case P::trunc_div: case P::remainder: case P::fmod: return is_int(dtype) ? 12 : 6;
    case P::convert: case P::bit_cast: return 0.5;
    case P::complex: case P::real: case P::imag: return 0;
    default: return 1;
  }
}

std::size_t inner_loops_of(const std::vector<Loop>& inner, const Store& store) {
  std::size_t count = inner.size();
  while (count > 0 && !mentions(store.offset, inner[count - 1].variable)) --count;
  return count;
}

std::vector<OpId> needs_of(const Operation& op) {
  std::vector<OpId> needs;
  for (OpId a : op.args)
    if (a != kNoOp) needs.push_back(a);
  op.offset.for_each_symbol([&](SymbolId s) {
    if (is_value(s)) needs.push_back(s.value - kFirstValue);
  });
  return needs;
}

std::vector<OpId> all_needs_of(std::span<const Operation> operations, std::vector<OpId> some) {
  std::vector<bool> seen(operations.size(), false);
  std::vector<OpId> all;
  while (!some.empty()) {
    const OpId id = some.back();
    some.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    all.push_back(id);
    std::ranges::copy(needs_of(operations[id]), std::back_inserter(some));
  }
  return all;
}

std::vector<bool> needed_by(const Kernel& kernel, std::span<const Stage> stages) {
  std::vector<OpId> some;
  for (const Stage& stage : stages) {
    for (const std::uint32_t r : stage.reductions) std::ranges::copy(kernel.reductions[r].elements, std::back_inserter(some));
    for (const Store& store : stage.stores) {
      some.push_back(store.value);
      store.offset.for_each_symbol([&](SymbolId s) {
        if (is_value(s)) some.push_back(s.value - kFirstValue);
      });
    }
  }
  std::vector<bool> needed(kernel.operations.size(), false);
  for (const OpId id : all_needs_of(kernel.operations, std::move(some))) needed[id] = true;
  return needed;
}

std::vector<bool> dependents(const std::vector<Operation>& operations, const std::function<bool(const Operation&)>& begins) {
  std::vector<bool> depends(operations.size(), false);
  for (std::size_t i = 0; i < depends.size(); ++i) {  // operands come before their uses
    const Operation& op = operations[i];
    bool found = begins(op);
    for (OpId a : op.args) found = found || (a != kNoOp && depends[a]);
    op.offset.for_each_symbol([&](SymbolId s) { found = found || (is_value(s) && depends[s.value - kFirstValue]); });
    depends[i] = found;
  }
  return depends;
}

std::vector<bool> reduction_dependents(const std::vector<Operation>& operations) {
  return dependents(operations, [](const Operation& op) { return op.kind == OperationKind::reduced; });
}

double work_of(const Operation& op) {
  if (op.kind == OperationKind::primitive) return cost_of(op.primitive, op.dtype);
  return op.kind == OperationKind::load || op.kind == OperationKind::checked ? 1 : 0;
}

double estimated_points(const IndexAlgebra& algebra, std::span<const Loop> loops) {
  double points = 1;
  for (const Loop& l : loops) points *= algebra.estimate(l.extent);
  return points;
}

double work_per_point(const Kernel& kernel) {
  double work = 1;
  for (const Operation& op : kernel.operations) work += work_of(op);
  return work;
}

double estimated_work(const IndexAlgebra& algebra, const Kernel& kernel) {
  double work = work_per_point(kernel) * estimated_points(algebra, kernel.outer);
  for (const Loop& l : kernel.inner) {
    bool fixed = true;
    l.extent.for_each_symbol([&](SymbolId s) { fixed &= is_graph_symbol(s); });
    if (fixed) work *= algebra.estimate(l.extent);
  }
  return work;
}

}  // namespace tenon::codegen
