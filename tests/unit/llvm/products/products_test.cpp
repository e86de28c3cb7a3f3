// Matrix products on the register-blocked kernel: shapes around its tiles, layouts, passes in k, batches, threads.
#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "catch.h"
#include "compile/kernel_cache.h"
#include "core/ops/build/node_builder.h"
#include "products/packed_operand.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

struct Product {
  std::int64_t m, k, n;
  bool a_transposed = false, b_transposed = false;
  std::int64_t batch = 0;
};

/// With tile registers where the machine has them, and with vectors of each width.
constexpr unsigned kWidths[] = {0, 64, 32, 16};

std::string difference(const Product& c, DType dtype, const llvm_test::Choice& choice) {
  ir::Graph graph;
  ops::NodeBuilder builder(graph);
  auto shape = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
    std::vector<std::int64_t> s = transposed ? std::vector<std::int64_t>{columns, rows} : std::vector<std::int64_t>{rows, columns};
    if (c.batch) s.insert(s.begin(), c.batch);
    return s;
  };
  auto operand = [&](const std::vector<std::int64_t>& s, bool transposed) {
    const ValueId v = graph.add_input(ir::Type::tensor(dtype, ir::Shape(s.begin(), s.end())));
    if (!transposed) return v;
    const std::vector<ir::Dim> dims = c.batch ? std::vector<ir::Dim>{0, 2, 1} : std::vector<ir::Dim>{1, 0};
    return builder.one("permute", {v}, {{"dims", dims}});
  };
  const auto a_shape = shape(c.m, c.k, c.a_transposed), b_shape = shape(c.k, c.n, c.b_transposed);
  const ValueId a = operand(a_shape, c.a_transposed), b = operand(b_shape, c.b_transposed);
  graph.add_output({builder.one(c.batch ? "bmm" : "mm", {a, b}), ir::OutputKind::result, {}});
  const auto x = llvm_test::random_tensor(dtype, a_shape, 3, ops::Fill::unit), y = llvm_test::random_tensor(dtype, b_shape, 4, ops::Fill::unit);
  const ops::TensorView views[] = {x.view(), y.view()};
  return llvm_test::difference(graph, views, choice, 50).value_or("");
}

/// Zeros in float32 of which the last one is followed by memory that must not be read.
class LastPages {
 public:
  explicit LastPages(std::size_t elements) : bytes_((elements * sizeof(float) + kPage - 1) / kPage * kPage) {
    memory_ = static_cast<std::byte*>(mmap(nullptr, bytes_ + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(memory_ != MAP_FAILED);
    REQUIRE(mprotect(memory_ + bytes_, kPage, PROT_NONE) == 0);
    data = memory_ + bytes_ - elements * sizeof(float);
  }
  ~LastPages() { munmap(memory_, bytes_ + kPage); }
  LastPages(const LastPages&) = delete;

  void* data;

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t bytes_;
  std::byte* memory_;
};

}  // namespace

TEST_CASE("matrix kernels are the same however NaNs compare", "[products]") {
  const auto host = llvm_test::services();
  using llvm_backend::MatrixPart;
  const llvm_backend::MatrixParts parts = {{DType::f32, MatrixPart::panels}, {DType::f32, MatrixPart::windows}};
  const auto plain = llvm_backend::kernel_cache(0).matrix_kernel(host, DType::f32, parts), quiet = llvm_backend::kernel_cache(0, true).matrix_kernel(host, DType::f32, parts);
  REQUIRE(plain.function);
  CHECK(plain.function == quiet.function);
  CHECK_FALSE(plain.dot);
  CHECK(plain.variant(1).fetching == quiet.fetching_narrow);
}

TEST_CASE("what follows a product of few columns changes nothing about what is read", "[products]") {
  for (const std::int64_t n : {1, 3, 10}) {
    ir::Graph graph;
    ops::NodeBuilder builder(graph);
    const ValueId x = graph.add_input(ir::Type::tensor(DType::f32, ir::Shape{2, 9000})), w = graph.add_input(ir::Type::tensor(DType::f32, ir::Shape{n, 9000}));
    const ValueId t = builder.one("permute", {w}, {{"dims", std::vector<ir::Dim>{1, 0}}});
    graph.add_output({builder.one("exp", {builder.one("mm", {x, t})}), ir::OutputKind::result, {}});
    const LastPages rows(2 * 9000), columns(static_cast<std::size_t>(n) * 9000);
    const ops::TensorView views[] = {{rows.data, DType::f32, {2, 9000}, {9000, 1}}, {columns.data, DType::f32, {n, 9000}, {9000, 1}}};
    const auto results = llvm_test::run(graph, views);
    const auto* values = static_cast<const float*>(results[0].view().data);
    CHECK(std::all_of(values, values + 2 * n, [](float v) { return v == 1; }));
  }
}

TEST_CASE("products of many shapes", "[products]") {
  const std::vector<Product> cases = {{1, 300, 200},  {3, 257, 129},  {5, 1200, 130},          {6, 64, 64},           {7, 100, 65},
                                   {13, 513, 70},  {100, 37, 63},  {193, 1025, 96},         {40, 60, 50, true},    {40, 60, 50, false, true},
                                   {40, 600, 150, true, true}, {1, 5000, 40}, {200, 1, 300}, {33, 70, 65, false, false, 3}, {20, 40, 30, true, true, 9},
                                   {32, 64, 32}, {64, 1030, 96}, {47, 90, 33, false, true}, {200, 2600, 40}};
  for (const Product& c : cases)
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const unsigned width : kWidths) {
        INFO(c.m << " x " << c.k << " x " << c.n << ", batch " << c.batch << ", " << name_of(dtype) << ", width " << width);
        CHECK(difference(c, dtype, {.width = width}) == "");
      }
}

