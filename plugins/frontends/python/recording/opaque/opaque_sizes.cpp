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
#include "python/recording/opaque/size_fit.h"
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

constexpr OpaqueSizes::OtherSize kChanges[] = {
    [](std::int64_t size, std::size_t which) {  // what must be divisible stays so
      constexpr std::array<std::int64_t, 8> kFactors = {2, 3, 5, 7, 11, 13, 17, 19};
      return size == 0 ? static_cast<std::int64_t>(which) + 1 : size * kFactors[which % kFactors.size()];
    },
    [](std::int64_t size, std::size_t which) { return size - 1 - static_cast<std::int64_t>(which); },  // what must be smaller than something stays so
};

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

/// Calls of the function with twins of other sizes, for other values of the symbols.
class OpaqueSizes::Trials {
 public:
  struct Trial {
    std::vector<std::int64_t> symbols;
    std::vector<TensorSpec> found;
  };

  Trials(OpaqueSizes& sizes, const Call& call, std::vector<TensorSpec> present) : sizes_(sizes), call_(call), present_(std::move(present)), now_(sizes.symbols_.present().begin(), sizes.symbols_.present().end()) {
    // A call of no tensor says by a name that it is one on the meta device.
    if (call.use.twin_kwargs) device_ = Ref::borrow(PyDict_GetItemString(call.use.twin_kwargs.get(), "device"));
  }

  const std::vector<TensorSpec>& present() const { return present_; }
  const std::vector<std::int64_t>& now() const { return now_; }
  const std::vector<Trial>& all() const { return all_; }
  /// False where the call does not take these.
  bool add(std::vector<std::int64_t> symbols, double float_factor = 1) {
    auto found = specs_for(symbols, float_factor);
    if (found) all_.push_back({std::move(symbols), std::move(*found)});
    return found.has_value();
  }
  /// The sizes of a dimension of a result.
  SizeSamples samples(std::size_t result, std::size_t dim) {
    SizeSamples samples{{{now_, present_[result].shape[dim]}}, [this, result, dim](const std::vector<std::int64_t>& symbols) -> std::optional<std::int64_t> {
                          auto known = std::ranges::find(all_, symbols, &Trial::symbols);
                          if (known == all_.end()) {
                            if (!add(symbols)) return std::nullopt;
                            known = all_.end() - 1;
                          }
                          return known->found[result].shape[dim];
                        }};
    for (const Trial& trial : all_) samples.all.push_back({trial.symbols, trial.found[result].shape[dim]});
    return samples;
  }

 private:
  /// The operands' twins that have other sizes, and these; nothing for what is no size.
  using Resized = std::vector<std::pair<PyObject*, Ref>>;
  std::optional<Resized> resized(std::span<const std::int64_t> symbols) const {
    Resized others;
    for (Index index : call_.operands) {
      const StandIn& s = sizes_.stand_ins_[index];
      const auto sizes = evaluated(sizes_.graph_.type(s.value).shape, symbols);
      if (!sizes || std::ranges::any_of(*sizes, [](std::int64_t size) { return size < 0; })) return std::nullopt;
      if (*sizes == s.shape) continue;
      Ref twin = resized_twin_with_gaps(s.kind, s.dtype, s.shape, s.strides, *sizes, s.writeable);
      if (!twin) return std::nullopt;
      others.emplace_back(sizes_.stand_ins_.twin(index), std::move(twin));
    }
    return others;
  }

