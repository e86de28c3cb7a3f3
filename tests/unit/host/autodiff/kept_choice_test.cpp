// The choice between keeping and computing again is the cheapest of all there are.
#include "host/autodiff/kept_choice.h"

#include <random>

#include "catch.h"

using namespace tenon;
using rewrite::KeepNetwork;

namespace {

constexpr std::int64_t kNever = KeepNetwork::kNever;

/// What a choice costs; nothing where a value that is needed is neither kept nor can be computed.
std::optional<std::int64_t> cost_of(const KeepNetwork& network, const std::vector<bool>& kept) {
  std::int64_t cost = 0;
  std::vector<bool> needed(network.values.size());
  std::vector<std::uint32_t> waiting;
  const auto need = [&](std::uint32_t i) {
    if (!needed[i]) waiting.push_back(i);
    needed[i] = true;
  };
  for (std::uint32_t i = 0; i < kept.size(); ++i)
    if (network.values[i].needed) need(i);
  while (!waiting.empty()) {
    const KeepNetwork::Value& value = network.values[waiting.back()];
    const bool keeps = kept[waiting.back()];
    waiting.pop_back();
    if ((keeps ? value.keep : value.compute) == kNever) return std::nullopt;
    cost += keeps ? value.keep : value.compute;
    if (!keeps)
      for (std::uint32_t operand : value.operands) need(operand);
  }
  return cost;
}

}  // namespace

TEST_CASE("what is cheap to compute from what is kept anyway is computed") {
  // 0: a product, 1: its activation, 2: what a gradient reads of both
  KeepNetwork network;
  network.values = {{.id = {}, .keep = 100, .compute = kNever, .needed = true, .operands = {}}, {.id = {}, .keep = 100, .compute = 30, .needed = true, .operands = {0}}};
  CHECK(host::choose_kept(network) == std::vector<bool>{true, false});
  network.values[1].compute = 130;
  CHECK(host::choose_kept(network) == std::vector<bool>{true, true});
  network.values[0].needed = false;  // then the product need not be kept
  network.values[1].compute = 30;
  CHECK(host::choose_kept(network) == std::vector<bool>{false, true});
}

TEST_CASE("the choice costs least of all") {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int trial = 0; trial < 300; ++trial) {
    KeepNetwork network;
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(below(9));
    for (std::uint32_t i = 0; i < count; ++i) {
      KeepNetwork::Value value{.id = {}, .keep = below(20), .compute = below(4) == 0 ? kNever : below(15), .needed = below(3) == 0, .operands = {}};
      if (value.compute != kNever && below(6) == 0) value.keep = kNever;
      if (value.compute != kNever)
        for (std::uint32_t k = 0; k < i; ++k)
          if (below(3) == 0) value.operands.push_back(k);
      network.values.push_back(std::move(value));
    }
    std::optional<std::int64_t> least;
    for (std::uint32_t bits = 0; bits < (1u << count); ++bits) {
      std::vector<bool> kept;
      for (std::uint32_t i = 0; i < count; ++i) kept.push_back((bits >> i) & 1);
      const auto cost = cost_of(network, kept);
      if (cost && (!least || *cost < *least)) least = cost;
    }
    CHECK(cost_of(network, host::choose_kept(network)) == least);
  }
}
