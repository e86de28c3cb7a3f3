// Sessions with the mock device, and tensors there.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../test_backend.h"
#include "devices.h"

namespace tenon::test {

/// A session whose backends are the mock device and, for the host, one that evaluates.
class MockSession {
 public:
  MockSession();
  ~MockSession();

  TestSession& session() { return session_; }
  TenonSession* get() const { return session_.get(); }
  TestProgram compile(const std::string& text, const std::string& options = "{}") { return {session_, parse(text), {"mock_device"}, options}; }

  TestBackend reference{"host_backend"};

 private:
  TestSession session_{{&reference}};
};

/// A tensor of a mock device, row-major.
class DeviceTensor {
 public:
  DeviceTensor(const MockSession& session, const ops::HostTensor& values, std::int32_t index = 0);
  /// Uninitialised.
  DeviceTensor(const MockSession& session, DType dtype, std::vector<std::int64_t> shape, std::int32_t index = 0);
  ~DeviceTensor();
  DeviceTensor(DeviceTensor&& other) noexcept : session_(other.session_), device_(other.device_), dtype_(other.dtype_), shape_(std::move(other.shape_)), memory_(std::exchange(other.memory_, nullptr)) {}

  void* data() const { return memory_; }
  /// Waits for the default stream.
  ops::HostTensor values() const;
  DLTensor view() const;

 private:
  std::size_t bytes() const;

  TenonSession* session_;
  DLDevice device_;
  DType dtype_;
  std::vector<std::int64_t> shape_;
  void* memory_ = nullptr;
};

/// Runs on the fast road, on the default stream.
std::int32_t run(const TestProgram& program, std::vector<const void*> inputs, std::vector<void*> outputs, std::vector<std::int64_t> symbols = {}, void* stream = nullptr);

/// Whether both hold the same bytes.
bool same(const ops::HostTensor& a, const ops::HostTensor& b);

/// Work of the mock devices waits until somebody asks for it, while it lives.
struct Held {
  Held() { mock::MockDevices::get().lateness.hold = true; }
  ~Held() { mock::MockDevices::get().lateness.hold = false; }
};

}  // namespace tenon::test