  /// What the call gives for twins, and leaves in what it writes.
  std::vector<Ref> given_by(std::span<const std::int64_t> symbols, double float_factor, const Resized& others) {
    const bool torch = call_.function.flavour == ops::Flavour::torch;
    const auto other = [&](PyObject* item) {
      const auto known = std::ranges::find(others, item, [](const auto& each) { return each.first; });
      return known == others.end() ? Ref() : known->second;
    };
    const auto number = [&](PyObject* item) { return is_symbolic_int(item) ? checked(PyLong_FromLongLong(integer_of(item)->evaluate(symbols))) : Ref(); };
    const auto twins_of = [&](PyObject* given) {
      const Ref numbers = with_replaced((call_.use.random ? Ref::borrow(given) : sizes_.with_floats(given, float_factor)).get(), number);
      Ref twins = sizes_.stand_ins_.with_twins(numbers.get());
      return torch ? on_meta_device(twins.get()) : std::move(twins);
    };
    const Ref twin_args = twins_of(call_.args);
    Ref twin_kwargs = call_.kwargs ? twins_of(call_.kwargs) : device_ ? checked(PyDict_New()) : Ref();
    if (device_) checked(PyDict_SetItemString(twin_kwargs.get(), "device", device_.get()));
    std::optional<CpuMetaKernels> as_on_cpu;
    if (torch) as_on_cpu.emplace();
    Ref other_args = with_replaced(twin_args.get(), other);
    Ref other_kwargs = twin_kwargs ? with_replaced(twin_kwargs.get(), other) : Ref();
    Ref answer = with_undefined_results(call_.function.name, call_quietly(call_.callable, other_args.get(), other_kwargs.get(), call_.function.flavour));
    std::vector<Ref> tensors;
    collect_tensors(answer.get(), tensors);
    for (Index index : call_.use.declared) {
      Ref written = other(sizes_.stand_ins_.twin(index));
      tensors.push_back(written ? std::move(written) : Ref::borrow(sizes_.stand_ins_.twin(index)));
    }
    return tensors;
  }

  std::optional<std::vector<TensorSpec>> specs_for(std::span<const std::int64_t> symbols, double float_factor) {
    const std::optional<Resized> others = resized(symbols);
    if (!others) return std::nullopt;
    try {
      std::vector<TensorSpec> found;
      for (const Ref& tensor : given_by(symbols, float_factor, *others)) found.push_back(read_twin(tensor.get()));
      const auto alike = [](const TensorSpec& one, const TensorSpec& other) { return one.shape.size() == other.shape.size(); };
      return std::ranges::equal(found, present_, alike) ? std::optional(std::move(found)) : std::nullopt;
    } catch (const PythonError&) {
      PyErr_Clear();
    } catch (const GraphBreak&) {
    } catch (const Exception&) {  // a size that no int64 is
    }
    return std::nullopt;
  }

  OpaqueSizes& sizes_;
  const Call& call_;
  std::vector<TensorSpec> present_;
  std::vector<std::int64_t> now_;
  Ref device_;
  std::vector<Trial> all_;
};

/// What the results' sizes may be: sizes of operands and numbers among the arguments that vary, and what several operands come to in one.
std::optional<OpaqueSizes::Candidates> OpaqueSizes::candidates(const Call& call) const {
  Candidates found;
  std::vector<ir::Shape> operand_shapes;
  for (Index index : call.operands) {
    operand_shapes.push_back(graph_.type(stand_ins_[index].value).shape);
    for (const ir::Dim& dim : operand_shapes.back()) {
      if (dim.is_constant()) continue;
      if (!symbols_.is_known(dim)) return std::nullopt;
      found.sizes.push_back(dim);
    }
  }
  collect_integers(call.args, found.numbers);
  if (call.kwargs) collect_integers(call.kwargs, found.numbers);
  found.sizes.insert(found.sizes.end(), found.numbers.begin(), found.numbers.end());
  for (const ir::Dim& dim : found.sizes)
    dim.for_each_symbol([&](SymbolId s) {
      if (std::ranges::find(found.varying, s.value) == found.varying.end()) found.varying.push_back(s.value);
    });
  add_joint_sizes(operand_shapes, found.sizes);
  return found;
}

