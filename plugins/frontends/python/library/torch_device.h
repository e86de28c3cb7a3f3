// Devices of torch whose memory the host cannot reach, by DLPack's numbers: torch itself says which number a device of its has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/ir/device.h"
#include "python/library/torch_library.h"

namespace tenon::python {

/// One device as torch knows it. Found by asking for an empty tensor there, kept as long as the process.
struct TorchDevice {
  ir::Device device;
  Ref object;                         // torch.device("cuda", 0)
  std::string name, kind;             // "cuda:0", "cuda"
  std::uint8_t torch_type = 0;        // as c10::DeviceType
  std::uint64_t plain_keys = 0;       // where fields are known: the key set of an ordinary tensor there
  std::uint64_t inference_keys = 0;   // and of one made under inference_mode
};

/// The device that a torch.device, or what torch takes for one ("cuda", "mock:1"), means now; without an index torch's current one. Throws
/// GraphBreak for one that graphs have no number for ("meta"), PythonError for what torch does not take.
ir::Device device_meant_by(const TorchLibrary& torch, PyObject* device);

/// Throws GraphBreak for one without an index, where torch's current device decides which of several it is.
void require_one_device(const TorchLibrary& torch, PyObject* device);

/// Whether a word is torch's for a kind of device.
bool is_kind_of_device(const TorchLibrary& torch, const std::string& word);

/// A device that `device_meant_by` has given, or a stand-in of which has been made. Not the host.
const TorchDevice& torch_device(ir::Device device);

/// torch.device of any device.
PyObject* torch_device_object(const TorchLibrary& torch, ir::Device device);

/// "cuda:0", as torch calls it.
std::string name_of(ir::Device device);

/// Whether this is the key set of a tensor on that device that was made in inference mode.
bool is_inference_key_set(const TorchLibrary& torch, ir::Device device, std::uint64_t keys);

}  // namespace tenon::python
