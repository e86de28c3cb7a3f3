// Negates float32 numbers, with one fault in one phase. Options: "phase", "fault", and "when": "always", or "marked": on graphs of
// kMarked elements only, which no sample graph has. What happens before there are options is told by the library's name: at_PHASE_FAULT.so.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <cfenv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/abi/graph_view.h"
#include "core/abi/plugin.h"

namespace {

constexpr std::int64_t kMarked = 1237;

// ---- what a plugin can do wrong anywhere

volatile int one = 1;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winfinite-recursion"
__attribute__((noinline)) int descend(volatile char* outer) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(*outer + 1);
  return descend(frame) + frame[0];
}
#pragma GCC diagnostic pop

void leak_child() {
  if (fork() == 0) {
    sleep(3);
    _exit(0);
  }
}

/// Does it where the fault is one of those; the others are told by what a call answers.
void commit(const std::string& fault) {
  volatile char start = 0;
  if (fault == "throw_exception" && one) throw std::runtime_error("the plugin is broken");
  if (fault == "throw_int" && one) throw 42;
  if (fault == "abort") std::abort();
  if (fault == "segfault") *reinterpret_cast<volatile int*>(0x10) = one;
  if (fault == "exit") std::exit(0);
  if (fault == "overflow_stack") descend(&start);
  if (fault == "float_state") std::fesetround(FE_UPWARD), _mm_setcsr(_mm_getcsr() | 0x8040);
  if (fault == "leak_child") leak_child();
  while (fault == "hang" && one) usleep(1000);
}

/// Bytes of which all behind the first `bytes` cannot be read or written.
std::uint8_t* bytes_before_the_end(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* memory = static_cast<std::uint8_t*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(memory + page, page, PROT_NONE);
  return memory + page - bytes;
}

// ---- before there are options

std::string library_stem() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&library_stem), &info);
  char path[4096] = {};
  if (readlink(info.dli_fname, path, sizeof path - 1) < 0) std::strncpy(path, info.dli_fname, sizeof path - 1);
  std::string name = std::strrchr(path, '/') ? std::strrchr(path, '/') + 1 : path;
  return name.substr(0, name.find(".so"));
}

std::string fault_at(const std::string& phase) {
  const std::string stem = library_stem(), head = "at_" + phase + "_";
  return stem.starts_with(head) ? stem.substr(head.size()) : "";
}

struct AtLoad {
  AtLoad() {
    static const char kReadOnly[] = "text";
    const std::string fault = fault_at("load");
    if (fault == "write_outside") *const_cast<volatile char*>(kReadOnly) = 'T';
    commit(fault);
  }
} at_load;

// ---- the backend

const TenonHost* host = nullptr;

struct Options {
  std::string phase, fault;
  bool always = false;
};

std::string option(std::string_view text, const std::string& key) {
  const std::string head = "\"" + key + "\":\"";
  const std::size_t at = text.find(head);
  if (at == std::string_view::npos) return {};
  const std::size_t start = at + head.size();
  return std::string(text.substr(start, text.find('"', start) - start));
}

/// What is wrong in a phase of a graph with so many elements; "" when nothing is.
std::string fault_in(const Options& options, const char* phase, std::int64_t count) {
  return options.phase == phase && (options.always || count == kMarked) ? options.fault : "";
}

struct Compiled {
  Options options;
  std::int64_t count = 0;
  TenonAssumption assumption{77, 0, 1, 1};
  TenonAliasPermit alias{5, 5};

  std::string fault(const char* phase) const { return fault_in(options, phase, count); }
};

std::int32_t create(const TenonHost* given, const char* text, void** self) {
  host = given;
  auto* options = new Options{option(text, "phase"), option(text, "fault"), option(text, "when") == "always"};
  *self = options;
  const std::string fault = fault_in(*options, "create", kMarked);
  commit(fault);
  if (fault == "null_answer") *self = nullptr;
  if (fault == "write_outside") const_cast<char*>(text)[0] = '!';
  return TENON_OK;
}

