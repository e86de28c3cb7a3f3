#include "python/opaque/numpy_answers.h"

#include <algorithm>
#include <array>
#include <optional>

#include "python/library/numpy_api.h"
#include "python/metadata/strides.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/opaque/opaque_call.h"
#include "python/opaque/quiet_calls.h"
#include "python/results/array_results.h"
#include "python/results/twins.h"

namespace tenon::python {
namespace {

// Elements of all operands up to which NumPy may as well compute with them.
constexpr std::int64_t kFewElements = 4096;
// Up to here a size may mean something of its own (a number of channels), and an argument something beside sizes (an axis).
constexpr std::int64_t kSmall = 8;
constexpr std::size_t kTrials = 2, kMostSizes = 6;
// By trial, and by rank of the size among those that differ: what is larger stays so.
constexpr std::array<std::array<std::int64_t, kMostSizes>, kTrials> kSmallSizes = {{{11, 17, 29, 41, 59, 83}, {13, 23, 37, 53, 71, 97}}};

/// Puts ones on the diagonals of an array of square matrices: zeros have no inverse, and no Cholesky factor.
void make_regular(PyObject* twin) {
  Ref numpy = checked(imported("numpy"));
  Ref diagonals = Ref::steal(PyObject_CallMethod(numpy.get(), "einsum", "sO", "...ii->...i", twin));
  Ref one = checked(PyLong_FromLong(1));
  if (!diagonals || PyObject_SetItem(diagonals.get(), Py_Ellipsis, one.get()) < 0) PyErr_Clear();  // no square matrices
}

/// Puts numbers that differ where a fit wants points that do.
void make_distinct(PyObject* twin) {
  Ref numpy = checked(imported("numpy"));
  Ref flat = Ref::steal(PyObject_GetAttrString(twin, "flat"));
  Ref count = checked(PyObject_GetAttrString(twin, "size"));
  Ref numbers = checked(PyObject_CallMethod(numpy.get(), "arange", "O", count.get()));
  if (!flat || PyObject_SetItem(flat.get(), Py_Ellipsis, numbers.get()) < 0) PyErr_Clear();
}

/// Gives a twin elements with which the function can do something.
void make_answerable(PyObject* twin, std::string_view name) {
  if (name.starts_with("numpy.linalg.")) make_regular(twin);
  if (name == "numpy.polyfit") make_distinct(twin);
}

/// Whether an argument is a number that sizes may be compared with, or made of.
bool holds_large_integer(PyObject* object) {
  if (!object) return false;
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow != 0 || value > kSmall || value < -kSmall;
  }
  if (PySlice_Check(object)) return true;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      if (holds_large_integer(PySequence_Fast_GET_ITEM(object, i))) return true;
  } else if (PyDict_Check(object)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(object, &position, &key, &value);)
      if (holds_large_integer(value)) return true;
  }
  return false;
}

/// What a size of a result may be made of sizes of operands, in a fixed order.
std::vector<std::int64_t> sizes_made_of(std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> made;
  for (const std::int64_t s : sizes) {
    for (const std::int64_t m : {s, s / 2, (s + 1) / 2, (s - 1) / 2, s / 2 + 1, 2 * s - 1, 2 * (s - 1)}) made.push_back(m);
    for (std::int64_t c = 1; c <= kSmall; ++c)
      for (const std::int64_t m : {s + c, s - c, s * c, s / c}) made.push_back(m);
    for (const std::int64_t t : sizes) {
      for (const std::int64_t m : {s + t, s + t - 1, s * t, std::max(s, t) - std::min(s, t) + 1, std::max(s, t) - std::min(s, t), std::min(s, t), std::max(s, t)}) made.push_back(m);
      for (const std::int64_t u : sizes) made.push_back(s * t * u);
    }
  }
  return made;
}

/// The large sizes of a call, and small ones in their places.
class Sizes {
 public:
  Sizes(const StandIns& stand_ins, std::span<const StandIns::Index> operands) {
    for (StandIns::Index index : operands)
      for (std::int64_t extent : stand_ins[index].shape)
        if (extent > kSmall) real_.push_back(extent);
    std::ranges::sort(real_);
    const auto [first, last] = std::ranges::unique(real_);
    real_.erase(first, last);
  }

  bool may_be_small() const { return !real_.empty() && real_.size() <= kMostSizes && real_.front() >= kSmallSizes[1][0]; }

  Extents small(const Extents& shape, std::size_t trial) const {
    Extents sizes = shape;
    for (std::int64_t& size : sizes)
      if (size > kSmall) size = kSmallSizes[trial][static_cast<std::size_t>(std::ranges::lower_bound(real_, size) - real_.begin())];
    return sizes;
  }

  /// The size that was `found` in the trials, for the real sizes; nothing where they leave a doubt.
  std::optional<std::int64_t> real(const std::array<std::int64_t, kTrials>& found) const {
    const std::size_t count = real_.size();
    const auto first = sizes_made_of(std::span(kSmallSizes[0]).first(count)), second = sizes_made_of(std::span(kSmallSizes[1]).first(count)), real = sizes_made_of(real_);
    std::optional<std::int64_t> size;
    if (found[0] == found[1]) size = found[0];
    for (std::size_t i = 0; i < real.size(); ++i) {
      if (first[i] != found[0] || second[i] != found[1]) continue;
      if (size && *size != real[i]) return std::nullopt;
      size = real[i];
    }
    return size;
  }

 private:
  Extents real_;  // ascending
};

/// A call with small twins.
struct Trial {
  struct Result {
    TensorSpec spec;
    std::optional<HiddenBase> base;
  };
  Ref answer;
  std::vector<Result> results;
};

