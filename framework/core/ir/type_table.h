// The types of a graph's values: many values have one type, which is stored once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/ids.h"
#include "core/ir/record_table.h"
#include "core/ir/type.h"

namespace tenon::ir {

/// A hash of what `same_type` compares.
std::uint64_t hash_of(const Type& type);
/// `a == b`, faster where all sizes are constant.
bool same_type(const Type& a, const Type& b);

/// Types, numbered in order of first use. A copy has the same numbers and shares the types.
class TypeTable {
 public:
  /// The number of the type; the type itself is stored when it is new.
  TypeId intern(Type type);
  /// Stays where it is as long as the table lives.
  const Type& operator[](TypeId id) const { return *types_[id.value]; }
  std::size_t size() const { return types_.size(); }

 private:
  std::vector<std::shared_ptr<const Type>> types_;
  RecordTable ids_;
};

}  // namespace tenon::ir
