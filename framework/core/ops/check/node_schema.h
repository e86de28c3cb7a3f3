// What the schema of an op says of its nodes: how many operands, and which attributes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/ir/name.h"
#include "core/ops/op.h"

namespace tenon::ops {

struct NodeSchema {
  struct Attribute {
    ir::Name name;
    std::string type;     // in the schema's words
    unsigned kinds = 0;   // the kinds that its value may have, as bits by ir::Attribute's index
    bool required = false;

    bool takes(const ir::Attribute& value) const { return value.index() == 0 || (kinds >> value.index() & 1); }
  };
  std::size_t least = 0, most = 0;  // operands
  std::vector<Attribute> attributes;

  explicit NodeSchema(const Op& op);

  /// The attribute of that name, or null.
  const Attribute* find(ir::Name name) const;
};

/// The schema of an op of the catalogue, parsed once.
const NodeSchema& schema_of(const Op& op);

}  // namespace tenon::ops
