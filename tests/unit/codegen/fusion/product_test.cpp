// What recognition says of a product is enough to compute it: its loops and operands give the judge's numbers, and where it says that an operand
// lies as a matrix or in windows, the elements lie there.
#include "drafts/product.h"

#include <cmath>
#include <map>
#include <random>

#include "catch.h"
#include "decisions/cpu_machine.h"
#include "fusion/plan.h"
#include "graph/decomposition.h"
#include "unit/llvm/running.h"

using namespace tenon;
using codegen::Dim;
using codegen::OperationKind;
using codegen::Product;
using P = ops::Primitive;

namespace {

/// The product of a graph, over tensors of float32.
class Judged {
 public:
  /// `channels_last`: as the result lies.
  explicit Judged(const std::string& text, bool channels_last = false) : graph_(llvm_test::parse(text)), inputs_(llvm_test::random_inputs(graph_)) {
    codegen::decompose_composites(graph_);
    const ValueId result = graph_.outputs()[0].value;
    if (const ir::Shape shape = graph_.type(result).shape; channels_last) graph_.set_strides(result, ir::Shape{shape[1] * shape[2] * shape[3], Dim(1), shape[1] * shape[3], shape[1]});
    auto plan = codegen::make_plan(graph_, llvm_backend::CpuMachine(16), {});
    for (codegen::Step& step : plan.steps)
      if (auto* found = std::get_if<codegen::ContractionStep>(&step)) product_ = std::move(found->product);
    want_ = ops::evaluate(graph_, inputs_.views, ops::Precision::judge);
    REQUIRE(want_[0].view().dtype == DType::f64);
  }

  const Product& product() const { return product_.value(); }

  /// Looks at so many results, each at a random point of the loops.
  void check(int results) {
    std::mt19937 random(5);
    for (int i = 0; i < results; ++i) {
      at_.clear();
      for (const auto* roles : {&product().batch, &product().rows, &product().columns})
        for (const codegen::Role& r : *roles) at_[r.loop.variable.value] = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(r.loop.extent.constant()));
      double sum = 0, scale = 0;
      over_sum(0, [&] {
        const double a = value(product().a.element), b = value(product().b.element);
        sum += a * b, scale += std::abs(a * b);
        check_places(product().a, a, true), check_places(product().b, b, false);
      });
      const auto& shape = want_[0].shape;
      std::int64_t place = 0;
      for (std::size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + number(product().index[d]);
      CHECK(std::abs(sum - want_[0].as<double>()[place]) <= 1e-5 * (scale + 1));
    }
  }

 private:
  template <class Body>
  void over_sum(std::size_t loop, const Body& body) {
    if (loop == product().summed.size()) return body();
    const codegen::Loop& l = product().summed[loop];
    for (std::int64_t i = 0; i < l.extent.constant(); ++i) at_[l.variable.value] = i, over_sum(loop + 1, body);
  }

  std::int64_t number(Dim dim) const {
    for (const auto& [loop, here] : at_) dim = codegen::replace_symbol(dim, SymbolId(loop), Dim(here));
    return dim.constant();
  }

  double memory(ValueId value, std::int64_t place) const {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
      if (graph_.inputs()[i] == value) return inputs_.tensors[i].as<float>()[place];
    FAIL("an operand is no input");
    return 0;
  }

  double value(codegen::OpId id) const {
    const codegen::Operation& op = product().operations[id];
    const auto arg = [&](int k) { return value(op.args[k]); };
    switch (op.kind) {
      case OperationKind::constant: return codegen::number_of(op);
      case OperationKind::index: return static_cast<double>(number(op.offset));
      case OperationKind::load: return op.masked && arg(0) == 0 ? arg(1) : memory(product().buffers[op.payload], number(op.offset));
      default: break;
    }
    switch (op.primitive) {
      case P::select: return arg(0) != 0 ? arg(1) : arg(2);
      case P::mul: return arg(0) * arg(1);
      case P::add: return arg(0) + arg(1);
      case P::maximum: return std::max(arg(0), arg(1));
      case P::lt: return arg(0) < arg(1);
      case P::le: return arg(0) <= arg(1);
      case P::gt: return arg(0) > arg(1);
      case P::ge: return arg(0) >= arg(1);
      case P::logical_and: case P::bitwise_and: return arg(0) != 0 && arg(1) != 0;
      default: FAIL("no value for " << ops::name_of(op.primitive));
    }
    return 0;
  }

  std::int64_t flat(std::span<const codegen::Loop> loops) const {
    std::int64_t place = 0;
    for (const codegen::Loop& l : loops) place = place * l.extent.constant() + at_.at(l.variable.value);
    return place;
  }

