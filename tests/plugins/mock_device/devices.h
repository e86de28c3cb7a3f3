// The table of the mock devices, and the call of it that fails when a test says so.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "memory.h"
#include "stream.h"
#include "tenon/device.h"

namespace tenon::mock {

inline constexpr DLDevice kDevices[] = {{kDLExtDev, 0}, {kDLExtDev, 1}};

/// One a process. Both devices share one range of addresses, and blocks know nothing of which device they are of.
class MockDevices : public Devices {
 public:
  static MockDevices& get();

  std::span<const DLDevice> devices() const override { return kDevices; }
  DeviceProperties properties(DLDevice device) override;
  void* allocate(DLDevice device, std::size_t bytes, void* stream) override;
  void release(DLDevice device, void* memory, std::size_t bytes, void* stream) override;
  void copy(const TenonDeviceCopy& copy, void* stream) override;
  void* create_stream(DLDevice device) override;
  void destroy_stream(DLDevice device, void* stream) override;
  void* record(DLDevice device, void* stream, void* event) override;
  void wait(DLDevice device, void* stream, void* event) override;
  bool query(DLDevice device, void* event) override;
  void synchronise(DLDevice device, void* event) override;
  void release_event(DLDevice device, void* event) override;

  Memory& memory() { return memory_; }
  /// The stream of a call; null is the default one of the device.
  Stream& stream_of(DLDevice device, void* stream);
  Lateness lateness;

  /// The n-th call from now on, counted from 0, fails with that code before it does anything. Negative: none does.
  void fail_call(std::int64_t n, TenonCode code = TENON_PLUGIN_FAILED);
  /// Whether the call that was to fail has come.
  bool has_failed() const { return calls_left_ < 0 && fails_; }
  /// Counts one call; throws where it is the one that shall fail.
  void count_call(const char* name);
  /// Waits for all streams.
  void drain();

 private:
  MockDevices() : memory_(std::size_t{4} << 30) {}

  Memory memory_;
  std::mutex mutex_;
  std::map<std::int32_t, std::unique_ptr<Stream>> default_streams_;
  std::map<void*, std::unique_ptr<Stream>> streams_;
  std::atomic<std::int64_t> calls_left_{-1};
  std::atomic<bool> fails_{false};
  TenonCode code_ = TENON_PLUGIN_FAILED;
};

}  // namespace tenon::mock
