// A compiled program: the plan, and what a caller may ask of it.
#pragma once

#include <atomic>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/driver/session.h"
#include "host/passes/pass_manager.h"
#include "host/runtime/plan.h"

/// The handle of the C API; counts its users.
struct TenonProgram {
 public:
  /// Compiles. Throws.
  TenonProgram(std::shared_ptr<tenon::host::Session> session, const TenonCompileRequest& request);
  ~TenonProgram();
  TenonProgram(const TenonProgram&) = delete;

  tenon::host::Plan& plan() { return *plan_; }
  const tenon::ir::Graph& graph() const { return plan_->graph(); }
  /// The sizes of all outputs one after the other; -1 where they depend on data.
  void bind(const std::int64_t* symbols, std::int64_t* sizes) const;
  /// Throws (invalid_argument) for a list that a run reads and that is null.
  void require_lists(const TenonRunArgs& args) const {
    if ((!args.inputs && takes_inputs_) || (!args.outputs && gives_outputs_) || (!args.symbols && takes_symbols_)) [[unlikely]] refuse_lists(args);
  }
  nlohmann::json query(const std::string& what) const;

  std::atomic<int> users{1};

 private:
  nlohmann::json describe_plan() const;
  void refuse_lists(const TenonRunArgs& args) const;

  std::shared_ptr<tenon::host::Environment> environment_;
  std::vector<tenon::host::PassRecord> passes_;
  std::vector<std::shared_ptr<const void>> constants_;  // made by passes
  std::shared_ptr<tenon::host::Plan> plan_;
  std::vector<tenon::host::SizeExpression> output_sizes_;
  std::vector<bool> output_size_late_;
  bool takes_inputs_ = false, gives_outputs_ = false, takes_symbols_ = false;
  double compile_milliseconds_ = 0;
  void (*release_constants_)(void*) = nullptr;
  void* context_ = nullptr;
};
