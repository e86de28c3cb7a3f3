// Runs graphs on the llvm backend's programs without a host: the services it needs are made here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/reference/reference.h"
#include "core/ops/reference/sample.h"
#include "run/program.h"

namespace tenon::llvm_test {

/// Services with a pool of `threads` threads (1: everything on the calling thread).
HostServices services(int threads = 1);

/// Stands for the host's store, for the services of all tests while it lives.
class Store {
 public:
  Store();
  ~Store();
  Store(const Store&) = delete;

  std::map<std::string, std::string> entries;
  int hits = 0, misses = 0;
};

/// While it lives, the services of all tests are asked so often whether the compile was given up before it is.
class Patience {
 public:
  explicit Patience(int questions);
  ~Patience();
  Patience(const Patience&) = delete;
  /// How often they were asked so far.
  int asked() const;

 private:
  int questions_;
};

/// The lines that programs logged since the last call.
std::vector<std::string> take_log();

struct Choice {
  bool fuse = true;
  bool matrix_kernels = true;
  bool relaxed = false;
  std::size_t least_shared = 8;
  unsigned width = 0;  // bytes of a vector register
  int threads = 1;
  bool log = false;
};

/// Compiles the graph.
std::unique_ptr<llvm_backend::Program> compile(const ir::Graph& graph, const Choice& choice = {});

/// A cache that knows nothing. It is never destroyed: code must outlive those who may still run it.
llvm_backend::KernelCache& fresh_cache(const llvm_backend::Target& target, std::size_t most_idle = 1024);

/// Compiles and runs; the results are row-major, one an output.
std::vector<ops::HostTensor> run(const ir::Graph& graph, std::span<const ops::TensorView> inputs, const Choice& choice = {});
/// Runs a program that was compiled.
std::vector<ops::HostTensor> run(llvm_backend::Program& program, const ir::Graph& graph, std::span<const ops::TensorView> inputs, int threads = 1);

/// A row-major tensor of the given shape with values from a seed.
ops::HostTensor random_tensor(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed, ops::Fill fill = ops::Fill::normal);

/// The graph of a text. Throws what is wrong with it.
ir::Graph parse(std::string_view text);

/// A tensor an input of a graph, each from a seed of its own.
struct Inputs {
  std::vector<ops::HostTensor> tensors;
  std::vector<ops::TensorView> views;
};
/// Of the given shapes, or of the graph's, which are constant then.
Inputs random_inputs(const ir::Graph& graph, std::vector<std::vector<std::int64_t>> shapes = {});

/// Runs on the backend and on the judge; gives what differs, or nothing.
std::optional<std::string> difference(const ir::Graph& graph, std::span<const ops::TensorView> inputs, const Choice& choice = {}, double tolerance = 1);

/// The only kernel of a graph, as text, once its results have been compared.
codegen::Kernel kernel_of(const std::string& text, const Choice& choice = {});

}  // namespace tenon::llvm_test
