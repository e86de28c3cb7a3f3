// The functions of tenon/host.h: each guards, checks its pointers, and hands on.
#include <nlohmann/json.hpp>

#include "core/abi/struct_size.h"
#include "host/autodiff/kept_choice.h"
#include "host/config/given_names.h"
#include "host/devices/tensor_copy.h"
#include "host/diagnostics/profiling.h"
#include "host/diagnostics/progress.h"
#include "host/driver/captured_graph.h"
#include "host/driver/entry_guard.h"
#include "host/driver/program.h"
#include "host/driver/tensor_road.h"
#include "host/driver/warm_up.h"
#include "host/exported/program_file.h"
#include "host/machine/memory_pool.h"
#include "host/machine/threads.h"

#ifndef TENON_VERSION
#define TENON_VERSION "0"
#endif

using namespace tenon::host;

namespace {

Session& session_of(TenonSession* session) {
  TENON_USER_CHECK(session, "the session is null");
  return *session->session;
}

/// A struct that its caller has not filled in says a size that reaches no field.
void require_size(const char* name, std::size_t given, std::size_t least) {
  TENON_USER_CHECK(given >= least, "the struct_size of {} is {}; it must be at least {}: sizeof the struct", name, given, least);
}

TenonProgram& program_of(TenonProgram* program) {
  TENON_USER_CHECK(program, "the program is null");
  return *program;
}

std::vector<std::string> names_of(Session& session, const char* const* names, std::size_t count) {
  return names ? given_names(names, count, "passes") : session.config.pipeline;
}

void give_json(const nlohmann::json& document, char** json) {
  TENON_USER_CHECK(json, "the place for the answer is null");
  *json = copy_for_caller(document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void call(TenonProgram& program, const DLTensor* const* inputs, std::size_t input_count, DLManagedTensorVersioned** outputs, std::size_t output_count) {
  std::size_t results = 0;
  for (const tenon::ir::Output& output : program.graph().outputs()) results += output.kind == tenon::ir::OutputKind::result;
  TENON_USER_CHECK(output_count == results, "the program gives {} results; there is room for {}", results, output_count);
  TENON_USER_CHECK((inputs || input_count == 0) && (outputs || output_count == 0), "the list of inputs, or the place for the results, is null");
  TensorCall tensors(program.plan(), {inputs, input_count});
  tensors.run();
  tensors.take_outputs({outputs, output_count});
}

}  // namespace

extern "C" {

const char* tenon_version(void) { return TENON_VERSION; }

int32_t tenon_session_create(const TenonSessionOptions* options, TenonSession** session) {
  return guarded([&] {
    TENON_USER_CHECK(session, "the place for the session is null");
    if (options) require_size("TenonSessionOptions", options->struct_size, TENON_SIZE_THROUGH(TenonSessionOptions, override_count));
    auto made = std::make_shared<Session>(options);
    for (const std::string& misspelt : Config::misspelt_variables()) made->events.warn_once("plugins", misspelt);
    *session = new TenonSession{std::move(made)};
  });
}

void tenon_session_release(TenonSession* session) { delete session; }

int32_t tenon_session_query(TenonSession* session, const char* what, char** json) {
  return guarded([&] { give_json(session_of(session).query(what ? what : ""), json); });
}

void tenon_session_reset_statistics(TenonSession* session) {
  guarded([&] { session_of(session).reset_statistics(); });
}

int32_t tenon_session_clear_cache(TenonSession* session, uint64_t* removed) {
  return guarded([&] {
    const std::uint64_t entries = session_of(session).registry.clear_cache();
    if (removed) *removed = entries;
  });
}

int32_t tenon_session_register(TenonSession* session, const TenonPlugin* plugin) {
  return guarded([&] { session_of(session).registry.add(plugin); });
}

void tenon_session_on_event(TenonSession* session, void (*callback)(void* context, const char* json), void* context) {
  guarded([&] { session_of(session).events.set_callback(callback, context); });
}

int32_t tenon_session_set_device(TenonSession* session, const TenonDriverDevice* device) {
  return guarded([&] {
    TENON_USER_CHECK(device, "the functions of the driver's device are null");
    require_size("TenonDriverDevice", device->struct_size, TENON_SIZE_THROUGH(TenonDriverDevice, current_stream));
    TENON_USER_CHECK(device->allocate && device->release, "a driver's device needs both \"allocate\" and \"release\"");
    TENON_USER_CHECK(!is_host(device->device), "a driver brings memory of devices; the host's is Tenon's own");
    session_of(session).devices.set_driver(*device);
  });
}

int32_t tenon_session_open_device(TenonSession* session, const char* const* backends, size_t backend_count, DLDevice device) {
  return guarded([&] { session_of(session).open_device(given_names(backends, backend_count, "backends"), device); });
}

int32_t tenon_session_find_device(TenonSession* session, const char* const* backends, size_t backend_count, const char* name, DLDevice* device) {
  return guarded([&] {
    TENON_USER_CHECK(name && device, "the name of the device or the place for it is null");
    *device = session_of(session).find_device(given_names(backends, backend_count, "backends"), name);
  });
}

int32_t tenon_device_allocate(TenonSession* session, DLDevice device, size_t bytes, void* stream, void** memory) {
  return guarded([&] {
    TENON_USER_CHECK(memory, "the place for the memory is null");
    *memory = session_of(session).devices.get(device).allocate(bytes, stream);
  });
}

int32_t tenon_device_release(TenonSession* session, DLDevice device, void* memory, size_t bytes, void* stream) {
  return guarded([&] { session_of(session).devices.get(device).release(memory, bytes, stream); });
}

int32_t tenon_device_copy(TenonSession* session, void* to, DLDevice to_device, const void* from, DLDevice from_device, size_t bytes) {
  return guarded([&] {
    TENON_USER_CHECK((to && from) || bytes == 0, "a copy of {} bytes from or to null", bytes);
    copy_bytes(session_of(session).devices.get(to_device), to, session_of(session).devices.get(from_device), from, bytes);
  });
}

int32_t tenon_device_synchronise(TenonSession* session, DLDevice device, void* stream) {
  return guarded([&] { Event(session_of(session).devices.get(device), stream).wait(); });
}

int32_t tenon_session_set_logs(TenonSession* session, const char* names) {
  return guarded([&] { session_of(session).events.set_logs(names ? names : ""); });
}

int32_t tenon_session_on_log(TenonSession* session, const char* names, void (*listener)(void* context, const char* log, const char* plugin, const char* text), void* context) {
  return guarded([&] { session_of(session).events.listen_to_logs(names ? names : "", listener, context); });
}

void tenon_on_progress(void (*listener)(const char* line, double part)) { set_progress_listener(listener); }

void tenon_on_message(void (*listener)(const char* category, const char* text)) { set_message_listener(listener); }

void tenon_on_range(const TenonRangeListener* listener) { set_range_listener(listener); }

const TenonProfiling* tenon_profiling(void) { return &profiling_table(); }

int32_t tenon_session_log_enabled(TenonSession* session, const char* category) {
  return session && category && session->session->events.wants(category) ? 1 : 0;
}

void tenon_session_log(TenonSession* session, int32_t level, const char* category, const char* text) {
  guarded([&] { session_of(session).events.log(static_cast<TenonLevel>(level), category ? category : "plugins", {}, text ? text : ""); });
}

int32_t tenon_session_emit(TenonSession* session, const char* event_json) {
  return guarded([&] {
    const nlohmann::json event = nlohmann::json::parse(event_json ? event_json : "", nullptr, false);
    TENON_USER_CHECK(event.is_object() && event.contains("kind"), "an event is a JSON object with a \"kind\"; given: {}", event_json ? event_json : "null");
    session_of(session).events.emit(event);
  });
}

int32_t tenon_choose_kept(const TenonKeepNetwork* given, uint8_t* kept) {
  return guarded([&] {
    TENON_USER_CHECK(given && given->struct_size >= sizeof(TenonKeepNetwork) && kept, "tenon_choose_kept takes a TenonKeepNetwork with its size, and room for the answer");
    tenon::rewrite::KeepNetwork network;
    for (std::size_t i = 0, operand = 0; i < given->value_count; ++i) {
      auto& value = network.values.emplace_back();
      value.keep = given->keep[i];
      value.compute = std::min(given->compute[i], tenon::rewrite::KeepNetwork::kNever);
      value.needed = given->needed[i] != 0;
      for (; operand < given->operand_ends[i]; ++operand) {
        TENON_USER_CHECK(given->operands[operand] < given->value_count, "value {} has an operand that is none", i);
        value.operands.push_back(given->operands[operand]);
      }
    }
    std::ranges::copy(choose_kept(network), kept);
  });
}

void tenon_warm_up(const TenonGraph* graph) {
  guarded([&] {
    if (graph) warm_up(*graph);
  });
}

int32_t tenon_compile(TenonSession* session, const TenonCompileRequest* request, TenonProgram** program) {
  return guarded([&] {
    TENON_USER_CHECK(request && program, "the request or the place for the program is null");
    require_size("TenonCompileRequest", request->struct_size, TENON_SIZE_THROUGH(TenonCompileRequest, context));
    *program = new TenonProgram(session_of(session).shared_from_this(), *request);
  });
}

void tenon_program_retain(TenonProgram* program) {
  if (program) program->users.fetch_add(1, std::memory_order_relaxed);
}

void tenon_program_release(TenonProgram* program) {
  if (program && program->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete program;
}

int32_t tenon_program_query(TenonProgram* program, const char* what, char** json) {
  return guarded([&] { give_json(program_of(program).query(what ? what : ""), json); });
}

int32_t tenon_program_run(TenonProgram* program, const TenonRunArgs* args) {
  return guarded([&] {
    TENON_USER_CHECK(program && args, "the program or the arguments of the run are null");
    require_size("TenonRunArgs", args->struct_size, TENON_SIZE_THROUGH(TenonRunArgs, context));
    program->require_lists(*args);
    program->plan().run(*args);
  });
}

int32_t tenon_program_bind(TenonProgram* program, const int64_t* symbols, int64_t* sizes) {
  return guarded([&] { program_of(program).bind(symbols, sizes); });
}

int32_t tenon_program_call(TenonProgram* program, const DLTensor* const* inputs, size_t input_count, DLManagedTensorVersioned** outputs, size_t output_count) {
  return guarded([&] { call(program_of(program), inputs, input_count, outputs, output_count); });
}

int32_t tenon_capture_file(TenonSession* session, const char* path, const char* options, TenonCapturedGraph** graph) {
  return guarded([&] {
    TENON_USER_CHECK(path && graph, "the path or the place for the graph is null");
    *graph = capture_file(session_of(session).shared_from_this(), path, options).release();
  });
}

int32_t tenon_passes_run(TenonSession* session, const TenonGraph* graph, const char* const* names, size_t count, TenonCapturedGraph** result) {
  return guarded([&] {
    TENON_USER_CHECK(graph && result, "the graph or the place for the result is null");
    Session& s = session_of(session);
    *result = run_passes(s.shared_from_this(), *graph, names_of(s, names, count)).release();
  });
}

const TenonGraph* tenon_captured_graph(const TenonCapturedGraph* graph) { return graph ? &graph->graph() : nullptr; }
void tenon_captured_release(TenonCapturedGraph* graph) { delete graph; }

const char* tenon_captured_signature(const TenonCapturedGraph* graph) { return graph ? graph->signature.c_str() : "{}"; }

int32_t tenon_export_save(const TenonGraph* graph, const char* signature, const char* path) {
  return guarded([&] {
    TENON_USER_CHECK(graph && path, "the graph or the path is null");
    save_program(*graph, signature ? signature : "{}", path);
  });
}

void* tenon_pool_allocate(size_t bytes) { return pool_allocate(bytes); }
void tenon_pool_release(void* memory, size_t bytes) { pool_release(memory, bytes); }
void tenon_pool_trim(void) { pool_trim(); }

void tenon_pool_statistics(TenonPoolStatistics* statistics) {
  if (!statistics || statistics->struct_size < sizeof *statistics) return;
  const PoolStatistics s = pool_statistics();
  *statistics = {sizeof *statistics, s.used_bytes, s.idle_bytes, s.allocations, s.reuses, s.mapped_bytes};
}

void tenon_parallel_for(int64_t begin, int64_t end, int64_t grain, void (*body)(void* context, int64_t first, int64_t last), void* context) {
  if (body) parallel_for(begin, end, grain, body, context);
}

}  // extern "C"
