#include "python/library/torch_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "python/library/torch_exports.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_modes.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

constexpr std::size_t kMostWords = 1024;

std::vector<std::unique_ptr<TorchDevice>> g_devices;                // with the GIL
std::unordered_map<std::string, const TorchDevice*> g_by_name;      // by str(torch.device) with an index; null: no number

std::string text_of(PyObject* object) {
  Ref text = checked(PyObject_Str(object));
  return PyUnicode_AsUTF8(text.get());
}

Ref as_torch_device(const TorchLibrary& torch, PyObject* device) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(device)) == torch.device.get()) return Ref::borrow(device);
  return checked(PyObject_CallOneArg(torch.device.get(), device));
}

std::string kind_of(PyObject* device) { return text_of(checked(PyObject_GetAttrString(device, "type")).get()); }

/// A tensor without elements on a device.
Ref empty_tensor(const TorchLibrary& torch, PyObject* device, bool inference) {
  const bool present = checked(PyObject_CallMethod(torch.module.get(), "is_inference_mode_enabled", nullptr)).is(Py_True);
  const InferenceScope scope(inference, present);
  Ref kwargs = checked(PyDict_New());
  checked(PyDict_SetItemString(kwargs.get(), "dtype", torch.dtypes[static_cast<std::size_t>(DType::f32)].get()));
  checked(PyDict_SetItemString(kwargs.get(), "device", device));
  Ref zero = checked(Py_BuildValue("((i)(i))", 0, 1));
  return checked(PyObject_Call(torch.empty_strided.get(), zero.get(), kwargs.get()));
}

/// What torch tells others of where a tensor is; nothing where it has no number for that.
std::optional<ir::Device> number_of(PyObject* tensor) {
  DLTensor described{};
  if (torch_exports().describe(tensor, &described) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  return ir::device_of(described.device);
}

/// torch's number of a kind of device, by the hash of a torch.device: the number, then 16 bits of which one (c10/core/Device.h). What is made by
/// that number says whether it is the right one.
std::optional<std::uint8_t> type_number(const TorchLibrary& torch, PyObject* device, std::int32_t index) {
  const Py_hash_t hash = PyObject_Hash(device);
  if (hash < 0 || hash >> 16 > 255) return std::nullopt;
  const auto type = static_cast<std::uint8_t>(hash >> 16);
  const std::int64_t size = 0, stride = 1;
  constexpr std::int32_t kByte = 0;  // c10::ScalarType::Byte
  TorchExports::Tensor made = nullptr;
  if (torch_exports().empty_strided(1, &size, &stride, kByte, type, index, &made) != 0) return std::nullopt;
  Ref tensor = Ref::steal(torch.wrap(made));
  torch_exports().delete_tensor(made);
  Ref there = tensor ? Ref::steal(PyObject_GetAttrString(tensor.get(), "device")) : Ref();
  const bool same = there && PyObject_RichCompareBool(there.get(), device, Py_EQ) == 1;
  PyErr_Clear();
  return same ? std::optional(type) : std::nullopt;
}

const TorchDevice* find(const TorchLibrary& torch, PyObject* tensor, const std::string& name) {
  const auto number = torch_exports().are_there() ? number_of(tensor) : std::nullopt;
  if (!number || number->is_host()) return nullptr;
  auto found = std::make_unique<TorchDevice>();
  found->device = *number;
  found->object = checked(PyObject_GetAttrString(tensor, "device"));
  found->name = name;
  found->kind = kind_of(found->object.get());
  const auto type = type_number(torch, found->object.get(), number->index);
  if (!type) return nullptr;
  found->torch_type = *type;
  if (torch.direct_fields) {
    found->plain_keys = layout::key_set(layout::impl(tensor));
    found->inference_keys = layout::key_set(layout::impl(empty_tensor(torch, found->object.get(), true).get()));
  }
  for (const auto& known : g_devices)
    if (known->device == found->device) return known.get();  // another thread was faster
  return g_devices.emplace_back(std::move(found)).get();
}

bool is_same(const TorchLibrary& torch, PyObject* known, PyObject* device) {
  return reinterpret_cast<PyObject*>(Py_TYPE(device)) == torch.device.get() && PyObject_RichCompareBool(known, device, Py_EQ) == 1;
}

/// One that was looked at before, by the object that tensors give. Null for others.
const TorchDevice* find_known(const TorchLibrary& torch, PyObject* device) {
  const auto known = std::ranges::find_if(g_devices, [&](const auto& d) { return is_same(torch, d->object.get(), device); });
  return known == g_devices.end() ? nullptr : known->get();
}

}  // namespace

ir::Device device_meant_by(const TorchLibrary& torch, PyObject* device) {
  if (const TorchDevice* known = find_known(torch, device)) return known->device;
  if (is_same(torch, torch.cpu.get(), device)) return {};
  const Ref object = as_torch_device(torch, device);
  if (kind_of(object.get()) == "cpu") return {};
  std::string name = text_of(object.get());
  auto known = g_by_name.find(name);
  if (known == g_by_name.end()) {
    Ref tensor = empty_tensor(torch, object.get(), false);
    name = text_of(checked(PyObject_GetAttrString(tensor.get(), "device")).get());  // with an index
    known = g_by_name.find(name);
    if (known == g_by_name.end()) {
      const TorchDevice* found = find(torch, tensor.get(), name);
      known = g_by_name.emplace(name, found).first;
    }
  }
  if (!known->second) throw GraphBreak(fmt::format("a tensor on device '{}', of which graphs know nothing", name));
  return known->second->device;
}

void require_one_device(const TorchLibrary& torch, PyObject* device) {
  const Ref object = as_torch_device(torch, device);
  const std::string kind = kind_of(object.get());
  if (kind == "cpu" || !checked(PyObject_GetAttrString(object.get(), "index")).is(Py_None)) return;
  Ref module = checked(PyObject_CallMethod(torch.module.get(), "get_device_module", "s", kind.c_str()));
  Ref count = checked(PyObject_CallMethod(module.get(), "device_count", nullptr));
  if (!PyLong_Check(count.get()) || PyLong_AsLong(count.get()) != 1) throw GraphBreak(fmt::format("the device '{}', which may be another at each call", kind), fmt::format("say which: '{}:0'", kind));
}

bool is_kind_of_device(const TorchLibrary& torch, const std::string& word) {
  // A word that is none costs torch an exception in C++ with its stack, 100 us, and each function of torch is asked about at each call.
  static std::unordered_map<std::string, bool> answers;  // with the GIL
  if (const auto known = answers.find(word); known != answers.end()) return known->second;
  Ref device = Ref::steal(PyObject_CallFunction(torch.device.get(), "s", word.c_str()));
  PyErr_Clear();
  if (answers.size() >= kMostWords) answers.clear();  // the program's own strings are asked about, too
  return answers[word] = device && kind_of(device.get()) == word;
}

const TorchDevice& torch_device(ir::Device device) {
  const auto known = std::ranges::find(g_devices, device, [](const auto& d) { return d->device; });
  TENON_CHECK(known != g_devices.end(), "torch's device {} was never looked at", ir::device_text(device));
  return **known;
}

PyObject* torch_device_object(const TorchLibrary& torch, ir::Device device) { return device.is_host() ? torch.cpu.get() : torch_device(device).object.get(); }

std::string name_of(ir::Device device) { return device.is_host() ? "cpu" : torch_device(device).name; }

bool is_inference_key_set(const TorchLibrary& torch, ir::Device device, std::uint64_t keys) {
  return keys == (device.is_host() ? torch.inference_keys : torch_device(device).inference_keys);
}

}  // namespace tenon::python