std::optional<Trial> trial_of(StandIns& stand_ins, const Sizes& sizes, std::size_t number, PyObject* callable, std::string_view name,
                              std::span<const StandIns::Index> operands, PyObject* twin_args, PyObject* twin_kwargs) {
  std::vector<std::pair<PyObject*, Ref>> small;
  for (StandIns::Index index : operands) {
    const StandIn& s = stand_ins[index];
    Ref twin = resized_twin(s.kind, s.dtype, s.shape, s.strides, sizes.small(s.shape, number), s.writeable);
    if (!twin) return std::nullopt;
    make_answerable(twin.get(), name);
    small.emplace_back(stand_ins.twin(index), std::move(twin));
  }
  const auto other = [&](PyObject* item) {
    const auto known = std::ranges::find(small, item, [](const auto& each) { return each.first; });
    return known == small.end() ? Ref() : known->second;
  };
  Ref args = with_replaced(twin_args, other), kwargs = twin_kwargs ? with_replaced(twin_kwargs, other) : Ref();
  Trial trial;
  try {
    trial.answer = call_quietly(callable, args.get(), kwargs.get(), ops::Flavour::numpy);
    std::vector<Ref> tensors;
    collect_tensors(trial.answer.get(), tensors);
    std::vector<const void*> storages;
    for (const auto& [twin, other] : small) storages.push_back(place_of_twin(other.get()).storage);
    for (const Ref& tensor : tensors) {
      const void* storage = place_of_twin(tensor.get()).storage;
      if (std::ranges::find(storages, storage) != storages.end()) return std::nullopt;  // views cost nothing
      storages.push_back(storage);
      trial.results.push_back({read_twin(tensor.get()), hidden_base_of(tensor.get())});
    }
  } catch (const PythonError&) {
    PyErr_Clear();
    return std::nullopt;
  } catch (const GraphBreak&) {
    return std::nullopt;
  }
  return trial;
}

std::optional<Extents> real_shape(const Sizes& sizes, const Extents& first, const Extents& second) {
  if (first.size() != second.size()) return std::nullopt;
  Extents shape;
  for (std::size_t d = 0; d < first.size(); ++d) {
    const auto size = sizes.real({first[d], second[d]});
    if (!size) return std::nullopt;
    shape.push_back(*size);
  }
  return shape;
}

/// The result for the real sizes, of what two trials have given; empty where they leave a doubt.
Ref real_result(const Sizes& sizes, const Trial::Result& first, const Trial::Result& second) {
  const TensorSpec &one = first.spec, &other = second.spec;
  if (one.kind != other.kind || one.dtype != other.dtype || first.base.has_value() != second.base.has_value()) return {};
  const auto shape = real_shape(sizes, one.shape, other.shape);
  if (!shape) return {};
  Ref like_other = resized_twin(other.kind, other.dtype, other.shape, other.strides, one.shape, true);
  if (!like_other || read_twin(like_other.get()).strides != one.strides) return {};
  Ref result = resized_twin(one.kind, one.dtype, one.shape, one.strides, *shape, true);
  if (!result || !first.base) return result;
  const auto base_shape = real_shape(sizes, first.base->shape, second.base->shape);
  Ref base = base_shape ? resized_twin(one.kind, one.dtype, first.base->shape, first.base->strides, *base_shape, true) : Ref();
  if (!base || !PyArray_Check(base.get()) || PyArray_SIZE(reinterpret_cast<PyArrayObject*>(base.get())) != PyArray_SIZE(reinterpret_cast<PyArrayObject*>(result.get()))) base = result;
  return array_view(base.get(), *shape, read_twin(result.get()).strides, 0, true);
}

Ref answer_by_trials(StandIns& stand_ins, PyObject* callable, std::string_view name, std::span<const StandIns::Index> operands, PyObject* twin_args, PyObject* twin_kwargs) {
  const Sizes sizes(stand_ins, operands);
  if (!sizes.may_be_small() || holds_large_integer(twin_args) || holds_large_integer(twin_kwargs)) return {};
  std::array<std::optional<Trial>, kTrials> trials;
  for (std::size_t number = 0; number < kTrials; ++number)
    if (!(trials[number] = trial_of(stand_ins, sizes, number, callable, name, operands, twin_args, twin_kwargs))) return {};
  if (trials[0]->results.size() != trials[1]->results.size()) return {};
  std::size_t next = 0;
  bool certain = true;
  Ref answer = with_replaced(trials[0]->answer.get(), [&](PyObject* item) {
    if (next == trials[0]->results.size() || !is_result_tensor(item)) return Ref();
    const std::size_t at = next++;
    Ref real = certain ? real_result(sizes, trials[0]->results[at], trials[1]->results[at]) : Ref();
    certain &= static_cast<bool>(real);
    return real ? real : Ref::borrow(item);
  });
  return certain ? answer : Ref();
}

}  // namespace

Ref numpy_answer(StandIns& stand_ins, PyObject* callable, std::string_view name, std::span<const StandIns::Index> operands, PyObject* twin_args, PyObject* twin_kwargs) {
  std::int64_t elements = 0;
  for (StandIns::Index index : operands) {
    std::int64_t count = 1;
    for (std::int64_t extent : stand_ins[index].shape) count *= extent;
    elements += count;
  }
  if (elements > kFewElements)
    if (Ref answer = answer_by_trials(stand_ins, callable, name, operands, twin_args, twin_kwargs)) return answer;
  for (StandIns::Index index : operands) make_answerable(stand_ins.twin(index), name);
  return call_quietly(callable, twin_args, twin_kwargs, ops::Flavour::numpy);
}

}  // namespace tenon::python
