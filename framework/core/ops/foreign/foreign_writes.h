// What foreign calls leave in their arguments besides what they give: the running statistics of a normalisation.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/foreign/foreign_call.h"

namespace tenon::ops {

/// A tensor that a call writes: its value as the argument was, and the value that it has afterwards, of the same dtype.
struct ForeignWrite {
  ir::ValueId before, after;
  bool counted = true;  // in torch's Tensor._version
};

/// While one lives, calls made on its thread say here what they write, and the importer carries it out. Without one, a call that writes
/// into an argument besides what it gives is `unsupported`.
class ForeignWrites {
 public:
  ForeignWrites();
  ~ForeignWrites();
  ForeignWrites(const ForeignWrites&) = delete;
  ForeignWrites& operator=(const ForeignWrites&) = delete;

  std::vector<ForeignWrite> all;

 private:
  ForeignWrites* outer_;
};

/// The call leaves `value`, cast, in the tensor given for a parameter. Throws (unsupported) where nobody takes writes.
void write_back(ForeignArguments& arguments, std::string_view parameter, ir::ValueId value, bool counted);

}  // namespace tenon::ops
