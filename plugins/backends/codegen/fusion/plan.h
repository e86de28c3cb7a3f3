// A group of nodes as a sequence of generated kernels, matrix products and library calls over values in memory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ir/graph.h"
#include "fusion/concatenation.h"
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

/// Stands in a kernel's buffers for memory that the matrix product gives: the panel that it writes, or the tile that it reads.
inline constexpr ValueId kPanel(0xfffffff0u);
/// Stands for a row that the kernel keeps (Buffer::row): memory of the thread that runs it.
inline constexpr ValueId kRow(0xfffffff1u);
/// Stands for rows of a product that are in memory while they are pooled.
inline constexpr ValueId kBlock(0xfffffff2u);

/// True for what stands for memory of the thread that runs a kernel: no value of the graph, and no temporary.
inline bool is_of_thread(ValueId v) { return v == kPanel || v == kRow || v == kBlock; }

/// An operand of a matrix product: where it lies, with strides in elements; or the kernel that writes it, part by part. Of a left
/// operand that lies in windows `table` writes for each step of the sum and each row where the run of elements starts, from the
/// first element of the value, or −1 where all of it is zero; rows are kFinishedRows apart, as i64.
struct MatrixOperand {
  ValueId value;
  Dim offset;
  std::vector<Dim> batch_strides;
  Dim row_stride, column_stride;
  Dim step_stride;  // of a right operand beside windows: between steps of the sum; rows are inside a step
  std::optional<KernelStep> pack, table;
  bool packs_rows_of_value = false;  // `pack` reads rows of a left operand from `value`, each of them contiguous: the strides say where
};

/// The pixels of a result, rows of them, where windows of 3 x 3 pixels with whole runs of channels step by one pixel: what stands in
/// a window depends on the sums of its place and the tap alone.
struct Picture {
  Dim height, width;
  std::int64_t square_side = 2;  // of the squares of results that are computed together
};

/// A kernel over windows of the pictures that a product gives. It runs on a band of rows of its results after the rows of the pictures
/// that they read, which are in cache then: the product has no place in memory. Row y of the results of a picture reads rows
/// [step * y + first, step * y + first + window) of it, those of them that it has.
struct Pooling {
  KernelStep kernel;         // units go over pictures and rows of results first; kBlock stands for the product
  Dim pictures, rows, height;  // rows of results and of the product in a picture
  std::int64_t width = 0;      // rows of the matrix in a row of a picture; so many times n are its elements
  std::int64_t step = 1, first = 0, window = 1;
  std::int64_t band = 1;       // rows of results that are computed together

  /// Rows of a picture that a band reads at most.
  std::int64_t rows_of_block() const { return (band - 1) * step + window; }
};

/// c[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n], with k of `steps` times `step_depth`.
/// Kernels of this step take the symbols of fusion/tile.h after the graph's.
struct ContractionStep {
  NodeId node;
  DType dtype = DType::f32;
  std::vector<Dim> batch;
  Dim m, n, steps, step_depth;
  MatrixOperand a, b;
  ValueId c;
  std::optional<Picture> picture;  // m counts pictures, each row by row; steps are the taps, row by row
  bool c_in_place = false;  // rows of c lie one stride apart, columns are contiguous
  std::vector<Dim> c_batch_strides;
  Dim c_row_stride, c_offset;
  std::optional<KernelStep> epilogue;  // reads a tile of the product and stores what the step gives; else the step gives c
  std::optional<Pooling> pooling;      // reads what the epilogue gives, or c, and stores what the step gives
};

/// Calls the op's written-out kernel.
struct LibraryStep {
  NodeId node;
};

/// Two products with a kernel over whole rows between them (the weights of attention): a block of rows of `first` is written to a panel,
/// `between` makes of it in place what stands on the left of `second`. Rows of the panel are dense. `first.c` and `second.a` are the panel.
struct ChainStep {
  ContractionStep first, second;
  KernelStep between;
  std::vector<std::size_t> second_batch;  // by batch loop of `second`: the same loop of `first`
  std::optional<Dim> seen;  // columns of the panel after which a block of rows is masked: not read of `first`, and zero for `second`
  bool by_blocks = false;     // `between` takes kBlockColumns columns at a time (row_softmax.h); what `second` gives is then divided by the row's sum
  bool zeroes_hidden = false; // by blocks: rows whose scores are all -inf give zero
  std::vector<std::size_t> second_rows;   // batch loops of `first` that are outer loops of the rows of `second`, the outermost first
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
};

/// The values, temporaries too, whose memory a step reads or writes.
std::vector<std::size_t> values_of(const Step& step, const ir::Graph& graph, bool written);

struct PlanOptions {
  bool fuse = true;          // false: one kernel a node
  bool matrix_kernels = true;  // false: matrix products run as loop nests
  bool relaxed = false;        // larger squares of transformed convolutions, whose error is up to 20 times as large
  std::vector<Concatenation> concatenations;  // of the graph
  /// Called often; what it throws gives the plan up. May be empty.
  std::function<void()> pause;
  /// Takes one line a decision; may be empty.
  std::function<void(const std::string&)> log;
};

/// Replaces nodes that are neither loop nests nor scatters nor library calls by simpler nodes, as far as the catalogue can.
void decompose_composites(ir::Graph& graph);

/// Plans a graph all of whose nodes have a loop nest, a scatter body, or a kernel of the catalogue, for a machine.
Plan make_plan(const ir::Graph& graph, const Machine& machine, const PlanOptions& options);

}  // namespace tenon::codegen
