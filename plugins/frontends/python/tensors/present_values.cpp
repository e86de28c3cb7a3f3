#include "python/tensors/present_values.h"

#include "python/evaluator/graph_break.h"

namespace tenon::python {

const ViewPath& PresentValues::path_of(const StandIn& view) const {
  if (!view.path) throw GraphBreak("a write to memory that is seen through a view of an uncommon kind");
  return *view.path;
}

ir::ValueId PresentValues::of(StandIns::Index index) {
  const std::uint32_t version = x_stand_ins.storage_of(index).version;
  if (x_stand_ins[index].version == version) return x_stand_ins[index].value;
  // Only views fall behind.
  ir::ValueId value = of(*x_stand_ins[index].viewed);
  for (const ViewStep& step : path_of(x_stand_ins[index])) value = replayed(x_builder, step, value);
  x_stand_ins[index].value = value;
  x_stand_ins[index].version = version;
  return value;
}

void PresentValues::write(StandIns::Index index, ir::ValueId value, bool counted) {
  write_into(index, value);
  if (counted) ++x_stand_ins.storage_of(index).writes;
}

void PresentValues::write_into(StandIns::Index index, ir::ValueId value) {
  if (const auto viewed = x_stand_ins[index].viewed) {
    const ViewPath& path = path_of(x_stand_ins[index]);
    std::vector<ir::ValueId> stages = {of(*viewed)};
    for (std::size_t i = 0; i + 1 < path.size(); ++i) stages.push_back(replayed(x_builder, path[i], stages.back()));
    ir::ValueId whole = value;
    for (std::size_t i = path.size(); i-- > 0;) whole = scattered(x_builder, path[i], stages[i], whole);
    write_into(*viewed, whole);
  } else {
    ++x_stand_ins.storage_of(index).version;
  }
  x_stand_ins[index].value = value;
  x_stand_ins[index].version = x_stand_ins.storage_of(index).version;
}

}  // namespace tenon::python