  /// The element lies where the operand says, if it says so.
  void check_places(const codegen::ProductOperand& operand, double element, bool left) const {
    if (const auto& m = operand.matrix) {
      std::int64_t place = number(m->offset);
      for (std::size_t i = 0; i < product().batch.size(); ++i) place += at_.at(product().batch[i].loop.variable.value) * number(m->batch_strides[i]);
      const std::int64_t side = flat(codegen::loops_of(left ? product().rows : product().columns));
      const auto& windows = product().a.windows;
      const std::int64_t tap = windows ? flat(windows->taps) : 0, summed = flat(windows ? windows->run : product().summed);
      place += tap * number(m->tap_stride) + (left ? side * number(m->row_stride) + summed * number(m->column_stride) : side * number(m->column_stride) + summed * number(m->row_stride));
      if (memory(m->value, place) != element) FAIL_CHECK("an element of a matrix lies elsewhere");
    }
    if (const auto& w = operand.windows) {
      const bool hidden = w->mask != codegen::kNoOp && value(w->mask) == 0;
      const codegen::Operation& load = product().operations[w->load];
      Dim start = load.offset;
      for (const codegen::Loop& l : w->run) start = codegen::replace_symbol(start, l.variable, Dim(0));
      if (hidden ? element != 0 : memory(product().buffers[load.payload], number(start) + flat(w->run)) != element) FAIL_CHECK("an element of a window lies elsewhere");
    }
  }

  ir::Graph graph_;
  llvm_test::Inputs inputs_;
  std::optional<Product> product_;
  std::vector<ops::HostTensor> want_;
  std::map<std::uint32_t, std::int64_t> at_;  // by loop
};

std::string convolution(const std::string& sizes, const std::string& around) {
  return fmt::format(R"(graph @main (%x: f32[2, 9, 11, {0}], %w: f32[3, 3, {0}, 24]) {{
    %p: f32[2, {0}, 9, 11] = permute(%x) {{dims = [0, 3, 1, 2]}}
    %k: f32[24, {0}, 3, 3] = permute(%w) {{dims = [3, 2, 0, 1]}}
    %y: f32[2, 24, {1}
    return %y
  }})", sizes, around);
}

}  // namespace

TEST_CASE("products of matrices as they lie", "[products]") {
  for (const char* text : {"graph @main (%x: f32[40, 64], %y: f32[64, 48]) {\n  %z: f32[40, 48] = matmul(%x, %y)\n  return %z\n}",
                           "graph @main (%x: f32[3, 20, 70], %y: f32[3, 70, 24]) {\n  %z: f32[3, 20, 24] = matmul(%x, %y)\n  return %z\n}",
                           "graph @main (%x: f32[64, 40], %y: f32[64, 48]) {\n  %t: f32[40, 64] = permute(%x) {dims = [1, 0]}\n  %z: f32[40, 48] = matmul(%t, %y)\n  return %z\n}",
                           "graph @main (%x: f32[100, 64], %y: f32[48, 64]) {\n  %t: f32[64, 48] = permute(%y) {dims = [1, 0]}\n  %z: f32[100, 48] = matmul(%x, %t)\n  return %z\n}"}) {
    INFO(text);
    Judged judged(text);
    CHECK(judged.product().a.matrix);
    CHECK(judged.product().b.matrix);
    judged.check(12);
  }
}

TEST_CASE("a left operand that is computed for its product alone", "[products]") {
  Judged judged(R"(graph @main (%x: f32[2000, 96], %s: f32[96], %y: f32[96, 128]) {
    %m: f32[2000, 96] = mul(%x, %s)
    %r: f32[2000, 96] = relu(%m)
    %z: f32[2000, 128] = matmul(%r, %y)
    return %z
  })");
  CHECK(judged.product().a.is_computed());
  CHECK(judged.product().b.matrix);
  CHECK(judged.product().reads(judged.product().a).size() == 2);
  judged.check(12);
}

TEST_CASE("convolutions over windows of whole runs of channels", "[products]") {
  Judged padded(convolution("32", "9, 11] = conv_sum(%p, %k) {after = [1, 1], before = [1, 1], dilation = [1, 1], groups = 1, stride = [1, 1]}"), true);
  REQUIRE(padded.product().a.windows);
  CHECK(padded.product().a.windows->taps.size() == 2);
  CHECK(padded.product().a.windows->mask != codegen::kNoOp);
  CHECK(padded.product().b.matrix);
  REQUIRE(padded.product().picture);
  CHECK(padded.product().picture->height == Dim(9));
  padded.check(12);
  Judged strided(convolution("16", "4, 5] = conv_sum(%p, %k) {after = [0, 0], before = [0, 0], dilation = [1, 1], groups = 1, stride = [2, 2]}"), true);
  REQUIRE(strided.product().a.windows);
  CHECK_FALSE(strided.product().picture);
  strided.check(12);
}

TEST_CASE("windows of few channels are copied, and say what of", "[products]") {
  Judged judged(convolution("5", "9, 11] = conv_sum(%p, %k) {after = [1, 1], before = [1, 1], dilation = [1, 1], groups = 1, stride = [1, 1]}"));
  CHECK((judged.product().a.is_computed() || judged.product().b.is_computed()));
  CHECK(judged.product().depth() == Dim(45));
  judged.check(12);
}
