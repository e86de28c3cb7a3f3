// A device as plans use it: memory, copies, and how far a stream has come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/abi/dlpack.h"

namespace tenon::host {

/// A device by DLPack's number: "device9:0". The one word is the host's, "cpu".
std::string number_text(DLDevice device);

inline bool is_host(DLDevice device) { return device.device_type == kDLCPU; }
inline bool same_device(DLDevice a, DLDevice b) { return a.device_type == b.device_type && (is_host(a) || a.device_id == b.device_id); }

/// Thread-safe. What fails throws a Failure of the phase "execute" that names the plugin. A stream is null where it is the default one.
class Device {
 public:
  explicit Device(DLDevice id) : id_(id), name_(number_text(id)) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;

  DLDevice id() const { return id_; }
  /// How messages name it: by the word that its backend has for the kind, else by number.
  const std::string& name() const { return name_; }
  bool is_host() const { return host::is_host(id_); }

  /// The stream that the driver works on now.
  virtual void* current_stream() = 0;
  /// Throws once nothing can run on the device any more, with the words of the first failure that said so.
  virtual void require_usable() const = 0;
  /// Nothing can run on it any more.
  virtual void lose(const std::string& why) = 0;
  virtual std::uint64_t memory_bytes() const = 0;

  /// Memory for work of the stream from now on, aligned to 64 bytes at least. Throws (out_of_memory).
  virtual void* allocate(std::size_t bytes, void* stream) = 0;
  /// Takes it back when what the stream was given before has run. Null is ignored.
  virtual void release(void* memory, std::size_t bytes, void* stream) noexcept = 0;

  /// Copies in the order of a stream of this device, which is one of the two; the other is this one too, the host, or, as a target, one that it
  /// reaches. Host memory that is copied from has been read when this returns.
  virtual void copy(void* to, DLDevice to_device, const void* from, DLDevice from_device, std::size_t bytes, void* stream) = 0;
  /// Whether the other one is of the same table: then copies and waits between the two are possible.
  virtual bool reaches(const Device& other) const = 0;

  /// Marks how far the stream has been given work; null where the work has run already.
  virtual void* record(void* stream) = 0;
  /// Later work of the stream, which is of this device, waits for an event of this device or of one that it reaches.
  virtual void hold_up(void* stream, void* event) = 0;
  virtual void wait_for(void* event) = 0;
  virtual void release_event(void* event) noexcept = 0;

 protected:
  void set_name(std::string name) { name_ = std::move(name); }

 private:
  DLDevice id_;
  std::string name_;
};

}  // namespace tenon::host
