/*
 * The API of libtenon for whoever drives it: the `tenon` command, C and C++ programs, the Python package.
 * C++ users include tenon/embed.hpp, which wraps this.
 *
 * Functions that can fail return a TenonCode; `tenon_last_error` then tells more, on the same thread, until the next failure.
 * Strings that are given out as `char**` belong to the caller: `tenon_free`. Everything may be called from any thread.
 */
#pragma once

#include <stdbool.h>

#include "core/abi/plugin.h"
#include "core/abi/profiling.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_API __attribute__((visibility("default")))

typedef struct TenonFailure {
  int32_t code;
  int32_t phase;       /* TenonPhase */
  const char* plugin;  /* "" when none is concerned */
  uint32_t node;
  const char* text;
} TenonFailure;

TENON_API const TenonFailure* tenon_last_error(void);
TENON_API void tenon_free(void* memory);
TENON_API const char* tenon_version(void);

/* ---- session: configuration, plugins, events ---- */
typedef struct TenonSession TenonSession;

typedef struct TenonSessionOptions {
  size_t struct_size;
  const char* config_file;      /* null: the search order of tenon.toml */
  const char* const* overrides; /* "section.key=value", highest precedence */
  size_t override_count;
} TenonSessionOptions;

TENON_API int32_t tenon_session_create(const TenonSessionOptions* options, TenonSession** session);
TENON_API void tenon_session_release(TenonSession* session);
/* A JSON document: what is "plugins", "plugin:NAME", "flags", "passes", "config", "cache", "logs" (names and meanings), "doctor" (what a bug report should say, as sections of names and texts; loads the backends), "devices" (of the backends that are loaded), or "statistics": event counts, the memory pool,
   "memory" (the largest peak of a live plan's latest run beside inputs and constants, and that of running it node by node), and for each
   backend {nodes, steps, compile_ms, runs, run_ms, timed_runs} since the last reset. A run is timed when the plan
   touches at least 256 KB or the flag "profile" is on: reading the clock would cost a small plan more than its bookkeeping. */
TENON_API int32_t tenon_session_query(TenonSession* session, const char* what, char** json);
TENON_API void tenon_session_reset_statistics(TenonSession* session);
/* Removes the compiled code that is kept on disk. `removed` takes how many entries there were; may be null. Code that is in use stays
   in memory. */
TENON_API int32_t tenon_session_clear_cache(TenonSession* session, uint64_t* removed);

/* Adds a plugin that lives in this process (the Python package's own backends). `plugin` must stay valid. */
TENON_API int32_t tenon_session_register(TenonSession* session, const TenonPlugin* plugin);

/* What a driver has of a device itself: the allocator and the streams of a library that the program uses there too. */
typedef struct TenonDriverDevice {
  size_t struct_size;
  DLDevice device;
  void* context;
  /* As the functions of that name in TenonDeviceTable; null when there is no memory (the driver keeps its own words). */
  void* (*allocate)(void* context, DLDevice device, size_t bytes, void* stream);
  void (*release)(void* context, DLDevice device, void* memory, size_t bytes, void* stream);
  /* The stream that the calling thread works on. Null: the default stream. */
  void* (*current_stream)(void* context, DLDevice device);
} TenonDriverDevice;

/* From now on the session has memory and streams of that device from the driver. Fails once the session has asked for memory there. */
TENON_API int32_t tenon_session_set_device(TenonSession* session, const TenonDriverDevice* device);

/* Loads backends as a compile that names them would (none: the configuration's), with their devices. Fails with TENON_NOT_FOUND where that device
   is not among those that the session has then. */
TENON_API int32_t tenon_session_open_device(TenonSession* session, const char* const* backends, size_t backend_count, DLDevice device);

/* Likewise, the device that a name says: the word that its backend has for the kind and its number ("cuda:1"; the first without a number), "cpu", or
   DLPack's number ("device9:0"). */
