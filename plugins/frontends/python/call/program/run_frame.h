// What one run of compiled code holds.
#pragma once

#include <vector>

#include "python/call/program/late_outputs.h"
#include "python/graph/captured_graph.h"
#include "python/results/small_array.h"

namespace tenon::python {

class CacheEntry;

/// Memory for a scalar of any dtype.
struct alignas(16) ScalarMemory {
  unsigned char bytes[16];
};

/// Arrays of one type share one: most runs are short, and each array costs them time.
struct RunFrame {
  RunFrame(const CapturedGraph& captured, std::size_t output_count, bool takes_scalars)
      : input_count(captured.inputs.size()),
        objects(input_count + captured.tensors.size() + captured.updates.size()),
        pointers(input_count + output_count + 2),
        scalars((takes_scalars ? input_count : 0) + output_count),
        inputs(objects.data()),
        tensors(inputs + input_count),
        new_values(tensors + captured.tensors.size()),
        input_data(pointers.data()),
        output_data(input_data + input_count),
        output_scalars(scalars.data() + (takes_scalars ? input_count : 0)) {}

  const std::size_t input_count;
  HeldObjects<16> objects;
  SmallArray<void*, 16> pointers;
  SmallArray<ScalarMemory, 4> scalars;  // by graph input, where inputs are scalars; then those of outputs

  PyObject** const inputs;             // by graph input
  PyObject** const tensors;            // by CapturedGraph::tensors
  PyObject** const new_values;         // by CapturedGraph::updates; null where the program itself writes
  void** const input_data;             // by graph input
  void** const output_data;            // by graph output; then the program's assumptions and alarm, where it has them
  ScalarMemory* const output_scalars;  // by graph output
  bool alarm = false, as_assumed = true;
  LateOutputs late;                    // by graph output, where there are any
  const CacheEntry* entry = nullptr;   // where results become objects while the program runs
  Ref failure;                         // what was raised then
  std::vector<double> floats;          // the tape's, by step
  std::vector<std::int64_t> symbols;   // by SymbolId: another thread may check the same guards while this one runs
};

}  // namespace tenon::python
