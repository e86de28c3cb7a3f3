// Accumulators: how they begin, take a point and each other, and what is made of them.
#include "nests/nest_emitter.h"

namespace tenon::codegen {

using llvm::Value;

std::vector<DType> NestEmitter::accumulator_types(const Stage& stage) const {
  std::vector<DType> types;
  for (auto r : stage.reductions)
    for (DType t : kernel_.reductions[r].reducer.accumulators) types.push_back(compute_type(t));
  return types;
}

NestEmitter::Carried NestEmitter::initial(const Stage& stage, bool varying, unsigned lanes) {
  b_.set_lanes(lanes);
  Carried values;
  for (auto r : stage.reductions)
    for (const Lanes& v : b_.program(kernel_.reductions[r].reducer.init, {}, extent_values())) values.push_back(varying ? b_.widen(v).value : v.value);
  return values;
}

NestEmitter::Carried NestEmitter::combined(const Stage& stage, const Carried& a, const Carried& b) {
  Carried values;
  const auto types = accumulator_types(stage);
  std::size_t first = 0;
  for (auto r : stage.reductions) {
    const ops::Reducer& reducer = kernel_.reductions[r].reducer;
    const std::size_t count = reducer.accumulators.size();
    std::vector<Lanes> parameters;
    for (const Carried* side : {&a, &b})
      for (std::size_t i = 0; i < count; ++i) parameters.push_back(as_lanes((*side)[first + i], types[first + i]));
    for (std::size_t i = 0; const Lanes& v : b_.program(reducer.combine, parameters, extent_values())) {
      const bool vector = a[first + i]->getType()->isVectorTy();
      values.push_back(vector ? b_.widen(v).value : v.value);
      ++i;
    }
    first += count;
  }
  return values;
}

NestEmitter::Carried NestEmitter::elements(const Stage& stage) {
  Carried values;
  for (auto r : stage.reductions)
    for (OpId e : kernel_.reductions[r].elements) values.push_back(lane_ ? widened(e).value : value(e).value);
  for (const Store& row : stage.stores) store(row);
  return values;
}

NestEmitter::Carried NestEmitter::narrowed(const Stage& stage, Carried values, unsigned from, unsigned to) {
  while (from > to) {
    const unsigned half = from / 2;
    llvm::SmallVector<int, 64> low, high;
    for (unsigned i = 0; i < half; ++i) low.push_back(static_cast<int>(i)), high.push_back(static_cast<int>(half + i));
    Carried a, b;
    for (Value* v : values) {
      a.push_back(half == 1 ? ir_.CreateExtractElement(v, std::uint64_t{0}) : ir_.CreateShuffleVector(v, low));
      b.push_back(half == 1 ? ir_.CreateExtractElement(v, std::uint64_t{1}) : ir_.CreateShuffleVector(v, high));
    }
    b_.set_lanes(half);
    values = combined(stage, a, b);
    from = half;
  }
  return values;
}

void NestEmitter::finish_reductions(const Stage& stage, const Carried& values) {
  const auto types = accumulator_types(stage);
  std::size_t first = 0;
  for (auto r : stage.reductions) {
    const ops::Reducer& reducer = kernel_.reductions[r].reducer;
    std::vector<Lanes> parameters;
    for (std::size_t i = 0; i < reducer.accumulators.size(); ++i, ++first) parameters.push_back(as_lanes(values[first], types[first]));
    const auto results = b_.program(reducer.finish, parameters, extent_values());
    for (OpId id = 0; id < kernel_.operations.size(); ++id) {
      const Operation& op = kernel_.operations[id];
      if (op.kind != OperationKind::reduced || op.payload >> 16 != r) continue;
      Lanes result = b_.convert(results[op.payload & 0xffff], op.dtype);
      if (lane_ && results_vary_) result = b_.widen(result);
      scopes_[row_depth_].values[id] = result;
    }
  }
}

}  // namespace tenon::codegen
