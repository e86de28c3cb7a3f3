#include "python/stand_ins/present_values.h"

#include "python/objects/graph_break.h"

namespace tenon::python {

const ops::ViewPath& PresentValues::path_of(const StandIn& view) const {
  if (!view.path) throw GraphBreak("a write to memory that is seen through a view of an uncommon kind");
  return *view.path;
}

ir::ValueId PresentValues::of(StandIns::Index index) {
  const std::uint32_t version = stand_ins_.storage_of(index).version;
  if (stand_ins_[index].version == version) return stand_ins_[index].value;
  // Only views fall behind.
  ir::ValueId value = of(*stand_ins_[index].viewed);
  for (const ops::ViewStep& step : path_of(stand_ins_[index])) value = ops::replayed(builder_, step, value);
  stand_ins_[index].value = value;
  stand_ins_[index].version = version;
  return value;
}

void PresentValues::write(StandIns::Index index, ir::ValueId value, bool counted) {
  write_into(index, value);
  if (counted) stand_ins_.count_write(index);
}

void PresentValues::note_seen_anew(StandIns::Index index) {
  const StandIns::Index owner = stand_ins_.owner(index);
  stand_ins_.note_written(owner);
  stand_ins_.count_write(index);
  for (StandIns::Index seen : {owner, index}) stand_ins_[seen].version = stand_ins_.storage_of(owner).version;
}

void PresentValues::write_into(StandIns::Index index, ir::ValueId value) {
  if (const auto viewed = stand_ins_[index].viewed) {
    const ops::ViewPath& path = path_of(stand_ins_[index]);
    std::vector<ir::ValueId> stages = {of(*viewed)};
    for (std::size_t i = 0; i + 1 < path.size(); ++i) stages.push_back(ops::replayed(builder_, path[i], stages.back()));
    ir::ValueId whole = value;
    for (std::size_t i = path.size(); i-- > 0;) {
      const auto written = ops::scattered(builder_, path[i], stages[i], whole);
      if (!written) throw GraphBreak("a write to a tensor whose elements share memory");
      whole = *written;
    }
    write_into(*viewed, whole);
  } else {
    stand_ins_.note_written(index);
  }
  stand_ins_[index].value = value;
  stand_ins_[index].version = stand_ins_.storage_of(index).version;
}

}  // namespace tenon::python
