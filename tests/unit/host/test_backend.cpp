#include "test_backend.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/abi/dlpack_types.h"
#include "core/ir/buffer.h"
#include "core/ir/parser.h"
#include "host/driver/session.h"

namespace tenon::test {
namespace {

std::vector<std::int64_t> evaluated(std::span<const ir::Dim> dims, std::span<const std::int64_t> symbols) {
  std::vector<std::int64_t> values;
  for (const ir::Dim& dim : dims) values.push_back(dim.evaluate(symbols));
  return values;
}

struct Compiled {
  ir::Graph graph;
  TestBackend* owner;
};

}  // namespace

TestBackend* TestBackend::slots_[TestBackend::kSlots] = {};

std::int32_t TestBackend::evaluate(const ir::Graph& graph, const TenonExecuteArgs& args) {
  const std::vector<std::int64_t> symbols(args.symbols, args.symbols + graph.symbols().size());
  std::vector<ops::TensorView> inputs;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Type& type = graph.type(graph.inputs()[i]);
    inputs.push_back({const_cast<void*>(args.inputs[i]), type.dtype, evaluated(type.shape, symbols), evaluated(type.resolved_strides(), symbols)});
  }
  const std::vector<ops::HostTensor> outputs = ops::evaluate(graph, inputs, ops::Precision::native, symbols);
  for (std::uint32_t k = 0; k < outputs.size(); ++k) {
    void* memory = args.outputs[k];
    if (!memory) memory = args.call->allocate_output(args.call->self, k, outputs[k].shape.data(), outputs[k].shape.size());
    if (!memory) return TENON_OUT_OF_MEMORY;
    if (outputs[k].byte_count()) std::memcpy(memory, outputs[k].data(), outputs[k].byte_count());
  }
  return TENON_OK;
}

template <int Slot>
TenonBackend TestBackend::table() {
  TenonBackend t{};
  t.struct_size = sizeof t;
  t.create = [](const TenonHost* host, const char*, void** self) -> std::int32_t {
    slots_[Slot]->host_ = host;
    if (slots_[Slot]->behaviour.create)
      if (const std::int32_t code = slots_[Slot]->behaviour.create(); code != TENON_OK) return code;
    *self = slots_[Slot];
    return TENON_OK;
  };
  t.destroy = [](void*) {};
  t.claim = [](void* self, const TenonGraph* graph, const TenonClaims* claims) -> std::int32_t {
    auto& b = *static_cast<TestBackend*>(self);
    ++b.claims;
    const GraphView view(graph->buffer);
    if (b.behaviour.claim) return b.behaviour.claim(view, *claims);
    std::vector<std::uint32_t> all;
    for (NodeView node : view.nodes()) all.push_back(node.id());
    claims->claim(claims->self, all.data(), all.size());
    return TENON_OK;
  };
  t.compile = [](void* self, const TenonGraph* graph, const char*, TenonArtefact* artefact) -> std::int32_t {
    auto& b = *static_cast<TestBackend*>(self);
    ++b.compiles;
    if (b.behaviour.compile)
      if (const std::int32_t code = b.behaviour.compile(GraphView(graph->buffer), *artefact); code != TENON_OK) return code;
    if (!b.behaviour.gives_null) artefact->self = new Compiled{ir::read_buffer(graph->buffer, {graph->constants, graph->constant_count}).value(), &b};
    return TENON_OK;
  };
  t.execute = [](void* artefact, const TenonExecuteArgs* args) -> std::int32_t {
    auto& compiled = *static_cast<Compiled*>(artefact);
    TestBackend& b = *compiled.owner;
    ++b.executes;
    const int now = ++b.running;
    for (int most = b.most_running; now > most && !b.most_running.compare_exchange_weak(most, now);) {}
    std::int32_t code = TENON_OK;
    try {
      code = b.behaviour.execute ? b.behaviour.execute(compiled.graph, *args) : evaluate(compiled.graph, *args);
    } catch (const Exception& e) {
      b.report(static_cast<std::int32_t>(e.code()), e.what());
      code = static_cast<std::int32_t>(e.code());
    }
    --b.running;
    return code;
  };
  t.workspace_bytes = [](void* artefact, const std::int64_t* symbols, std::size_t* bytes) -> std::int32_t {
    TestBackend& b = *static_cast<Compiled*>(artefact)->owner;
    *bytes = 0;
    return b.behaviour.workspace ? b.behaviour.workspace(symbols, *bytes) : std::int32_t{TENON_OK};
  };
  t.release = [](void* artefact) {
    const std::unique_ptr<Compiled> compiled(static_cast<Compiled*>(artefact));
    if (const auto& before = compiled->owner->behaviour.release) before();
    ++compiled->owner->released;
  };
  return t;
}

TestBackend::TestBackend(std::string name, Behaviour given) : behaviour(std::move(given)), name_(std::move(name)) {
  int slot = 0;
  while (slot < kSlots && slots_[slot]) ++slot;
  if (slot == kSlots) throw std::logic_error("too many test backends");
  slots_[slot] = this;
  const TenonBackend tables[kSlots] = {table<0>(), table<1>(), table<2>(), table<3>(), table<4>(), table<5>()};
  table_ = tables[slot];
  table_.flags = behaviour.flags;
  table_.devices = behaviour.devices.data();
  table_.device_count = behaviour.devices.size();
  plugin_.struct_size = sizeof plugin_;
  plugin_.magic = TENON_PLUGIN_MAGIC;
  plugin_.abi = TENON_ABI_NEWEST;
  plugin_.kind = TENON_KIND_BACKEND;
  plugin_.name = name_.c_str();
  plugin_.version = "1";
  plugin_.build_id = "test";
  plugin_.sanitizer = "";
  plugin_.description = "a backend of the tests";
  plugin_.backend = &table_;
}

