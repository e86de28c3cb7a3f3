#include "host/exported/program_file.h"

#include <nlohmann/json.hpp>

#include "core/abi/dlpack_types.h"
#include "core/ir/buffer.h"
#include "core/ops/portable.h"
#include "host/exported/container.h"

namespace tenon::host {
namespace {

constexpr const char* kGraph = "graph";
constexpr const char* kConstants = "constants";
constexpr const char* kSignature = "signature";

std::size_t bytes_of_constant(const ir::Type& type) {
  std::size_t bytes = size_of(type.dtype);
  for (const ir::Dim& dim : type.shape) bytes *= static_cast<std::size_t>(dim.constant());
  return bytes;
}

bool is_json_object(std::string_view text) { return nlohmann::json::parse(text, nullptr, false).is_object(); }

/// The constants of a file as tensors over the section's bytes.
class ConstantSection {
 public:
  /// Throws (malformed) when the section has not the size that the graph's constants need.
  ConstantSection(const ir::Graph& graph, const Container& file) {
    const std::string_view bytes = file.section(kConstants);
    std::size_t end = 0;
    shapes_.reserve(graph.constants().size());
    tensors_.reserve(graph.constants().size());
    for (const ir::Constant& constant : graph.constants()) {
      const std::size_t begin = (end + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
      end = begin + bytes_of_constant(constant.type);
      if (end < begin || end > bytes.size())
        throw Exception(Code::malformed, fmt::format("{}: the section '{}' ends before the constant @{}", file.path(), kConstants, constant.name));
      std::vector<std::int64_t>& shape = shapes_.emplace_back();
      for (const ir::Dim& dim : constant.type.shape) shape.push_back(dim.constant());
      tensors_.push_back({const_cast<char*>(bytes.data()) + begin, {kDLCPU, 0}, static_cast<std::int32_t>(shape.size()), dlpack_type(constant.type.dtype), shape.data(), nullptr, 0});
      pointers_.push_back(&tensors_.back());
    }
    if (end != bytes.size()) throw Exception(Code::malformed, fmt::format("{}: the section '{}' goes on after the last constant", file.path(), kConstants));
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

}  // namespace

void save_program(const TenonGraph& given, const std::string& signature, const std::string& path) {
  TENON_USER_CHECK(is_json_object(signature), "the signature of an exported program must be a JSON object; given: {}", signature);
  const ir::Graph graph = ir::read_buffer(given.buffer, {given.constants, given.constant_count}).value();
  if (const std::string stays = ops::why_not_portable(graph); !stays.empty()) throw Exception(Code::unsupported, "the graph cannot be exported: " + stays);
  std::vector<std::string_view> constants;
  for (const ir::Constant& constant : graph.constants()) {
    const std::size_t bytes = bytes_of_constant(constant.type);
    TENON_USER_CHECK(constant.data || bytes == 0, "the bytes of constant @{} were not given", constant.name);
    constants.emplace_back(static_cast<const char*>(constant.data), bytes);
  }
  const std::string_view buffer(reinterpret_cast<const char*>(given.buffer.data), given.buffer.size);
  const SectionToWrite sections[] = {{kGraph, {buffer}}, {kSignature, {signature}}, {kConstants, std::move(constants)}};
  write_container(path, sections);
}

ExportedProgram load_program(const std::string& path) {
  const Container file = Container::read(path);
  const ConstantSection constants(read_graph(file, {}), file);
  ExportedProgram program{read_graph(file, constants.tensors()), {file.owner()}, std::string(file.section(kSignature))};
  if (!is_json_object(program.signature)) throw Exception(Code::malformed, fmt::format("{}: the section '{}' is no JSON object", path, kSignature));
  return program;
}

}  // namespace tenon::host
