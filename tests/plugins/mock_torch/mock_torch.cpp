// torch's device "privateuseone" on a plugin's table of devices: its memory, copies and streams. What is computed is computed by torch on the
// CPU, of copies. Test only; see README.md.
#include <ATen/ATen.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "core/abi/plugin.h"
#include "core/abi/device.h"

namespace {

constexpr auto kKind = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex kCount = 2;

const TenonDeviceTable* g_table = nullptr;

DLDevice dlpack(c10::Device device) { return {kDLExtDev, device.index() < 0 ? 0 : device.index()}; }

void require(std::int32_t code, const char* function) { TORCH_CHECK(code == TENON_OK, "the mock device failed: ", function, " gave ", code); }

// ---- streams: an id is the table's handle

thread_local c10::DeviceIndex t_device = 0;
thread_local std::array<c10::StreamId, kCount> t_streams{};

c10::DeviceIndex index_of(c10::Device device) { return device.index() < 0 ? t_device : device.index(); }
void* handle_of(c10::StreamId id) { return reinterpret_cast<void*>(id); }
void* current_stream(c10::Device device) { return handle_of(t_streams[index_of(device)]); }

void synchronise(c10::Device device, void* stream) {
  void* event = nullptr;
  require(g_table->record(g_table->self, dlpack(device), stream, &event), "record");
  const std::int32_t code = g_table->synchronise(g_table->self, dlpack(device), event);
  g_table->release_event(g_table->self, dlpack(device), event);
  require(code, "synchronise");
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kKind; }
  c10::Device exchangeDevice(c10::Device d) const override {
    const c10::Device before(kKind, t_device);
    t_device = index_of(d);
    return before;
  }
  c10::Device getDevice() const override { return {kKind, t_device}; }
  void setDevice(c10::Device d) const override { t_device = index_of(d); }
  void uncheckedSetDevice(c10::Device d) const noexcept override { t_device = index_of(d); }
  c10::Stream stream(c10::StreamId id, c10::Device d) const { return c10::Stream(c10::Stream::UNSAFE, c10::Device(kKind, index_of(d)), id); }
  c10::Stream getStream(c10::Device d) const override { return stream(t_streams[index_of(d)], d); }
  c10::Stream getDefaultStream(c10::Device d) const override { return stream(0, d); }
  c10::Stream getNewStream(c10::Device d, int) const override {
    void* made = nullptr;
    require(g_table->create_stream(g_table->self, dlpack(d), &made), "create_stream");
    return stream(reinterpret_cast<c10::StreamId>(made), d);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override { return getNewStream(d, 0); }
  c10::Stream exchangeStream(c10::Stream s) const override { return stream(std::exchange(t_streams[s.device_index()], s.id()), s.device()); }
  void* getStreamNativeHandle(const c10::Stream s) const override { return handle_of(s.id()); }
  void synchronizeStream(const c10::Stream& s) const override { synchronise(s.device(), handle_of(s.id())); }
  void synchronizeDevice(const c10::DeviceIndex d) const override { synchronise({kKind, d}, handle_of(t_streams[d])); }
  c10::DeviceIndex deviceCount() const noexcept override { return g_table ? kCount : 0; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// ---- memory

/// Bytes of tensors that are there, and the most at a time; copies from one tensor of a device to another.
std::atomic<std::size_t> g_bytes{0}, g_most_bytes{0}, g_copies{0};

struct Block {
  void* memory;
  std::size_t bytes;
  c10::Device device;
  void* stream;
};

void free_block(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  g_bytes -= block->bytes;
  g_table->release(g_table->self, dlpack(block->device), block->memory, block->bytes, block->stream);
}

struct MockAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device(kKind, t_device);
    if (bytes == 0) return {nullptr, device};
    void* memory = nullptr;
    const std::int32_t code = g_table->allocate(g_table->self, dlpack(device), bytes, current_stream(device), &memory);
    TORCH_CHECK_WITH(OutOfMemoryError, code == TENON_OK, "the mock device has no ", bytes, " bytes");
    g_most_bytes = std::max<std::size_t>(g_most_bytes, g_bytes += bytes);
    return {memory, new Block{memory, bytes, device, current_stream(device)}, &free_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const DLDevice device = dlpack({kKind, t_device});
    const TenonDeviceCopy copy{sizeof copy, to, from, device, device, bytes};
    require(g_table->copy(g_table->self, &copy, current_stream({kKind, t_device})), "copy");
  }
};
MockAllocator g_allocator;
REGISTER_ALLOCATOR(kKind, &g_allocator)

/// Bytes from the first element to behind the last one.
std::size_t extent(const at::Tensor& t) {
  if (t.numel() == 0) return 0;
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  return static_cast<std::size_t>(last + 1) * t.element_size();
}

char* address(const at::Tensor& t) { return static_cast<char*>(t.storage().mutable_data()) + t.storage_offset() * static_cast<std::int64_t>(t.element_size()); }

/// The same elements at the same distances in the host's memory.
at::Tensor on_host(const at::Tensor& t) {
  if (t.is_cpu()) return t;
  const std::size_t bytes = extent(t);
  at::Tensor memory = at::empty({static_cast<std::int64_t>(bytes / t.element_size())}, t.options().device(at::kCPU));
  if (bytes) {
    const TenonDeviceCopy copy{sizeof copy, memory.mutable_data_ptr(), address(t), {kDLCPU, 0}, dlpack(t.device()), bytes};
    void* stream = current_stream(t.device());
    require(g_table->copy(g_table->self, &copy, stream), "copy");
    synchronise(t.device(), stream);
  }
  return memory.as_strided(t.sizes(), t.strides(), 0);
}

/// What on_host gave goes back.
void put_back(const at::Tensor& host, const at::Tensor& t) {
  if (const std::size_t bytes = extent(t)) {
    const TenonDeviceCopy copy{sizeof copy, address(t), host.data_ptr(), dlpack(t.device()), {kDLCPU, 0}, bytes};
    require(g_table->copy(g_table->self, &copy, current_stream(t.device())), "copy");
  }
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  if (to.is_cpu()) return to.copy_(on_host(from));
  if (!from.is_cpu()) ++g_copies;
  at::Tensor host = on_host(to);
  host.copy_(on_host(from));
  put_back(host, to);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

// ---- kernels

c10::Device placed(std::optional<c10::Device> device) { return {kKind, index_of(device.value_or(c10::Device(kKind, -1)))}; }

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(placed(device));
  return at::detail::empty_generic(size, &g_allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype, std::optional<at::Layout>, std::optional<at::Device> device,
                         std::optional<bool>) {
  const c10::DeviceGuard guard(placed(device));
  return at::detail::empty_strided_generic(size, stride, &g_allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

void resize_bytes(c10::StorageImpl* storage, std::size_t bytes) {
  const c10::DeviceGuard guard(storage->device());
  c10::DataPtr fresh = g_allocator.allocate(bytes);
  if (const std::size_t kept = std::min(bytes, storage->nbytes())) g_allocator.copy_data(fresh.get(), storage->mutable_data(), kept);
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(bytes);
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  if (format) impl->empty_tensor_restride(*format);
  const std::size_t needed = extent(self) + static_cast<std::size_t>(self.storage_offset()) * self.element_size();
  if (needed > self.storage().nbytes()) resize_bytes(self.storage().unsafeGetStorageImpl(), needed);
  return self;
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride, std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
at::Tensor& set_storage(at::Tensor& self, at::Storage source, std::int64_t offset, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::set_storage_cpu_(self, source, offset, size, stride);
}
at::Tensor view(const at::Tensor& self, at::IntArrayRef size) { return at::native::view(self, size); }
at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) { return at::native::_reshape_alias(self, size, stride); }
at::Tensor unfold(const at::Tensor& self, std::int64_t dim, std::int64_t size, std::int64_t step) { return at::native::unfold(self, dim, size, step); }
at::Scalar local_scalar(const at::Tensor& self) { return on_host(self).item(); }

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias, at::IntArrayRef stride, at::IntArrayRef padding,
                       at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, std::int64_t groups) {
  const auto host_bias = bias && bias->defined() ? std::optional(on_host(*bias)) : std::nullopt;
  return at::convolution(on_host(input), on_host(weight), host_bias, stride, padding, dilation, transposed, output_padding, groups).to(input.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride,
                                                                    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                                                                    std::int64_t groups, std::array<bool, 3> wanted) {
  const auto [of_input, of_weight, of_bias] =
      at::convolution_backward(on_host(gradient), on_host(input), on_host(weight), std::nullopt, stride, padding, dilation, transposed, output_padding, groups, wanted);
  const auto there = [&](const at::Tensor& made) { return made.defined() ? made.to(gradient.device()) : made; };
  return {there(of_input), there(of_weight), there(of_bias)};
}

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) { at::native::cpu_fallback(op, stack); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("resize_", resize);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("as_strided", as_strided);
  m.impl("set_.source_Storage_storage_offset", set_storage);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", unfold);
  m.impl("_local_scalar_dense", local_scalar);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>()); }

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kCount; }
  void setCurrentDevice(c10::DeviceIndex d) const override { t_device = d; }
  c10::DeviceIndex getCurrentDevice() const override { return t_device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex d) const override { return std::exchange(t_device, d); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex d) const override { return std::exchange(t_device, d); }
  c10::Device getDeviceFromPtr(void*) const override { return {kKind, 0}; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override { resize_bytes(storage.unsafeGetStorageImpl(), bytes); }
};

}  // namespace

/// Takes the devices of the plugin at that path, which is the library that Tenon loads too. Null, or what is wrong.
extern "C" __attribute__((visibility("default"))) const char* mock_torch_open(const char* plugin) {
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  const auto entry = reinterpret_cast<TenonPluginEntry>(dlsym(library, TENON_PLUGIN_ENTRY));
  if (!entry) return "it is no plugin";
  static TenonHost host{};
  host.struct_size = sizeof host;
  host.abi = TENON_ABI_NEWEST;
  host.report = [](void*, std::int32_t, std::uint32_t, const char* text) { std::fprintf(stderr, "mock device: %s\n", text); };
  static TenonOffer offer{};
  offer.struct_size = sizeof offer;
  offer.abi_oldest = TENON_ABI_OLDEST, offer.abi_newest = TENON_ABI_NEWEST;
  offer.host = &host;
  const TenonPlugin* opened = entry(&offer);
  if (!opened) return offer.refusal;
  if (opened->backend->open_devices(&host, &g_table) != TENON_OK) return "it opens no devices";
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return nullptr;
}

/// Since this was asked last: the most bytes of tensors at a time, beyond those that are there now; and copies from one tensor of a device to another.
extern "C" __attribute__((visibility("default"))) std::size_t mock_torch_most_bytes() { return g_most_bytes.exchange(g_bytes) - g_bytes; }
extern "C" __attribute__((visibility("default"))) std::size_t mock_torch_copies() { return g_copies.exchange(0); }
