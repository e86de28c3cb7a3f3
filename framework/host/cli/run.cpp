// tenon run TARGET
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <map>

#include "captured.h"
#include "command.h"
#include "core/abi/dlpack_types.h"
#include "core/ir/buffer.h"
#include "core/rewrite/on_device.h"
#include "host/diagnostics/suggestion.h"
#include "npy.h"
#include "run_inputs.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

struct RunOptions {
  std::string target;
  std::string backends;
  std::string device;
  std::vector<std::string> inputs, outputs, sizes;
  std::uint64_t seed = 0;
  int repeat = 1;
};

/// A copy of an array in a device's memory, while a call has it.
class OnDevice {
 public:
  OnDevice(const Session& session, Array& array, DLDevice device) : session_(session.get()), bytes_(array.bytes.size()), tensor_(array.tensor()) {
    check(tenon_device_allocate(session_, device, bytes_, nullptr, &memory_));
    copy(memory_, device, array.bytes.data(), tensor_.device);
    tensor_.data = memory_, tensor_.device = device;
  }
  ~OnDevice() { tenon_device_release(session_, tensor_.device, memory_, bytes_, nullptr); }
  OnDevice(const OnDevice&) = delete;

  const DLTensor* tensor() const { return &tensor_; }
  /// What a call has written there.
  void give_back(Array& array) const { copy(array.bytes.data(), {kDLCPU, 0}, memory_, tensor_.device); }

 private:
  void copy(void* to, DLDevice to_device, const void* from, DLDevice from_device) const { check(tenon_device_copy(session_, to, to_device, from, from_device, bytes_)); }

  TenonSession* session_;
  std::size_t bytes_;
  DLTensor tensor_;
  void* memory_ = nullptr;
};

/// A program compiled from a captured graph, which must outlive it, as the session must: the constants' memory is the graph's.
class Program {
 public:
  /// `graph`: the captured one as objects, or the same on a device, where `moved` says it.
  Program(const Session& session, const Captured& captured, const ir::Graph& graph, bool moved) : session_(session) {
    for (const ValueId input : graph.inputs()) devices_.push_back(ir::dlpack_device(graph.type(input).device));
    TenonCompileRequest request{};
    request.struct_size = sizeof request;
    request.graph = captured.buffer();
    if (moved) {
      bytes_ = ir::write_buffer(graph);
      request.graph.buffer = {bytes_.data(), bytes_.size()};
    }
    check(tenon_compile(session.get(), &request, &program_));
  }
  ~Program() { tenon_program_release(program_); }
  Program(const Program&) = delete;

  /// The results, in order. Updates are written into `inputs`.
  std::vector<Array> call(std::vector<Array>& inputs, std::size_t output_count) const {
    std::deque<DLTensor> of_host;
    std::map<std::size_t, OnDevice> there;  // by input
    std::vector<const DLTensor*> pointers;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool stays = devices_[i].device_type == kDLCPU;
      pointers.push_back(stays ? &of_host.emplace_back(inputs[i].tensor()) : there.try_emplace(i, session_, inputs[i], devices_[i]).first->second.tensor());
    }
    std::vector<DLManagedTensorVersioned*> outputs(output_count);
    check(tenon_program_call(program_, pointers.data(), pointers.size(), outputs.data(), outputs.size()));
    for (const auto& [i, input] : there) input.give_back(inputs[i]);
    std::vector<Array> results;
    for (DLManagedTensorVersioned* output : outputs) {
      results.push_back(fetched(output->dl_tensor));
      if (output->deleter) output->deleter(output);
    }
    return results;
  }

  json query(const char* what) const {
    char* text = nullptr;
    check(tenon_program_query(program_, what, &text));
    const json result = json::parse(text);
    tenon_free(text);
    return result;
  }

 private:
  /// A copy in the host's memory of a result, whose bytes are side by side where it is a device's.
  Array fetched(DLTensor tensor) const {
    if (tensor.device.device_type == kDLCPU) return copy_of(tensor);
    std::size_t bytes = size_of(*dtype_of(tensor.dtype));
    for (std::int32_t d = 0; d < tensor.ndim; ++d) bytes *= static_cast<std::size_t>(tensor.shape[d]);
    std::vector<std::byte> here(bytes);
    check(tenon_device_copy(session_.get(), here.data(), {kDLCPU, 0}, static_cast<std::byte*>(tensor.data) + tensor.byte_offset, tensor.device, bytes));
    tensor.data = here.data(), tensor.device = {kDLCPU, 0}, tensor.byte_offset = 0;
    return copy_of(tensor);
  }

  const Session& session_;
  std::vector<std::uint8_t> bytes_;
  std::vector<DLDevice> devices_;  // by input
  TenonProgram* program_ = nullptr;
};

