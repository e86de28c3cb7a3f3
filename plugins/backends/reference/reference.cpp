// The backend that takes whatever the catalogue knows.
#include <memory>

#include "core/ir/buffer.h"
#include "core/ops/catalog.h"
#include "interpreter.h"
#include "tenon/backend.h"

namespace tenon::reference {

class Reference : public Backend {
 public:
  static constexpr std::uint32_t kFlags = TENON_DYNAMIC_SHAPES | TENON_STRIDED_INPUTS | TENON_COMPILE_REENTRANT | TENON_EXECUTE_REENTRANT;

  explicit Reference(HostServices host) : host_(host) {}

  void claim(const GraphView& graph, Claims& claims) override {
    std::vector<std::uint32_t> nodes;
    for (NodeView node : graph.nodes()) {
      if (node.op() == "constant") continue;
      const std::string why = refusal(node);
      if (why.empty())
        nodes.push_back(node.id());
      else
        claims.refuse(node.id(), "op", why);
    }
    if (!nodes.empty()) claims.claim(nodes);
  }

  std::unique_ptr<Artefact> compile(const GraphView& graph, std::span<const DLTensor* const> constants, const std::string&) override {
    return std::make_unique<Interpreter>(host_, ir::read_buffer(graph.bytes(), constants).value());
  }

 private:
  static std::string refusal(const NodeView& node) {
    const std::string name(node.op());
    const ops::Op* op = ops::find_op(name);
    if (!op) return "the catalogue has no op " + name;
    if (op->traits.opaque || op->traits.random || op->traits.control) return name + " has no definition that this backend can run";
    return {};
  }

  HostServices host_;
};

}  // namespace tenon::reference

TENON_BACKEND(tenon::reference::Reference, "reference", "0.1", "Runs any op of the catalogue from its definition")
