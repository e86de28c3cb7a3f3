// What kernels of the GPU target compute, thread by thread on the CPU, against the judge.
#include "catch.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "unit/cuda/host_grid.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// What differs from the judge, or "".
std::string fault_of(const std::string& text, std::vector<std::vector<std::int64_t>> shapes = {}, double tolerance = 4) {
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph, std::move(shapes));
  return ptx_test::fault_on_host(ptx_test::schedule_graph(graph.clone()), graph, views, tolerance);
}

std::string unary(const std::string& op, const std::string& dtype, const std::string& shape) {
  return fmt::format("graph @main (%x: {0}[{2}]) {{\n  %y: {0}[{2}] = {1}(%x)\n  return %y\n}}", dtype, op, shape);
}

}  // namespace

TEST_CASE("a chain of points runs in vectors, with what is left of them one by one", "[ptx]") {
  for (const char* dtype : {"f32", "f64", "f16", "bf16", "i32", "i64"})
    for (int n : {1, 3, 4, 1000, 1024, 1031}) {
      INFO(dtype << " " << n);
      CHECK(fault_of(fmt::format(R"(graph @main (%x: {0}[{1}], %y: {0}[{1}]) {{
        %a: {0}[{1}] = add(%x, %y)
        %b: {0}[{1}] = mul(%a, %x)
        %c: {0}[{1}] = maximum(%b, %y)
        return %c
      }})", dtype, n)) == "");
    }
}

TEST_CASE("equal kernels are runs of one launch, each over its own memory", "[ptx]") {
  const auto text_of = [](const std::string& symbols, const std::string& size, const std::string& made) {
    std::string inputs, body, outputs;
    for (const char* n : {"a", "b", "c", "d", "e"}) {
      inputs += fmt::format("{}%{}: f32[{}, 8]", inputs.empty() ? "" : ", ", n, size);
      body += fmt::format(fmt::runtime(made), fmt::arg("n", n), fmt::arg("size", size));
      outputs += fmt::format("{}%y{}", outputs.empty() ? "" : ", ", n);
    }
    return fmt::format("graph @main {}({}) {{\n{}  return {}\n}}", symbols, inputs, body, outputs);
  };
  const std::string points = "%s{n}: f32[{size}, 8] = mul(%{n}, 2.0)\n%y{n}: f32[{size}, 8] = add(%s{n}, 1.0)\n", rows = "%y{n}: f32[{size}] = sum(%{n}) {{dim = [1], keepdim = false}}\n";
  for (const std::string& made : {points, rows}) {
    const std::string text = text_of("", "300", made);
    const auto scheduled = ptx_test::schedule_graph(llvm_test::parse(text));
    REQUIRE(scheduled.kernels.size() == 1);
    CHECK(scheduled.kernels[0].schedule.runs == 5);
    CHECK(fault_of(text) == "");
  }
  const std::vector<std::vector<std::int64_t>> shapes(5, {300, 8});
  CHECK(fault_of(text_of("[s0: 1..100000] ", "s0", points), shapes) == "");
}

TEST_CASE("points that each have a target of their own are written in any order", "[ptx]") {
  for (const char* dtype : {"f32", "bf16"})
    for (const char* accumulate : {"false", "true"}) {
      INFO(dtype << " " << accumulate);
      CHECK(fault_of(fmt::format(R"(graph @main (%x: {0}[3, 9, 5], %v: {0}[3, 1, 5], %n: i64[1]) {{
        %i: i64[1] = remainder(%n, 9)
        %y: {0}[3, 9, 5] = index_put(%x, %v, %i) {{accumulate = {1}, dims = [1]}}
        return %y
      }})", dtype, accumulate)) == "");
    }
}

TEST_CASE("rows are put together in vectors where no bound cuts one, else element by element", "[ptx]") {
  for (const int left : {32, 30})
    CHECK(fault_of(fmt::format("graph @main (%a: f32[64, {0}], %b: f32[64, 16]) {{\n  %c: f32[64, {1}] = cat(%a, %b) {{dim = 1}}\n  %y: f32[64, {1}] = mul(%c, 2.0)\n  return %y\n}}", left, left + 16)) == "");
}

TEST_CASE("booleans and comparisons", "[ptx]") {
  CHECK(fault_of(R"(graph @main (%x: f32[37, 9], %y: f32[9]) {
    %c: bool[37, 9] = gt(%x, %y)
    %n: bool[37, 9] = logical_not(%c)
    %z: f32[37, 9] = where(%n, %x, %y)
    return %z, %n
  })") == "");
}

