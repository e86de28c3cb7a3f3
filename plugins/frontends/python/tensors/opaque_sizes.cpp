// What an opaque call gives for sizes that vary: found out by asking torch for some of them, and checked at every run.
#include <algorithm>
#include <array>

#include "python/compat/meta_device_hint.h"
#include "python/compat/undefined_results.h"
#include "python/symbols/symbolic_int.h"
#include "python/tensors/call_results.h"
#include "python/tensors/tensor_recorder.h"
#include "python/tensors/torch_library.h"
#include "python/tensors/twins.h"

namespace tenon::python {
namespace {

constexpr std::size_t kTrials = 2;

std::optional<Extents> evaluated(const ir::Shape& shape, std::span<const std::int64_t> symbols) {
  Extents sizes;
  try {
    for (const ir::Dim& dim : shape) sizes.push_back(dim.evaluate(symbols));
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return sizes;
}

void collect_integers(PyObject* object, std::vector<ir::Dim>& found) {
  if (is_symbolic_int(object)) {
    found.push_back(*integer_of(object));
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) collect_integers(PySequence_Fast_GET_ITEM(object, i), found);
  } else if (PyDict_Check(object)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(object, &position, &key, &value);) collect_integers(value, found);
  }
}

}  // namespace

/// The shapes of the results over the sizes that vary, where each is a size of an operand or a constant for the present sizes and for others.
/// A run whose results have other shapes is refused. Nothing where that is not so, or nothing varies.
std::optional<std::vector<ir::Shape>> TensorRecorder::shapes_of_opaque_call(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands,
                                                                            PyObject* args, PyObject* kwargs, const OpaqueUse& use, std::span<const Ref> results) {
  constexpr OtherSize kChanges[] = {
      [](std::int64_t size, std::size_t which) {  // what must be divisible stays so
        constexpr std::array<std::int64_t, 8> kFactors = {2, 3, 5, 7, 11, 13, 17, 19};
        return size * kFactors[which % kFactors.size()];
      },
      [](std::int64_t size, std::size_t which) { return size - 1 - static_cast<std::int64_t>(which); },  // what must be smaller than something stays so
  };
  for (OtherSize change : kChanges)
    if (auto shapes = shapes_by_trials(callable, function, operands, args, kwargs, use, results, change)) return shapes;
  return std::nullopt;
}

