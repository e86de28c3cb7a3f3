#include "python/recording/opaque/opaque_twins.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "python/compat/meta_device_hint.h"
#include "python/compat/undefined_results.h"
#include "python/library/random_state.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"
#include "python/opaque/eager_kernels.h"
#include "python/opaque/numpy_answers.h"
#include "python/opaque/opaque_call.h"
#include "python/opaque/quiet_calls.h"
#include "python/segments/exception_text.h"

namespace tenon::python {
namespace {

/// Whether two answers of a library say the same of dtypes, sizes and strides.
bool say_the_same(PyObject* one, PyObject* other) {
  std::vector<Ref> first, second;
  collect_tensors(one, first);
  collect_tensors(other, second);
  if (first.size() != second.size()) return false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const TensorSpec x = read_twin(first[i].get()), y = read_twin(second[i].get());
    if (x.dtype != y.dtype || x.shape != y.shape || x.strides != y.strides) return false;
  }
  return true;
}

/// Twins that require grad while it lives.
class TwinsWithHistory {
 public:
  TwinsWithHistory(StandIns& stand_ins, std::span<const StandIns::Index> operands) {
    for (StandIns::Index index : operands)
      if (stand_ins[index].requires_grad) set(twins_.emplace_back(Ref::borrow(stand_ins.twin(index))), Py_True);
  }
  ~TwinsWithHistory() {
    const PendingException pending;
    for (const Ref& twin : twins_)
      if (!Ref::steal(PyObject_CallMethod(twin.get(), "requires_grad_", "O", Py_False))) PyErr_WriteUnraisable(twin.get());
  }
  TwinsWithHistory(const TwinsWithHistory&) = delete;
  TwinsWithHistory& operator=(const TwinsWithHistory&) = delete;

 private:
  static void set(const Ref& twin, PyObject* requires_grad) { checked(PyObject_CallMethod(twin.get(), "requires_grad_", "O", requires_grad)); }

  std::vector<Ref> twins_;
};

/// A call of torch's made on twins, with a history where the tensors have one. What it draws is not taken from the program's generator.
class CallWithHistory {
 public:
  CallWithHistory(StandIns& stand_ins, std::span<const StandIns::Index> operands, PyObject* args, PyObject* kwargs)
      : history_(stand_ins, operands), args_(on_meta_device(stand_ins.with_twins(args).get())),
        kwargs_(kwargs ? on_meta_device(stand_ins.with_twins(kwargs).get()) : Ref()) {}

  Ref of(PyObject* callable) const { return call_quietly(callable, args_.get(), kwargs_.get(), ops::Flavour::torch); }
  /// The call described instead of made, with the keywords that it has: `callable(function, args, kwargs)`.
  Ref described_by(PyObject* callable, PyObject* function) const {
    return call_quietly(callable, checked(PyTuple_Pack(3, function, args_.get(), kwargs_.get())).get(), nullptr, ops::Flavour::torch);
  }

 private:
  KeptGenerator kept_;
  TwinsWithHistory history_;
  Ref args_, kwargs_;
};

}  // namespace

std::optional<bool> OpaqueTwins::have_gradient(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args, PyObject* kwargs) {
  if (function.flavour != ops::Flavour::torch) return std::nullopt;
  const CallWithHistory call(stand_ins_, operands, args, kwargs);
  std::vector<Ref> given;
  try {
    collect_tensors(call.of(callable).get(), given);
  } catch (const PythonError&) {
    PyErr_Clear();
    return std::nullopt;
  }
  return std::ranges::any_of(given, [](const Ref& tensor) { return !checked(PyObject_GetAttrString(tensor.get(), "requires_grad")).is(Py_False); });
}

Ref OpaqueTwins::outlook(PyObject* callable, std::span<const Index> operands, PyObject* args, PyObject* kwargs) {
  const CallWithHistory call(stand_ins_, operands, args, kwargs);
  const Ref asking = checked(PyObject_GetAttrString(checked(imported("tenon._kept_runs")).get(), "outlook"));
  try {
    Ref found = call.described_by(asking.get(), callable);
    return found.is(Py_None) ? Ref() : std::move(found);
  } catch (const PythonError&) {
    PyErr_Clear();
    return {};
  }
}

void OpaqueTwins::require_no_number(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args, PyObject* kwargs) {
  std::vector<Index> like_numbers;
  for (Index index : operands)
    if (stand_ins_[index].requires_grad && stand_ins_[index].shape.empty()) like_numbers.push_back(index);
  bool named = false;
  PyObject* value = nullptr;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, nullptr, &value);)
    if (const auto index = stand_ins_.find(value)) named |= stand_ins_[*index].shape.empty();
  if ((like_numbers.empty() && !named) || function.flavour != ops::Flavour::torch || function.is_special()) return;
  const CallWithHistory call(stand_ins_, like_numbers, args, kwargs);
  try {
    call.of(callable);
  } catch (const PythonError&) {
    const bool is_refused = PyErr_ExceptionMatches(PyExc_TypeError);
    const std::string why = take_first_line();
    if (is_refused) throw GraphBreak(fmt::format("{} raises: {}", function.name, why));
  }
}

