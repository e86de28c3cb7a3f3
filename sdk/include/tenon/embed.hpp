// Tenon inside a C++ program: build a graph (core/ops/build/node_builder.h), compile it, run it on your own memory. Wraps tenon/host.h.
// A program that uses this calls tenon_embed(TARGET) in CMake, which links libtenon and compiles the core with the program's compiler.
#pragma once

#include <array>
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/abi/dlpack_types.h"
#include "core/ir/buffer.h"
#include "core/ops/build/node_builder.h"
#include "tenon/host.h"

namespace tenon::embed {

/// Throws an Exception with the host's own words when `code` is a failure.
inline void check(std::int32_t code) {
  if (code == TENON_OK) return;
  const TenonFailure* failure = tenon_last_error();
  const std::string plugin = failure->plugin && *failure->plugin ? std::string(failure->plugin) + ": " : std::string();
  throw Exception(static_cast<Code>(code), plugin + failure->text);
}

/// A tensor in host memory: borrowed from the program, or owned by itself (results). Movable.
class Tensor {
 public:
  /// Borrows row-major memory of `shape`, which must outlive every call that it is given to.
  template <class T>
  static Tensor view(T* data, std::vector<std::int64_t> shape) {
    return Tensor(const_cast<std::remove_const_t<T>*>(data), dlpack_type(dtype_for<std::remove_const_t<T>>()), std::move(shape));
  }

  /// Takes over what the host gave.
  explicit Tensor(DLManagedTensorVersioned* owned) : owned_(owned), tensor_(owned->dl_tensor) {}

  std::span<const std::int64_t> shape() const { return {tensor_.shape, static_cast<std::size_t>(tensor_.ndim)}; }
  /// The elements, in row-major order. Throws when `T` is not the tensor's dtype.
  template <class T>
  std::span<const T> values() const {
    TENON_USER_CHECK(dtype_of(tensor_.dtype) == dtype_for<T>(), "the tensor is no {}", name_of(dtype_for<T>()));
    std::size_t count = 1;
    for (std::int64_t n : shape()) count *= static_cast<std::size_t>(n);
    return {reinterpret_cast<const T*>(static_cast<const char*>(tensor_.data) + tensor_.byte_offset), count};
  }

  const DLTensor* dlpack() const { return &tensor_; }

 private:
  Tensor(void* data, DLDataType dtype, std::vector<std::int64_t> shape)
      : shape_(std::make_unique<std::vector<std::int64_t>>(std::move(shape))) {
    tensor_ = {data, {kDLCPU, 0}, static_cast<std::int32_t>(shape_->size()), dtype, shape_->data(), nullptr, 0};
  }

  template <class T>
  static constexpr DType dtype_for() {
    if constexpr (std::is_same_v<T, bool>) return DType::b8;
    if constexpr (std::is_same_v<T, std::uint8_t>) return DType::u8;
    if constexpr (std::is_same_v<T, std::int8_t>) return DType::i8;
    if constexpr (std::is_same_v<T, std::int16_t>) return DType::i16;
    if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
    if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
    if constexpr (std::is_same_v<T, float>) return DType::f32;
    if constexpr (std::is_same_v<T, double>) return DType::f64;
  }

  struct Delete {
    void operator()(DLManagedTensorVersioned* t) const { t->deleter(t); }
  };
  std::unique_ptr<DLManagedTensorVersioned, Delete> owned_;
  std::unique_ptr<std::vector<std::int64_t>> shape_;
  DLTensor tensor_{};
};

/// A compiled graph. May run on several threads at once.
class Program {
 public:
  explicit Program(TenonProgram* program) : program_(program) {}

  /// Runs on inputs in the order of the graph's; gives the graph's results. Updates are written into their inputs.
  template <std::same_as<Tensor>... Tensors>
  std::vector<Tensor> operator()(const Tensors&... inputs) const {
    return run(std::array<const DLTensor*, sizeof...(inputs)>{inputs.dlpack()...});
  }

  /// The same for inputs of any origin.
  std::vector<Tensor> run(std::span<const DLTensor* const> inputs) const {
    std::vector<DLManagedTensorVersioned*> results(result_count_, nullptr);
    check(tenon_program_call(program_.get(), inputs.data(), inputs.size(), results.data(), results.size()));
    return {results.begin(), results.end()};
  }

  /// A JSON document: "plan" or "passes", as `tenon_program_query` says.
  std::string query(const char* what) const {
    char* json = nullptr;
    check(tenon_program_query(program_.get(), what, &json));
    std::string text = json;
    tenon_free(json);
    return text;
  }

 private:
  friend class Session;
  struct Release {
    void operator()(TenonProgram* p) const { tenon_program_release(p); }
  };
  std::unique_ptr<TenonProgram, Release> program_;
  std::size_t result_count_ = 0;
};

/// Configuration and plugins. Make one and keep it.
class Session {
 public:
  /// Reads tenon.toml from its usual places, or `config_file`.
  explicit Session(const char* config_file = nullptr) {
    TenonSessionOptions options{sizeof options, config_file, nullptr, 0};
    TenonSession* session = nullptr;
    check(tenon_session_create(&options, &session));
    session_.reset(session);
  }

  /// Compiles a graph. `backends` in order of preference; none: the configuration's. Constants must outlive the program.
  Program compile(const ir::Graph& graph, const std::vector<const char*>& backends = {}) const {
    const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
    const std::vector<DLTensor> constants = constants_of(graph);
    std::vector<const DLTensor*> pointers;
    for (const DLTensor& c : constants) pointers.push_back(&c);
    TenonCompileRequest request{};
    request.struct_size = sizeof request;
    request.graph = {sizeof(TenonGraph), ir::bytes_of(buffer), pointers.data(), pointers.size()};
    request.backends = backends.data();
    request.backend_count = backends.size();
    TenonProgram* program = nullptr;
    check(tenon_compile(session_.get(), &request, &program));
    Program compiled(program);
    for (const ir::Output& o : graph.outputs()) compiled.result_count_ += o.kind == ir::OutputKind::result;
    return compiled;
  }

 private:
  /// The graph's constants as tensors; their shapes live in `shapes_` until the next compile.
  std::vector<DLTensor> constants_of(const ir::Graph& graph) const {
    shapes_.clear();
    std::vector<DLTensor> tensors;
    for (const ir::Constant& c : graph.constants()) {
      std::vector<std::int64_t>& shape = *shapes_.emplace_back(std::make_unique<std::vector<std::int64_t>>());
      for (const ir::Dim& d : c.type.shape) shape.push_back(d.constant());
      tensors.push_back({const_cast<void*>(c.data), ir::dlpack_device(c.type.device), static_cast<std::int32_t>(shape.size()), dlpack_type(c.type.dtype),
                         shape.data(), nullptr, 0});
    }
    return tensors;
  }

  struct Release {
    void operator()(TenonSession* s) const { tenon_session_release(s); }
  };
  std::unique_ptr<TenonSession, Release> session_;
  mutable std::vector<std::unique_ptr<std::vector<std::int64_t>>> shapes_;
};

}  // namespace tenon::embed