TEST_CASE("broadcasts and strided views are read element by element", "[ptx]") {
  CHECK(fault_of(R"(graph @main (%x: f32[33, 20], %r: f32[20], %c: f32[33, 1]) {
    %a: f32[33, 20] = add(%x, %r)
    %b: f32[33, 20] = mul(%a, %c)
    return %b
  })") == "");
  CHECK(fault_of(R"(graph @main (%x: f32[33, 20], %y: f32[20, 33]) {
    %t: f32[20, 33] = permute(%x) {dims = [1, 0]}
    %b: f32[20, 33] = sub(%t, %y)
    return %b
  })") == "");
  CHECK(fault_of(R"(graph @main (%x: f32[5, 7]) {
    %p: f32[8, 12] = pad(%x) {after = [2, 3], before = [1, 2], mode = "constant", value = 1.5}
    %y: f32[8, 12] = mul(%p, 2.0)
    return %y
  })") == "");
}

TEST_CASE("sizes are taken with the call", "[ptx]") {
  const std::string text = R"(graph @main [s0: 1..100000, s1: 1..100000] (%x: f32[s0, s1], %y: f32[s1]) {
    %a: f32[s0, s1] = mul(%x, %y)
    %b: f32[s0, s1] = add(%a, 1.0)
    return %b
  })";
  CHECK(fault_of(text, {{3, 1000}, {1000}}) == "");
  CHECK(fault_of(text, {{37, 13}, {13}}) == "");
  CHECK(fault_of("graph @main [s0: 1..100000] (%x: f32[s0]) {\n  %y: f32[s0] = mul(%x, 3.0)\n  return %y\n}", {{4099}}) == "");
}

namespace {

/// Values of all magnitudes, and what is no ordinary number.
template <class T>
ops::HostTensor all_magnitudes(DType dtype, int least, int count) {
  auto x = ops::HostTensor(dtype, {4096});
  T* v = x.as<T>();
  for (int i = 0; i < 4096; ++i) v[i] = (i % 2 ? T(-1) : T(1)) * std::ldexp(T(1) + static_cast<T>(i * 37 % 4096) / 4096, i * 31 % count + least);
  v[0] = std::numeric_limits<T>::infinity(), v[1] = -v[0], v[2] = std::numeric_limits<T>::quiet_NaN(), v[3] = 0, v[4] = T(-0.0), v[5] = 1, v[6] = -1;
  return x;
}

std::string fault_on(const std::string& text, const std::vector<ops::TensorView>& views, double tolerance) {
  const ir::Graph graph = llvm_test::parse(text);
  return ptx_test::fault_on_host(ptx_test::schedule_graph(graph.clone()), graph, views, tolerance);
}

std::string binary(const std::string& op, const std::string& dtype) {
  return fmt::format("graph @main (%x: {0}[4096], %y: {0}[4096]) {{\n  %r: {0}[4096] = {1}(%x, %y)\n  return %r\n}}", dtype, op);
}

}  // namespace