TENON_API int32_t tenon_session_find_device(TenonSession* session, const char* const* backends, size_t backend_count, const char* name, DLDevice* device);

/* Memory of a device, for drivers; `stream` null: the default one. Fails with TENON_NOT_FOUND where no backend that the session has loaded
   brings the device (a backend is loaded when a compile names it). */
TENON_API int32_t tenon_device_allocate(TenonSession* session, DLDevice device, size_t bytes, void* stream, void** memory);
TENON_API int32_t tenon_device_release(TenonSession* session, DLDevice device, void* memory, size_t bytes, void* stream);
/* Copies `bytes` bytes, of which one side or both are on a device, and waits until they have arrived. */
TENON_API int32_t tenon_device_copy(TenonSession* session, void* to, DLDevice to_device, const void* from, DLDevice from_device, size_t bytes);
/* Waits until what the stream was given has run. */
TENON_API int32_t tenon_device_synchronise(TenonSession* session, DLDevice device, void* stream);

/* Events are JSON objects with a "kind" ("compile", "claim", "fallback", "pass", "plugin_refused", …). One callback a session; it
   runs on the thread where the event happens and must not call back into the session. */
TENON_API void tenon_session_on_event(TenonSession* session, void (*callback)(void* context, const char* json), void* context);
/* Switches logs by name, as TENON_LOGS does ("passes,fusion,kernel_code"); replaces the current set. */
TENON_API int32_t tenon_session_set_logs(TenonSession* session, const char* names);

/* What the logs of these names say goes to `listener` from now on, whether they are on or not; those that are on still go to stderr, too. Null ends it.
   `plugin` is who says it, or empty. No two calls at a time, on whatever thread; it must not call back into libtenon. TENON_INVALID_ARGUMENT for an unknown
   name. */
TENON_API int32_t tenon_session_on_log(TenonSession* session, const char* names, void (*listener)(void* context, const char* log, const char* plugin, const char* text), void* context);

/* Warnings and errors that nobody asked for (a plugin that is refused, a backend that fails, a cache that cannot be used) go to `listener` from now on, in
   the whole process, instead of to stderr; null puts that back. `category` is the log that they belong to. It is called on the thread where something is
   said, whatever that holds, maybe on several at a time, and must not call back into libtenon. */
TENON_API void tenon_on_message(void (*listener)(const char* category, const char* text));

/* How far a compile is that takes more than a second goes to `listener` from now on, in the whole process, instead of to stderr; null puts that back.
   `line` says it in words and `part` from 0 to 1; an empty line says that the compile has ended. It is called on a thread of its own four times a second,
   maybe once more after the compile; that does not wait for it. */
TENON_API void tenon_on_progress(void (*listener)(const char* line, double part));

/* Takes ranges of time as they begin and end: captures of drivers, compiles, groups and kernels, on the thread where they are. */
typedef struct TenonRangeListener {
  size_t struct_size;
  void (*begin)(const char* name, const char* place); /* place: "file:line" of the user's program, or empty */
  void (*end)(void);                                  /* maybe of a range that began before anybody listened */
} TenonRangeListener;

/* Ranges go to `listener` from now on, in the whole process; null ends that. It lasts as long as the process, is called on several threads at a time, with
   whatever these hold, and must not call back into libtenon. */
TENON_API void tenon_on_range(const TenonRangeListener* listener);

/* For drivers: what ranges and code are told by, as plugins get it by TenonHost.feature("profiling"). */
TENON_API const TenonProfiling* tenon_profiling(void);

/* For drivers: whether a log is on, a line for a log, an event of the driver's own (a JSON object with a "kind"). */
TENON_API int32_t tenon_session_log_enabled(TenonSession* session, const char* category);
TENON_API void tenon_session_log(TenonSession* session, int32_t level, const char* category, const char* text);
TENON_API int32_t tenon_session_emit(TenonSession* session, const char* event_json);

