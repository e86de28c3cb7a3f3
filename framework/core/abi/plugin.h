/*
 * The contract between the host and a plugin: plain C, about twenty functions.
 *
 * Rules that hold for every struct: `struct_size` comes first and is set by whoever fills the struct; fields are only ever appended;
 * a reader uses a field only if `struct_size` covers it (compare with >=). Strings are UTF-8, borrowed for the call unless said.
 * Functions return a TenonCode; on failure the plugin has called `host->report` with a text first. No exception crosses.
 * Authors in C++ do not write any of this: see tenon/backend.h, tenon/pass.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/abi/bytes.h"
#include "core/abi/device.h"
#include "core/abi/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Versions of this contract that this header describes. The host offers a range; the entry picks the highest in common. */
#define TENON_ABI_OLDEST 1u
#define TENON_ABI_NEWEST 1u

/* The one symbol that a plugin exports. */
#define TENON_PLUGIN_ENTRY "tenon_plugin_entry"

typedef enum TenonCode {
  TENON_OK = 0,
  TENON_INVALID_ARGUMENT = 1,
  TENON_MALFORMED = 2,
  TENON_UNSUPPORTED = 3,
  TENON_NOT_FOUND = 4,
  TENON_INCOMPATIBLE = 5,
  TENON_PLUGIN_FAILED = 6,
  TENON_OUT_OF_MEMORY = 7,
  TENON_CANCELLED = 8,
  TENON_INTERNAL = 9,
  TENON_DEVICE_LOST = 10, /* nothing can run on the device any more */
  TENON_NOT_READY = 11    /* no failure: an event of a device is not reached yet */
} TenonCode;

typedef enum TenonLevel { TENON_DEBUG = 0, TENON_INFO = 1, TENON_WARNING = 2, TENON_ERROR = 3 } TenonLevel;

typedef enum TenonPhase {
  TENON_PHASE_LOAD = 0,
  TENON_PHASE_CLAIM = 1,
  TENON_PHASE_COMPILE = 2,
  TENON_PHASE_EXECUTE = 3,
  TENON_PHASE_PASS = 4,
  TENON_PHASE_CAPTURE = 5
} TenonPhase;

#define TENON_NO_NODE 0xffffffffu

/* ---- what the host gives every plugin; valid for the life of the process ---- */
typedef struct TenonHost {
  size_t struct_size;
  uint32_t abi;   /* the negotiated version */
  int32_t level;  /* least TenonLevel that is not dropped */
  void* self;     /* first argument of every function below */

  /* Writes to the log of that category (a name of TENON_LOGS: "kernel_code", "fusion", ...; null: "plugins"). Shown when the
     category is switched on; warnings and errors always. */
  void (*log)(void* self, int32_t level, const char* category, const char* text);
  /* Non-zero when that category is switched on: for text that is dear to make. */
  int32_t (*log_enabled)(void* self, const char* category);
  /* Says why the current call of this thread will return a failure. Copied at once. `node` or TENON_NO_NODE. */
  void (*report)(void* self, int32_t code, uint32_t node, const char* text);
  /* 64-byte aligned host memory; null when there is none. */
  void* (*allocate)(void* self, size_t bytes);
  void (*deallocate)(void* self, void* memory);
  /* Runs body(context, first, last) over disjoint parts of [begin, end) of at least `grain` iterations, on the host's threads
     and the calling one; returns when all have run. Callable from execute and compile, and from inside itself. */
  void (*parallel_for)(void* self, int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* context, int64_t first, int64_t last), void* context);
  int32_t (*thread_count)(void* self);
  /* Non-zero when the caller has given up waiting for the current compile. */
  int32_t (*cancelled)(void* self);
  /* Adds the content hash of constant `index` of the graph being compiled to the artefact's key and gives the tensor: for a
     backend that bakes a constant's bytes into its code. Null outside compile, and for a constant that is not in the host's memory. */
  const DLTensor* (*read_constant)(void* self, uint32_t index);
  /* A store of bytes by key that outlives the process where the user has one. cache_get calls sink once if the key is known. */
  int32_t (*cache_get)(void* self, TenonBytes key, void (*sink)(void* context, TenonBytes value), void* context);
  int32_t (*cache_put)(void* self, TenonBytes key, TenonBytes value);
  /* A named optional extension, or null. Same-build only, unless the extension says otherwise. */
  const void* (*feature)(void* self, const char* name);
  /* How far the current compile of a group is: `done` of `total` pieces (kernels). For people who wait; callable on the workers of its loops, too. */
  void (*progress)(void* self, int64_t done, int64_t total);
} TenonHost;

