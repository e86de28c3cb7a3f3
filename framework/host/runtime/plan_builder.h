// From a partition to a plan: values get places, groups are compiled, copies are put in where layouts differ.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/memory/row_major.h"
#include "host/partition/partition.h"
#include "host/runtime/plan.h"

namespace tenon::host {

using tenon::is_row_major;
/// True when a type's layout is row-major for all sizes that its symbols may have.
bool is_row_major(const ir::Type& type);

class PlanBuilder {
 public:
  PlanBuilder(std::shared_ptr<Environment> environment, std::size_t first_backend, std::vector<std::int64_t> expected_sizes);

  std::shared_ptr<Plan> build(ir::Graph graph);

 private:
  std::uint32_t add_value(const ir::Type& type, const std::string& name, Place place);
  /// The position of a device in the plan's list, to which it is added. Throws for one that is not open.
  std::uint32_t device_of(const ir::Type& type);
  std::uint32_t device_of(const Step& step) const;
  std::uint32_t value_of(ValueId v);
  std::uint32_t row_major_copy(ValueId v);
  void add_copy(std::uint32_t from, std::uint32_t to);
  void add_group(const PlannedGroup& planned, GroupCutter& cutter);
  /// Part of a group, with its step, and with the reason where its backend cannot compile it.
  struct Part {
    PlannedGroup planned;
    std::unique_ptr<Step> step;
    std::optional<Error> why;
  };
  void compile_parts(const PlannedGroup& planned, GroupCutter& cutter, int& failures, std::vector<Part>& parts);
  void add_step(std::unique_ptr<Step> step);
  std::unique_ptr<Step> cut_step(const PlannedGroup& planned, GroupCutter& cutter) const;
  void add_transfer(NodeId n);
  std::uint32_t on_host(ValueId v);
  void add_control(NodeId n);
  ir::Graph region_as_graph(const ir::Graph& region) const;
  void bind_symbols(Step& step);
  std::optional<Error> compile(Step& step);
  std::string words_of_failure(const Step& step, const Error& why) const;
  void use_next_backend(Step& step, const Error& why);
  void add_outputs();
  void add_outputs_of(ValueId v);
  void add_output(std::uint32_t position);
  std::optional<std::uint32_t> step_in_place(const Plan::Update& update) const;
  bool passes_through() const;
  void find_waits();
  void finish();
  void drop_what_only_compiling_needs();
  void tell_compiled() const;
  void learn_given_symbols();

  Environment& environment_;
  std::size_t first_backend_;
  std::vector<std::int64_t> expected_sizes_;
  std::shared_ptr<Plan> plan_;
  bool told_failure_ = false;                                 // one warning a plan; events tell each
  std::vector<bool> late_;                                    // by SymbolId
  std::unordered_map<ValueId, std::uint32_t> values_;         // of the plan, by value of the graph
  std::unordered_map<ValueId, std::vector<std::uint32_t>> positions_;  // among the outputs, of values that are not placed as such yet
  std::unordered_map<ValueId, std::uint32_t> row_major_;      // copies made for backends that take no strides
};

}  // namespace tenon::host
