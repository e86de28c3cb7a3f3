// A session with the plugin `cuda` of this build over a driver that runs nothing, and memory of its card.
#pragma once

#include <nlohmann/json.hpp>

#include "../host/test_backend.h"
#include "catch.h"
#include "fake_cuda.h"

namespace tenon::test {

inline constexpr DLDevice kCard{kDLCUDA, 0};

/// A session with the plugin of this build.
class CudaSession {
 public:
  ~CudaSession() { fake_cuda_fail(-1, 0); }

  TenonSession* get() const { return session_.get(); }
  TestProgram compile(const std::string& text, const std::string& options = "{}") { return {session_, parse(text), {"cuda"}, options}; }
  std::vector<std::string> events(const std::string& kind) const { return session_.events(kind); }
  /// The backend of each step of a program.
  static std::vector<std::string> backends(const TestProgram& program) {
    std::vector<std::string> found;
    const nlohmann::json plan = nlohmann::json::parse(program.query("plan"));
    for (const nlohmann::json& step : plan["steps"])
      if (step.contains("backend")) found.push_back(step["backend"]);
    return found;
  }

  TestBackend reference{"host_backend"};

 private:
  TestSession session_{{&reference}};
};

/// Memory of the card.
class Block {
 public:
  Block(const CudaSession& session, std::size_t bytes) : session_(session.get()), bytes_(bytes) { require_ok(tenon_device_allocate(session_, kCard, bytes, nullptr, &memory_)); }
  ~Block() { tenon_device_release(session_, kCard, memory_, bytes_, nullptr); }
  Block(const Block&) = delete;
  void* at(std::size_t byte = 0) const { return static_cast<std::byte*>(memory_) + byte; }

 private:
  TenonSession* session_;
  std::size_t bytes_;
  void* memory_ = nullptr;
};

inline std::int32_t run(const TestProgram& program, std::vector<const void*> inputs, std::vector<void*> outputs, std::vector<std::int64_t> symbols = {}) {
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = inputs.data();
  args.outputs = outputs.data();
  args.symbols = symbols.data();
  return tenon_program_run(program.get(), &args);
}

}  // namespace tenon::test
