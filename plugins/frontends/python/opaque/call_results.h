// What the recorder asks about one recorded call: its nodes, its result's type, its values.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"
#include "python/foreign/foreign_names.h"
#include "python/library/error_handling.h"
#include "python/metadata/tensor_spec.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Arrays that a program makes without tensors and that go into the graph by value: at most this many bytes.
inline constexpr std::size_t kLargestConstant = std::size_t{1} << 24;

/// Whether every node from `first` on does nothing but give elements of one operand in another order: its result may be a view.
bool only_moves(const ir::Graph& graph, ir::NodeId node);
bool only_moves_elements(const ir::Graph& graph, std::size_t first);
/// Whether the node moves so many complex numbers that the library is faster: of the backends only `reference` moves them.
bool moves_many_complex(const ir::Graph& graph, ir::NodeId node);

/// Whether a keyword asks for a memory layout.
bool kwargs_name_a_layout(PyObject* kwargs);

/// Whether a call gives () or []: no tensors, and nothing else.
bool is_empty_sequence(PyObject* answer);

/// Whether a function computes element by element, so that operands have the say about the result's strides. NumPy's products are ufuncs, too.
bool is_pointwise(const ForeignFunction& function);

/// Sets kind and Python type of a fresh result: torch.Tensor, numpy.ndarray, or a NumPy scalar for most 0-d results of NumPy.
void set_result_type(TensorSpec& spec, const ForeignFunction& function, bool all_scalars);

/// Calls under a filter of all warnings: "ignore", or "error".
Ref call_filtered(const char* action, PyObject* callable, PyObject* args, PyObject* kwargs);

/// Calls a library function on twins, without warnings about the zeros in them. What NumPy warns of besides, by the sizes and dtypes, is
/// thrown as an error: the call itself has to warn.
Ref call_quietly(PyObject* callable, PyObject* args, PyObject* kwargs, ops::Flavour flavour);

/// Calls a library function whose result stands for all later calls. Throws GraphBreak when NumPy would warn: it must do so every time.
Ref call_for_good(PyObject* callable, PyObject* args, PyObject* kwargs, ops::Flavour flavour, const ErrorHandling& handling = {});

Ref call_for_good(const std::function<Ref()>& call, const ErrorHandling& handling = {});

/// The elements of a tensor or array, copied in row-major order.
std::shared_ptr<std::vector<unsigned char>> row_major_bytes(const TensorSpec& spec, PyObject* object);

/// The elements of a tensor in row-major order on its own device, kept as they are now.
struct KeptElements {
  const void* data = nullptr;
  std::shared_ptr<const void> owner;
};
KeptElements kept_elements(const TensorSpec& spec, PyObject* object);

/// torch.clone or numpy.copy.
Ref copying_function(TensorKind kind);

/// The package's function that copies strides with gaps and negative steps, too.
Ref function_that_keeps_strides();

/// The number at `data`, as a literal of the graph.
ir::Literal literal_of(DType dtype, const void* data);

/// Names the results of the nodes of a call after it: "sin", "sin_1".
void name_results(ir::Graph& graph, std::size_t first, std::string_view function);

}  // namespace tenon::python
