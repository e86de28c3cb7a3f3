// Where the values of a program lie: in the memory of inputs, outputs and constants, or in the workspace, which they share.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/abi/plugin.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// Where a value lies during a call.
struct Place {
  enum class Kind : std::uint8_t { none, input, output, workspace, constant, local } kind = Kind::none;
  std::uint32_t index = 0;  // input, output: position; workspace: slot; local: from kFirstLocal on
  const void* address = nullptr;
  std::int64_t start = 0;  // bytes of the value before the place
};

/// Memory of whoever runs a kernel, by the number that stands for it in the kernel's buffers; and whether a place is that.
inline Place local_place(ValueId v) { return {.kind = Place::Kind::local, .index = v.value - kFirstLocal}; }
inline bool is_at(const Place& place, ValueId local) { return place.kind == Place::Kind::local && place.index == local.value - kFirstLocal; }

/// The places of a plan's values. Neither graph nor plan is kept.
class Placement {
 public:
  /// Of what lies in the workspace.
  static constexpr std::size_t kAlignment = 64;

  Placement() = default;
  /// `rest`: so many steps are between the last one that touches what lies in the workspace and the first that writes there again, also where a step writes
  /// over what it reads; or none where that takes much more of the workspace. Steps that need nothing of each other may run side by side then.
  Placement(const ir::Graph& graph, const Plan& plan, std::uint32_t rest = 0);

  const Place& operator[](ValueId value) const { return places_[value.value]; }

  /// True for one of several results of a written-out kernel that nobody reads: it lies nowhere.
  bool unread(ValueId value) const { return unread_[value.value]; }

  /// Outputs that are another value of the group, with their positions.
  const std::vector<std::pair<ValueId, std::uint32_t>>& copies() const { return copies_; }

  /// Forgets where single values are: what is left are sizes of the workspace.
  void forget_values() { places_ = decltype(places_)(), unread_ = decltype(unread_)(); }

  /// Outputs that are written over an input when nothing reads it any more and nothing can fail but for want of memory; or whatever can fail, where
  /// memory is lost with it.
  std::vector<TenonAliasPermit> aliases(const ir::Graph& graph, const Plan& plan, bool loses_memory = false) const;

  /// Bytes of the workspace, and where its slots begin: known beforehand, or from a call's sizes.
  bool has_fixed_sizes() const { return fixed_sizes_; }
  const std::size_t* fixed_offsets() const { return offsets_.data(); }
  std::size_t slot_count() const { return fixed_sizes_ ? offsets_.size() : slots_.size(); }
  std::size_t workspace_bytes(std::span<const std::int64_t> symbols) const;
  void find_offsets(std::span<const std::int64_t> symbols, std::vector<std::size_t>& offsets) const;

 private:
  /// A piece of the workspace: of one value, or of several in turn when sizes come with the call.
  struct Slot {
    Dim bytes;
    std::size_t free_after = 0;  // the last step that uses it, while planning
  };
  /// A piece of the workspace that is wanted from one step to another, both included: of a value and of those written over it in turn.
  struct Intermediate {
    std::vector<std::size_t> values;
    Dim bytes;
    std::size_t from, to;
  };

  void find_unread(const ir::Graph& graph);
  std::vector<std::size_t> last_uses(const ir::Graph& graph, const Plan& plan) const;
  /// What a step before has read within the rest is not written over where it lies.
  std::vector<Intermediate> intermediates(const ir::Graph& graph, const Plan& plan, std::uint32_t rest) const;
  void place(const Intermediate& intermediate, std::size_t index);
  /// `rested`: the same where memory rests.
  void place_at_offsets(std::vector<Intermediate> values, std::vector<Intermediate> rested, std::uint32_t rest);
  void place_in_turn(const Intermediate& value);

  std::vector<bool> unread_;   // by ValueId
  std::vector<Place> places_;  // by ValueId; temporaries follow
  std::vector<std::pair<ValueId, std::uint32_t>> copies_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> offsets_;  // of slots, when all sizes are constant
  bool fixed_sizes_ = true;
  std::size_t fixed_bytes_ = 0;
};

}  // namespace tenon::codegen