/* For drivers that differentiate: values that gradients need, what it costs to keep each or to compute it again from its operands, which are needed
   then, and which of them are needed in any case. Sets by value whether it is kept, so that all costs together are least. */
typedef struct TenonKeepNetwork {
  size_t struct_size;
  size_t value_count;
  const int64_t* keep;            /* by value */
  const int64_t* compute;         /* by value; 10^15 or more where it cannot be */
  const uint8_t* needed;          /* by value */
  const uint32_t* operand_ends;   /* by value: where its operands end among all */
  const uint32_t* operands;       /* numbers of values */
} TenonKeepNetwork;
TENON_API int32_t tenon_choose_kept(const TenonKeepNetwork* network, uint8_t* kept);

/* Compiles the graph in a session of its own and forgets it, so that what the first compile of a process costs once (loading plugins,
   filling their tables, starting the code generator) has been paid when a program needs it. Counts, logs and stores nothing. Does nothing
   where the flag compile.warm_up is off, where the configuration is in error, or where it names places to look for plugins: those are
   loaded when they are needed. For a thread of the driver's; it must have returned before the process exits or forks. */
TENON_API void tenon_warm_up(const TenonGraph* graph);

/* ---- compile ---- */
typedef struct TenonProgram TenonProgram;

typedef struct TenonCompileRequest {
  size_t struct_size;
  TenonGraph graph;
  const char* const* backends; /* in order of preference; none: the configuration's */
  size_t backend_count;
  const char* const* pipeline; /* passes; null: the configuration's */
  size_t pipeline_count;
  /* JSON object, or null. A member named like a backend (an object) goes to that backend's `create`; "sizes" ({"s0": 64, ...}) tells
     backends without dynamic shapes what to expect; the rest goes to `compile` of each. */
  const char* options;
  /* Called when the program no longer needs the constants' memory. May be null. */
  void (*release_constants)(void* context);
  void* context;
  /* Backends of the driver's own, registered in this process: asked after `backends` and before the configured fallback, whatever the
     user has chosen. May be null. */
  const char* const* own_backends;
  size_t own_backend_count;
  /* Asked between the steps of the compile, and by backends while they work, on any of its threads, maybe on several at a time:
     non-zero gives the compile up, with TENON_CANCELLED. May be null. */
  int32_t (*cancelled)(void* cancel_context);
  void* cancel_context;
} TenonCompileRequest;

/* The graph and the request are copied; the constants' memory is not. When compiling fails `release_constants` is not called. */
TENON_API int32_t tenon_compile(TenonSession* session, const TenonCompileRequest* request, TenonProgram** program);
TENON_API void tenon_program_retain(TenonProgram* program);
TENON_API void tenon_program_release(TenonProgram* program);
/* JSON: what is "plan": steps with backend, nodes and milliseconds of compile, arena bytes, conversions; "passes": time and changes
   of each; "graph": the text of the graph after passes. */
TENON_API int32_t tenon_program_query(TenonProgram* program, const char* what, char** json);

/* ---- run: the fast road. Inputs and outputs are in the order of the submitted graph. ---- */
typedef struct TenonRunArgs {
  size_t struct_size;
  const void* const* inputs; /* first elements; layouts as the graph's input types say, guarded by the driver */
  const int64_t* symbols;    /* every symbol of the graph that an input defines, by SymbolId; others are ignored */
  void* const* outputs;      /* memory for each output of kind result, update, saved, row-major unless its type says otherwise;
                                null where the size depends on data; null, too, for a result or what is saved on a device, if its memory
                                is to be taken no sooner than it is needed: allocate_output is asked then. An update's memory may be that of its target input (then the
                                layouts are equal); apart from that no output overlaps an input or another output */
  /* Of the device of the program, where it has one beside the host: work is given to it in order, and the call returns when all is given,
     and what lies in the host's memory is there. Null, or more devices than one: their current streams (TenonDriverDevice). */
  void* stream;
  /* Memory for outputs that have none in `outputs`, on the output's device; required if there are any. Called again for the same output when
     a backend failed after it had asked. */
  void* (*allocate_output)(void* context, uint32_t index, const int64_t* sizes, size_t rank);
  void* context;
} TenonRunArgs;

