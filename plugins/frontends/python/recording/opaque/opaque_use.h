// What is particular about one opaque call.
#pragma once

#include <optional>
#include <vector>

#include "core/ir/graph.h"
#include "python/objects/ref.h"
#include "python/stand_ins/stand_ins.h"

namespace tenon::python {

struct OpaqueUse {
  using Index = StandIns::Index;

  bool random = false;           // keeps its place among the calls that take random numbers
  std::optional<Index> written;  // the call changes this argument in place and gives it
  Ref twin_kwargs;               // keyword arguments for the call on twins, where they are others
  ir::ValueId value;             // given back: the new value of what is written
  Ref answer;                    // what the call gives for the twins, where they are not asked
  std::vector<Index> declared;   // arguments that the function says it writes, besides what it gives
  std::vector<ir::ValueId> left; // given back: the new values of these
  Ref keeper;                    // makes the call, and keeps its run
  std::optional<std::vector<ir::Shape>> shapes;  // of the results, where sizes depend on data
};

}  // namespace tenon::python
