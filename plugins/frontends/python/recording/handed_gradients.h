// Which gradients torch's engine hands on as it has them, or as a view, to others too: their memory is that of another gradient.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::python {

class HandedGradients {
 public:
  /// Of `wanted`, which lie on the way back from `ends`, as the graph is before its gradients are recorded.
  HandedGradients(const ir::Graph& graph, std::span<const ir::ValueId> ends, std::span<const ir::ValueId> wanted);

  /// Results whose gradients are asked for besides, to compare with: those that alone are computed of what is wanted.
  const std::vector<ir::ValueId>& asked() const { return asked_; }
  void take(std::span<const std::optional<ir::ValueId>> gradients);

  struct Source {
    ir::ValueId gradient;             // whose memory it is
    bool shared;                      // others are given that, too
    std::vector<std::size_t> spread;  // dimensions along which all elements are one
  };
  /// Nothing where the engine makes the gradient of `value` for itself.
  std::optional<Source> source_of(ir::ValueId value, ir::ValueId gradient) const;
  /// The first tensor, by number, that was given this source, this one included.
  std::uint32_t first_with(ir::ValueId source, std::uint32_t tensor) { return holders_.try_emplace(source, tensor).first->second; }

 private:
  std::vector<std::size_t> spread_of(ir::ValueId source, ir::ValueId gradient) const;
  bool shows(ir::ValueId view, ir::ValueId of) const;

  const ir::Graph& graph_;
  std::unordered_set<ir::ValueId> ends_;
  struct Next {
    ir::ValueId result;
    bool of_several;  // it is computed of other values on the way, too
  };
  std::unordered_map<ir::ValueId, Next> next_;  // what alone is computed of a value
  std::unordered_map<ir::ValueId, ir::ValueId> gradients_;
  std::unordered_map<ir::ValueId, std::uint32_t> holders_;  // by source
  std::vector<ir::ValueId> asked_;
};

}  // namespace tenon::python
