#include <algorithm>

#include "run_inputs.h"

#include <fmt/format.h>

#include "command.h"
#include "core/base/regular_file.h"
#include "core/ir/printer.h"
#include "host/diagnostics/suggestion.h"
#include "npy.h"

namespace tenon::cli {
namespace {

using Sizes = std::vector<std::optional<std::int64_t>>;  // by SymbolId

std::vector<std::string> input_names(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.inputs()) names.push_back(graph.value(id).name);
  return names;
}

Sizes given_sizes(const ir::Graph& graph, const GivenInputs& given) {
  Sizes sizes(graph.symbols().size());
  std::vector<std::string> names;
  for (const ir::SymbolInfo& symbol : graph.symbols()) names.push_back(symbol.name);
  for (const auto& [name, value] : given.sizes) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) throw CommandError(kBadUsage, fmt::format("--size: the graph has no symbol '{}'{}", name, host::suggestion_text(name, names)));
    sizes[static_cast<std::size_t>(found - names.begin())] = value;
  }
  return sizes;
}

/// Takes the sizes of symbols from the shape of a file.
void learn_sizes(const ir::Type& type, const Array& array, Sizes& sizes) {
  for (std::size_t i = 0; i < type.shape.size() && i < array.shape.size(); ++i)
    if (const SymbolId symbol = type.shape[i].as_symbol(); symbol && !sizes[symbol.value]) sizes[symbol.value] = array.shape[i];
}

std::vector<std::int64_t> shape_of(const ir::Graph& graph, ValueId input, const Sizes& sizes) {
  std::vector<std::int64_t> values;
  for (const auto& size : sizes) values.push_back(size.value_or(0));
  std::vector<std::int64_t> shape;
  for (const ir::Dim& dim : graph.type(input).shape) {
    dim.for_each_symbol([&](SymbolId symbol) {
      if (sizes[symbol.value]) return;
      const std::string& name = graph.symbols()[symbol.value].name;
      throw CommandError(kBadUsage, fmt::format("the size of {} is not known: give --size {}=NUMBER, or a file with --input {}=FILE.npy", name, name, graph.value(input).name));
    });
    shape.push_back(dim.evaluate(values));
  }
  return shape;
}

void require_memory(DType dtype, const std::vector<std::int64_t>& shape, const std::string& name) {
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  bool fits = true;
  for (std::int64_t size : shape) fits = fits && size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes);
  if (!fits || static_cast<std::uint64_t>(bytes) > memory_of_machine()) throw CommandError(kFailed, fmt::format("input {} is larger than the memory of this machine", name));
}

}  // namespace

std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw CommandError(kBadUsage, fmt::format("{} is written {} NAME=VALUE, not: {}", option, option, text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<Array> make_inputs(const ir::Graph& graph, const GivenInputs& given) {
  const std::vector<std::string> names = input_names(graph);
  Sizes sizes = given_sizes(graph, given);
  std::map<std::string, Array> files;
  for (const auto& [name, path] : given.files) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) throw CommandError(kBadUsage, fmt::format("--input: the graph has no input '{}'{}", name, host::suggestion_text(name, names)));
    check_file(path);
    files[name] = read_npy(path);
    learn_sizes(graph.type(graph.inputs()[static_cast<std::size_t>(found - names.begin())]), files[name], sizes);
  }
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const auto file = files.find(names[i]); file != files.end()) {
      inputs.push_back(std::move(file->second));
      continue;
    }
    const ValueId input = graph.inputs()[i];
    const std::vector<std::int64_t> shape = shape_of(graph, input, sizes);
    require_memory(graph.type(input).dtype, shape, names[i]);
    inputs.push_back(Array::zeros(graph.type(input).dtype, shape));
    fill_random(inputs.back(), given.seed + i);
  }
  return inputs;
}

}  // namespace tenon::cli