TEST_CASE("functions of floats on all magnitudes", "[ptx]") {
  const auto x = all_magnitudes<float>(DType::f32, -149, 276), near = all_magnitudes<float>(DType::f32, -20, 27);
  for (const char* op : {"exp", "log", "tanh", "sin", "cos", "erf", "exp2", "expm1", "log2", "log10", "log1p", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "lgamma"})
    for (const auto& given : {x.view(), near.view()}) {
      INFO(op);
      CHECK(fault_on(unary(op, "f32", "4096"), {given}, 8) == "");
    }
  const auto wide = all_magnitudes<double>(DType::f64, -1074, 2097), wide_near = all_magnitudes<double>(DType::f64, -20, 30);
  for (const char* op : {"exp", "log", "tanh", "exp2", "expm1", "log2", "log10", "log1p", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"})
    for (const auto& given : {wide.view(), wide_near.view()}) {
      INFO(op << " f64");
      CHECK(fault_on(unary(op, "f64", "4096"), {given}, 8) == "");
    }
}

TEST_CASE("functions of two floats on all magnitudes", "[ptx]") {
  const auto x = all_magnitudes<float>(DType::f32, -149, 276), y = all_magnitudes<float>(DType::f32, -6, 13);
  const auto a = all_magnitudes<double>(DType::f64, -1074, 2097), b = all_magnitudes<double>(DType::f64, -6, 13);
  for (const char* op : {"pow", "fmod", "remainder", "atan2", "floor_divide"}) {
    INFO(op);
    for (const auto& [first, second] : {std::pair{x.view(), y.view()}, std::pair{y.view(), x.view()}}) CHECK(fault_on(binary(op, "f32"), {first, second}, 4) == "");
    const std::vector<float> odd = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 0, -0.0f, 1, -1, 2, -3, 0.5f, -2.5f,
                                    1e30f, -1e-30f, 1e-42f, 3e9f, 0.999f};
    auto p = ops::HostTensor(DType::f32, {4096}), q = ops::HostTensor(DType::f32, {4096});
    for (std::size_t i = 0; i < 4096; ++i) p.as<float>()[i] = odd[i % odd.size()], q.as<float>()[i] = odd[i / odd.size() % odd.size()];
    CHECK(fault_on(binary(op, "f32"), {p.view(), q.view()}, 4) == "");
    if (std::string(op) == "pow") continue;
    for (const auto& [first, second] : {std::pair{a.view(), b.view()}, std::pair{b.view(), a.view()}}) CHECK(fault_on(binary(op, "f64"), {first, second}, 4) == "");
  }
}

TEST_CASE("a row is summed by a warp, and a long one by a block", "[ptx]") {
  for (const char* dtype : {"f32", "f64", "f16", "i64"})
    for (const char* shape : {"5, 7", "3, 64", "9, 1000", "2, 5000", "1, 4097"}) {
      const std::string text = fmt::format("graph @main (%x: {0}[{1}]) {{\n  %y: {0}[{2}] = sum(%x) {{dim = [1], keepdim = false}}\n  return %y\n}}", dtype, shape,
                                           std::string(shape).substr(0, std::string(shape).find(',')));
      INFO(dtype << " " << shape);
      CHECK(fault_of(text) == "");
    }
}

TEST_CASE("what follows a reduction of a row is in its kernel", "[ptx]") {
  CHECK(fault_of(R"(graph @main (%x: f32[6, 40]) {
    %m: f32[6, 1] = amax(%x) {dim = [1], keepdim = true}
    %d: f32[6, 40] = sub(%x, %m)
    return %d
  })") == "");
  CHECK(fault_of(R"(graph @main [s0: 1..100000, s1: 1..100000] (%x: f32[s0, s1]) {
    %m: f32[s0, 1] = sum(%x) {dim = [1], keepdim = true}
    %d: f32[s0, s1] = div(%x, %m)
    return %d
  })", {{3, 2051}}, 64) == "");
}

TEST_CASE("softmax and normalisation of rows are one kernel each", "[ptx]") {
  for (const char* rows : {"7, 33", "3, 1024", "2, 3000", "5, 4"}) {
    INFO(rows);
    const std::string softmax = fmt::format("graph @main (%x: f32[{0}]) {{\n  %y: f32[{0}] = softmax(%x) {{dim = 1}}\n  return %y\n}}", rows);
    CHECK(fault_of(softmax, {}, 16) == "");
    CHECK(ptx_test::schedule_graph(llvm_test::parse(softmax)).kernels.size() == 1);
    const std::string width = std::string(rows).substr(std::string(rows).find(' ') + 1);
    CHECK(fault_of(fmt::format(R"(graph @main (%x: f32[{0}], %w: f32[{1}], %b: f32[{1}]) {{
      %y: f32[{0}] = layer_norm(%x, %w, %b) {{eps = 1e-05, normalized_shape = [{1}]}}
      return %y
    }})", rows, width), {}, 64) == "");
  }
}

TEST_CASE("reductions over several loops, and over outer ones", "[ptx]") {
  CHECK(fault_of(R"(graph @main (%x: f32[4, 5, 6, 70]) {
    %y: f32[4, 6] = sum(%x) {dim = [1, 3], keepdim = false}
    return %y
  })", {}, 16) == "");
  CHECK(fault_of(R"(graph @main (%x: f32[300, 17]) {
    %y: f32[17] = sum(%x) {dim = [0], keepdim = false}
    return %y
  })", {}, 64) == "");
  CHECK(fault_of(R"(graph @main (%x: f32[12, 300]) {
    %y: i64[12] = argmax(%x) {dim = 1, keepdim = false}
    return %y
  })") == "");
  CHECK(fault_of(R"(graph @main (%x: bool[12, 300]) {
    %y: bool[12] = any(%x) {dim = [1], keepdim = false}
    return %y
  })") == "");
}

TEST_CASE("columns are reduced by teams that stand side by side", "[ptx]") {
  for (const char* dtype : {"f32", "f16", "i64"})
    for (const char* shape : {"40, 300", "100, 7", "17, 132"}) {
      const std::string columns = std::string(shape).substr(std::string(shape).find(' ') + 1);
      INFO(dtype << " " << shape);
      CHECK(fault_of(fmt::format("graph @main (%x: {0}[{1}]) {{\n  %y: {0}[{2}] = sum(%x) {{dim = [0], keepdim = false}}\n  return %y\n}}", dtype, shape, columns), {}, 16) == "");
      CHECK(fault_of(fmt::format("graph @main (%x: {0}[{1}]) {{\n  %y: {0}[{2}] = amax(%x) {{dim = [0], keepdim = false}}\n  return %y\n}}", dtype, shape, columns)) == "");
    }
  CHECK(fault_of(R"(graph @main [s0: 1..100000, s1: 1..100000] (%x: f32[s0, s1]) {
    %y: f32[s1] = sum(%x) {dim = [0], keepdim = false}
    return %y
  })", {{61, 77}}, 16) == "");
}

TEST_CASE("what follows a reduction of columns is in its kernel", "[ptx]") {
  for (const char* shape : {"40, 36", "21, 5", "3, 40", "100, 10", "512, 8", "1000, 3", "1030, 5", "64, 132"}) {
    INFO(shape);
    CHECK(fault_of(fmt::format("graph @main (%x: f32[{0}]) {{\n  %y: f32[{0}] = softmax(%x) {{dim = 0}}\n  return %y\n}}", shape), {}, 16) == "");
  }
  CHECK(fault_of(R"(graph @main (%x: f32[2, 30, 68]) {
    %v: f32[2, 1, 68] = var(%x) {correction = 1.0, dim = [1], keepdim = true}
    %d: f32[2, 30, 68] = div(%x, %v)
    return %v, %d
  })", {}, 64) == "");
  const auto softmax = ptx_test::schedule_graph(llvm_test::parse("graph @main (%x: f32[20, 70000]) {\n  %y: f32[20, 70000] = softmax(%x) {dim = 0}\n  return %y\n}"));
  REQUIRE(softmax.kernels.size() == 1);
  CHECK(softmax.kernels[0].schedule.team == cuda::kColumnTeam);  // no more than fill a card: each thread keeps three rows of vectors
  CHECK(softmax.kernels[0].schedule.lanes == 4);
  CHECK(fault_of(R"(graph @main (%x: f32[40, 36]) {
    %i: i64[36] = argmax(%x) {dim = 0, keepdim = false}
    return %i
  })") == "");
}

TEST_CASE("few results are added up in two stages, the same each time", "[ptx]") {
  for (const char* text : {"graph @main (%x: f32[200, 200]) {\n  %y: f32[] = sum(%x) {dim = [0, 1], keepdim = false}\n  return %y\n}",
                           "graph @main (%x: f32[2, 20011]) {\n  %y: f32[2] = sum(%x) {dim = [1], keepdim = false}\n  return %y\n}",
                           "graph @main (%x: f32[600, 12]) {\n  %y: f32[12] = sum(%x) {dim = [0], keepdim = false}\n  return %y\n}",
                           "graph @main (%x: f32[521, 8]) {\n  %y: f32[8] = amax(%x) {dim = [0], keepdim = false}\n  return %y\n}",
                           "graph @main (%x: f32[37000]) {\n  %y: i64[] = argmax(%x) {dim = 0, keepdim = false}\n  return %y\n}"}) {
    INFO(text);
    const ir::Graph graph = llvm_test::parse(text);
    CHECK(ptx_test::schedule_graph(graph.clone()).kernels.size() == 2);
    CHECK(fault_of(text, {}, 300) == "");
    const auto [tensors, views] = llvm_test::random_inputs(graph);
    const auto once = ptx_test::run_on_host(ptx_test::schedule_graph(graph.clone()), views), again = ptx_test::run_on_host(ptx_test::schedule_graph(graph.clone()), views);
    CHECK(std::memcmp(once[0].data(), again[0].data(), size_of(once[0].view().dtype)) == 0);
  }
}

TEST_CASE("windows of pictures with their channels last are read channels at a time", "[ptx]") {
  for (const char* dtype : {"f32", "f16", "f64", "i8"}) {
    const std::string text = fmt::format(R"(graph @main (%x: {0}[2, 9, 8, 32]) {{
      %c: {0}[2, 32, 9, 8] = permute(%x) {{dims = [0, 3, 1, 2]}}
      %p: {0}[2, 32, 5, 4] = max_pool(%c) {{ceil_mode = false, dilation = [1, 1], kernel_size = [3, 3], padding = [1, 1], stride = [2, 2]}}
      %y: {0}[2, 5, 4, 32] = permute(%p) {{dims = [0, 2, 3, 1]}}
      return %y
    }})", dtype);
    INFO(text);
    CHECK(ptx_test::schedule_graph(llvm_test::parse(text)).kernels[0].schedule.lanes > 1);
    CHECK(fault_of(text) == "");
  }
}

