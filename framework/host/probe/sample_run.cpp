#include "sample_run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/ir/buffer.h"
#include "core/ops/catalog.h"
#include "guarded_call.h"
#include "host/plugins/contact/given_tensor.h"

namespace tenon::probe {
namespace {

constexpr std::size_t kAlignment = 64;  // what outputs and workspaces may expect

/// Pages of memory whose last bytes are the block, with a page behind it that nobody may touch.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t block = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    usable_ = (block + page - 1) / page * page;
    void* mapped = ::mmap(nullptr, usable_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw Exception(Code::out_of_memory, fmt::format("no memory for {} bytes", bytes));
    start_ = static_cast<std::byte*>(mapped);
    data_ = start_ + usable_ - block;
    ::mprotect(start_ + usable_, page, PROT_NONE);
  }
  GuardedBytes(GuardedBytes&&) = default;  // the memory is the process's: it ends soon

  std::byte* data() const { return data_; }
  void protect() const { ::mprotect(start_, usable_, PROT_READ); }

 private:
  std::byte* start_;
  std::byte* data_;
  std::size_t usable_;
};

std::size_t bytes_of(const ir::Type& type) {
  std::size_t bytes = size_of(type.dtype);
  for (const ir::Dim& d : type.shape) bytes *= static_cast<std::size_t>(d.constant());
  return bytes;
}

bool is_plain(const ir::Type& type) {
  return type.is_tensor() && !type.strides && std::ranges::all_of(type.shape, [](const ir::Dim& d) { return d.is_constant(); });
}

/// Memory for one run.
struct Memory {
  std::vector<GuardedBytes> blocks;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;

  std::byte* add(std::size_t bytes) { return blocks.emplace_back(bytes).data(); }

  Memory(const ops::Sample& sample, const ir::Graph& graph) {
    for (const ops::SampleInput& input : ops::sample_inputs(sample, 1)) {
      std::memcpy(add(input.storage.byte_count()), input.storage.data(), input.storage.byte_count());
      blocks.back().protect();
      inputs.push_back(blocks.back().data());
    }
    for (const ir::Output& output : graph.outputs()) outputs.push_back(add(bytes_of(graph.type(output.value))));
  }
};

/// All outputs have memory: who asks for more gets none, and a tensor that is handed over instead is given back at once.
void* no_memory(void*, std::uint32_t, const std::int64_t*, std::size_t) noexcept { return nullptr; }

/// Reads all of it, as the host would copy it.
void read_all(const DLTensor& tensor) {
  std::size_t bytes = tensor.dtype.bits / 8;
  for (int d = 0; d < tensor.ndim; ++d) bytes *= static_cast<std::size_t>(tensor.shape[d]);
  const volatile std::byte* data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  for (std::size_t i = 0; i < bytes; ++i) data[i];
}

std::int32_t take_tensor(void*, std::uint32_t, DLManagedTensorVersioned* tensor) noexcept {
  const bool usable = host::defect_of(tensor).empty();
  if (usable && !tensor->dl_tensor.strides) read_all(tensor->dl_tensor);
  enter_step("give_output");
  if (tensor && tensor->deleter) tensor->deleter(tensor);  // what it throws ends this process, with a word
  enter_step("execute");
  return usable ? TENON_OK : TENON_INVALID_ARGUMENT;
}

void run(Backend& backend, const TenonArtefact& artefact, const ops::Sample& sample, const ir::Graph& graph) {
  constexpr std::size_t kMostWorkspace = std::size_t{256} << 20;  // for a sample of a few numbers
  std::size_t workspace = 0;
  if (!backend.workspace(artefact, nullptr, workspace).ok() || workspace > kMostWorkspace) return;
  if (backend.table().devices[0].device_type != kDLCPU) return;
  Memory memory(sample, graph);
  const TenonCall call{sizeof call, nullptr, no_memory, take_tensor};
  void* scratch = workspace ? memory.add(workspace) : nullptr;
  backend.execute(artefact, {sizeof(TenonExecuteArgs), memory.inputs.data(), memory.outputs.data(), nullptr, scratch, nullptr, &call});
}

bool is_runnable(const ops::Sample& sample) {
  return std::ranges::all_of(sample.operands, [](const ops::SampleOperand& operand) { return operand.literal || (operand.dtype == DType::f32 && !operand.strides); });
}

}  // namespace

void for_each_runnable_sample(const std::function<bool(const ops::Sample&, const ir::Graph&)>& use) {
  for (const ops::Op& op : ops::all_ops()) {
    if (!op.samples) continue;
    const std::vector<ops::Sample> samples = ops::samples_of(op);
    const auto sample = std::ranges::find_if(samples, is_runnable);
    if (sample == samples.end()) continue;
    const ir::Graph graph = ops::sample_graph(op, *sample);
    const auto plain = [&](ValueId value) { return is_plain(graph.type(value)); };
    const bool sized = graph.symbols().empty() && std::ranges::all_of(graph.inputs(), plain) &&
                       std::ranges::all_of(graph.outputs(), [&](const ir::Output& output) { return plain(output.value); });
    if (sized && !use(*sample, graph)) return;
  }
}

void live(Backend& backend, const ops::Sample& sample, const ir::Graph& graph) {
  const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
  TenonArtefact artefact{};
  artefact.struct_size = sizeof artefact;
  if (!backend.compile({sizeof(TenonGraph), ir::bytes_of(buffer), nullptr, 0}, "{}", artefact).ok()) return;
  run(backend, artefact, sample, graph);
  std::string stored;
  const bool stores = backend.table().serialise && backend.table().load && backend.serialise(artefact, stored).ok();
  backend.release(artefact);
  if (!stores) return;
  TenonArtefact loaded{};
  loaded.struct_size = sizeof loaded;
  if (!backend.load(stored, loaded).ok()) return;
  run(backend, loaded, sample, graph);
  backend.release(loaded);
}

}  // namespace tenon::probe