long version_of(PyObject* twin) {
  Ref version = Ref::steal(PyObject_GetAttrString(twin, "_version"));
  if (!version) {
    PyErr_Clear();  // an inference tensor keeps none
    return 0;
  }
  return PyLong_AsLong(version.get());
}

/// A function that takes a number takes a tensor without dimensions for it, whose element a twin cannot give. What the function gives for
/// two numbers alike, it gives for any; nothing where it does not. One is such a number, or all are: the bounds of what is drawn, which rise.
Ref OpaqueTwins::call_with_number(PyObject* callable, std::span<const Index> operands, PyObject* twin_args, PyObject* twin_kwargs) {
  const CpuMetaKernels as_on_cpu;
  std::vector<PyObject*> numbers;
  for (Index index : operands) {
    const bool may_be = stand_ins_[index].shape.empty() && is_float(stand_ins_[index].dtype) && !stand_ins_[index].requires_grad;
    if (may_be) numbers.push_back(stand_ins_.twin(index));
  }
  const auto call_with = [&](std::span<PyObject* const> taken) -> Ref {
    Ref answers[2];
    for (int i = 0; i < 2; ++i) {
      const auto number_for_twin = [&](PyObject* item) {
        const auto found = std::ranges::find(taken, item);
        return found == taken.end() ? Ref() : checked(PyFloat_FromDouble(i + 1.0 + static_cast<double>(found - taken.begin())));
      };
      Ref args = with_replaced(twin_args, number_for_twin);
      Ref kwargs = twin_kwargs ? with_replaced(twin_kwargs, number_for_twin) : Ref();
      answers[i] = Ref::steal(PyObject_Call(callable, args.get(), kwargs.get()));
      if (!answers[i]) PyErr_Clear();
    }
    return answers[0] && answers[1] && say_the_same(answers[0].get(), answers[1].get()) ? std::move(answers[0]) : Ref();
  };
  for (PyObject*& number : numbers)
    if (Ref answer = call_with({&number, 1})) return answer;
  return numbers.size() > 1 ? call_with(numbers) : Ref();
}

Ref OpaqueTwins::call(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args,
                                  PyObject* kwargs, const OpaqueUse& use) {
  Ref twin_args = on_meta_device(stand_ins_.with_twins(args).get());
  Ref twin_kwargs = use.twin_kwargs ? use.twin_kwargs : kwargs ? on_meta_device(stand_ins_.with_twins(kwargs).get()) : Ref();
  std::vector<long> versions;
  const bool torch = function.flavour == ops::Flavour::torch;
  for (Index index : operands) versions.push_back(torch ? version_of(stand_ins_.twin(index)) : 0);
  Ref answer;
  try {
    std::optional<CpuMetaKernels> as_on_cpu;
    if (torch) as_on_cpu.emplace();
    answer = with_undefined_results(function.name, torch ? call_quietly(callable, twin_args.get(), twin_kwargs.get(), function.flavour)
                                                         : numpy_answer(stand_ins_, callable, function.name, operands, twin_args.get(), twin_kwargs.get()));
  } catch (const PythonError&) {
    const std::string why = take_first_line();  // says nothing yet of the real call
    if (why.find("item() cannot be called on meta tensors") != why.npos && (known_.with_integers(args) || (kwargs && known_.with_integers(kwargs)))) throw NumberNeeded(why);
    if (torch) answer = call_with_number(callable, operands, twin_args.get(), twin_kwargs.get());
    const bool makes_new = torch && !function.may_alias && !use.written && use.declared.empty() && !use.random && !function.has(Trait::gives_by_rank);
    if (!answer && makes_new) answer = answer_for_all_elements(callable, stand_ins_.with_twins(args).get(), kwargs ? stand_ins_.with_twins(kwargs).get() : nullptr, say_the_same);
    if (!answer) throw GraphBreak(fmt::format("{} cannot say what it gives without computing it: {}", function.name, why), kAllowHint);
  }
  const auto is_declared = [&](Index index) { return std::ranges::find(use.declared, index) != use.declared.end(); };
  for (std::size_t i = 0; i < operands.size() && !use.written; ++i)
    if (torch && !is_declared(operands[i]) && version_of(stand_ins_.twin(operands[i])) != versions[i]) throw GraphBreak(fmt::format("{} writes into a tensor", function.name));
  return answer;
}

void OpaqueTwins::require_written(PyObject* answer, const ForeignFunction& function, Index written) const {
  if (stand_ins_.of_twin(answer) != written) throw GraphBreak(fmt::format("{} writes and does not give what it wrote", function.name));
  const TensorSpec spec = read_twin(answer);
  const StandIn& s = stand_ins_[written];
  if (spec.shape != s.shape || spec.strides != s.strides || spec.dtype != s.dtype)
    throw GraphBreak(fmt::format("{} changes the shape or storage of a tensor in place", function.name));
}

}  // namespace tenon::python