TEST_CASE("windows of few points are one thread's each", "[ptx]") {
  CHECK(fault_of(R"(graph @main (%x: f32[2, 3, 9, 9]) {
    %y: f32[2, 3, 4, 4] = max_pool(%x) {ceil_mode = false, dilation = [1, 1], kernel_size = [3, 3], padding = [0, 0], stride = [2, 2]}
    return %y
  })") == "");
  // So many that each has a thread, though a window has more points than that.
  for (const int side : {128, 130}) {
    const std::string text = fmt::format(R"(graph @main (%x: f32[16, {0}, {0}]) {{
      %y: f32[16, {1}, {1}] = max_pool(%x) {{ceil_mode = false, dilation = [1, 1], kernel_size = [3, 3], padding = [1, 1], stride = [2, 2]}}
      return %y
    }})", side, side / 2);
    INFO(text);
    CHECK(ptx_test::schedule_graph(llvm_test::parse(text)).kernels[0].schedule.team == 1);
    CHECK(fault_of(text) == "");
  }
  CHECK(fault_of(R"(graph @main (%x: f32[50, 6]) {
    %m: f32[50, 1] = amax(%x) {dim = [1], keepdim = true}
    %d: f32[50, 6] = sub(%x, %m)
    return %d
  })") == "");
}

