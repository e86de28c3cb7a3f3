// A backend to start from: it computes negations of float32 tensors. Replace what it claims, and what its artefact does.
#include "tenon/backend.h"

using namespace tenon;

/// What `compile` makes of a group of nodes, and what runs.
class MyArtefact : public Artefact {
 public:
  explicit MyArtefact(std::int64_t elements) : elements_(elements) {}

  void execute(const TenonExecuteArgs& args) override {
    const float* in = static_cast<const float*>(args.inputs[0]);
    float* out = static_cast<float*>(args.outputs[0]);
    for (std::int64_t i = 0; i < elements_; ++i) out[i] = -in[i];
  }

 private:
  std::int64_t elements_;
};

class MyBackend : public Backend {
 public:
  /// Claims single nodes; a backend that fuses claims larger groups.
  void claim(const GraphView& graph, Claims& claims) override {
    for (NodeView node : graph.nodes()) {
      const std::uint32_t id = node.id();
      if (node.op() != "neg" || node.operand(0).is_literal()) claims.refuse(id, "op", "only neg of a tensor");
      else if (node.type().dtype() != DType::f32) claims.refuse(id, "dtype", "only float32");
      else if (!node.type().is_static()) claims.refuse(id, "shape", "only static shapes");
      else claims.claim({&id, 1});
    }
  }

  std::unique_ptr<Artefact> compile(const GraphView& graph, std::span<const DLTensor* const>, const std::string&) override {
    return std::make_unique<MyArtefact>(graph.nodes()[0].type().element_count());
  }
};

TENON_BACKEND(MyBackend, "my_backend", TENON_PLUGIN_VERSION)
