// What nodes of a graph do to arrays, rather than to single numbers.
#pragma once

#include <cstddef>
#include <optional>

#include "core/ir/graph.h"

namespace tenon::python {

/// How many elements a node goes through; 0 where it has to do with single numbers only, or shows what is there. At a guess where sizes vary.
double elements_of(const ir::Graph& graph, ir::NodeId id);

/// The place of the first node that a value is made of, constants aside; nothing where one of these nodes goes through more than a few elements.
std::optional<std::size_t> first_of_number(const ir::Graph& graph, ir::ValueId value);

/// Counts the nodes of a graph that grows which go through more than a few elements, or show such. Calls that the library makes itself do not count: they
/// take as long wherever they are made.
class ArrayWork {
 public:
  std::size_t count(const ir::Graph& graph);

 private:
  std::size_t seen_ = 0, count_ = 0;
};

}  // namespace tenon::python
