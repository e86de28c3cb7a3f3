// Attacks the readers of graph buffers, of .tir text and of .tnx files with mutated graphs, and the checker of types with malformed nodes of
// every op.
//
//   fuzz_ir [--seed N] [--iterations N] [--corpus FOLDER] [--graphs FOLDER] [--target buffer|text|types|container|all] [--save FOLDER]
//
// First replays every file of FOLDER/buffer and FOLDER/text; then mutates those, the .tir files below GRAPHS, and random graphs; `types`
// goes through the catalogue, eight variants an iteration. Iteration i of seed s depends on nothing but s and i. A broken promise or a sanitizer's report ends the process; with --save the input under attack lies in
// SAVE/current then.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/ir/buffer.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/ops/catalog.h"
#include "core/ir/verifier.h"
#include "fuzz/container.h"
#include "fuzz/mutate.h"
#include "fuzz/op_graphs.h"
#include "fuzz/targets.h"
#include "unit/core/ir/random_graph.h"

namespace {

using namespace tenon;
using tenon::fuzz::Verdict;

struct Options {
  std::uint64_t seed = 0;
  std::uint64_t iterations = 1000;
  std::filesystem::path corpus, graphs, save;
  std::string target = "all";
};

constexpr const char* kWithConstants = R"(graph @g [s0: 1..8] (%x: f32[s0, 3]) {
  const @c0: f32[3] = [1.0, 2.0, 4.0]
  const @c1: i64[2] = [5, 6]
  const @c2: bool[3] = [true, false, true]
  %c: f32[3] = constant() {index = @c0}
  %d: i64[2] = constant() {index = @c1}
  %e: bool[3] = constant() {index = @c2}
  %z: f32[s0, 3] = mul(%x, %c)
  %w: f32[s0, 3] = where(%e, %x, %z)
  return %w, %d
}
)";

struct Counts {
  std::uint64_t accepted = 0, refused = 0;
  void add(Verdict v) { ++(v == Verdict::accepted ? accepted : refused); }
};

struct Corpus {
  std::vector<std::vector<std::uint8_t>> buffers;
  std::vector<std::string> texts;
  std::vector<ir::Graph> graphs;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Corpus load(const std::filesystem::path& folder, const std::filesystem::path& graphs) {
  Corpus corpus;
  if (std::filesystem::is_directory(graphs))
    for (const auto& entry : std::filesystem::recursive_directory_iterator(graphs))
      if (entry.path().extension() == ".tir") {
        const std::string text = read_file(entry.path());
        corpus.texts.push_back(text.substr(0, text.find("# ----")));  // golden cases go on with what passes make of it
      }
  std::sort(corpus.texts.begin(), corpus.texts.end());
  for (const std::string& text : corpus.texts)
    if (auto graph = ir::parse_graph(text)) corpus.graphs.push_back(*std::move(graph));
  if (folder.empty()) return corpus;
  for (const auto& file : files_in(folder / "buffer")) {
    const std::string bytes = read_file(file);
    corpus.buffers.emplace_back(bytes.begin(), bytes.end());
  }
  for (const auto& file : files_in(folder / "text")) corpus.texts.push_back(read_file(file));
  return corpus;
}

class Attacker {
 public:
  Attacker(const Options& options, Corpus corpus) : options_(options), corpus_(std::move(corpus)) {}

  void replay() {
    for (const auto& b : corpus_.buffers) buffers_.add(fuzz::attack_buffer(b));
    for (const auto& t : corpus_.texts) texts_.add(fuzz::attack_text(t));
    report("replayed");
  }

  void mutate() {
    for (std::uint64_t i = 0; i < options_.iterations; ++i) {
      fuzz::Random random(options_.seed * 0x9e3779b97f4a7c15ull + i);
      const auto is = [&](std::string_view target, std::uint64_t part) { return options_.target == target || (options_.target == "all" && random() % part == 0); };
      if (is("text", 3)) attack_text(random);
      else if (is("types", 2)) attack_types(random, i);
      else if (is("container", 2)) attack_container(random);
      else attack_buffer(random);
      if (i % 10000 == 9999) report("so far");
    }
    report("mutated");
  }

 private:
  ir::Graph random_graph(fuzz::Random& random) { return testing::RandomGraph(random() % 4000, {.nodes = 1 + random() % 8, .region_depth = 2}).make(); }

  std::vector<std::uint8_t> buffer(fuzz::Random& random) {
    if (!corpus_.buffers.empty() && random() % 4 == 0) return corpus_.buffers[random() % corpus_.buffers.size()];
    return ir::write_buffer(random_graph(random), {.debug = random() % 4 != 0});
  }