/// What comes out, under its name: a result, or an input that was updated.
struct NamedArray {
  std::string name;
  const char* kind;
  const Array* array;
};

std::vector<NamedArray> name_outputs(const ir::Graph& graph, const std::vector<Array>& results, const std::vector<Array>& inputs) {
  std::vector<NamedArray> named;
  std::size_t next = 0;
  for (const ir::Output& output : graph.outputs()) {
    if (output.kind == ir::OutputKind::result) named.push_back({graph.value(output.value).name, "result", &results[next++]});
    if (output.kind == ir::OutputKind::update) named.push_back({graph.value(output.target).name, "update", &inputs[graph.value(output.target).index]});
  }
  return named;
}

std::size_t result_count(const ir::Graph& graph) {
  std::size_t count = 0;
  for (const ir::Output& output : graph.outputs()) count += output.kind == ir::OutputKind::result;
  return count;
}

json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

json summary_of(const NamedArray& output) {
  const Array& array = *output.array;
  const std::int64_t count = array.element_count();
  double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0;
  json first = json::array();
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = array.number(i);
    low = std::fmin(low, value), high = std::fmax(high, value), sum += value;
    if (i < 6) first.push_back(number_json(value));
  }
  json summary = {{"name", output.name}, {"kind", output.kind}, {"dtype", std::string(name_of(array.dtype))}, {"shape", array.shape}, {"first", first}};
  if (count > 0) summary.update({{"min", number_json(low)}, {"max", number_json(high)}, {"mean", number_json(sum / static_cast<double>(count))}});
  return summary;
}

std::string number_text(const json& value) { return value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : value.get<std::string>(); }

void print_outputs(const json& outputs) {
  std::vector<std::vector<std::string>> rows = {{"OUTPUT", "TYPE", "MIN", "MAX", "MEAN", "FIRST"}};
  for (const json& output : outputs) {
    std::string first, shape;
    for (const json& value : output["first"]) first += (first.empty() ? "" : " ") + number_text(value);
    for (const json& size : output["shape"]) shape += (shape.empty() ? "" : ", ") + size.dump();
    const auto number = [&](const char* key) { return output.contains(key) ? number_text(output[key]) : std::string("-"); };
    rows.push_back({output["name"].get<std::string>(), fmt::format("{}[{}]", output["dtype"].get<std::string>(), shape), number("min"), number("max"),
                    number("mean"), first});
  }
  print_table(rows);
}

/// Which backend ran how many nodes, in the order of the plan.
void print_plan(const json& plan) {
  std::vector<std::pair<std::string, std::int64_t>> nodes;
  for (const json& step : plan.value("steps", json::array())) {
    const std::string backend = step.value("backend", "");
    if (backend.empty()) continue;
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const auto& known) { return known.first == backend; });
    if (found != nodes.end()) found->second += step.value("nodes", std::int64_t{0});
    else nodes.emplace_back(backend, step.value("nodes", std::int64_t{0}));
  }
  for (const auto& [backend, count] : nodes) fmt::print("{}: {} {}\n", backend, count, count == 1 ? "node" : "nodes");
}

/// Writes the outputs that were asked for.
void write_outputs(const std::vector<NamedArray>& outputs, const std::vector<std::string>& wanted) {
  for (const std::string& text : wanted) {
    const auto [name, path] = split_assignment("--output", text);
    const auto found = std::find_if(outputs.begin(), outputs.end(), [&](const NamedArray& output) { return output.name == name; });
    write_npy(path, *(found == outputs.end() ? outputs.front() : *found).array);  // other names have been refused
  }
}

/// The results of an exported program have made-up names: where there is one only, any name will do.
bool takes_any_output_name(const ir::Graph& graph, const RunOptions& options) {
  return options.target.ends_with(".tnx") && graph.outputs().size() == 1 && options.outputs.size() == 1;
}

/// Before anything is compiled: names that the graph does not have are an error of usage.
void check_output_names(const ir::Graph& graph, const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  for (const ir::Output& output : graph.outputs())
    if (output.kind != ir::OutputKind::saved) names.push_back(graph.value(output.kind == ir::OutputKind::update ? output.target : output.value).name);
  for (const std::string& text : wanted) {
    const std::string name = split_assignment("--output", text).first;
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw CommandError(kBadUsage, fmt::format("--output: the graph has no output '{}'{}", name, host::suggestion_text(name, names)));
  }
}

