#include "host/plugins/contact/host_table.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "catch.h"
#include "host/diagnostics/events.h"
#include "host/plugins/contact/cancellation.h"
#include "host/plugins/contact/plugin_call.h"
#include "host/store/byte_store.h"
#include "unit/host/plugins/plugin_folder.h"

using namespace tenon::host;

namespace {

struct Table {
  Events events;
  tenon::test::PluginFolder folder;
  ByteStore store{folder.path() + "/store", 1 << 20};
  HostTable whole{"sample", TENON_ABI_NEWEST, &events, &store};
  const TenonHost* host = whole.functions();
};

TenonBytes bytes(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

}  // namespace

TEST_CASE("the table is whole") {
  const Table table;
  CHECK(table.host->struct_size == sizeof(TenonHost));
  CHECK(table.host->abi == TENON_ABI_NEWEST);
  void* memory = table.host->allocate(table.host->self, 1000);
  REQUIRE(memory);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
  table.host->deallocate(table.host->self, memory);
  CHECK(table.host->thread_count(table.host->self) >= 1);
  CHECK(table.host->feature(table.host->self, "nothing") == nullptr);
}

TEST_CASE("the first report of a call is kept, for the thread of the call") {
  const Table table;
  CHECK_FALSE(take_report());
  table.host->report(table.host->self, TENON_UNSUPPORTED, 7, "the cause");
  table.host->report(table.host->self, TENON_INTERNAL, 8, "what follows");
  std::thread([] { CHECK_FALSE(take_report()); }).join();
  const auto report = take_report();
  REQUIRE(report);
  CHECK(report->code == TENON_UNSUPPORTED);
  CHECK(report->node == 7);
  CHECK(report->text == "the cause");
  CHECK_FALSE(take_report());
}

TEST_CASE("workers of a parallel loop speak for the call that they work for") {
  Table table;
  float value = 1;
  DLTensor tensor{};
  tensor.data = &value;
  tensor.device = {kDLCPU, 0};
  const DLTensor* constants[] = {&tensor, &tensor};
  const TenonGraph graph{sizeof graph, {nullptr, 0}, constants, 2};
  CHECK(table.host->read_constant(table.host->self, 0) == nullptr);
  {
    const CompileScope scope(graph);
    std::atomic<int> read{0};
    struct Context {
      const TenonHost* host;
      std::atomic<int>* read;
    } context{table.host, &read};
    table.host->parallel_for(
        table.host->self, 0, 1000, 1,
        [](void* self, std::int64_t first, std::int64_t last) {
          const auto& c = *static_cast<Context*>(self);
          for (; first < last; ++first) *c.read += c.host->read_constant(c.host->self, 1) != nullptr;
          c.host->report(c.host->self, TENON_INTERNAL, 3, "from a worker");
        },
        &context);
    CHECK(read == 1000);
    CHECK(scope.constants_read() == std::vector<std::uint32_t>{1});
    CHECK(table.host->read_constant(table.host->self, 2) == nullptr);
    CHECK(take_report()->text == "from a worker");
  }
  CHECK(table.host->read_constant(table.host->self, 0) == nullptr);
}

TEST_CASE("workers of a parallel loop hear that a compile is given up") {
  Table table;
  std::atomic<int> asked{0};
  const auto give_up_later = [](void* context) -> std::int32_t { return ++*static_cast<std::atomic<int>*>(context) > 100; };
  {
    CancelScope scope(give_up_later, &asked);
    CHECK(table.host->cancelled(table.host->self) == 0);
    table.host->parallel_for(
        table.host->self, 0, 1000, 1,
        [](void* self, std::int64_t first, std::int64_t last) {
          const auto* host = static_cast<const TenonHost*>(self);
          for (; first < last; ++first) host->cancelled(host->self);
        },
        const_cast<TenonHost*>(table.host));
    CHECK(table.host->cancelled(table.host->self) != 0);
    CHECK(asked < 200);  // who has given up is not asked again
  }
  CHECK(table.host->cancelled(table.host->self) == 0);
}

TEST_CASE("the store keeps plugins apart") {
  Table table;
  const HostTable other("other", TENON_ABI_NEWEST, &table.events, &table.store);
  const TenonHost* other_host = other.functions();
  CHECK(table.host->cache_put(table.host->self, bytes("key"), bytes("value")) == TENON_OK);
  std::string found;
  const auto sink = [](void* context, TenonBytes value) { static_cast<std::string*>(context)->assign(reinterpret_cast<const char*>(value.data), value.size); };
  CHECK(other_host->cache_get(other_host->self, bytes("key"), sink, &found) == TENON_NOT_FOUND);
  CHECK(table.host->cache_get(table.host->self, bytes("key"), sink, &found) == TENON_OK);
  CHECK(found == "value");
}

TEST_CASE("what the store finds and does not is counted; a damaged entry is an event") {
  Table table;
  const auto drop = [](void*, TenonBytes) {};
  const auto look = [&](const char* key) { return table.host->cache_get(table.host->self, bytes(key), drop, nullptr); };
  CHECK(look("key") == TENON_NOT_FOUND);
  CHECK(table.host->cache_put(table.host->self, bytes("key"), bytes("value")) == TENON_OK);
  CHECK(look("key") == TENON_OK);
  for (const auto& file : std::filesystem::directory_iterator(table.folder.path() + "/store"))
    table.folder.write("store/" + file.path().filename().string(), "TENONST1 and then something else");
  CHECK(look("key") == TENON_NOT_FOUND);
  const nlohmann::json counts = table.events.counts();
  CHECK(counts["cache_hits"] == 1);
  CHECK(counts["cache_misses"] == 2);
  CHECK(counts["cache_stored"] == 1);
  CHECK(counts["cache_damaged"] == 1);
}

TEST_CASE("a table outlives its session") {
  Table table;
  table.events.set_logs("plugins");
  CHECK(table.host->log_enabled(table.host->self, "plugins") != 0);
  CHECK(table.host->log_enabled(table.host->self, nullptr) != 0);
  CHECK(table.host->log_enabled(table.host->self, "guards") == 0);
  table.whole.detach();
  CHECK(table.host->log_enabled(table.host->self, "plugins") == 0);
  table.host->log(table.host->self, TENON_INFO, "plugins", "dropped");
  CHECK(table.host->cache_put(table.host->self, bytes("key"), bytes("value")) == TENON_UNSUPPORTED);
}
