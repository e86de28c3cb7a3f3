#include "python/recording/opaque/opaque_sizes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>

#include "python/compat/meta_device_hint.h"
#include "python/compat/undefined_results.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/opaque/opaque_call.h"
#include "python/opaque/quiet_calls.h"
#include "python/results/twins.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

constexpr std::size_t kTrials = 2;
constexpr std::array<double, kTrials> kOtherFloats = {0.6, 1.7};  // times the present values
constexpr std::int64_t kMostComputed = std::int64_t{1} << 18;     // elements: NumPy computes with its twins

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

bool holds_varying_float(PyObject* object) {
  bool any = false;
  with_replaced(object, [&](PyObject* item) {
    any |= is_symbolic_scalar(item);
    return Ref();
  });
  return any;
}

/// Adds what several tensors come to in one: by dimension, the greatest of their sizes, and the sum.
void add_joint_sizes(std::span<const ir::Shape> shapes, std::vector<ir::Dim>& candidates) {
  constexpr std::size_t kMany = 64;
  if (shapes.size() < 2 || shapes.size() > kMany) return;
  for (std::size_t d = 0; d < shapes.front().size(); ++d) {
    ir::Dim greatest = shapes.front()[d], sum = greatest;
    for (const ir::Shape& shape : shapes.subspan(1)) {
      if (shape.size() <= d) return;
      greatest = max(greatest, shape[d]);
      sum = sum + shape[d];
    }
    candidates.push_back(std::move(greatest));
    candidates.push_back(std::move(sum));
  }
}

}  // namespace

Ref OpaqueSizes::with_floats(PyObject* arguments, double factor) {
  return with_replaced(arguments, [&](PyObject* item) {
    const bool known = is_symbolic_scalar(item) && scalar_of(item).step;
    return known ? checked(PyFloat_FromDouble(factor * symbols_.floats().value(*scalar_of(item).step))) : Ref();
  });
}

std::int64_t OpaqueSizes::elements_of_operands(std::span<const Index> operands) const {
  std::int64_t all = 0;
  for (Index index : operands) {
    const Extents& shape = stand_ins_[index].shape;
    all += std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies());
  }
  return all;
}

std::optional<std::vector<ir::Shape>> OpaqueSizes::shapes(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands,
                                                                            PyObject* args, PyObject* kwargs, const OpaqueUse& use, std::span<const Ref> results) {
  constexpr OtherSize kChanges[] = {
      [](std::int64_t size, std::size_t which) {  // what must be divisible stays so
        constexpr std::array<std::int64_t, 8> kFactors = {2, 3, 5, 7, 11, 13, 17, 19};
        return size == 0 ? static_cast<std::int64_t>(which) + 1 : size * kFactors[which % kFactors.size()];
      },
      [](std::int64_t size, std::size_t which) { return size - 1 - static_cast<std::int64_t>(which); },  // what must be smaller than something stays so
  };
  for (OtherSize change : kChanges) {
    bool taken = false;
    auto shapes = shapes_by_trials(callable, function, operands, args, kwargs, use, results, change, taken);
    if (shapes || taken) return shapes;  // sizes that are nearer would hide what these have shown
  }
  return std::nullopt;
}

