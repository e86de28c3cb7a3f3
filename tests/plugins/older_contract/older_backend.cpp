// A backend as the authors of an earlier SDK wrote it: negates and adds float32, with sizes that vary.
#include "tenon/backend.h"

namespace {

class Elementwise : public tenon::Artefact {
 public:
  Elementwise(tenon::GraphView graph, std::span<const DLTensor* const>) {
    const tenon::NodeView node = graph.nodes()[0];
    adds_ = node.op() == "add";
    count_ = node.type().is_static() ? node.type().element_count() : -1;
  }

  std::size_t workspace_bytes(std::span<const std::int64_t>) override { return 64; }

  void execute(const TenonExecuteArgs& args) override {
    const std::int64_t count = count_ >= 0 ? count_ : args.symbols[0];
    const auto* x = static_cast<const float*>(args.inputs[0]);
    const auto* y = adds_ ? static_cast<const float*>(args.inputs[1]) : nullptr;
    auto* result = static_cast<float*>(args.outputs[0]);
    for (std::int64_t i = 0; i < count; ++i) result[i] = y ? x[i] + y[i] : -x[i];
  }

 private:
  bool adds_ = false;
  std::int64_t count_ = 0;
};

class Older : public tenon::Backend {
 public:
  static constexpr std::uint32_t kFlags = TENON_DYNAMIC_SHAPES;

  void claim(const tenon::GraphView& graph, tenon::Claims& claims) override {
    for (tenon::NodeView node : graph.nodes()) {
      const std::uint32_t id = node.id();
      const bool known = node.op() == "neg" || node.op() == "add";
      if (known && node.type().dtype() == tenon::DType::f32 && node.type().rank() == 1) claims.claim({&id, 1});
      else claims.refuse(id, "op", "only neg and add of float32 vectors");
    }
  }

  std::unique_ptr<tenon::Artefact> compile(const tenon::GraphView& graph, std::span<const DLTensor* const> constants, const std::string&) override {
    return std::make_unique<Elementwise>(graph, constants);
  }
};

}  // namespace

TENON_BACKEND(Older, "older_backend", "1.0", "Negates and adds, built against earlier headers")