TEST_CASE("what is contiguous along another loop passes through memory that a block shares", "[ptx]") {
  for (const char* dtype : {"f32", "f64", "f16", "bool"})
    for (const auto& [rows, columns] : {std::pair{64, 32}, std::pair{33, 47}}) {
      INFO(dtype << " " << rows << " x " << columns);
      CHECK(fault_of(fmt::format(R"(graph @main (%x: {0}[{1}, {2}], %y: {0}[{2}, {1}]) {{
        %t: {0}[{2}, {1}] = permute(%x) {{dims = [1, 0]}}
        %z: {0}[{2}, {1}] = maximum(%t, %y)
        return %z
      }})", dtype, rows, columns)) == "");
    }
  CHECK(fault_of(R"(graph @main (%x: f32[3, 20, 40], %y: f32[3, 20, 40]) {
    %a: f32[3, 40, 20] = permute(%x) {dims = [0, 2, 1]}
    %b: f32[3, 40, 20] = permute(%y) {dims = [0, 2, 1]}
    %z: f32[3, 40, 20] = mul(%a, %b)
    return %z
  })") == "");
  CHECK(fault_of(R"(graph @main (%x: f32[18, 3, 35]) {
    %a: f32[35, 3, 18] = permute(%x) {dims = [2, 1, 0]}
    %z: f32[35, 3, 18] = neg(%a)
    return %z
  })") == "");
  CHECK(fault_of(R"(graph @main [s0: 1..1000, s1: 1..1000] (%x: f32[s0, s1]) {
    %t: f32[s1, s0] = permute(%x) {dims = [1, 0]}
    %z: f32[s1, s0] = mul(%t, 2.0)
    return %z
  })", {{37, 45}}) == "");
}

TEST_CASE("a matrix product without a kernel of its own is a loop nest", "[ptx]") {
  CHECK(fault_of(R"(graph @main (%x: f32[9, 130], %y: f32[130, 11]) {
    %z: f32[9, 11] = matmul(%x, %y)
    return %z
  })", {}, 64) == "");
}

