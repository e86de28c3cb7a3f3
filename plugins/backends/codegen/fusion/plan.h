// A group of nodes as a sequence of generated kernels, matrix products and library calls over values in memory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ir/graph.h"
#include "drafts/concatenation.h"
#include "drafts/product.h"
#include "drafts/row_softmax.h"
#include "loops/kernel.h"
#include "machine/machine.h"

namespace tenon::codegen {

/// Runs a generated kernel. `buffers` names the value behind each buffer of the kernel; values past the graph's own are temporaries.
/// A scatter is two kernels: one copies the base, one runs over its points in order.
struct KernelStep {
  Kernel kernel;
  std::vector<ValueId> buffers;
  std::vector<NodeId> nodes;
  std::vector<std::vector<ValueId>> others;  // buffers of further runs of the kernel, which start together with it
  std::vector<std::int64_t> starts;          // by buffer, run by run: elements of its value before the buffer's first one; empty: none
};

/// From here on a number in a kernel's buffers is no value: it stands for memory of whoever runs the kernel (Place::Kind::local). A target may have
/// more of them.
inline constexpr std::uint32_t kFirstLocal = 0xfffffff0u;
/// Stands for a row that the kernel keeps (Buffer::row).
inline constexpr ValueId kRow(kFirstLocal);
/// Stands for rows of a product that are in memory while they are pooled.
inline constexpr ValueId kBlock(kFirstLocal + 1);

/// True for what stands for such memory: no value of the graph, and no temporary.
inline bool is_local(ValueId v) { return v.value >= kFirstLocal; }

/// A kernel over windows of the pictures that a product gives. It runs on rows of its results right after the rows of the pictures that they
/// read: the product has no place in memory. Row y of the results of a picture reads rows [step * y + first, step * y + first + window) of it,
/// those of them that it has.
struct Pooling {
  KernelStep kernel;         // its first loops go over pictures and rows of results; kBlock stands for the product
  Dim pictures, rows, height;  // rows of results and of the product in a picture
  std::int64_t width = 0;      // rows of the product in a row of a picture; so many times its columns are its elements
  std::int64_t step = 1, first = 0, window = 1;
};

/// Adds up what a product's step has stored over its rows, and what is computed from that and from other rows. Part by part: how many rows
/// are a part is left to whoever runs it, and what no part has written is zero.
struct ColumnSums {
  KernelStep kernel;  // its outer loop goes over columns, its inner one over all rows
  SymbolId part;      // the number of a part, in places that the kernel stores to
};

/// Runs a matrix product, and what follows it point by point.
struct ContractionStep {
  Product product;
  std::optional<KernelStep> epilogue;  // over the points of the result: reads the product and stores what the step gives. Else that is the product
  std::optional<Pooling> pooling;      // reads what the epilogue gives, or the product, and stores what the step gives
  std::optional<ColumnSums> sums;      // where the step stores a matrix
};

/// Calls the op's written-out kernel.
struct LibraryStep {
  NodeId node;
};

/// Two products with a kernel over whole rows between them (the weights of attention): each row of the second one's left operand is made from
/// the same row of the first product. Neither of the two lies in memory.
struct ChainStep {
  Product first;
  KernelStep between;  // over all rows and one inner loop; it reads `first.result` and writes `second.product.a`
  ContractionStep second;
  std::vector<std::size_t> first_batch;   // the batch loops of `first`, the outermost of its result first
  std::vector<std::size_t> second_batch;  // by batch loop of `second`: the same loop of `first`
  std::vector<std::size_t> second_rows;   // batch loops of `first` that are outer loops of the rows of `second`, the outermost first
  std::optional<RowSoftmax> softmax;      // what `between` is, if it is one
  std::optional<std::int64_t> diagonal;   // of a softmax: row r of `first` sees its columns up to r + this alone; others become zero, unread
};

using Step = std::variant<KernelStep, ContractionStep, LibraryStep, ChainStep>;

/// Memory that a plan needs beside the graph's values.
struct Temporary {
  DType dtype = DType::f32;
  Dim elements;
};

struct Plan {
  std::vector<Step> steps;            // in an order in which they may run
  std::vector<bool> in_memory;        // by ValueId: written to memory by a step
  std::vector<Temporary> temporaries; // ValueId(graph.value_capacity() + i)
  IndexAlgebra algebra;               // of the loops of its kernels and products
};

/// Gives the step's kernel the loops with which the machine runs it, and rows that it keeps. `log` takes a line a row; it may be empty.
void shape(KernelStep& step, const Machine& machine, const ir::Graph& graph, IndexAlgebra& algebra, const std::function<void(const std::string&)>& log);

/// The values, temporaries too, whose memory a step reads or writes.
std::vector<std::size_t> values_of(const Step& step, const ir::Graph& graph, bool written);

struct PlanOptions {
  bool fuse = true;          // false: one kernel a node
  bool matrix_kernels = true;  // false: matrix products run as loop nests
  bool relaxed = false;        // larger squares of transformed convolutions, whose error is up to 20 times as large
  bool keeps_flags = false;    // somebody reads the floating-point flags: what no element of the program raises is not raised
  std::vector<Concatenation> concatenations = {};  // of the graph
  std::vector<ValueId> stored = {};           // live in memory, whatever computing them costs
  bool sparing = false;        // what would keep as many bytes alive as it has itself lives in memory, too
  /// Called often; what it throws gives the plan up. May be empty.
  std::function<void()> pause = {};
  /// Takes one line a decision; may be empty.
  std::function<void(const std::string&)> log = {};
};

/// Plans a graph all of whose nodes have a loop nest, a scatter body, or a kernel of the catalogue, for a machine.
Plan make_plan(const ir::Graph& graph, const Machine& machine, const PlanOptions& options);

}  // namespace tenon::codegen
