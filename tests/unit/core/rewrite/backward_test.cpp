// Gradients of every op of the catalogue against central differences in float64.
#include "core/rewrite/backward.h"

#include <cmath>
#include <set>

#include <fmt/ranges.h>

#include "catch.h"
#include "core/ops/catalog.h"
#include "core/ops/gradients/gradient.h"
#include "core/ops/reference/sample.h"

using namespace tenon;
using namespace tenon::ops;

namespace {

bool is_small(const Sample& sample) {
  std::int64_t elements = 1;
  for (const SampleOperand& o : sample.operands) {
    std::int64_t n = 1;
    for (std::int64_t d : o.shape) n *= d;
    elements += n;
  }
  return elements < 800;
}

/// The sample with float64 in place of float32; nothing for one without float tensors, with special values, or of another precision.
std::optional<Sample> in_double(Sample sample) {
  bool any = false;
  for (SampleOperand& o : sample.operands) {
    if (o.fill == Fill::special || o.dtype == DType::f16 || o.dtype == DType::bf16) return std::nullopt;
    if (o.literal) continue;
    if (o.dtype == DType::f32) o.dtype = DType::f64;
    any = any || o.dtype == DType::f64;
  }
  for (auto& attribute : sample.attributes)
    if (auto* dtype = std::get_if<DType>(&attribute.value); dtype && is_float(*dtype)) *dtype = DType::f64;
  if (!any || !is_small(sample)) return std::nullopt;
  return sample;
}

/// What an element of a result counts in the loss; one that is not finite counts nothing.
double weight(const HostTensor& result, std::size_t output, std::int64_t element) {
  if (!std::isfinite(result.as<double>()[element])) return 0;
  return std::cos(1.0 + 0.7 * static_cast<double>(element) + 2.0 * static_cast<double>(output));
}

/// One node: its forward graph and the graph of its gradients, and a loss that weighs every element of its float results.
class Case {
 public:
  Case(const Op& op, const Sample& sample) : forward_(sample_graph(op, sample)), inputs_(sample_inputs(sample, 5)) {
    for (SampleInput& i : inputs_) views_.push_back(i.view);
  }

  /// Float results, and all of them in float64.
  bool has_float_results() const {
    bool any = false;
    for (const ir::Output& o : forward_.outputs()) {
      const DType t = forward_.type(o.value).dtype;
      if (is_float(t) && t != DType::f64) return false;
      any = any || is_float(t);
    }
    return any;
  }

  /// Where a result is no number, nor is what it hands on, as in torch: 0 times its infinite slope.
  bool is_finite() const {
    for (const HostTensor& result : evaluate(forward_, views_))
      for (std::int64_t i = 0; is_float(result.dtype) && i < result.element_count(); ++i)
        if (!std::isfinite(result.as<double>()[i])) return false;
    return true;
  }

  double loss() const {
    const auto results = evaluate(forward_, views_);
    double sum = 0;
    for (std::size_t k = 0; k < results.size(); ++k)
      for (std::int64_t i = 0; is_float(results[k].dtype) && i < results[k].element_count(); ++i)
        if (const double w = weight(results[k], k, i); w != 0) sum += w * results[k].as<double>()[i];
    return sum;
  }

  std::vector<HostTensor> gradients() const {
    const ir::Graph backward = rewrite::backward_graph(forward_);
    std::vector<TensorView> views = views_;
    const auto results = evaluate(forward_, views_);
    std::vector<HostTensor> seeds;
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (!is_float(results[k].dtype)) continue;
      HostTensor& seed = seeds.emplace_back(DType::f64, results[k].shape);
      for (std::int64_t i = 0; i < seed.element_count(); ++i) seed.as<double>()[i] = weight(results[k], k, i);
    }
    for (HostTensor& seed : seeds) views.push_back(seed.view());
    return evaluate(backward, views);
  }

