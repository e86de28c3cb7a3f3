// A plugin that was built against the headers of an earlier SDK: tables are shorter, and everything works as it did.
#include <dlfcn.h>

#include "../../test_backend.h"
#include "catch.h"
#include "host/plugins/contact/host_table.h"

using namespace tenon;
using namespace tenon::test;

namespace {

const TenonPlugin* older_plugin() {
  void* library = dlopen(TENON_BUILD_DIR "/tests/plugins/older_backend.so", RTLD_NOW | RTLD_LOCAL);
  INFO((library ? "" : dlerror()));
  REQUIRE(library);
  const auto entry = reinterpret_cast<TenonPluginEntry>(dlsym(library, TENON_PLUGIN_ENTRY));
  REQUIRE(entry);
  TenonOffer offer{};
  offer.struct_size = sizeof offer;
  offer.abi_oldest = TENON_ABI_OLDEST, offer.abi_newest = TENON_ABI_NEWEST;
  offer.host = host::HostTable::make_lasting("older_backend", TENON_ABI_NEWEST, nullptr, nullptr, false).functions();
  const TenonPlugin* plugin = entry(&offer);
  INFO(offer.refusal);
  REQUIRE(plugin);
  return plugin;
}

}  // namespace

TEST_CASE("a plugin of an earlier SDK loads and runs") {
  const TenonPlugin* plugin = older_plugin();
  CHECK(plugin->backend->struct_size < sizeof(TenonBackend));
  TestBackend rest("rest");
  TestSession session({&rest});
  require_ok(tenon_session_register(session.get(), plugin));
  const TestProgram program(session, parse(R"(graph @g [s0: 1..64] (%x: f32[s0], %y: f32[s0]) {
  %a: f32[s0] = neg(%x)
  %b: f32[s0] = add(%a, %y)
  %c: f32[s0] = tanh(%b)
  return %b, %c
})"), {"older_backend"});
  for (const std::int64_t size : {3, 64}) {
    std::vector<ops::HostTensor> inputs;
    inputs.push_back(filled(DType::f32, {size}, 1));
    inputs.push_back(filled(DType::f32, {size}, 2));
    const auto results = program.call(inputs);
    for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) CHECK(results[0].as<float>()[i] == inputs[1].as<float>()[i] - inputs[0].as<float>()[i]);
    CHECK(results[1].shape[0] == size);
  }
  const std::string plan = program.query("plan");
  CHECK(plan.find("older_backend") != std::string::npos);
  CHECK(plan.find("rest") != std::string::npos);
}