/* ---- backend ---- */

/* The graph to claim from or to compile: a buffer (graph_buffer.h) and its constants, in the buffer's order. */
typedef struct TenonGraph {
  size_t struct_size;
  TenonBytes buffer;
  const DLTensor* const* constants; /* each on its device; addresses stay valid and fixed until the artefact is released */
  size_t constant_count;
} TenonGraph;

/* Where a backend puts its claims. A group becomes one artefact. Node ids are those of the buffer. A node `constant` that is claimed
   with a group stays a constant of it (any number of groups may claim it); one that is not is an input of the group, as any other
   operand from outside. */
typedef struct TenonClaims {
  size_t struct_size;
  void* self;
  void (*claim)(void* self, const uint32_t* nodes, size_t count);
  /* Optional: why a node is not claimed: a short code word ("dtype", "op", "rank") and a sentence. */
  void (*refuse)(void* self, uint32_t node, const char* reason, const char* text);
  /* The options that `compile` will be given for what is claimed: who else would run a node faster may depend on them. */
  const char* options;
} TenonClaims;

/* A condition on a symbol under which the artefact is right; it becomes a guard of the plan. */
typedef struct TenonAssumption {
  uint32_t symbol; /* in the group's buffer */
  int64_t min, max;
  int64_t multiple_of; /* 1 for none */
} TenonAssumption;

/* Output `output` may be written over input `input` (both positions in the group's buffer): a run that fails has written none of it. */
typedef struct TenonAliasPermit {
  uint32_t output, input;
} TenonAliasPermit;

enum {
  /* What `execute` computes on a device may stay where the backend has it: an output whose pointer is null is handed over by `give_output`, or
     written to memory that `allocate_output` gives. One that has a pointer is written there. */
  TENON_GIVES_OUTPUTS = 1u << 0
};

/* A compiled group. Arrays stay valid until `release`. */
typedef struct TenonArtefact {
  size_t struct_size;
  void* self; /* not null */
  const TenonAssumption* assumptions;
  size_t assumption_count;
  const TenonAliasPermit* aliases;
  size_t alias_count;
  uint32_t flags; /* TENON_GIVES_OUTPUTS */
} TenonArtefact;

/* What a running artefact may ask of the host. */
typedef struct TenonCall {
  size_t struct_size;
  void* self;
  /* Gives memory for output `index`, whose pointer is null, on the output's device, for work of the call's stream. `sizes` are all its
     dimensions; row-major. Binds the symbols that this output defines. */
  void* (*allocate_output)(void* self, uint32_t index, const int64_t* sizes, size_t rank);
  /* Hands over a tensor of the output's device as output `index` instead. The host calls its deleter when it has given the call's stream
     the last work that reads it. Unless its flags say that it is read-only, another group may write to it by then. */
  int32_t (*give_output)(void* self, uint32_t index, DLManagedTensorVersioned* tensor);
} TenonCall;

typedef struct TenonExecuteArgs {
  size_t struct_size;
  const void* const* inputs;  /* first element of each input of the group's buffer, on the device of its type */
  void* const* outputs;       /* first element of each output; null where the size depends on data, or where it is to be handed over */
  const int64_t* symbols;     /* values by the group buffer's symbol numbering; -1 for one that an output of this group defines, or
                                 that was not needed to lay the group out */
  void* workspace;            /* as many bytes as `workspace_bytes` said, 64-byte aligned, on the group's device */
  /* Of the group's device where that is not the host: work is given to it in order, and `execute` may return before it has run. What the
     group reads in the host's memory (numbers beside tensors of the device) must have been read by then. */
  void* stream;
  const TenonCall* call;
} TenonExecuteArgs;

enum {
  TENON_DYNAMIC_SHAPES = 1u << 0,      /* takes symbolic dimensions; else the host asks again with constants */
  TENON_COMPILE_REENTRANT = 1u << 1,   /* claim and compile may run on several threads at once */
  TENON_EXECUTE_REENTRANT = 1u << 2,   /* execute of one artefact may */
  TENON_STRIDED_INPUTS = 1u << 3,      /* takes inputs of any layout that their types state; else the host copies to row-major */
  TENON_CALLING_THREAD = 1u << 4,      /* execute must run on the thread that called the program */
  /* Claims on the graph as it is only. Without it a backend is asked again on what others refused, with composite nodes replaced by
     their parts: good for one that knows primitives, a waste for one that takes whole ops (a printer, a library of layers). */
  TENON_ASK_ONCE = 1u << 5,
  /* Its groups hold the constants that their nodes read, as nodes `constant`, whether it claims those or not. */
  TENON_BAKED_CONSTANTS = 1u << 6
};