/* Runs the program. Concurrent runs of one program are fine. On failure no update has been written, unless the text says which. */
TENON_API int32_t tenon_program_run(TenonProgram* program, const TenonRunArgs* args);

/* Computes the sizes of the outputs from the symbols: `sizes` takes the dimensions of all outputs one after the other (as many as
   the graph's output types have); -1 for one that depends on data. */
TENON_API int32_t tenon_program_bind(TenonProgram* program, const int64_t* symbols, int64_t* sizes);

/* ---- run: the convenient road ---- */
/* Checks dtypes, shapes and layouts of the inputs, finds the symbols, allocates the outputs, runs, writes updates into their inputs, and
   waits until all is there. `outputs` takes one owned tensor for each output of kind result, on its device. Inputs of another layout are
   copied. */
TENON_API int32_t tenon_program_call(TenonProgram* program, const DLTensor* const* inputs, size_t input_count,
                                     DLManagedTensorVersioned** outputs, size_t output_count);

/* Finds the frontend that reads the file (by the suffixes in manifests) and gives its graph. The host itself reads exported programs
   (.tnx). */
typedef struct TenonCapturedGraph TenonCapturedGraph;
TENON_API int32_t tenon_capture_file(TenonSession* session, const char* path, const char* options, TenonCapturedGraph** graph);
TENON_API const TenonGraph* tenon_captured_graph(const TenonCapturedGraph* graph);
TENON_API void tenon_captured_release(TenonCapturedGraph* graph);

/* ---- exported programs: a .tnx file holds a graph, its constants, and a signature: a JSON object in which the driver that wrote it
   says how its arguments and results are made of the graph's inputs and outputs. Every byte is covered by a checksum. ---- */
/* Writes the file; what was there before stays until all is written. `signature` null: {}. */
TENON_API int32_t tenon_export_save(const TenonGraph* graph, const char* signature, const char* path);
/* The signature of what tenon_capture_file read from a .tnx file; "{}" for graphs of other origin. Valid as long as the graph. */
TENON_API const char* tenon_captured_signature(const TenonCapturedGraph* graph);

/* Runs the named passes over a graph without compiling it. `names` null: the configuration's pipeline. */
TENON_API int32_t tenon_passes_run(TenonSession* session, const TenonGraph* graph, const char* const* names, size_t count,
                                   TenonCapturedGraph** result);

/* ---- page-warm memory: freed blocks keep their pages, bounded by the flag "pool_bytes" ---- */
/* At least `bytes`, 64-byte aligned (4096 from 1 MB on), uninitialised; null when there is none. */
TENON_API void* tenon_pool_allocate(size_t bytes);
/* Takes back what tenon_pool_allocate gave for the same `bytes`. From any thread; null is ignored. */
TENON_API void tenon_pool_release(void* memory, size_t bytes);
/* Returns all idle memory to the system. */
TENON_API void tenon_pool_trim(void);

typedef struct TenonPoolStatistics {
  size_t struct_size; /* set by the caller */
  uint64_t used_bytes, idle_bytes;
  uint64_t allocations, reuses; /* since the start */
  uint64_t mapped_bytes;        /* asked of the system since the start */
} TenonPoolStatistics;
TENON_API void tenon_pool_statistics(TenonPoolStatistics* statistics);

/* The process's threads, for a driver's own loops. */
TENON_API void tenon_parallel_for(int64_t begin, int64_t end, int64_t grain, void (*body)(void* context, int64_t first, int64_t last),
                                  void* context);

#ifdef __cplusplus
}
#endif
