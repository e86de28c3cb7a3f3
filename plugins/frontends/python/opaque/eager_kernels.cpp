#include "python/opaque/eager_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>

#include "python/library/torch_device.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/opaque/opaque_call.h"
#include "python/opaque/quiet_calls.h"
#include "python/results/torch_results.h"
#include "python/results/twins.h"
#include "python/segments/exception_text.h"

namespace tenon::python {
namespace {

constexpr std::int64_t kMostElements = 1 << 20;

std::int64_t element_count(PyObject* tensor) { return PyLong_AsLongLong(checked(PyObject_CallMethod(tensor, "numel", nullptr)).get()); }

/// Of what kinds the arguments of a call are.
class KindsOfTwins {
 public:
  void add(PyObject* arguments) {
    with_replaced(arguments, [&](PyObject* item) {
      if (torch_.is_tensor(item)) add_tensor(item);
      else kinds_ += Py_TYPE(item)->tp_name;
      return Ref();
    });
  }

  std::int64_t elements() const { return elements_; }
  bool some_empty() const { return some_empty_; }
  /// The dtypes of tensors and the classes of what else there is, in order.
  const std::string& words() const { return kinds_; }

 private:
  void add_tensor(PyObject* twin) {
    const std::int64_t elements = element_count(twin);
    elements_ += elements;
    some_empty_ |= elements == 0;
    kinds_ += PyUnicode_AsUTF8(checked(PyObject_Str(checked(PyObject_GetAttrString(twin, "dtype")).get())).get());
  }

  const TorchLibrary& torch_ = *torch_library();
  std::int64_t elements_ = 0;
  bool some_empty_ = false;
  std::string kinds_;
};

/// Puts zeros in the places of meta tensors, in the same order.
class ZerosOfTwins {
 public:
  /// `filling`: torch's function that makes them, "zeros" or another one.
  explicit ZerosOfTwins(std::int64_t most, const char* filling = "zeros") : most_(most), filling_(filling) {}

  Ref of(PyObject* arguments) {
    return with_replaced(arguments, [&](PyObject* item) { return torch_.is_tensor(item) ? zeros(item) : Ref(); });
  }

  std::int64_t elements() const { return elements_; }

 private:
  Ref zeros(PyObject* twin) {
    const std::int64_t elements = element_count(twin);
    elements_ += elements;
    if (elements_ > most_) return Ref::borrow(twin);
    Ref dtype = checked(PyObject_GetAttrString(twin, "dtype"));
    const TensorSpec spec = read_twin(twin);
    const MemoryOrder order = order_of_like(spec.shape, spec.strides);
    Extents sizes = order.empty() ? spec.shape : Extents();
    for (std::int64_t dim : order) sizes.push_back(spec.shape[static_cast<std::size_t>(dim)]);
    Ref args = checked(PyTuple_Pack(1, integer_tuple(sizes).get()));
    Ref kwargs = checked(Py_BuildValue("{sO}", "dtype", dtype.get()));
    Ref made = checked(PyObject_Call(checked(PyObject_GetAttrString(torch_.module.get(), filling_)).get(), args.get(), kwargs.get()));
    if (!std::ranges::is_sorted(order)) made = checked(PyObject_CallMethod(made.get(), "permute", "O", integer_tuple(inverse(order)).get()));
    const bool is_dense = elements > 0 && !memory_order(spec.shape, spec.strides).empty();
    if (!is_dense || read_twin(made.get()).strides == spec.strides) return made;
    return checked(PyObject_CallMethod(made.get(), "as_strided", "OO", integer_tuple(spec.shape).get(), integer_tuple(spec.strides).get()));  // sizes of 1
  }

