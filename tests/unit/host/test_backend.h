// Backends that live in the test program, well-behaved or not, and sessions that know nothing else.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/abi/graph_view.h"
#include "core/ir/graph.h"
#include "core/ops/reference/reference.h"
#include "tenon/host.h"

namespace tenon::test {

/// What a test backend does at each call; the members that are empty behave well. Functions run on the threads of the host.
struct Behaviour {
  std::uint32_t flags = TENON_DYNAMIC_SHAPES | TENON_STRIDED_INPUTS | TENON_COMPILE_REENTRANT | TENON_EXECUTE_REENTRANT;
  std::vector<DLDevice> devices = {{kDLCPU, 0}};
  /// Empty: claims every node, in one group.
  std::function<std::int32_t(const GraphView&, const TenonClaims&)> claim = {};
  /// Returns a failure to refuse; may fill assumptions and aliases.
  std::function<std::int32_t(const GraphView&, TenonArtefact&)> compile = {};
  /// Returns a failure to have none; may say how much.
  std::function<std::int32_t(const std::int64_t* symbols, std::size_t& bytes)> workspace = {};
  bool gives_null = false;  // as its artefact
  /// Runs before the backend is made.
  std::function<std::int32_t()> create = {};
  /// Runs before an artefact is released.
  std::function<void()> release = {};
  /// Runs instead of the evaluation.
  std::function<std::int32_t(const ir::Graph&, const TenonExecuteArgs&)> execute = {};
};

/// A backend of this process. At most kSlots at a time, since a C function cannot carry a closure.
class TestBackend {
 public:
  static constexpr int kSlots = 6;

  explicit TestBackend(std::string name, Behaviour behaviour = {});
  ~TestBackend();
  TestBackend(const TestBackend&) = delete;

  const TenonPlugin* plugin() const { return &plugin_; }
  const TenonHost* host() const { return host_; }
  /// Tells the host why the current call fails.
  void report(std::int32_t code, const char* text) const { host_->report(host_->self, code, TENON_NO_NODE, text); }

  Behaviour behaviour;
  std::atomic<int> claims{0}, compiles{0}, executes{0}, released{0}, running{0}, most_running{0};

  static std::int32_t evaluate(const ir::Graph& graph, const TenonExecuteArgs& args);

 private:
  template <int Slot>
  static TenonBackend table();
  static TestBackend* slots_[kSlots];

  std::string name_;
  TenonBackend table_{};
  TenonPlugin plugin_{};
  const TenonHost* host_ = nullptr;
};

/// A session whose only plugins are the given ones; the last one is the fallback.
class TestSession {
 public:
  explicit TestSession(std::vector<TestBackend*> backends, std::vector<std::string> overrides = {});
  ~TestSession();

  TenonSession* get() const { return session_; }
  /// The events of a kind so far, as JSON texts.
  std::vector<std::string> events(const std::string& kind) const;
  std::string query(const std::string& what) const;

 private:
  TenonSession* session_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<std::string> events_;
};

/// A compiled program of a graph.
class TestProgram {
 public:
  /// Compiles for all backends of the session, in the order given. Throws tenon::Exception with the last error.
  TestProgram(TestSession& session, const ir::Graph& graph, std::vector<std::string> backends, const std::string& options = "{}");
  ~TestProgram();

  TenonProgram* get() const { return program_; }
  /// Runs by tenon_program_call; gives the results. Throws tenon::Exception.
  std::vector<ops::HostTensor> call(const std::vector<ops::HostTensor>& inputs) const;
  std::string query(const std::string& what) const;

 private:
  TenonProgram* program_ = nullptr;
  std::size_t results_ = 0;
  std::vector<std::shared_ptr<const void>> constants_;  // the host borrows their bytes
};

/// Parses text, or fails the test.
ir::Graph parse(const std::string& text);
/// A tensor with small varied values, the same for the same seed.
ops::HostTensor filled(DType dtype, std::vector<std::int64_t> shape, unsigned seed);
/// A borrowed DLPack view of a tensor.
struct Borrowed {
  explicit Borrowed(const ops::HostTensor& tensor);
  std::vector<std::int64_t> shape;
  DLTensor tensor{};
};
/// Throws tenon::Exception with the last error of this thread unless the code is TENON_OK.
void require_ok(std::int32_t code);

}  // namespace tenon::test