TestBackend::~TestBackend() {
  for (TestBackend*& slot : slots_)
    if (slot == this) slot = nullptr;
}

TestSession::TestSession(std::vector<TestBackend*> backends, std::vector<std::string> overrides) {
  overrides.push_back("compile.backends=[]");
  overrides.push_back("passes.pipeline=[]");
  std::vector<const char*> texts;
  for (const std::string& text : overrides) texts.push_back(text.c_str());
  const TenonSessionOptions options{sizeof(TenonSessionOptions), nullptr, texts.data(), texts.size()};
  require_ok(tenon_session_create(&options, &session_));
  for (TestBackend* backend : backends) require_ok(tenon_session_register(session_, backend->plugin()));
  // The configuration is checked when the session is made, before the backends of this process are known.
  session_->session->config.fallback_backend = backends.back()->plugin()->name;
  tenon_session_on_event(
      session_,
      [](void* self, const char* json) {
        auto& session = *static_cast<TestSession*>(self);
        std::lock_guard lock(session.mutex_);
        session.events_.emplace_back(json);
      },
      this);
}

TestSession::~TestSession() { tenon_session_release(session_); }

std::vector<std::string> TestSession::events(const std::string& kind) const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  for (const std::string& event : events_)
    if (nlohmann::json::parse(event)["kind"] == kind) found.push_back(event);
  return found;
}

std::string TestSession::query(const std::string& what) const {
  char* json = nullptr;
  require_ok(tenon_session_query(session_, what.c_str(), &json));
  const std::string text = json;
  tenon_free(json);
  return text;
}

TestProgram::TestProgram(TestSession& session, const ir::Graph& graph, std::vector<std::string> backends, const std::string& options) {
  const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
  std::vector<DLTensor> tensors;
  std::vector<std::vector<std::int64_t>> shapes;
  for (const ir::Constant& c : graph.constants()) {
    shapes.push_back(evaluated(c.type.shape, {}));
    constants_.push_back(c.owner);
    tensors.push_back({const_cast<void*>(c.data), {kDLCPU, 0}, static_cast<std::int32_t>(shapes.back().size()), dlpack_type(c.type.dtype), nullptr, nullptr, 0});
  }
  std::vector<const DLTensor*> constants;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].shape = shapes[i].data();
    constants.push_back(&tensors[i]);
  }
  std::vector<const char*> names;
  for (const std::string& name : backends) names.push_back(name.c_str());
  TenonCompileRequest request{};
  request.struct_size = sizeof request;
  request.graph = {sizeof(TenonGraph), {buffer.data(), buffer.size()}, constants.data(), constants.size()};
  request.backends = names.data();
  request.backend_count = names.size();
  request.options = options.c_str();
  require_ok(tenon_compile(session.get(), &request, &program_));
  for (const ir::Output& output : graph.outputs()) results_ += output.kind == ir::OutputKind::result;
}

TestProgram::~TestProgram() { tenon_program_release(program_); }

std::vector<ops::HostTensor> TestProgram::call(const std::vector<ops::HostTensor>& inputs) const {
  std::vector<Borrowed> borrowed;
  for (const ops::HostTensor& input : inputs) borrowed.emplace_back(input);
  std::vector<const DLTensor*> tensors;
  for (Borrowed& b : borrowed) {
    b.tensor.shape = b.shape.data();
    tensors.push_back(&b.tensor);
  }
  std::vector<DLManagedTensorVersioned*> outputs(results_, nullptr);
  require_ok(tenon_program_call(program_, tensors.data(), tensors.size(), outputs.data(), outputs.size()));
  std::vector<ops::HostTensor> results;
  for (DLManagedTensorVersioned* output : outputs) {
    const DLTensor& t = output->dl_tensor;
    ops::HostTensor result(*dtype_of(t.dtype), {t.shape, t.shape + t.ndim});
    if (result.byte_count()) std::memcpy(result.data(), t.data, result.byte_count());
    results.push_back(std::move(result));
    output->deleter(output);
  }
  return results;
}

std::string TestProgram::query(const std::string& what) const {
  char* json = nullptr;
  require_ok(tenon_program_query(program_, what.c_str(), &json));
  const std::string text = json;
  tenon_free(json);
  return text;
}

ir::Graph parse(const std::string& text) { return ir::parse_graph(text).value(); }

ops::HostTensor filled(DType dtype, std::vector<std::int64_t> shape, unsigned seed) {
  ops::HostTensor tensor(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    const auto value = static_cast<double>((i * 7 + seed * 13) % 23) / 4.0 - 2.5;
    if (dtype == DType::f32) tensor.as<float>()[i] = static_cast<float>(value);
    if (dtype == DType::f64) tensor.as<double>()[i] = value;
    if (dtype == DType::i64) tensor.as<std::int64_t>()[i] = static_cast<std::int64_t>(value);
  }
  return tensor;
}

Borrowed::Borrowed(const ops::HostTensor& of) : shape(of.shape) {
  tensor = {const_cast<void*>(of.data()), {kDLCPU, 0}, static_cast<std::int32_t>(shape.size()), dlpack_type(of.dtype), shape.data(), nullptr, 0};
}

void require_ok(std::int32_t code) {
  if (code == TENON_OK) return;
  const TenonFailure* failure = tenon_last_error();
  throw Exception(static_cast<Code>(code), failure->text);
}

}  // namespace tenon::test