void destroy(void* self) {
  auto* options = static_cast<Options*>(self);
  const std::string fault = options ? fault_in(*options, "destroy", kMarked) : "";
  commit(fault);
  delete options;
  if (fault == "write_outside") std::memset(bytes_before_the_end(8), 1, 64);
}

std::int32_t claim(void* self, const TenonGraph* given, const TenonClaims* claims) {
  const Options options = self ? *static_cast<Options*>(self) : Options{};
  const tenon::GraphView graph(given->buffer);
  const bool marked = !graph.outputs().empty() && graph.outputs()[0].value.type().is_static() && graph.outputs()[0].value.type().element_count() == kMarked;
  const std::string fault = fault_in(options, "claim", marked ? kMarked : 0);
  commit(fault);
  if (fault == "null_answer") claims->claim(claims->self, nullptr, 1), claims->refuse(claims->self, 0, nullptr, nullptr);
  for (const tenon::NodeView node : graph.nodes()) {
    std::uint32_t id = node.id();
    if (node.op() != "neg" || node.type().dtype() != tenon::DType::f32 || !node.type().is_static()) continue;
    if (fault == "wrong_size") id += 1000;
    claims->claim(claims->self, &id, fault == "huge_size" ? SIZE_MAX : 1);
  }
  if (fault == "write_outside") std::memset(const_cast<std::uint8_t*>(given->buffer.data), 0xff, given->buffer.size);
  return TENON_OK;
}

/// An artefact whose description is wrong in the way that the fault says.
void describe(Compiled* compiled, const std::string& fault, TenonArtefact* artefact) {
  artefact->self = fault == "null_answer" ? nullptr : compiled;
  if (fault == "wrong_size") artefact->assumptions = &compiled->assumption, artefact->assumption_count = 1;
  if (fault == "huge_size") artefact->aliases = &compiled->alias, artefact->alias_count = SIZE_MAX;
}

std::int32_t compile(void* self, const TenonGraph* given, const char*, TenonArtefact* artefact) {
  auto* compiled = new Compiled;
  if (self) compiled->options = *static_cast<Options*>(self);
  compiled->count = tenon::GraphView(given->buffer).outputs()[0].value.type().element_count();
  const std::string fault = compiled->fault("compile");
  commit(fault);
  if (fault == "write_outside") std::memset(const_cast<std::uint8_t*>(given->buffer.data), 0xff, given->buffer.size);
  describe(compiled, fault, artefact);
  return TENON_OK;
}

std::int32_t workspace_bytes(void* artefact, const std::int64_t* symbols, std::size_t* bytes) {
  const std::string fault = static_cast<Compiled*>(artefact)->fault("workspace");
  commit(fault);
  *bytes = fault == "huge_size" ? SIZE_MAX : fault == "wrong_size" ? 3 : 0;
  if (fault == "write_outside") const_cast<volatile std::int64_t*>(symbols)[0] = -5;
  return fault == "null_answer" ? 4242 : TENON_OK;
}

void negate(const Compiled& compiled, const TenonExecuteArgs* args) {
  for (std::int64_t i = 0; i < compiled.count; ++i) static_cast<float*>(args->outputs[0])[i] = -static_cast<const float*>(args->inputs[0])[i];
}