  std::string text(fuzz::Random& random) {
    if (!corpus_.texts.empty() && random() % 4 == 0) return corpus_.texts[random() % corpus_.texts.size()];
    return ir::print_graph(random_graph(random));
  }

  /// Several mutants of one graph: making the graph costs more than attacking it.
  void attack_buffer(fuzz::Random& random) {
    const std::vector<std::uint8_t> sound = buffer(random), donor = buffer(random);
    for (int k = 0; k < 8; ++k) {
      std::vector<std::uint8_t> mutant = sound;
      fuzz::mutate_buffer(mutant, donor, random);
      save(mutant.data(), mutant.size());
      buffers_.add(fuzz::attack_buffer(mutant));
    }
  }

  void attack_text(fuzz::Random& random) {
    const std::string sound = text(random), donor = text(random);
    for (int k = 0; k < 8; ++k) {
      std::string mutant = sound;
      fuzz::mutate_text(mutant, donor, random);
      save(mutant.data(), mutant.size());
      texts_.add(fuzz::attack_text(mutant));
    }
  }

  /// Variants of one op; now and then of several behind each other, or of a whole graph.
  void attack_types(fuzz::Random& random, std::uint64_t iteration) {
    const ops::Op& op = ops::all_ops()[iteration % ops::all_ops().size()];
    for (int k = 0; k < 8; ++k) {
      const std::uint64_t way = random() % 8;
      ir::Graph graph = way == 0 && !corpus_.graphs.empty() ? corpus_.graphs[random() % corpus_.graphs.size()].clone() : way <= 1 ? fuzz::chain_of_ops(random) : fuzz::op_graph(op, random);
      if (random() % 6 == 0) graph = fuzz::as_branches(std::move(graph), random);
      if (way <= 1 && random() % 4 != 0) fuzz::mutate_types(graph, random);
      if (!options_.save.empty() && !ir::verify_graph(graph)) {
        const std::string text = ir::print_graph(graph);
        save(text.data(), text.size());
      }
      bool ran = false;
      types_.add(fuzz::attack_types(graph, random, ran));
      runs_ += ran;
    }
  }

  /// Files with constants, most often: what they hold is read at places that the file gives.
  void attack_container(fuzz::Random& random) {
    ir::Graph graph = random() % 2 == 0 || corpus_.graphs.empty() ? random_graph(random) : corpus_.graphs[random() % corpus_.graphs.size()].clone();
    if (random() % 2 == 0) graph = *ir::parse_graph(kWithConstants);
    const std::vector<std::uint8_t> donor = buffer(random);
    for (int k = 0; k < 8; ++k) {
      const std::vector<std::uint8_t> mutant = fuzz::container_of(graph, donor, random);
      save(mutant.data(), mutant.size());
      containers_.add(fuzz::attack_container(mutant, random));
    }
  }

  void save(const void* data, std::size_t size) const {
    if (options_.save.empty()) return;
    std::ofstream(options_.save / "current", std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  }

  void report(const char* what) const {
    fmt::print("{}: buffers {} accepted, {} refused; texts {} accepted, {} refused; types {} accepted, {} refused, {} ran; containers {} accepted, {} refused (seed {})\n", what, buffers_.accepted, buffers_.refused, texts_.accepted,
               texts_.refused, types_.accepted, types_.refused, runs_, containers_.accepted, containers_.refused, options_.seed);
    std::fflush(stdout);
  }

  const Options& options_;
  Corpus corpus_;
  Counts buffers_, texts_, types_, containers_;
  std::uint64_t runs_ = 0;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i], value = argv[i + 1];
    if (flag == "--seed") options.seed = std::strtoull(value.data(), nullptr, 10);
    else if (flag == "--iterations") options.iterations = std::strtoull(value.data(), nullptr, 10);
    else if (flag == "--corpus") options.corpus = value;
    else if (flag == "--graphs") options.graphs = value;
    else if (flag == "--save") options.save = value;
    else if (flag == "--target") options.target = value;
    else return false;
  }
  const auto targets = {"all", "buffer", "text", "types", "container"};
  return argc % 2 == 1 && std::find(targets.begin(), targets.end(), options.target) != targets.end();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    fmt::print(stderr, "usage: fuzz_ir [--seed N] [--iterations N] [--corpus FOLDER] [--graphs FOLDER] [--target buffer|text|types|container|all] [--save FOLDER]\n");
    return 2;
  }
  Attacker attacker(options, load(options.corpus, options.graphs));
  attacker.replay();
  attacker.mutate();
  return 0;
}
