/*
 * What a backend brings for devices whose memory the host cannot reach: memory, copies, and the order of work, as a table of functions.
 *
 * An address of such a device is a number to the host: it adds offsets to it and compares it, and never reads through it. Work on one
 * stream runs in the order in which it was given; `stream` null is the device's default stream. Every function may be called on any
 * thread, on several at once, and returns a TenonCode; one that fails has called `host->report` with a text first, and has done
 * nothing. TENON_DEVICE_LOST says that nothing can run on the device any more: the host tries nothing else there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/abi/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TenonDeviceProperties {
  size_t struct_size; /* set by the host */
  char name[128];     /* "NVIDIA H100"; ends with a zero byte */
  uint64_t memory_bytes;
  size_t alignment;   /* of what `allocate` gives; a power of two, 64 at least */
  char kind[32];      /* the word that people have for this kind of device, for messages and the command line: a letter, then letters, digits and
                         "_"; ends with a zero byte. Empty: none, it is called by DLPack's number ("device9"). */
} TenonDeviceProperties;

/* Bytes from one place to another, of which one at least is on a device of the table; the other may be on the host (kDLCPU) or on
   another device of the table. */
typedef struct TenonDeviceCopy {
  size_t struct_size;
  void* to;
  const void* from;
  DLDevice to_device, from_device;
  size_t bytes;
} TenonDeviceCopy;

typedef struct TenonDeviceTable {
  size_t struct_size;
  void* self; /* first argument of every function below */
  /* The devices that there are, each by kind and index; they stay the same as long as the process lives. May be none. */
  const DLDevice* devices;
  size_t device_count;

  int32_t (*properties)(void* self, DLDevice device, TenonDeviceProperties* properties);

  /* Memory for work that is given to `stream` from now on. `bytes` is not 0. TENON_OUT_OF_MEMORY when there is none. */
  int32_t (*allocate)(void* self, DLDevice device, size_t bytes, void* stream, void** memory);
  /* Takes it back when the work that was given to `stream` before has run: the caller has made sure that no other stream uses it. */
  int32_t (*release)(void* self, DLDevice device, void* memory, size_t bytes, void* stream);

  /* Copies in the order of `stream`, which belongs to the device that is copied from, or to where that is the host. Memory of the host
     that is copied from has been read when the function returns; memory of the host that is copied to is written at some time before
     the stream has come that far. */
  int32_t (*copy)(void* self, const TenonDeviceCopy* copy, void* stream);

  int32_t (*create_stream)(void* self, DLDevice device, void** stream);
  /* What was given to it still runs. */
  int32_t (*destroy_stream)(void* self, DLDevice device, void* stream);

  /* Marks how far the stream has been given work. `*event` null makes an event, else that one is used anew. */
  int32_t (*record)(void* self, DLDevice device, void* stream, void** event);
  /* Later work of `stream`, which is of `device`, begins when the event is reached, which may be of another device of the table. Does not hold
     the caller up. */
  int32_t (*wait)(void* self, DLDevice device, void* stream, void* event);
  /* TENON_OK when the event is reached, TENON_NOT_READY (without a report) when not yet, another code when the work before it failed. */
  int32_t (*query)(void* self, DLDevice device, void* event);
  /* Returns when the event is reached; fails when the work before it failed. */
  int32_t (*synchronise)(void* self, DLDevice device, void* event);
  int32_t (*release_event)(void* self, DLDevice device, void* event);
} TenonDeviceTable;

#ifdef __cplusplus
}
#endif
