// The backend that the kit tests, called through the C contract and watched while it answers.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/abi/plugin.h"
#include "core/base/error.h"
#include "device_under_test.h"
#include "kit_host.h"

namespace tenon::conformance {

/// The backend broke the contract or failed. Any other exception is the kit's own.
class BackendFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a backend said of a graph.
struct ClaimAnswer {
  std::vector<std::vector<std::uint32_t>> groups;
  std::string refusal;  // of the first refused node: "dtype: float16 is not supported"; "unstated" where it said nothing

  /// True when one group holds all `nodes` nodes.
  bool takes_all(std::size_t nodes) const { return groups.size() == 1 && groups[0].size() == nodes; }
  /// The group that holds the node; null when none does.
  const std::vector<std::uint32_t>* group_of(std::uint32_t node) const {
    const auto found = std::ranges::find_if(groups, [&](const auto& group) { return std::ranges::find(group, node) != group.end(); });
    return found == groups.end() ? nullptr : &*found;
  }
};

/// A compiled group; released when it goes out of scope.
class CompiledGroup {
 public:
  CompiledGroup(const TenonBackend& table, const TenonArtefact& artefact) : table_(&table), artefact_(artefact) {}
  CompiledGroup(CompiledGroup&& other) noexcept : table_(std::exchange(other.table_, nullptr)), artefact_(other.artefact_) {}
  CompiledGroup& operator=(CompiledGroup&&) = delete;
  ~CompiledGroup() {
    if (table_) table_->release(artefact_.self);
  }

  const TenonArtefact& artefact() const { return artefact_; }
  /// Both throw BackendFailure.
  std::size_t workspace_bytes(std::span<const std::int64_t> symbols) const;
  void execute(const TenonExecuteArgs& args) const;
  /// True when the values keep every assumption that the artefact made.
  bool assumptions_hold(std::span<const std::int64_t> symbols) const;

 private:
  const TenonBackend* table_;
  TenonArtefact artefact_;
};

/// One object of the backend. Every function throws BackendFailure, with the backend's own words.
class BackendUnderTest {
 public:
  BackendUnderTest(const TenonPlugin& plugin, const std::string& options);
  ~BackendUnderTest();
  BackendUnderTest(const BackendUnderTest&) = delete;
  BackendUnderTest& operator=(const BackendUnderTest&) = delete;

  bool has(std::uint32_t flag) const { return table_.flags & flag; }
  const DeviceUnderTest& device() const { return device_; }
  /// Checks that the groups name nodes of the graph, each once.
  ClaimAnswer claim(const TenonGraph& graph, std::size_t node_count) const;
  CompiledGroup compile(const TenonGraph& graph) const;
  /// Stores an artefact and loads it again; nothing when the backend does not do that.
  std::unique_ptr<CompiledGroup> reload(const CompiledGroup& group) const;

 private:
  const TenonBackend& table_;
  DeviceUnderTest device_;
  std::string options_;
  void* self_ = nullptr;
};

}  // namespace tenon::conformance
