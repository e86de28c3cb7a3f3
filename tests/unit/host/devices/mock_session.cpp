#include "mock_session.h"

#include "backend.h"
#include "core/abi/dlpack_types.h"

namespace tenon::test {
namespace {

const TenonPlugin* mock_plugin() {
  static constexpr detail::PluginWords kWords{"mock_device", "1", "a device of the tests"};
  TenonPlugin& plugin = detail::backend_plugin<mock::MockBackend>(kWords);
  plugin.abi = TENON_ABI_NEWEST;
  return &plugin;
}

}  // namespace

MockSession::MockSession() { require_ok(tenon_session_register(session_.get(), mock_plugin())); }

MockSession::~MockSession() {
  mock::MockDevices::get().fail_call(-1);
  mock::MockDevices::get().drain();
}

DeviceTensor::DeviceTensor(const MockSession& session, DType dtype, std::vector<std::int64_t> shape, std::int32_t index)
    : session_(session.get()), device_{kDLExtDev, index}, dtype_(dtype), shape_(std::move(shape)) {
  require_ok(tenon_device_allocate(session_, device_, bytes(), nullptr, &memory_));
}

DeviceTensor::DeviceTensor(const MockSession& session, const ops::HostTensor& values, std::int32_t index) : DeviceTensor(session, values.dtype, values.shape, index) {
  require_ok(tenon_device_copy(session_, memory_, device_, values.data(), {kDLCPU, 0}, values.byte_count()));
}

DeviceTensor::~DeviceTensor() {
  if (memory_) tenon_device_release(session_, device_, memory_, bytes(), nullptr);
}

std::size_t DeviceTensor::bytes() const {
  std::size_t bytes = size_of(dtype_);
  for (const std::int64_t size : shape_) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

ops::HostTensor DeviceTensor::values() const {
  ops::HostTensor values(dtype_, shape_);
  require_ok(tenon_device_copy(session_, values.data(), {kDLCPU, 0}, memory_, device_, values.byte_count()));
  return values;
}

DLTensor DeviceTensor::view() const {
  return {memory_, device_, static_cast<std::int32_t>(shape_.size()), dlpack_type(dtype_), const_cast<std::int64_t*>(shape_.data()), nullptr, 0};
}

std::int32_t run(const TestProgram& program, std::vector<const void*> inputs, std::vector<void*> outputs, std::vector<std::int64_t> symbols, void* stream) {
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = inputs.data();
  args.outputs = outputs.data();
  args.symbols = symbols.data();
  args.stream = stream;
  return tenon_program_run(program.get(), &args);
}

bool same(const ops::HostTensor& a, const ops::HostTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && (a.byte_count() == 0 || std::memcmp(a.data(), b.data(), a.byte_count()) == 0);
}

}  // namespace tenon::test