std::optional<std::vector<ir::Shape>> OpaqueSizes::shapes_by_trials(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args,
                                                                       PyObject* kwargs, const OpaqueUse& use, std::span<const Ref> results, OtherSize change, bool& taken) {
  const bool torch = function.flavour == ops::Flavour::torch;
  if (use.answer || (!torch && elements_of_operands(operands) > kMostComputed)) return std::nullopt;
  std::vector<ir::Dim> candidates;
  std::vector<ir::Shape> operand_shapes;
  for (Index index : operands) {
    operand_shapes.push_back(graph_.type(stand_ins_[index].value).shape);
    for (const ir::Dim& dim : operand_shapes.back()) {
      if (dim.is_constant()) continue;
      if (!symbols_.is_known(dim)) return std::nullopt;
      candidates.push_back(dim);
    }
  }
  const auto first_number = static_cast<std::ptrdiff_t>(candidates.size());
  collect_integers(args, candidates);
  if (kwargs) collect_integers(kwargs, candidates);
  const std::vector<ir::Dim> numbers(candidates.begin() + first_number, candidates.end());
  std::vector<std::size_t> varying;
  for (const ir::Dim& dim : candidates)
    dim.for_each_symbol([&](SymbolId s) {
      if (std::ranges::find(varying, s.value) == varying.end()) varying.push_back(s.value);
    });
  add_joint_sizes(operand_shapes, candidates);
  const bool floats = !use.random && (holds_varying_float(args) || (kwargs && holds_varying_float(kwargs)));
  if (varying.empty() && !floats) return std::nullopt;
  std::vector<TensorSpec> present;
  for (const Ref& result : results) {
    if (!stand_ins_.of_twin(result.get()) && stand_ins_.storage_at(place_of_twin(result.get()))) return std::nullopt;  // a view
    present.push_back(read_twin(result.get()));
  }
  // A call of no tensor says by a name that it is one on the meta device.
  Ref device = use.twin_kwargs ? Ref::borrow(PyDict_GetItemString(use.twin_kwargs.get(), "device")) : Ref();
  const auto specs_for = [&](std::span<const std::int64_t> symbols, double float_factor) -> std::optional<std::vector<TensorSpec>> {
    std::vector<std::pair<PyObject*, Ref>> others;
    for (Index index : operands) {
      const auto sizes = evaluated(graph_.type(stand_ins_[index].value).shape, symbols);
      if (!sizes || std::ranges::any_of(*sizes, [](std::int64_t size) { return size < 0; })) return std::nullopt;
      if (*sizes == stand_ins_[index].shape) continue;
      const StandIn& s = stand_ins_[index];
      Ref twin = resized_twin_with_gaps(s.kind, s.dtype, s.shape, s.strides, *sizes, s.writeable);
      if (!twin) return std::nullopt;
      others.emplace_back(stand_ins_.twin(index), std::move(twin));
    }
    const auto other = [&](PyObject* item) {
      const auto known = std::ranges::find(others, item, [](const auto& each) { return each.first; });
      return known == others.end() ? Ref() : known->second;
    };
    const auto number = [&](PyObject* item) { return is_symbolic_int(item) ? checked(PyLong_FromLongLong(integer_of(item)->evaluate(symbols))) : Ref(); };
    const auto twins_of = [&](PyObject* given) {
      const Ref numbers = with_replaced((use.random ? Ref::borrow(given) : with_floats(given, float_factor)).get(), number);
      Ref twins = stand_ins_.with_twins(numbers.get());
      return torch ? on_meta_device(twins.get()) : std::move(twins);
    };
    try {
      const Ref twin_args = twins_of(args);
      Ref twin_kwargs = kwargs ? twins_of(kwargs) : device ? checked(PyDict_New()) : Ref();
      if (device) checked(PyDict_SetItemString(twin_kwargs.get(), "device", device.get()));
      std::optional<CpuMetaKernels> as_on_cpu;
      if (torch) as_on_cpu.emplace();
      Ref other_args = with_replaced(twin_args.get(), other);
      Ref other_kwargs = twin_kwargs ? with_replaced(twin_kwargs.get(), other) : Ref();
      Ref answer = with_undefined_results(function.name, call_quietly(callable, other_args.get(), other_kwargs.get(), function.flavour));
      std::vector<Ref> tensors;
      collect_tensors(answer.get(), tensors);
      for (Index index : use.declared) {
        Ref written = other(stand_ins_.twin(index));
        tensors.push_back(written ? std::move(written) : Ref::borrow(stand_ins_.twin(index)));
      }
      std::vector<TensorSpec> found;
      for (const Ref& tensor : tensors) found.push_back(read_twin(tensor.get()));
      return found.size() == present.size() ? std::optional(std::move(found)) : std::nullopt;
    } catch (const PythonError&) {
      PyErr_Clear();
    } catch (const GraphBreak&) {
    } catch (const Exception&) {  // a size that no int64 is
    }
    return std::nullopt;
  };
  std::vector<std::vector<std::int64_t>> symbols;
  std::vector<std::vector<TensorSpec>> found;
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    symbols.emplace_back(symbols_.present().begin(), symbols_.present().end());
    for (std::size_t at = 0; at < varying.size(); ++at) symbols[trial][varying[at]] = change(symbols[trial][varying[at]], at * kTrials + trial);
    auto specs = specs_for(symbols[trial], kOtherFloats[trial]);
    if (!specs) return std::nullopt;
    found.push_back(std::move(*specs));
  }
  taken = true;
  const auto try_also = [&](std::vector<std::int64_t> values) {
    auto specs = specs_for(values, 1);
    if (!specs) return;  // which the call does not take
    symbols.push_back(std::move(values));
    found.push_back(std::move(*specs));
  };
  const std::vector<std::int64_t> now(symbols_.present().begin(), symbols_.present().end());
  // What was the greatest is no longer: where the call takes such sizes, it says whether a result goes by one of them or by all.
  std::vector<std::int64_t> reversed = now;
  for (std::size_t at = 0; at < varying.size(); ++at) reversed[varying[at]] = now[varying[varying.size() - 1 - at]];
  try_also(std::move(reversed));
  // A number that is no size may matter by whether it is odd, or positive.
  for (const ir::Dim& number : numbers)
    for (const std::int64_t step : {-1, 1})
      if (const SymbolId symbol = number.is_constant() ? SymbolId() : number.as_symbol()) {
        std::vector<std::int64_t> next = now;
        next[symbol.value] += step;
        try_also(std::move(next));
      }
  // What halves a size says by a neighbour, which is odd where that is even, how it rounds.
  auto takes_neighbours = [&, taken = std::optional<bool>()]() mutable {
    if (taken) return *taken;
    std::vector<std::int64_t> next = now;
    for (const std::size_t symbol : varying) ++next[symbol];
    const std::size_t before = found.size();
    try_also(std::move(next));
    return *(taken = found.size() > before);
  };
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
      const auto more_than = [&](const ir::Dim& dim) -> std::optional<std::int64_t> {
        const std::int64_t more = present[i].shape[d] - symbols_.value(dim);
        for (std::size_t trial = 0; trial < found.size(); ++trial)
          if (found[trial][i].shape.size() != present[i].shape.size() || found[trial][i].shape[d] - dim.evaluate(symbols[trial]) != more) return std::nullopt;
        return more;
      };
      std::optional<ir::Dim> size;
      if (more_than(ir::Dim(0))) size = ir::Dim(present[i].shape[d]);
      for (std::size_t at = 0; !size && at < candidates.size(); ++at)
        if (more_than(candidates[at]) == 0) size = candidates[at];
      for (std::size_t at = 0; !size && at < candidates.size(); ++at)
        if (const auto more = more_than(candidates[at])) size = candidates[at] + ir::Dim(*more);
      if (!size && takes_neighbours())
        for (std::size_t at = 0; !size && at < candidates.size(); ++at)
          for (const ir::Dim& part : {floor_div(candidates[at], ir::Dim(2)), candidates[at] * ir::Dim(2)})
            if (const auto more = size ? std::nullopt : more_than(part)) size = part + ir::Dim(*more);
      if (!size) return std::nullopt;
      shape.push_back(std::move(*size));
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace tenon::python