typedef struct TenonBackend {
  size_t struct_size;
  uint32_t flags;
  /* On which the backend runs nodes: it is asked about no others. Index -1 stands for all devices of the kind. A group is of one device;
     besides its tensors it may read zero-dimensional ones of the host. */
  const DLDevice* devices;
  size_t device_count;

  /* `options` is a JSON object: the section of the configuration with the backend's name, and the options of the compile. One that
     has no state may leave `*self` null. TENON_INVALID_ARGUMENT says that the options are wrong, which the user is told as an error;
     after any other failure the backend is left out. */
  int32_t (*create)(const TenonHost* host, const char* options, void** self);
  void (*destroy)(void* self);
  int32_t (*claim)(void* self, const TenonGraph* graph, const TenonClaims* claims);
  int32_t (*compile)(void* self, const TenonGraph* graph, const char* options, TenonArtefact* artefact);
  int32_t (*workspace_bytes)(void* artefact, const int64_t* symbols, size_t* bytes); /* may be null: 0 */
  int32_t (*execute)(void* artefact, const TenonExecuteArgs* args);
  void (*release)(void* artefact);
  /* May be null: the backend's artefacts are not stored. */
  int32_t (*serialise)(void* artefact, void (*sink)(void* context, TenonBytes bytes), void* context);
  int32_t (*load)(void* self, TenonBytes bytes, TenonArtefact* artefact);
  /* Memory and streams of devices. May be null. Called once a session, before anything is compiled for them; the table that it gives lives as
     long as the process. A failure leaves the devices out. */
  int32_t (*open_devices)(const TenonHost* host, const TenonDeviceTable** table);
} TenonBackend;

/* ---- passes ---- */

/* What a pass run gives back: a buffer, and the new constants it refers to. Constant i of the new buffer is
   `constants[i]`: an index into the old constants, or ~0u for the next of `fresh`. */
typedef struct TenonPassResult {
  size_t struct_size;
  void* self;
  void (*graph)(void* self, TenonBytes buffer, const uint32_t* constants, size_t constant_count,
                DLManagedTensorVersioned* const* fresh, size_t fresh_count);
} TenonPassResult;

typedef struct TenonPassTable {
  size_t struct_size;
  const char* const* names; /* the passes of this plugin */
  const char* const* docs;  /* one line each */
  size_t count;
  /* Runs the named passes one after the other. Calls result->graph once, unless nothing changed. */
  int32_t (*run)(const TenonHost* host, const char* const* names, size_t count, const TenonGraph* graph, const char* options,
                 const TenonPassResult* result);
} TenonPassTable;

/* ---- frontends ---- */

typedef struct TenonFrontendResult {
  size_t struct_size;
  void* self;
  void (*graph)(void* self, TenonBytes buffer, DLManagedTensorVersioned* const* constants, size_t constant_count);
} TenonFrontendResult;

typedef struct TenonFrontend {
  size_t struct_size;
  /* Reads a file into a graph. Null for a frontend that is a driver of its own. */
  int32_t (*capture_file)(const TenonHost* host, const char* path, const char* options, const TenonFrontendResult* result);
} TenonFrontend;

/* ---- the plugin itself ---- */

typedef enum TenonKind { TENON_KIND_FRONTEND = 1, TENON_KIND_PASSES = 2, TENON_KIND_BACKEND = 3 } TenonKind;

typedef struct TenonPlugin {
  size_t struct_size;
  uint64_t magic; /* TENON_PLUGIN_MAGIC */
  uint32_t abi;   /* the version picked */
  uint32_t kind;
  const char* name;     /* [a-z][a-z0-9_]*; the name users select */
  const char* version;  /* of the plugin */
  const char* build_id; /* changes with every build; part of cache keys */
  const char* sanitizer; /* "", "address", "thread" */
  const char* description;
  const TenonBackend* backend;   /* by kind; the others are null */
  const TenonPassTable* passes;
  const TenonFrontend* frontend;
} TenonPlugin;

#define TENON_PLUGIN_MAGIC 0x314e4f4e45544eull

typedef struct TenonOffer {
  size_t struct_size;
  uint32_t abi_oldest, abi_newest;
  const TenonHost* host;
  /* Filled by the entry when it returns null: why. */
  char refusal[256];
} TenonOffer;

/* Returns a descriptor that lives as long as the library, or null with `refusal` filled. */
typedef const TenonPlugin* (*TenonPluginEntry)(TenonOffer* offer);

#ifdef __cplusplus
}
#endif