std::optional<std::vector<ir::Shape>> TensorRecorder::shapes_by_trials(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args,
                                                                       PyObject* kwargs, const OpaqueUse& use, std::span<const Ref> results, OtherSize change) {
  if (function.flavour != ops::Flavour::torch || use.answer) return std::nullopt;
  std::vector<ir::Dim> candidates;
  for (Index index : operands)
    for (const ir::Dim& dim : graph_.type(stand_ins_[index].value).shape) {
      if (dim.is_constant()) continue;
      if (!symbols_.is_known(dim)) return std::nullopt;
      candidates.push_back(dim);
    }
  collect_integers(args, candidates);
  if (kwargs) collect_integers(kwargs, candidates);
  std::vector<std::size_t> varying;
  for (const ir::Dim& dim : candidates)
    dim.for_each_symbol([&](SymbolId s) {
      if (std::ranges::find(varying, s.value) == varying.end()) varying.push_back(s.value);
    });
  if (varying.empty()) return std::nullopt;
  std::vector<TensorSpec> present;
  for (const Ref& result : results) {
    if (!stand_ins_.of_twin(result.get()) && stand_ins_.storage_at(place_of_twin(result.get()))) return std::nullopt;  // a view
    present.push_back(read_twin(result.get()));
  }
  // A call of no tensor says by a name that it is one on the meta device.
  Ref device = use.twin_kwargs ? Ref::borrow(PyDict_GetItemString(use.twin_kwargs.get(), "device")) : Ref();
  std::array<std::vector<std::int64_t>, kTrials> symbols;
  std::array<std::vector<TensorSpec>, kTrials> found;
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    symbols[trial].assign(symbols_.present().begin(), symbols_.present().end());
    for (std::size_t at = 0; at < varying.size(); ++at) symbols[trial][varying[at]] = change(symbols[trial][varying[at]], at * kTrials + trial);
    std::vector<std::pair<PyObject*, Ref>> others;
    for (Index index : operands) {
      const auto sizes = evaluated(graph_.type(stand_ins_[index].value).shape, symbols[trial]);
      if (!sizes) return std::nullopt;
      if (*sizes == stand_ins_[index].shape) continue;
      const StandIn& s = stand_ins_[index];
      Ref twin = resized_twin(s.kind, s.dtype, s.shape, s.strides, *sizes, s.writeable);
      if (!twin) return std::nullopt;
      others.emplace_back(stand_ins_.twin(index), std::move(twin));
    }
    const auto other = [&](PyObject* item) {
      const auto known = std::ranges::find(others, item, [](const auto& each) { return each.first; });
      return known == others.end() ? Ref() : known->second;
    };
    std::vector<Ref> tensors;
    try {
      const auto number = [&](PyObject* item) { return is_symbolic_int(item) ? checked(PyLong_FromLongLong(integer_of(item)->evaluate(symbols[trial]))) : Ref(); };
      const auto twins_of = [&](PyObject* given) { return on_meta_device(stand_ins_.with_twins(with_replaced(given, number).get()).get()); };
      const Ref twin_args = twins_of(args);
      Ref twin_kwargs = kwargs ? twins_of(kwargs) : device ? checked(PyDict_New()) : Ref();
      if (device) checked(PyDict_SetItemString(twin_kwargs.get(), "device", device.get()));
      const CpuMetaKernels as_on_cpu;
      Ref other_args = with_replaced(twin_args.get(), other);
      Ref other_kwargs = twin_kwargs ? with_replaced(twin_kwargs.get(), other) : Ref();
      Ref answer = with_undefined_results(function.name, call_quietly(callable, other_args.get(), other_kwargs.get(), function.flavour));
      collect_tensors(answer.get(), tensors);
      for (Index index : use.declared) {
        Ref written = other(stand_ins_.twin(index));
        tensors.push_back(written ? std::move(written) : Ref::borrow(stand_ins_.twin(index)));
      }
      for (const Ref& tensor : tensors) found[trial].push_back(read_twin(tensor.get()));
    } catch (const PythonError&) {
      PyErr_Clear();
      return std::nullopt;
    } catch (const GraphBreak&) {
      return std::nullopt;
    }
    if (found[trial].size() != present.size()) return std::nullopt;
  }
  std::vector<ir::Shape> shapes;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const std::vector<std::int64_t> order = memory_order(present[i].shape, present[i].strides);
    if (!same_layout(present[i].shape, present[i].strides, dense_strides(present[i].shape, order))) return std::nullopt;
    for (const auto& trial : found) {
      const TensorSpec& spec = trial[i];
      if (spec.dtype != present[i].dtype || spec.shape.size() != present[i].shape.size() || !same_layout(spec.shape, spec.strides, dense_strides(spec.shape, order))) return std::nullopt;
    }
    ir::Shape shape;
    for (std::size_t d = 0; d < present[i].shape.size(); ++d) {
      const auto is_it = [&](const ir::Dim& dim) {
        if (symbols_.value(dim) != present[i].shape[d]) return false;
        for (std::size_t trial = 0; trial < kTrials; ++trial)
          if (dim.evaluate(symbols[trial]) != found[trial][i].shape[d]) return false;
        return true;
      };
      const auto size = is_it(ir::Dim(present[i].shape[d])) ? candidates.end() : std::ranges::find_if(candidates, is_it);
      if (size == candidates.end() && !is_it(ir::Dim(present[i].shape[d]))) return std::nullopt;
      shape.push_back(size == candidates.end() ? ir::Dim(present[i].shape[d]) : *size);
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace tenon::python
