#include "host/exported/program_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/abi/dlpack_types.h"
#include "core/ir/buffer.h"
#include "core/ir/verifier.h"
#include "core/ops/check/type_checker.h"
#include "core/ops/portable.h"
#include "host/exported/container.h"

namespace tenon::host {
namespace {

constexpr const char* kGraph = "graph";
constexpr const char* kConstants = "constants";
constexpr const char* kSignature = "signature";
constexpr std::size_t kMostBytesOfText = std::size_t{1} << 30;  // of what is no constant

std::size_t bytes_of_constant(const ir::Type& type) {
  std::size_t bytes = size_of(type.dtype);
  for (const ir::Dim& dim : type.shape) bytes *= static_cast<std::size_t>(dim.constant());
  return bytes;
}

bool is_json_object(std::string_view text) { return nlohmann::json::parse(text, nullptr, false).is_object(); }

/// The constants of a file as tensors over the section's bytes.
class ConstantSection {
 public:
  /// The section has the size that the graph's constants need.
  ConstantSection(const ir::Graph& graph, const Container& file) {
    const std::string_view bytes = file.section(kConstants);
    std::size_t end = 0;
    shapes_.reserve(graph.constants().size());
    tensors_.reserve(graph.constants().size());
    for (const ir::Constant& constant : graph.constants()) {
      const std::size_t begin = (end + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
      end = begin + bytes_of_constant(constant.type);
      std::vector<std::int64_t>& shape = shapes_.emplace_back();
      for (const ir::Dim& dim : constant.type.shape) shape.push_back(dim.constant());
      tensors_.push_back({const_cast<char*>(bytes.data()) + begin, {kDLCPU, 0}, static_cast<std::int32_t>(shape.size()), dlpack_type(constant.type.dtype), shape.data(), nullptr, 0});
      pointers_.push_back(&tensors_.back());
    }
  }

  std::span<const DLTensor* const> tensors() const { return pointers_; }

 private:
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<DLTensor> tensors_;
  std::vector<const DLTensor*> pointers_;
};

/// Throws with the file and the section in front of what is wrong with the graph.
ir::Graph read_graph(const Container& file, std::span<const DLTensor* const> constants) {
  const std::string_view bytes = file.section(kGraph);
  Result<ir::Graph> graph = ir::read_buffer({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, constants);
  if (!graph.ok()) throw Exception(graph.error().code, fmt::format("{}: the section '{}': {}", file.path(), kGraph, graph.error().message));
  return std::move(*graph);
}

/// The bytes that the constants of a graph take in their section; SIZE_MAX where 63 bits do not count them, as those of each one can be.
std::size_t bytes_of_constants(const ir::Graph& graph) {
  std::size_t end = 0;
  for (const ir::Constant& constant : graph.constants()) {
    end = (end + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment + bytes_of_constant(constant.type);
    if (end > INT64_MAX) return SIZE_MAX;
  }
  return end;
}

/// Refuses a file whose table says that it is none before what the table promises is read.
void admit(const Container& file) {
  for (const char* name : {kGraph, kSignature, kConstants}) file.size_of(name);  // refuses where there is none
  if (file.names() != std::vector<std::string>{kGraph, kSignature, kConstants})
    throw Exception(Code::malformed, fmt::format("{}: the sections are {}, not {}, {} and {}", file.path(), fmt::join(file.names(), ", "), kGraph, kSignature, kConstants));
  for (const char* name : {kGraph, kSignature})
    if (file.size_of(name) > kMostBytesOfText) throw Exception(Code::malformed, fmt::format("{}: the section '{}' has {} bytes; it may have {}", file.path(), name, file.size_of(name), kMostBytesOfText));
  if (!file.has_read(kGraph) || file.has_read(kSignature)) return;
  const ir::Graph graph = read_graph(file, {});
  if (const std::optional<Error> wrong = ir::verify_graph(graph)) throw Exception(wrong->code, fmt::format("{}: the section '{}': {}", file.path(), kGraph, wrong->message));
  if (const std::size_t bytes = bytes_of_constants(graph); bytes != file.size_of(kConstants))
    throw Exception(Code::malformed, fmt::format("{}: the section '{}' has {} bytes; the graph's constants have {}", file.path(), kConstants, file.size_of(kConstants), bytes));
}

/// A bool is one of two bytes.
void require_bools(const ir::Graph& graph, const std::string& path) {
  for (const ir::Constant& constant : graph.constants()) {
    if (constant.type.dtype != DType::b8) continue;
    const auto* bytes = static_cast<const unsigned char*>(constant.data);
    if (std::any_of(bytes, bytes + bytes_of_constant(constant.type), [](unsigned char byte) { return byte > 1; }))
      throw Exception(Code::malformed, fmt::format("{}: the constant @{} of bools has bytes that are neither 0 nor 1", path, constant.name));
  }
}

}  // namespace

void save_program(const TenonGraph& given, const std::string& signature, const std::string& path) {
  TENON_USER_CHECK(is_json_object(signature), "the signature of an exported program must be a JSON object; given: {}", signature);
  const ir::Graph graph = ir::read_buffer(given.buffer, {given.constants, given.constant_count}).value();
  ops::accept_graph(graph).value();
  if (const std::string stays = ops::why_not_portable(graph); !stays.empty()) throw Exception(Code::unsupported, "the graph cannot be exported: " + stays);
  std::vector<std::string_view> constants;
  for (const ir::Constant& constant : graph.constants()) {
    const std::size_t bytes = bytes_of_constant(constant.type);
    TENON_USER_CHECK(constant.data || bytes == 0, "the bytes of constant @{} were not given", constant.name);
    if (!constant.type.device.is_host())
      throw Exception(Code::unsupported, fmt::format("the graph cannot be exported: its constant @{} is on {}", constant.name, ir::device_text(constant.type.device)));
    constants.emplace_back(static_cast<const char*>(constant.data), bytes);
  }
  const std::string_view buffer(reinterpret_cast<const char*>(given.buffer.data), given.buffer.size);
  const SectionToWrite sections[] = {{kGraph, {buffer}}, {kSignature, {signature}}, {kConstants, std::move(constants)}};
  write_container(path, sections);
}

ExportedProgram load_program(const std::string& path) {
  const Container file = Container::read(path, admit);
  const ConstantSection constants(read_graph(file, {}), file);
  ExportedProgram program{read_graph(file, constants.tensors()), {file.owner()}, std::string(file.section(kSignature))};
  if (!is_json_object(program.signature)) throw Exception(Code::malformed, fmt::format("{}: the section '{}' is no JSON object", path, kSignature));
  require_bools(program.graph, path);
  return program;
}

}  // namespace tenon::host
