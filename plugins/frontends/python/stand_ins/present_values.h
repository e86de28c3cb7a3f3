// The value that each stand-in has now, while the program writes into tensors: mutation in single assignment form.
#pragma once

#include "core/ops/build/node_builder.h"
#include "python/stand_ins/stand_ins.h"

namespace tenon::python {

/// Every storage has a version, counted up by writes, and the stand-in that made it always has the present value. Views are made again
/// from what they view when they are next read.
class PresentValues {
 public:
  PresentValues(StandIns& stand_ins, ops::NodeBuilder& builder) : stand_ins_(stand_ins), builder_(builder) {}

  ir::ValueId of(StandIns::Index index);
  /// Makes `value`, of the stand-in's type, the present value of the stand-in; views and what it views follow.
  /// `counted`: whether torch counts the write as a version.
  void write(StandIns::Index index, ir::ValueId value, bool counted = true);
  /// Counts as a write that another view of the stand-in's memory stands for it from now on, with the present elements.
  void note_seen_anew(StandIns::Index index);

 private:
  void write_into(StandIns::Index index, ir::ValueId value);
  const ops::ViewPath& path_of(const StandIn& view) const;

  StandIns& stand_ins_;
  ops::NodeBuilder& builder_;
};

}  // namespace tenon::python
