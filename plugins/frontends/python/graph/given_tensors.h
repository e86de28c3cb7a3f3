// What a backend written in Python gives for a graph of ops, as results of a compiled call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "python/graph/captured_graph.h"

namespace tenon::python {

/// One of them.
struct GivenTensor {
  Ref tensor;
  bool alone = false;  // nobody else has it, or its memory: it may be a result as it is
};

/// What a callable gave, by graph output. `places`: where it gives each. `of_ops`: whether it was made of a graph of
/// ops, and may be a result as it is only where it is alone. Sets a CompileError and throws PythonError where it is no sequence of as many.
std::vector<GivenTensor> given_by_callable(Ref given, std::span<const std::uint32_t> places, bool of_ops);

/// Whether the tensor can be that output as it is. Sets a CompileError and throws PythonError where it holds something else: other sizes, another dtype.
bool is_as_said(const GivenTensor& given, const TensorOutput& output);

/// Copies it into a new tensor of the output's sizes. Throws PythonError.
void copy_to(PyObject* made, const GivenTensor& given);

/// For an input of that metadata: in memory that no input has. Throws as `is_as_said`.
Ref as_new_value(const GivenTensor& given, const TensorSpec& input);

}  // namespace tenon::python