GivenInputs given_inputs(const RunOptions& options) {
  GivenInputs given;
  given.seed = options.seed;
  for (const std::string& text : options.inputs) given.files.insert(split_assignment("--input", text));
  for (const std::string& text : options.sizes) {
    const auto [name, value] = split_assignment("--size", text);
    std::size_t end = 0;
    std::int64_t size = -1;
    try {
      size = std::stoll(value, &end);
    } catch (const std::exception&) {
      end = 0;
    }
    if (end != value.size() || size < 0) throw CommandError(kBadUsage, fmt::format("--size: a size is a number that is not negative, not: {}", text));
    given.sizes[name] = size;
  }
  return given;
}

/// The same command line for a driver's program.
std::vector<std::string> driver_arguments(const Command& command, const RunOptions& options) {
  std::vector<std::string> words = {"run", options.target};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  };
  add("--backend", options.backends);
  add("--device", options.device);
  for (const std::string& input : options.inputs) add("--input", input);
  for (const std::string& output : options.outputs) add("--output", output);
  for (const std::string& size : options.sizes) add("--size", size);
  if (options.seed != 0) add("--seed", std::to_string(options.seed));
  if (command.json) words.push_back("--json");
  return words;
}

/// The graph, on the device that the options name.
ir::Graph placed(ir::Graph graph, const Session& session, const RunOptions& options) {
  if (options.device.empty()) return graph;
  DLDevice device{};
  if (tenon_session_find_device(session.get(), nullptr, 0, options.device.c_str(), &device) != TENON_OK) throw CommandError(kBadUsage, "--device: " + last_error_text());
  auto moved = rewrite::on_device(graph, ir::device_of(device));
  if (!moved) throw CommandError(kBadUsage, fmt::format("--device: {} says itself where its tensors are, or has constants in branches", options.target));
  return *std::move(moved);
}

int run_graph(const Command& command, const Session& session, const RunOptions& options) {
  const GivenInputs given = given_inputs(options);
  const Captured captured = capture(session, options.target);
  const ir::Graph graph = placed(captured.graph(), session, options);
  if (!takes_any_output_name(graph, options)) check_output_names(graph, options.outputs);
  std::vector<Array> inputs = make_inputs(graph, given);
  const Program program(session, captured, graph, !options.device.empty());
  std::vector<Array> results;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < options.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    results = program.call(inputs, result_count(graph));
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  const std::vector<NamedArray> outputs = name_outputs(graph, results, inputs);
  write_outputs(outputs, options.outputs);
  json summaries = json::array();
  for (const NamedArray& output : outputs) summaries.push_back(summary_of(output));
  if (command.json) {
    fmt::print("{}\n", json{{"outputs", summaries}, {"milliseconds", best}, {"plan", program.query("plan")}}.dump(2));
  } else {
    print_outputs(summaries);
    print_plan(program.query("plan"));
  }
  return kDone;
}

int run(Command& command, const RunOptions& options) {
  // As a setting, so that an unknown backend is an error of usage with the nearest right name.
  if (!options.backends.empty()) command.settings.push_back("compile.backends=" + options.backends);
  const auto [path, function] = split_target(options.target);
  check_file(path);
  const Session session(command);
  run_driver(command, session, path, driver_arguments(command, options));
  if (!function.empty()) throw CommandError(kBadUsage, fmt::format("no driver runs functions of such files: {}", path));
  return run_graph(command, session, options);
}

}  // namespace

void add_run(CLI::App& app, Command& command) {
  CLI::App* run_app = app.add_subcommand("run", "runs a graph, or a function of a program, on files or random input")->fallthrough();
  static RunOptions options;
  run_app->add_option("TARGET", options.target, "graph.tir, program.tnx (exported), or file.py:function")->required();
  run_app->add_option("--backend", options.backends, "backends in order of preference, separated by commas")->type_name("NAMES");
  run_app->add_option("--device", options.device, "the device where all tensors are; a backend that is asked must bring it")->type_name("KIND:NUMBER");
  run_app->add_option("--input", options.inputs, "the value of an input; the others are random")->type_name("NAME=FILE.npy");
  run_app->add_option("--output", options.outputs, "where an output is written")->type_name("NAME=FILE.npy");
  run_app->add_option("--size", options.sizes, "the value of a symbolic size, or of a function's argument that is a whole number")->type_name("NAME=NUMBER");
  run_app->add_option("--seed", options.seed, "of random inputs, or of the random numbers that a function takes")->check(whole_number(0, kLargestSeed))->type_name("NUMBER");
  run_app->add_option("--repeat", options.repeat, "calls; the time of the fastest is reported")->check(whole_number(1, std::numeric_limits<int>::max()))->type_name("NUMBER");
  add_json(*run_app, command);
  run_app->callback([&] { command.action = [&] { return run(command, options); }; });
}

}  // namespace tenon::cli