TEST_CASE("elements at indices that are data", "[ptx]") {
  const auto indexed = [](const std::string& text, std::int64_t largest) {
    const ir::Graph graph = llvm_test::parse(text);
    auto [tensors, views] = llvm_test::random_inputs(graph);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      for (std::int64_t k = 0; tensors[i].dtype == DType::i64 && k < tensors[i].element_count(); ++k) tensors[i].as<std::int64_t>()[k] = (k * 7 + 3) % (largest + 1);
    return ptx_test::fault_on_host(ptx_test::schedule_graph(graph.clone()), graph, views, 4);
  };
  const std::string rows = R"(graph @main (%x: f32[9, 40], %i: i64[21]) {
    %y: f32[21, 40] = index_select(%x, %i) {dim = 0}
    return %y
  })";
  CHECK(indexed(rows, 8) == "");
  CHECK_THROWS_WITH(indexed(rows, 9), "an index is out of bounds");
  CHECK(indexed(R"(graph @main (%x: f32[6, 33], %i: i64[6, 20]) {
    %y: f32[6, 20] = gather(%x, %i) {dim = 1}
    return %y
  })", 32) == "");
  CHECK(indexed(R"(graph @main (%x: f32[12, 36], %i: i64[5, 36]) {
    %y: f32[5, 36] = gather(%x, %i) {dim = 0}
    %z: f32[5, 36] = mul(%y, 2.0)
    return %z
  })", 11) == "");
}

TEST_CASE("scatters whose order does not matter", "[ptx]") {
  const auto fault = [](const std::string& dtype, const std::string& reduce) {
    const ir::Graph graph = llvm_test::parse(fmt::format("graph @main (%x: {0}[3, 5], %i: i64[40, 5], %v: {0}[40, 5]) {{\n  %y: {0}[3, 5] = scatter(%x, %i, %v) {{dim = 0, reduce = \"{1}\"}}\n  return %y\n}}", dtype, reduce));
    auto [tensors, views] = llvm_test::random_inputs(graph, {});
    for (int k = 0; k < 200; ++k) tensors[1].as<std::int64_t>()[k] = k * 7 % 3;
    return ptx_test::fault_on_host(ptx_test::schedule_graph(graph.clone()), graph, views, 0);
  };
  for (const char* dtype : {"i64", "i32", "i16", "u8", "bool"})
    for (const char* reduce : {"sum", "prod", "amax", "amin"}) {
      INFO(dtype << " " << reduce);
      CHECK(fault(dtype, reduce) == "");
    }
  for (const char* dtype : {"f64", "f32", "f16", "bf16"})
    for (const char* reduce : {"amax", "amin"}) {
      INFO(dtype << " " << reduce);
      CHECK(fault(dtype, reduce) == "");
    }
}

TEST_CASE("what has no code is refused with a sentence", "[ptx]") {
  CHECK_THROWS_WITH(ptx_test::schedule_graph(llvm_test::parse(unary("erf", "f64", "8"))), "erf of f64 has no code for this target");
  CHECK_THROWS_WITH(ptx_test::schedule_graph(llvm_test::parse(unary("sin", "f64", "8"))), "sin of f64 has no code for this target");
  const char* sums = "graph @main (%x: f32[4], %i: i64[6], %v: f32[6]) {\n  %y: f32[4] = index_add(%x, %i, %v) {dim = 0}\n  return %y\n}";
  CHECK_THROWS_WITH(ptx_test::schedule_graph(llvm_test::parse(sums)), "a scatter for which the order of its points matters has no code for this target");
}

TEST_CASE("scans are loops over blocks, and scans of what those give", "[ptx]") {
  for (const char* op : {"cumsum", "cumprod"})
    for (const char* dtype : {"f32", "f64", "f16", "i64"})
      for (const char* where : {"3, 7|1", "5, 64|1", "4, 100|1", "2, 700|1", "65, 6|0", "3, 20, 4|1"}) {
        const std::string shape = std::string(where).substr(0, std::string(where).find('|')), dim = std::string(where).substr(std::string(where).find('|') + 1);
        if (std::string(op) == "cumprod" && shape == "2, 700") continue;  // so many factors leave the range of floats
        INFO(op << " " << dtype << " " << where);
        CHECK(fault_of(fmt::format("graph @main (%x: {0}[{1}]) {{\n  %y: {0}[{1}] = {2}(%x) {{dim = {3}, dtype = {0}}}\n  return %y\n}}", dtype, shape, op, dim), {}, 64) == "");
      }
  CHECK(fault_of("graph @main (%x: bool[9, 30]) {\n  %y: i64[9, 30] = cumsum(%x) {dim = 1}\n  return %y\n}") == "");
  CHECK(ptx_test::schedule_graph(llvm_test::parse("graph @main (%x: f32[9, 8]) {\n  %y: f32[9, 8] = cumsum(%x) {dim = 1}\n  return %y\n}")).kernels.size() == 1);
}
