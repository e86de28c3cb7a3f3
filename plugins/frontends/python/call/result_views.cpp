#include "python/call/result_views.h"

#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/results/array_results.h"
#include "python/results/torch_results.h"

namespace tenon::python {

namespace {

/// A tensor of torch whose complex elements have two each of the owner's real ones for their parts.
Ref joined_parts(PyObject* owner, Extents shape, Extents strides, std::int64_t from) {
  for (std::int64_t& stride : strides) stride *= 2;
  shape.push_back(2), strides.push_back(1);
  const TorchLibrary& torch = *known_torch_library();
  const Ref parts = torch_view(torch, owner, shape, strides, PyLong_AsLongLong(checked(PyObject_CallMethod(owner, "storage_offset", nullptr)).get()) + 2 * from);
  return checked(PyObject_CallMethod(torch.module.get(), "view_as_complex", "O", parts.get()));
}

/// The memory of complex elements as one of real ones, twice as many.
Ref parts_of(const TensorOutput& output, PyObject* base) {
  const TorchLibrary* torch = known_torch_library();
  if (output.tensor == TensorKind::torch) return checked(PyObject_CallMethod(torch->module.get(), "view_as_real", "O", base));
  auto* array = reinterpret_cast<PyArrayObject*>(base);
  Ref first = checked(PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(numpy_type(output.dtype)), 0, nullptr, nullptr, PyArray_DATA(array),
                                           PyArray_ISWRITEABLE(array) ? NPY_ARRAY_WRITEABLE : 0, nullptr));
  checked(PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(first.get()), Py_NewRef(base)));
  return first;
}

/// Has torch refuse writes through it as through what `split` gives.
void refuse_writes(PyObject* view) {
  static PyObject* const library = checked(imported("torch._C._autograd")).release();
  static PyObject* const several = checked(PyObject_GetAttrString(checked(PyObject_GetAttrString(library, "CreationMeta")).get(), "MULTI_OUTPUT_NODE")).release();
  if (checked(PyObject_CallMethod(view, "_is_view", nullptr)).is(Py_True)) checked(PyObject_CallMethod(library, "_set_creation_meta", "OO", view, several));
}

}  // namespace

Ref view_for(const TensorOutput& output, PyObject* viewed, PyObject* through, std::span<const std::int64_t> symbols) {
  const bool joins = output.parts && is_complex(output.dtype);
  const Ref base_object = output.parts && !joins ? parts_of(output, viewed) : Ref::borrow(viewed);
  PyObject* base = base_object.get();
  Extents sizes, steps;
  std::int64_t from = output.offset;
  const bool varies = !output.varying_shape.empty() || !output.varying_offset.is_constant();  // a view of one element has an offset alone
  if (varies) {
    for (const ir::Dim& dim : output.varying_shape) sizes.push_back(dim.evaluate(symbols));
    for (const ir::Dim& dim : output.varying_strides) steps.push_back(dim.evaluate(symbols));
    from = output.varying_offset.evaluate(symbols);
  }
  const Extents &shape = varies ? sizes : output.shape, &strides = varies ? steps : output.strides;
  if (output.tensor != TensorKind::torch) return array_view(base, shape, strides, from, output.writeable);
  const auto detached = [](PyObject* tensor) { return checked(PyObject_CallMethod(tensor, "detach", nullptr)); };
  const Ref owner = output.detached == Detached::what_it_views ? detached(base) : Ref::borrow(through == viewed ? base : through);
  Ref offset = checked(PyObject_CallMethod(base, "storage_offset", nullptr));
  Ref view = joins ? joined_parts(owner.get(), shape, strides, from) : torch_view(*known_torch_library(), owner.get(), shape, strides, PyLong_AsLongLong(offset.get()) + from);
  if (output.one_of_several) refuse_writes(view.get());
  return output.detached == Detached::itself ? detached(view.get()) : view;
}

}  // namespace tenon::python
