// Runs what the checker of types accepts on backends, between guard pages: machine code is not instrumented.
//
//   fuzz_run [--seed N] [--iterations N] [--graphs FOLDER] [--backends NAMES] [--seconds N] [--save FOLDER] [--make random|resized]
//
// Each graph is one that fuzz_ir's target `types` makes, of which inputs may have become constants. Every input, constant and output lies
// against a page that may not be touched, before it or behind it; inputs and constants may not be written. Each graph runs twice, with outputs
// poisoned by two patterns: a byte that differs was not computed. One in four runs with `plugins.check`, where workspaces have marks around them.
// Iteration i of seed s depends on nothing but s and i; with `--make resized` the graphs are the samples of all ops, each with one size of one operand
// changed, as often as iterations say. With --save the graph under attack lies in SAVE/current; a graph that takes longer
// than --seconds (10) ends the process.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "core/abi/dlpack_types.h"
#include "core/ir/buffer.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/ops/catalog.h"
#include "core/ops/check/type_checker.h"
#include "fuzz/execute.h"
#include "fuzz/op_graphs.h"
#include "tenon/host.h"

namespace {

using namespace tenon;

struct Options {
  std::uint64_t seed = 0, iterations = 1000;
  unsigned seconds = 10;
  std::string backends = "llvm";
  bool resized = false;
  std::filesystem::path graphs, save;
};

/// Bytes of which the last, or the first, lies against a page that may not be touched.
class GuardedMemory {
 public:
  GuardedMemory(std::size_t bytes, bool at_end, std::size_t alignment) : size_(bytes), whole_((bytes + kPage - 1) / kPage * kPage + 2 * kPage) {
    all_ = static_cast<std::byte*>(::mmap(nullptr, whole_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (all_ == MAP_FAILED || ::mprotect(all_ + kPage, whole_ - 2 * kPage, PROT_READ | PROT_WRITE) != 0) std::abort();
    first_ = all_ + kPage;
    if (at_end) first_ = all_ + whole_ - kPage - (bytes + alignment - 1) / alignment * alignment;
  }
  ~GuardedMemory() { ::munmap(all_, whole_); }
  GuardedMemory(const GuardedMemory&) = delete;

  std::byte* data() const { return first_; }
  std::size_t size() const { return size_; }
  void poison(int pattern) const { std::memset(first_, pattern, size_); }
  void allow_reading_only() const { ::mprotect(all_ + kPage, whole_ - 2 * kPage, PROT_READ); }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t size_, whole_;
  std::byte *all_ = nullptr, *first_ = nullptr;
};

using Memories = std::vector<std::unique_ptr<GuardedMemory>>;

[[noreturn]] void broken(const char* promise, const ir::Graph& graph) {
  std::fprintf(stderr, "broken promise: %s\n%s\n", promise, ir::print_graph(graph).c_str());
  std::abort();
}

std::size_t bytes_of(const ir::Type& type, std::span<const std::int64_t> sizes) {
  std::size_t bytes = size_of(type.dtype);
  for (std::int64_t n : sizes) bytes *= static_cast<std::size_t>(n);
  return bytes;
}

/// One run's outputs. Those whose size depends on data are made when they are asked for.
struct Outputs {
  const ir::Graph& graph;
  int pattern;
  bool at_end;
  Memories memory;

  Outputs(const ir::Graph& g, const std::vector<std::int64_t>& symbols, int poison, bool end) : graph(g), pattern(poison), at_end(end), memory(g.outputs().size()) {
    for (std::size_t k = 0; k < memory.size(); ++k) {
      const ir::Type& type = graph.type(graph.outputs()[k].value);
      std::vector<std::int64_t> sizes;
      bool late = false;
      for (const ir::Dim& d : type.shape) {
        d.for_each_symbol([&](SymbolId s) { late = late || symbols[s.value] < 0; });
        if (!late) sizes.push_back(d.evaluate(symbols));
      }
      if (!late) make(k, sizes);
    }
  }

  void* make(std::size_t k, std::span<const std::int64_t> sizes) {
    const ir::Type& type = graph.type(graph.outputs()[k].value);
    memory[k] = std::make_unique<GuardedMemory>(bytes_of(type, sizes), at_end, size_of(type.dtype));
    memory[k]->poison(pattern);
    return memory[k]->data();
  }

  std::vector<void*> pointers() const {
    std::vector<void*> all;
    for (const auto& m : memory) all.push_back(m ? m->data() : nullptr);
    return all;
  }
};

class Runner {
 public:
  explicit Runner(const Options& options) : options_(options) {
    for (std::size_t at = 0; at <= options.backends.size();) {
      const std::size_t comma = std::min(options.backends.find(',', at), options.backends.size());
      backends_.push_back(options.backends.substr(at, comma - at));
      at = comma + 1;
    }
    const char* const settings[] = {"cache.enabled=false", "runtime.threads=1", "compile.warm_up=false", "plugins.check=true"};
    for (const bool checks : {false, true}) {
      TenonSessionOptions session{sizeof session, nullptr, settings, std::size(settings) - (checks ? 0 : 1)};
      if (tenon_session_create(&session, &sessions_[checks]) != TENON_OK) fail("no session");
    }
    if (std::filesystem::is_directory(options.graphs))
      for (const auto& entry : std::filesystem::recursive_directory_iterator(options.graphs)) read(entry.path());
  }
  ~Runner() {
    for (TenonSession* session : sessions_) tenon_session_release(session);
  }

  void run() {
    for (std::uint64_t i = 0; i < options_.iterations; ++i) {
      if (options_.resized) {
        attack_resized(i);
        continue;
      }
      fuzz::Random random(options_.seed * 0x9e3779b97f4a7c15ull + i);
      const ops::Op& op = ops::all_ops()[i % ops::all_ops().size()];
      for (int k = 0; k < 4; ++k) attack(graph(op, random), random);
      if (i % 1000 == 999) report();
    }
    report();
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "%s: %s\n", what, tenon_last_error() ? tenon_last_error()->text : "");
    std::exit(2);
  }

  void attack_resized(std::uint64_t iteration) {
    fuzz::Random random(options_.seed * 0x9e3779b97f4a7c15ull + iteration);
    for (const ops::Op& op : ops::all_ops())
      for (ir::Graph& graph : fuzz::resized_samples(op)) attack(std::move(graph), random);
  }

  void read(const std::filesystem::path& path) {
    if (path.extension() != ".tir") return;
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (auto graph = ir::parse_graph(text.substr(0, text.find("# ----")))) graphs_.push_back(*std::move(graph));
  }

  ir::Graph graph(const ops::Op& op, fuzz::Random& random) {
    const std::uint64_t way = random() % 8;
    ir::Graph made = way == 0 && !graphs_.empty() ? graphs_[random() % graphs_.size()].clone() : way <= 2 ? fuzz::chain_of_ops(random) : fuzz::op_graph(op, random);
    if (random() % 6 == 0) made = fuzz::as_branches(std::move(made), random);
    if (way <= 2 && random() % 3 == 0) fuzz::mutate_types(made, random);
    return made;
  }

  /// Makes constants of some inputs that are laid out as constants are.
  void make_constants(ir::Graph& graph, fuzz::Random& random, Memories& memory) {
    const std::optional<NodeId> first = graph.nodes().empty() ? std::nullopt : std::optional(graph.nodes().front());
    for (ValueId input : std::vector<ValueId>(graph.inputs().begin(), graph.inputs().end())) {
      const ir::Type type = graph.type(input);
      const bool fits = type.is_tensor() && !type.strides && type.device.is_host() && std::ranges::all_of(type.shape, [](const ir::Dim& d) { return d.is_constant() && d.constant() < 1000; });
      if (!fits || random() % 2 == 0) continue;
      const fuzz::InputMemory made = fuzz::input_of(type, {}, random);
      memory.push_back(std::make_unique<GuardedMemory>(made.bytes.size(), random() % 2 == 0, size_of(made.dtype)));
      if (!made.bytes.empty()) std::memcpy(memory.back()->data(), made.bytes.data(), made.bytes.size());
      memory.back()->allow_reading_only();
      const ConstantId constant = graph.add_constant({type, memory.back()->data(), nullptr, ""});
      const NodeId node = graph.add_node("constant", {}, {{"index", ir::Dim(static_cast<std::int64_t>(constant.value))}}, {type}, {}, {}, first);
      graph.replace_uses(input, graph.node(node).results[0]);
      ++constants_;
    }
  }

  void attack(ir::Graph graph, fuzz::Random& random) {
    ++made_;
    Memories constants;
    if (random() % 3 == 0 && ops::check_graph(graph).violations.empty()) make_constants(graph, random, constants);
    session_ = sessions_[random() % 4 == 0];
    const ops::TypeReport report = ops::check_graph(graph);
    if (!report.violations.empty()) return;
    if (std::ranges::any_of(graph.outputs(), [](const ir::Output& o) { return o.kind != ir::OutputKind::result; })) return;
    if (std::ranges::any_of(graph.constants(), [](const ir::Constant& c) { return !c.data; })) return;
    if (std::ranges::any_of(graph.nodes(), [&](NodeId n) { return graph.node(n).op == "opaque"; })) return;
    if (is_elsewhere(graph)) {
      for (const std::string& backend : backends_) expect_refusal(graph, backend);
      return;
    }
    const auto symbols = fuzz::sizes_to_run(graph, report.not_negative, random);
    if (!symbols) return;
    ++accepted_;
    if (!options_.save.empty()) std::ofstream(options_.save / "current") << ir::print_graph(graph);
    ::alarm(options_.seconds);
    for (const std::string& backend : backends_) run_on(graph, backend, *symbols, random);
    ::alarm(0);
  }

  static bool is_elsewhere(const ir::Graph& graph) {
    for (std::size_t t = 0; t < graph.types().size(); ++t)
      if (!graph.types()[TypeId(t)].device.is_host()) return true;
    return std::ranges::any_of(graph.nodes(), [&](NodeId n) {
      return std::ranges::any_of(graph.node(n).regions, [&](RegionId r) { return is_elsewhere(graph.region(r)); });
    });
  }

  /// These backends have no other device than the host's memory. What is left when nothing reads what is elsewhere may be compiled.
  void expect_refusal(const ir::Graph& graph, const std::string& backend) {
    if (!options_.save.empty()) std::ofstream(options_.save / "current") << ir::print_graph(graph);
    TenonProgram* program = nullptr;
    if (compile(graph, backend, program) == TENON_OK) {
      tenon_program_release(program);
      for (const ir::Output& output : graph.outputs())
        if (!graph.type(output.value).device.is_host()) broken("a result on a device that nobody serves is refused", graph);
      return;
    }
    const std::string text = tenon_last_error() ? tenon_last_error()->text : "";
    if (text.find("no backend serves ") == std::string::npos) broken(("a device that nobody serves is named: " + text).c_str(), graph);
    ++elsewhere_;
  }

  void run_on(const ir::Graph& graph, const std::string& backend, const std::vector<std::int64_t>& symbols, fuzz::Random& random) {
    TenonProgram* program = nullptr;
    if (compile(graph, backend, program) != TENON_OK) {
      ++not_compiled_;
      return;
    }
    run_twice(graph, program, symbols, random);
    tenon_program_release(program);
  }

  std::int32_t compile(const ir::Graph& graph, const std::string& backend, TenonProgram*& program) {
    const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
    std::vector<std::vector<std::int64_t>> shapes(graph.constants().size());
    std::vector<DLTensor> tensors(graph.constants().size());
    std::vector<const DLTensor*> pointers;
    for (std::size_t c = 0; c < tensors.size(); ++c) {
      const ir::Constant& constant = graph.constants()[c];
      for (const ir::Dim& d : constant.type.shape) shapes[c].push_back(d.constant());
      tensors[c] = {const_cast<void*>(constant.data), {kDLCPU, 0}, static_cast<std::int32_t>(shapes[c].size()), dlpack_type(constant.type.dtype), shapes[c].data(), nullptr, 0};
      pointers.push_back(&tensors[c]);
    }
    const char* name = backend.c_str();
    TenonCompileRequest request{};
    request.struct_size = sizeof request;
    request.graph = {sizeof(TenonGraph), ir::bytes_of(buffer), pointers.data(), pointers.size()};
    request.backends = &name;
    request.backend_count = 1;
    return tenon_compile(session_, &request, &program);
  }

  void run_twice(const ir::Graph& graph, TenonProgram* program, const std::vector<std::int64_t>& symbols, fuzz::Random& random) {
    Memories inputs;
    std::vector<const void*> pointers;
    for (ValueId v : graph.inputs()) {
      const fuzz::InputMemory made = fuzz::input_of(graph.type(v), symbols, random);
      inputs.push_back(std::make_unique<GuardedMemory>(made.bytes.size(), random() % 2 == 0, size_of(made.dtype)));
      if (!made.bytes.empty()) std::memcpy(inputs.back()->data(), made.bytes.data(), made.bytes.size());
      inputs.back()->allow_reading_only();
      pointers.push_back(inputs.back()->data() + made.first);
    }
    const bool at_end = random() % 2 == 0;
    std::vector<std::unique_ptr<Outputs>> runs;
    for (const int pattern : {0xa5, 0x5a}) {
      runs.push_back(std::make_unique<Outputs>(graph, symbols, pattern, at_end));
      const std::vector<void*> outputs = runs.back()->pointers();
      TenonRunArgs args{};
      args.struct_size = sizeof args;
      args.inputs = pointers.data();
      args.symbols = symbols.data();
      args.outputs = outputs.data();
      args.context = runs.back().get();
      args.allocate_output = [](void* context, std::uint32_t index, const std::int64_t* sizes, std::size_t rank) { return static_cast<Outputs*>(context)->make(index, {sizes, rank}); };
      if (tenon_program_run(program, &args) != TENON_OK) {
        if (std::strstr(tenon_last_error()->text, "wrote outside")) broken(tenon_last_error()->text, graph);
        ++failed_;
        return;
      }
    }
    ++ran_;
    for (std::size_t k = 0; k < graph.outputs().size(); ++k) {
      const auto &first = runs[0]->memory[k], &second = runs[1]->memory[k];
      if (!first || !second || first->size() != second->size() || std::memcmp(first->data(), second->data(), first->size()) != 0)
        broken("every byte of an output is computed", graph);
    }
  }

  void report() const {
    std::printf("%llu graphs made, %llu accepted and small; on %s: %llu ran, %llu gave an error, %llu were not compiled; %llu refused for their device; %llu constants (seed %llu)\n", made_, accepted_, options_.backends.c_str(), ran_, failed_,
                not_compiled_, elsewhere_, constants_, static_cast<unsigned long long>(options_.seed));
    std::fflush(stdout);
  }

  const Options& options_;
  std::array<TenonSession*, 2> sessions_{};  // one checks plugins
  TenonSession* session_ = nullptr;          // of the graph under attack
  std::vector<std::string> backends_;
  std::vector<ir::Graph> graphs_;
  unsigned long long made_ = 0, accepted_ = 0, ran_ = 0, failed_ = 0, not_compiled_ = 0, elsewhere_ = 0, constants_ = 0;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i], value = argv[i + 1];
    if (flag == "--seed") options.seed = std::strtoull(value.data(), nullptr, 10);
    else if (flag == "--iterations") options.iterations = std::strtoull(value.data(), nullptr, 10);
    else if (flag == "--seconds") options.seconds = static_cast<unsigned>(std::strtoul(value.data(), nullptr, 10));
    else if (flag == "--graphs") options.graphs = value;
    else if (flag == "--backends") options.backends = value;
    else if (flag == "--save") options.save = value;
    else if (flag == "--make" && (value == "random" || value == "resized")) options.resized = value == "resized";
    else return false;
  }
  return argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: fuzz_run [--seed N] [--iterations N] [--graphs FOLDER] [--backends NAMES] [--seconds N] [--save FOLDER] [--make random|resized]\n");
    return 2;
  }
  Runner(options).run();
  return 0;
}