/// Tries what tells how the results go by the symbols. False where the call does not take such sizes.
bool OpaqueSizes::try_sizes(Trials& trials, const Candidates& candidates, OtherSize change) const {
  const std::vector<std::size_t>& varying = candidates.varying;
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    std::vector<std::int64_t> symbols = trials.now();
    for (std::size_t at = 0; at < varying.size(); ++at) symbols[varying[at]] = change(symbols[varying[at]], at * kTrials + trial);
    if (!trials.add(std::move(symbols), kOtherFloats[trial])) return false;
  }
  // What was the greatest is no longer: where the call takes such sizes, it says whether a result goes by one of them or by all.
  std::vector<std::int64_t> reversed = trials.now();
  for (std::size_t at = 0; at < varying.size(); ++at) reversed[varying[at]] = trials.now()[varying[varying.size() - 1 - at]];
  trials.add(std::move(reversed));
  // A number that is no size may matter by whether it is odd, or positive; and what is computed of one (a remainder) may have stayed as it is.
  const auto stays = [&](const ir::Dim& dim) {
    const std::int64_t now = dim.evaluate(trials.now());
    return std::ranges::all_of(trials.all(), [&](const Trials::Trial& trial) { return dim.evaluate(trial.symbols) == now; });
  };
  const auto step_along = [&](const ir::Dim& dim) {
    std::vector<SymbolId> symbols;
    dim.for_each_symbol([&](SymbolId s) { symbols.push_back(s); });
    for (const SymbolId s : symbols)
      for (const std::int64_t step : {-1, 1}) {
        std::vector<std::int64_t> next = trials.now();
        next[s.value] += step;
        trials.add(std::move(next));
      }
  };
  std::ranges::for_each(candidates.numbers, step_along);
  for (const ir::Dim& size : candidates.sizes)
    if (stays(size)) step_along(size);
  return true;
}

std::optional<ir::Shape> OpaqueSizes::shape_of(Trials& trials, const Candidates& candidates, std::size_t result) const {
  const TensorSpec& present = trials.present()[result];
  const std::vector<std::int64_t> order = memory_order(present.shape, present.strides);
  const auto lies_so = [&](const TensorSpec& spec) { return spec.dtype == present.dtype && same_layout(spec.shape, spec.strides, dense_strides(spec.shape, order)); };
  if (!lies_so(present) || !std::ranges::all_of(trials.all(), [&](const Trials::Trial& trial) { return lies_so(trial.found[result]); })) return std::nullopt;
  ir::Shape shape;
  for (std::size_t d = 0; d < present.shape.size(); ++d) {
    SizeSamples samples = trials.samples(result, d);
    std::optional<ir::Dim> size = as_sum(candidates.sizes, samples);
    if (!size) size = as_quotient(candidates.sizes, samples);
    if (!size) return std::nullopt;
    shape.push_back(std::move(*size));
  }
  return shape;
}

std::optional<std::vector<ir::Shape>> OpaqueSizes::shapes(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args, PyObject* kwargs,
                                                          const OpaqueUse& use, std::span<const Ref> results) {
  const bool torch = function.flavour == ops::Flavour::torch;
  if (use.answer || (!torch && elements_of_operands(operands) > kMostComputed)) return std::nullopt;
  const Call call{callable, function, operands, args, kwargs, use};
  const std::optional<Candidates> candidates = this->candidates(call);
  const bool floats = !use.random && (holds_varying_float(args) || (kwargs && holds_varying_float(kwargs)));
  if (!candidates || (candidates->varying.empty() && !floats)) return std::nullopt;
  std::vector<TensorSpec> present;
  for (const Ref& result : results) {
    if (!stand_ins_.of_twin(result.get()) && stand_ins_.storage_at(place_of_twin(result.get()))) return std::nullopt;  // a view
    present.push_back(read_twin(result.get()));
  }
  for (OtherSize change : kChanges) {
    Trials trials(*this, call, present);
    if (!try_sizes(trials, *candidates, change)) continue;
    std::vector<ir::Shape> shapes;
    for (std::size_t i = 0; i < present.size(); ++i) {
      auto shape = shape_of(trials, *candidates, i);
      if (!shape) return std::nullopt;  // sizes that are nearer would hide what these have shown
      shapes.push_back(std::move(*shape));
    }
    return shapes;
  }
  return std::nullopt;
}

}  // namespace tenon::python