  const TorchLibrary& torch_ = *torch_library();
  std::int64_t most_, elements_ = 0;
  const char* filling_;
};

}  // namespace

bool operands_are_unusual(const StandIns& stand_ins, std::span<const StandIns::Index> operands) {
  bool floats = false, small = false, several = false, empty = false;
  for (StandIns::Index index : operands) {
    const DType t = stand_ins[index].dtype;
    floats |= t == DType::f32 || t == DType::f64 || is_complex(t);
    small |= t == DType::f16 || t == DType::bf16;
    several |= t != stand_ins[operands.front()].dtype;
    empty |= std::ranges::find(stand_ins[index].shape, 0) != stand_ins[index].shape.end();
  }
  return small || several || empty || (!floats && !operands.empty());
}

void require_eager_kernel(PyObject* callable, const ForeignFunction& function, PyObject* twin_args, PyObject* twin_kwargs) {
  static auto* known = new std::unordered_set<std::string>;  // guarded by the GIL
  KindsOfTwins kinds;
  kinds.add(twin_args);
  if (twin_kwargs) kinds.add(twin_kwargs);
  std::string key = function.name + kinds.words();
  if (kinds.elements() > kMostElements || (!kinds.some_empty() && known->contains(key))) return;
  ZerosOfTwins zeros(kMostElements);
  Ref args = zeros.of(twin_args), kwargs = twin_kwargs ? zeros.of(twin_kwargs) : Ref();
  try {
    call_filtered("error", callable, args.get(), kwargs.get());
  } catch (const PythonError&) {
    const std::string refusal = take_first_line();
    // Integers divided by the zeros, and masks of zeros, which choose no element, say nothing of the call.
    for (const char* zero_alone : {"ZeroDivisionError", "cannot be broadcast to indexing result"})
      if (refusal.find(zero_alone) != refusal.npos) return;
    throw GraphBreak(fmt::format("{} raises: {}", function.name, refusal));
  }
  if (!kinds.some_empty()) known->insert(std::move(key));
}

namespace {

/// A tensor on the device that lies as a spec says: zeros, of which some may share memory.
Ref zeros_that_lie(const TorchLibrary& torch, const TensorSpec& spec, ir::Device device) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < spec.shape.size(); ++d) last += (spec.shape[d] - 1) * spec.strides[d];
  Ref kwargs = checked(Py_BuildValue("{sOsO}", "dtype", torch.dtypes[static_cast<std::size_t>(spec.dtype)].get(), "device", torch_device_object(torch, device)));
  Ref args = checked(Py_BuildValue("(L)", static_cast<long long>(std::max<std::int64_t>(last, 0) + 1)));
  Ref memory = checked(PyObject_Call(checked(PyObject_GetAttrString(torch.module.get(), "zeros")).get(), args.get(), kwargs.get()));
  return checked(PyObject_CallMethod(memory.get(), "as_strided", "OO", integer_tuple(spec.shape).get(), integer_tuple(spec.strides).get()));
}

}  // namespace

Ref with_strides_of_kernels(Ref answer, const StandIns& stand_ins, PyObject* callable, PyObject* twin_args, PyObject* twin_kwargs, std::int64_t most, bool on_device) {
  const TorchLibrary& torch = *torch_library();
  std::int64_t elements = 0;
  const auto zeros = [&](PyObject* item) {
    if (!torch.is_tensor(item)) return Ref();
    const TensorSpec spec = read_twin(item);
    std::int64_t count = 1;
    for (std::int64_t extent : spec.shape) count *= extent;
    elements += count;
    if (elements > most) return Ref::borrow(item);
    const auto index = stand_ins.of_twin(item);
    return zeros_that_lie(torch, spec, on_device && index ? stand_ins[*index].device : ir::Device());
  };
  std::vector<Ref> said, given;
  collect_tensors(answer.get(), said);
  const auto of_an_operand = [&](PyObject* twin) { return stand_ins.of_twin(twin) || stand_ins.storage_at(place_of_twin(twin)); };
  if (std::ranges::all_of(said, [&](const Ref& twin) { return of_an_operand(twin.get()); })) return answer;
  try {
    Ref args = with_replaced(twin_args, zeros), kwargs = twin_kwargs ? with_replaced(twin_kwargs, zeros) : Ref();
    if (elements > most) return answer;
    collect_tensors(call_filtered("ignore", callable, args.get(), kwargs.get()).get(), given);
  } catch (const PythonError&) {
    PyErr_Clear();
    return answer;
  }
  if (said.size() != given.size()) return answer;
  std::size_t next = 0;
  return with_replaced(answer.get(), [&](PyObject* item) {
    if (!torch.is_tensor(item)) return Ref();
    const TensorSpec spec = read_twin(item), made = read_twin(given[next++].get());
    if (of_an_operand(item) || spec.shape != made.shape || spec.dtype != made.dtype || spec.strides == made.strides) return Ref::borrow(item);
    return make_twin(TensorKind::torch, spec.dtype, spec.shape, made.strides, true);
  });
}

