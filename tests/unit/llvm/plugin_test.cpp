// The plugin as a library: it works beside another LLVM in the process.
#include <dlfcn.h>

#include <filesystem>

#include "catch.h"
#include "core/ir/buffer.h"
#include "core/ir/parser.h"
#include "running.h"

using namespace tenon;

namespace {

/// Loads the plugin and runs (x + 1) * 2 through its C functions.
float run_plugin(float x) {
  void* library = dlopen(TENON_BUILD_DIR "/lib/tenon/plugins/llvm.so", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library);
  auto entry = reinterpret_cast<TenonPluginEntry>(dlsym(library, TENON_PLUGIN_ENTRY));
  REQUIRE(entry);
  TenonOffer offer{};
  offer.struct_size = sizeof offer;
  offer.abi_oldest = TENON_ABI_OLDEST;
  offer.abi_newest = TENON_ABI_NEWEST;
  offer.host = llvm_test::services().table();
  const TenonPlugin* plugin = entry(&offer);
  REQUIRE(plugin);
  void* self = nullptr;
  REQUIRE(plugin->backend->create(offer.host, "{}", &self) == TENON_OK);
  const ir::Graph made = ir::parse_graph("graph @main (%x: f32[1]) {\n%a: f32[1] = add(%x, 1)\n%b: f32[1] = mul(%a, 2)\nreturn %b\n}").value();
  const auto buffer = ir::write_buffer(made);
  TenonGraph graph{};
  graph.struct_size = sizeof graph;
  graph.buffer = ir::bytes_of(buffer);
  TenonArtefact artefact{};
  artefact.struct_size = sizeof artefact;
  REQUIRE(plugin->backend->compile(self, &graph, "{}", &artefact) == TENON_OK);
  float result = 0;
  const void* inputs[] = {&x};
  void* outputs[] = {&result};
  TenonExecuteArgs args{};
  args.struct_size = sizeof args;
  args.inputs = inputs;
  args.outputs = outputs;
  CHECK(plugin->backend->execute(artefact.self, &args) == TENON_OK);
  plugin->backend->release(artefact.self);
  plugin->backend->destroy(self);
  return result;
}

}  // namespace

TEST_CASE("the plugin works beside other LLVMs in one process", "[plugin]") {
  int loaded = 0;
  for (const char* name : {"libLLVM-14.so.1", "libLLVM-15.so.1", "libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM.so.18.1"}) {
    void* other = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!other) continue;
    ++loaded;
    auto create = reinterpret_cast<void* (*)()>(dlsym(other, "LLVMContextCreate"));
    auto dispose = reinterpret_cast<void (*)(void*)>(dlsym(other, "LLVMContextDispose"));
    REQUIRE(create);
    void* context = create();
    CHECK(run_plugin(3) == 8.0f);
    dispose(context);
    CHECK(run_plugin(-1) == 0.0f);
  }
  if (loaded == 0) WARN("no other LLVM is installed: nothing was tried");
}
