// Attacks the readers of graph buffers and of .tir text with mutated graphs.
//
//   fuzz_ir [--seed N] [--iterations N] [--corpus FOLDER] [--target buffer|text|all] [--save FOLDER]
//
// First replays every file of FOLDER/buffer and FOLDER/text; then mutates those and random graphs. Iteration i of seed s depends on
// nothing but s and i. A broken promise or a sanitizer's report ends the process; with --save the input under attack lies in
// SAVE/current then.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/ir/buffer.h"
#include "core/ir/printer.h"
#include "fuzz/mutate.h"
#include "fuzz/targets.h"
#include "unit/core/ir/random_graph.h"

namespace {

using namespace tenon;
using tenon::fuzz::Verdict;

struct Options {
  std::uint64_t seed = 0;
  std::uint64_t iterations = 1000;
  std::filesystem::path corpus, save;
  std::string target = "all";
};

struct Counts {
  std::uint64_t accepted = 0, refused = 0;
  void add(Verdict v) { ++(v == Verdict::accepted ? accepted : refused); }
};

struct Corpus {
  std::vector<std::vector<std::uint8_t>> buffers;
  std::vector<std::string> texts;
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

Corpus load(const std::filesystem::path& folder) {
  Corpus corpus;
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
      const bool text = options_.target == "text" || (options_.target == "all" && random() % 3 == 0);
      if (text) attack_text(random);
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

  void save(const void* data, std::size_t size) const {
    if (options_.save.empty()) return;
    std::ofstream(options_.save / "current", std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  }

  void report(const char* what) const {
    fmt::print("{}: buffers {} accepted, {} refused; texts {} accepted, {} refused (seed {})\n", what, buffers_.accepted, buffers_.refused, texts_.accepted, texts_.refused, options_.seed);
    std::fflush(stdout);
  }

  const Options& options_;
  Corpus corpus_;
  Counts buffers_, texts_;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i], value = argv[i + 1];
    if (flag == "--seed") options.seed = std::strtoull(value.data(), nullptr, 10);
    else if (flag == "--iterations") options.iterations = std::strtoull(value.data(), nullptr, 10);
    else if (flag == "--corpus") options.corpus = value;
    else if (flag == "--save") options.save = value;
    else if (flag == "--target") options.target = value;
    else return false;
  }
  return argc % 2 == 1 && (options.target == "all" || options.target == "buffer" || options.target == "text");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    fmt::print(stderr, "usage: fuzz_ir [--seed N] [--iterations N] [--corpus FOLDER] [--target buffer|text|all] [--save FOLDER]\n");
    return 2;
  }
  Attacker attacker(options, load(options.corpus));
  attacker.replay();
  attacker.mutate();
  return 0;
}