namespace {

/// How the results of a call lie for zeros that lie in one way; nothing where one is no new tensor.
std::optional<std::vector<TensorSpec>> specs_on_zeros(PyObject* callable, PyObject* twin_args, PyObject* twin_kwargs, std::span<PyObject* const> twins, std::span<const Extents> way) {
  const TorchLibrary& torch = *torch_library();
  std::vector<Ref> zeros, given;
  for (std::size_t i = 0; i < twins.size(); ++i) {
    TensorSpec spec = read_twin(twins[i]);
    spec.strides = way[i];
    zeros.push_back(zeros_that_lie(torch, spec, ir::Device()));
  }
  const auto in_place = [&](PyObject* item) {
    const auto found = std::ranges::find(twins, item);
    return found == twins.end() ? Ref() : zeros[static_cast<std::size_t>(found - twins.begin())];
  };
  const Ref args = with_replaced(twin_args, in_place), kwargs = twin_kwargs ? with_replaced(twin_kwargs, in_place) : Ref();
  collect_tensors(call_filtered("ignore", callable, args.get(), kwargs.get()).get(), given);
  std::vector<TensorSpec> specs;
  for (const Ref& tensor : given) {
    const auto shares = [&](const Ref& operand) { return place_of_twin(operand.get()).storage == place_of_twin(tensor.get()).storage; };
    if (!torch.is_tensor(tensor.get()) || std::ranges::any_of(zeros, shares)) return std::nullopt;
    specs.push_back(read_twin(tensor.get()));
  }
  return specs;
}

bool all_lie_alike(std::span<const TensorSpec> some, std::span<const TensorSpec> others) {
  return std::ranges::equal(some, others, [](const TensorSpec& a, const TensorSpec& b) { return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides; });
}

}  // namespace

bool lie_alike(PyObject* callable, PyObject* twin_args, PyObject* twin_kwargs, std::span<PyObject* const> twins, std::span<const std::vector<Extents>> ways) {
  try {
    const auto first = specs_on_zeros(callable, twin_args, twin_kwargs, twins, ways.front());
    return first && std::ranges::all_of(ways.subspan(1), [&](const std::vector<Extents>& way) {
      const auto specs = specs_on_zeros(callable, twin_args, twin_kwargs, twins, way);
      return specs && all_lie_alike(*first, *specs);
    });
  } catch (const PythonError&) {
    PyErr_Clear();
  } catch (const GraphBreak&) {  // what it gives is no ordinary tensor
  }
  return false;
}

Ref answer_on_zeros(PyObject* callable, const ForeignFunction& function, PyObject* twin_args, PyObject* twin_kwargs) {
  if (function.flavour == ops::Flavour::numpy) return call_filtered("ignore", callable, twin_args, twin_kwargs);
  ZerosOfTwins zeros(std::numeric_limits<std::int64_t>::max());
  Ref args = zeros.of(twin_args), kwargs = twin_kwargs ? zeros.of(twin_kwargs) : Ref();
  return call_filtered("ignore", callable, args.get(), kwargs.get());
}

Ref answer_for_all_elements(PyObject* callable, PyObject* twin_args, PyObject* twin_kwargs, const std::function<bool(PyObject*, PyObject*)>& alike) {
  Ref answers[2];
  for (int i = 0; i < 2; ++i) {
    ZerosOfTwins made(kMostElements, i == 0 ? "zeros" : "ones");
    Ref args = made.of(twin_args), kwargs = twin_kwargs ? made.of(twin_kwargs) : Ref();
    if (made.elements() == 0 || made.elements() > kMostElements) return {};
    try {
      answers[i] = call_filtered("ignore", callable, args.get(), kwargs.get());
    } catch (const PythonError&) {
      PyErr_Clear();
      return {};
    }
  }
  return alike(answers[0].get(), answers[1].get()) ? answers[0] : Ref();
}

}  // namespace tenon::python