TEST_CASE("products on threads", "[products]") {
  for (const Product& c : {Product{300, 700, 200}, Product{20, 40, 90, false, false, 30}, Product{400, 300, 1000}, Product{513, 90, 700, true, true}}) CHECK(difference(c, DType::f32, {.threads = 3}) == "");
}

TEST_CASE("weights stay packed when they come again, and not when they change with every call", "[products]") {
  const auto host = llvm_test::services();
  std::vector<std::byte> weight(1000);
  const std::int64_t layout[] = {1};
  int packed = 0;
  const auto is_kept = [&](llvm_backend::PackedOperand& operand, bool constant) {
    return operand.find(host, {weight.data(), weight.size(), constant, layout, 64}, [&](void*) { ++packed; }) != nullptr;
  };
  llvm_backend::PackedOperand inference, frozen, training;
  CHECK_FALSE(is_kept(inference, false));
  CHECK((is_kept(inference, false) && is_kept(inference, false)));
  CHECK(packed == 1);
  CHECK((is_kept(frozen, true) && is_kept(frozen, true)));
  CHECK(packed == 2);
  for (int call = 0; call < 40; ++call) {
    weight[7] = static_cast<std::byte>(call);
    CHECK_FALSE(is_kept(training, false));
  }
  CHECK(packed == 2);
  int calls = 0;
  while (!is_kept(training, false) && calls < 2000) ++calls;
  CHECK((calls < 2000 && packed == 3));
}

TEST_CASE("long sums of many rows, and what follows them", "[products]") {
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{101, 4096, 70}, {49, 3001, 130}, {250, 2800, 33}})
    for (const DType dtype : {DType::f32, DType::f64})
      for (const unsigned width : kWidths)
        for (const int threads : {1, 2}) {
          INFO(m << " x " << k << " x " << n << ", " << name_of(dtype) << ", width " << width << ", threads " << threads);
          CHECK(difference({m, k, n}, dtype, {.width = width, .threads = threads}) == "");
          ir::Graph graph;
          ops::NodeBuilder b(graph);
          std::vector<ops::HostTensor> tensors;
          std::vector<ops::TensorView> views;
          const auto input = [&](std::int64_t rows, std::int64_t columns) {
            tensors.push_back(llvm_test::random_tensor(dtype, {rows, columns}, tensors.size(), ops::Fill::unit));
            return graph.add_input(ir::Type::tensor(dtype, ir::Shape{rows, columns}));
          };
          const ValueId product = b.one("mm", {input(m, k), input(k, n)});
          graph.add_output({b.one("add", {product, input(m, n)}), ir::OutputKind::result, {}});
          for (auto& t : tensors) views.push_back(t.view());
          CHECK(llvm_test::difference(graph, views, {.width = width, .threads = threads}, 50).value_or("") == "");
        }
}

TEST_CASE("few rows times a transposed matrix, and few columns", "[products]") {
  for (const std::int64_t m : {1, 2, 4, 5, 11, 48, 49})
    for (const auto& [k, n] : {std::pair<std::int64_t, std::int64_t>{257, 131}, {4100, 66}, {1030, 30}, {640, 3}})
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
        for (const unsigned width : kWidths) {
          INFO(m << " x " << k << " x " << n << ", " << name_of(dtype) << ", width " << width);
          CHECK(difference({m, k, n, false, true}, dtype, {.width = width, .threads = 2}) == "");
        }
}

TEST_CASE("few rows times a matrix that lies plain", "[products]") {
  for (const std::int64_t m : {1, 3, 4, 5, 8, 11})
    for (const auto& [k, n] : {std::pair<std::int64_t, std::int64_t>{33, 64}, {257, 131}, {40, 4500}, {1, 300}})
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
        for (const unsigned width : kWidths) {
          INFO(m << " x " << k << " x " << n << ", " << name_of(dtype) << ", width " << width);
          CHECK(difference({m, k, n}, dtype, {.width = width, .threads = 2}) == "");
        }
}

TEST_CASE("few rows read nothing behind a matrix that lies plain", "[products]") {
  for (const std::int64_t m : {1, 5, 9})
    for (const std::int64_t n : {3, 64, 130, 4160}) {
      ir::Graph graph;
      ops::NodeBuilder builder(graph);
      const ValueId x = graph.add_input(ir::Type::tensor(DType::f32, ir::Shape{m, 70})), w = graph.add_input(ir::Type::tensor(DType::f32, ir::Shape{70, n}));
      graph.add_output({builder.one("exp", {builder.one("mm", {x, w})}), ir::OutputKind::result, {}});
      const LastPages rows(static_cast<std::size_t>(m) * 70), matrix(static_cast<std::size_t>(n) * 70);
      const ops::TensorView views[] = {{rows.data, DType::f32, {m, 70}, {70, 1}}, {matrix.data, DType::f32, {70, n}, {n, 1}}};
      const auto results = llvm_test::run(graph, views);
      const auto* values = static_cast<const float*>(results[0].view().data);
      CHECK(std::all_of(values, values + m * n, [](float v) { return v == 1; }));
    }
}