  /// The slope of the loss by one element of an input; nothing at a kink.
  std::optional<double> slope(double& x) {
    const double kept = x;
    const auto difference = [&](double h) {
      x = kept + h;
      const double above = loss();
      x = kept - h;
      const double below = loss();
      x = kept;
      return (above - below) / (2 * h);
    };
    const double coarse = difference(1e-5), fine = difference(2.5e-6);
    if (!std::isfinite(coarse) || std::fabs(coarse) > 1e5 || std::fabs(coarse - fine) > 1e-4 * (1 + std::fabs(fine))) return std::nullopt;
    return fine;
  }

  std::vector<TensorView>& views() { return views_; }

 private:
  ir::Graph forward_;
  std::vector<SampleInput> inputs_;
  std::vector<TensorView> views_;
};

std::int64_t offset_of(const TensorView& view, std::int64_t element) {
  std::int64_t offset = 0;
  for (std::size_t d = view.shape.size(); d-- > 0;) {
    offset += element % view.shape[d] * view.strides[d];
    element /= view.shape[d];
  }
  return offset;
}

bool overlaps(const TensorView& view) {
  for (std::size_t d = 0; d < view.shape.size(); ++d)
    if (view.strides[d] == 0 && view.shape[d] > 1) return true;
  return false;
}

/// The number of elements that were compared; nothing where no result is a float.
std::optional<std::size_t> check(const Op& op, const Sample& sample) {
  INFO(op.name << " / " << sample.name);
  Case c(op, sample);
  if (!c.has_float_results()) return std::nullopt;
  const auto gradients = c.gradients();
  const bool finite = c.is_finite();
  std::size_t next = 0, compared = 0;
  for (std::size_t k = 0; k < c.views().size(); ++k) {
    TensorView& view = c.views()[k];
    if (!is_float(view.dtype)) continue;
    const HostTensor& got = gradients[next++];
    REQUIRE(got.shape == view.shape);
    const std::int64_t step = std::max<std::int64_t>(1, got.element_count() / 5);
    for (std::int64_t i = 0; i < got.element_count() && !overlaps(view); i += step) {
      double& x = static_cast<double*>(view.data)[offset_of(view, i)];
      const auto want = c.slope(x);
      INFO("operand " << k << ", element " << i << ", at " << x);
      if (!finite && std::isnan(got.as<double>()[i])) continue;
      if (op.scatter && want == 0) continue;  // it was overwritten: of several writes to one place each gets that place's gradient, as in torch
      if (want) CHECK(got.as<double>()[i] == Approx(*want).epsilon(2e-4).margin(2e-4));
      compared += want.has_value();
    }
  }
  return compared;
}

/// Throws for a sample of an op whose gradient is not written for its attributes.
bool is_refused(const Op& op, const Sample& sample) {
  try {
    rewrite::backward_graph(sample_graph(op, sample));
    return false;
  } catch (const Exception& e) {
    if (e.code() == Code::unsupported) return true;
    throw;
  }
}

}  // namespace

TEST_CASE("every op has a gradient, or says why not") {
  for (const Op& op : all_ops()) {
    INFO(op.name);
    CHECK(origin_of_gradient(op) != "none");
    CHECK(!(op.grad && !op.no_grad_reason.empty()));
  }
}

TEST_CASE("gradients are those of differences") {
  std::set<std::string> refused, never_compared;
  for (const Op& op : all_ops()) {
    if (!op.no_grad_reason.empty() || op.name == "detach" || op.name == "own_gradient" || op.name == "no_gradient") continue;  // which are there to have others than their own
    std::optional<std::size_t> compared;
    std::size_t samples = 0;
    for (const Sample& given : samples_of(op)) {
      const auto sample = in_double(given);
      if (!sample || samples == 6) continue;
      ++samples;
      if (is_refused(op, *sample)) refused.insert(op.name);
      else if (const auto n = check(op, *sample)) compared = compared.value_or(0) + *n;
    }
    if (compared == 0) never_compared.insert(op.name);
  }
  CHECK(fmt::format("{}", fmt::join(never_compared, " ")) == "");
  CHECK(fmt::format("{}", fmt::join(refused, " ")) == "");
}