/// Hands the result over as a tensor of its own, wrong in the way that the fault says.
std::int32_t give(const Compiled& compiled, const TenonExecuteArgs* args, const std::string& fault) {
  static std::string at_end;
  at_end = fault;
  auto* shape = new std::int64_t[1]{compiled.count + (fault == "wrong_size" ? 1 : 0)};
  auto* data = fault == "write_outside" ? reinterpret_cast<float*>(bytes_before_the_end(4)) : new float[static_cast<std::size_t>(compiled.count) + 1];
  if (fault != "write_outside")
    for (std::int64_t i = 0; i < compiled.count; ++i) data[i] = -static_cast<const float*>(args->inputs[0])[i];
  auto* tensor = new DLManagedTensorVersioned{};
  tensor->version = {1, 0};
  tensor->deleter = [](DLManagedTensorVersioned*) { commit(at_end); };
  tensor->dl_tensor = {data, {kDLCPU, 0}, fault == "huge_size" ? INT32_MAX : 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  if (fault == "null_answer") tensor->dl_tensor.data = nullptr;
  return args->call->give_output(args->call->self, 0, tensor);
}

std::int32_t execute(void* artefact, const TenonExecuteArgs* args) {
  const Compiled& compiled = *static_cast<Compiled*>(artefact);
  const std::string fault = compiled.fault("execute");
  commit(fault);
  if (const std::string given = compiled.fault("give_output"); !given.empty()) return give(compiled, args, given);
  if (fault == "null_answer") return TENON_OK;
  const std::int64_t huge[] = {INT64_MAX, INT64_MAX};
  if (fault == "wrong_size") args->call->allocate_output(args->call->self, 0, &compiled.count, 1);
  if (fault == "huge_size") args->call->allocate_output(args->call->self, 0, huge, 2);
  negate(compiled, args);
  if (fault == "write_outside") std::memset(static_cast<float*>(args->outputs[0]) + compiled.count, 0x7f, 4096);
  return TENON_OK;
}

void release(void* artefact) {
  auto* compiled = static_cast<Compiled*>(artefact);
  const std::string fault = compiled->fault("release");
  commit(fault);
  delete compiled;
  if (fault == "write_outside") std::memset(bytes_before_the_end(8), 1, 64);
}

std::int32_t serialise(void* artefact, void (*sink)(void*, TenonBytes), void* context) {
  const Compiled& compiled = *static_cast<Compiled*>(artefact);
  const std::string fault = compiled.fault("serialise");
  commit(fault);
  const std::string text = std::to_string(compiled.count) + " \"phase\":\"" + compiled.options.phase + "\",\"fault\":\"" + compiled.options.fault + "\",\"when\":\"" +
                           (compiled.options.always ? "always" : "marked") + "\"";
  TenonBytes bytes = {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
  if (fault == "null_answer") bytes.data = nullptr;
  if (fault == "wrong_size") bytes.size = 2;
  if (fault == "huge_size") bytes.size = SIZE_MAX;
  if (fault == "write_outside") bytes = {bytes_before_the_end(4), 1 << 20};
  sink(context, bytes);
  return TENON_OK;
}

std::int32_t load(void*, TenonBytes bytes, TenonArtefact* artefact) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data), bytes.size);
  auto* compiled = new Compiled{{option(text, "phase"), option(text, "fault"), option(text, "when") == "always"}, std::atoll(std::string(text).c_str())};
  if (text.find('"') == std::string_view::npos) {
    host->report(host->self, TENON_MALFORMED, TENON_NO_NODE, "this is no stored artefact");
    return TENON_MALFORMED;
  }
  const std::string fault = compiled->fault("reload");
  commit(fault);
  if (fault == "write_outside") std::memset(const_cast<std::uint8_t*>(bytes.data), 0xff, bytes.size);
  describe(compiled, fault, artefact);
  return TENON_OK;
}

DLDevice cpu = {kDLCPU, 0};
TenonBackend table = {sizeof(TenonBackend), 0, &cpu, 1, create, destroy, claim, compile, workspace_bytes, execute, release, serialise, load, nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TenonPlugin* tenon_plugin_entry(TenonOffer* offer) {
  static const std::string name = library_stem();
  static TenonPlugin plugin = {sizeof(TenonPlugin), TENON_PLUGIN_MAGIC, TENON_ABI_NEWEST, TENON_KIND_BACKEND, name.c_str(), "1.0", "test", "",
                               "negates, with a fault", &table, nullptr, nullptr};
  const std::string fault = fault_at("entry");
  commit(fault);
  if (fault == "wrong_size") plugin.struct_size = 24;
  if (fault == "huge_size") plugin.struct_size = SIZE_MAX;
  if (fault == "write_outside") std::memset(offer->refusal, 'x', sizeof offer->refusal + 65536);
  return fault == "null_answer" ? nullptr : &plugin;
}
