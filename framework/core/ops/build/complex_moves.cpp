#include "core/ops/build/complex_moves.h"

#include <algorithm>

#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"

namespace tenon::ops {
namespace {

/// Real numbers may become complex ones, not the other way round.
bool program_moves_complex(const ScalarProgram& program) {
  const auto of = [&](std::uint32_t reg) { return program.instructions[reg].dtype; };
  return std::ranges::all_of(program.instructions, [&](const Instruction& i) {
    switch (i.op) {
      case Primitive::constant:
      case Primitive::extent:
      case Primitive::loop_index:
      case Primitive::parameter:
      case Primitive::load:
      case Primitive::select:
      case Primitive::complex:
      case Primitive::real:
      case Primitive::imag: return true;
      case Primitive::convert: return is_complex(i.dtype) || !is_complex(of(i.args[0]));
      default: return !is_complex(i.dtype) && std::ranges::none_of(i.args, [&](std::uint32_t arg) { return is_complex(of(arg)); });
    }
  });
}

bool has_complex_values(const ir::Graph& graph, const ir::Node& node) {
  const auto complex = [&](ir::ValueId v) { return graph.value(v).kind != ir::ValueKind::literal && is_complex(graph.type(v).dtype); };
  return std::ranges::any_of(node.operands, complex) || std::ranges::any_of(node.results, complex);
}

}  // namespace

bool only_moves_complex(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  if (!has_complex_values(graph, node)) return true;
  const Op* op = find_op(node.op);
  if (op && op->traits.copies) return graph.type(node.operands[0]).device != graph.type(node.results[0]).device;  // which are bytes to the host
  if (!op || (op->kernel && !node.operands.empty())) return false;
  if (op->scatter) {
    const ScatterBody body = op->scatter(OpQuery(graph, node.operands, node.attributes));
    return program_moves_complex(body.target) && program_moves_complex(body.combine);
  }
  if (const auto loop = loop_of(graph, id)) return !loop->reducer && program_moves_complex(loop->element);
  if (!op->decompose) return node.operands.empty() || op->traits.opaque;
  const ir::Graph simpler = decomposition(graph, id);
  return std::ranges::all_of(simpler.nodes(), [&](ir::NodeId each) { return only_moves_complex(simpler, each); });
}

}  // namespace tenon::ops
