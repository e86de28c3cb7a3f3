#include "backend.h"

#include <array>
#include <cstring>
#include <exception>
#include <vector>

#include "core/ir/buffer.h"
#include "core/ops/catalog.h"
#include "interpreter.h"

namespace tenon::mock {
namespace {

constexpr std::size_t kWorkspace = 512;
constexpr int kWorkspaceMark = 0x77;

/// One run, with all that it needs when its turn comes.
struct Launch {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<std::int64_t> symbols;
  std::vector<std::array<std::byte, 16>> numbers;  // copies of what lies in the host's memory
  std::byte* workspace = nullptr;
};

class MockArtefact : public Artefact {
 public:
  MockArtefact(HostServices host, ir::Graph graph) : graph_(graph.clone()), interpreter_(host, std::move(graph)) {
    for (const ValueId input : graph_.inputs()) {
      const ir::Type& type = graph_.type(input);
      on_host_.push_back(!type.is_tensor() || type.device.is_host());
      sizes_.push_back(type.is_tensor() ? size_of(type.dtype) : 0);
    }
    for (const NodeId n : graph_.nodes()) {
      const ops::Op* op = ops::find_op(graph_.node(n).op);
      at_once_ = at_once_ || !op || op->traits.may_raise;
      for (const ValueId v : graph_.node(n).results)
        if (graph_.type(v).is_tensor()) device_ = ir::dlpack_device(graph_.type(v).device);
    }
    for (const ir::Output& output : graph_.outputs()) written_.push_back(graph_.type(output.value).is_tensor());
  }

  /// The host may free it when it has given the work: the work comes first.
  ~MockArtefact() override {
    try {
      MockDevices::get().drain();
    } catch (const std::exception&) {
      // Told to whoever waits for the work.
    }
  }

  std::size_t workspace_bytes(std::span<const std::int64_t>) override { return kWorkspace; }

  void execute(const TenonExecuteArgs& args) override {
    MockDevices& devices = MockDevices::get();
    devices.count_call("execute");
    Stream& stream = devices.stream_of(device_, args.stream);
    auto launch = std::make_shared<Launch>();
    launch->workspace = devices.memory().reach(args.workspace, kWorkspace);
    launch->symbols.assign(args.symbols, args.symbols + graph_.symbols().size());
    launch->numbers.resize(on_host_.size());
    bool known = !at_once_;
    for (std::size_t i = 0; i < on_host_.size(); ++i) launch->inputs.push_back(reached_input(*launch, args, i));
    for (std::size_t k = 0; k < written_.size(); ++k) {
      launch->outputs.push_back(args.outputs[k] && written_[k] ? devices.memory().reach(args.outputs[k]) : nullptr);
      known = known && (args.outputs[k] || !written_[k]);
    }
    if (known) return stream.give([this, launch] { run(*launch, nullptr); });
    // A run that may fail, or that finds sizes, is over when it returns.
    stream.wait(stream.given());
    run(*launch, args.call);
  }

 private:
  const void* reached_input(Launch& launch, const TenonExecuteArgs& args, std::size_t i) const {
    if (!on_host_[i]) return args.inputs[i] ? MockDevices::get().memory().reach(args.inputs[i]) : nullptr;
    if (args.inputs[i]) std::memcpy(launch.numbers[i].data(), args.inputs[i], sizes_[i]);
    return launch.numbers[i].data();
  }

  void run(Launch& launch, const TenonCall* call) {
    std::memset(launch.workspace, kWorkspaceMark, kWorkspace);
    // Memory that the host gives is reached at its other address.
    TenonCall reached{sizeof reached, const_cast<TenonCall*>(call), nullptr, nullptr};
    reached.allocate_output = [](void* self, std::uint32_t index, const std::int64_t* sizes, std::size_t rank) noexcept -> void* {
      const auto* host = static_cast<const TenonCall*>(self);
      void* given = host->allocate_output(host->self, index, sizes, rank);
      return given ? MockDevices::get().memory().reach(given) : nullptr;
    };
    TenonExecuteArgs args{sizeof args, launch.inputs.data(), launch.outputs.data(), launch.symbols.data(), nullptr, nullptr, &reached};
    interpreter_.execute(args);
  }

  ir::Graph graph_;
  reference::Interpreter interpreter_;
  DLDevice device_ = mock::kDevices[0];
  std::vector<bool> on_host_, written_;
  std::vector<std::size_t> sizes_;  // of an element of each input
  bool at_once_ = false;
};

/// The number behind "name": in a JSON object, or `otherwise`.
std::int64_t number_of(const std::string& options, const std::string& name, std::int64_t otherwise) {
  const std::size_t at = options.find('"' + name + "\":");
  return at == std::string::npos ? otherwise : std::stoll(options.substr(at + name.size() + 3));
}

}  // namespace

MockBackend::MockBackend(HostServices host, const std::string& options) : host_(host) {
  MockDevices& devices = MockDevices::get();
  if (const std::int64_t us = number_of(options, "lateness_us", -1); us >= 0) devices.lateness.most = std::chrono::microseconds(us);
  if (options.find("\"hold\":true") != std::string::npos) devices.lateness.hold = true;
  single_nodes_ = options.find("\"single_nodes\":true") != std::string::npos;
  if (const std::int64_t n = number_of(options, "fail_call", -1); n >= 0) devices.fail_call(n);
}

void MockBackend::claim(const GraphView& graph, Claims& claims) {
  std::vector<std::uint32_t> nodes;
  for (NodeView node : graph.nodes()) {
    const std::string name(node.op());
    const ops::Op* op = ops::find_op(name);
    if (name == "constant") continue;
    if (!op || op->traits.opaque || op->traits.random || op->traits.control) claims.refuse(node.id(), "op", name + " has no definition that the mock device can run");
    else nodes.push_back(node.id());
  }
  if (!single_nodes_ && !nodes.empty()) claims.claim(nodes);
  for (std::size_t i = 0; single_nodes_ && i < nodes.size(); ++i) claims.claim({&nodes[i], 1});
}

std::unique_ptr<Artefact> MockBackend::compile(const GraphView& graph, std::span<const DLTensor* const> constants, const std::string&) {
  return std::make_unique<MockArtefact>(host_, ir::read_buffer(graph.bytes(), constants).value());
}

}  // namespace tenon::mock
