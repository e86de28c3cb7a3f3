#include "backend.h"

#include <nlohmann/json.hpp>

#include "claiming.h"
#include "core/ir/buffer.h"
#include "device/cards.h"

namespace tenon::cuda {
namespace {

Rounding rounding_of(const nlohmann::json& options, Rounding otherwise) {
  return {options.value("tf32_products", otherwise.products), options.value("tf32_convolutions", otherwise.convolutions)};
}

}  // namespace

CudaBackend::CudaBackend(HostServices host, const std::string& options) : host_(host) {
  const auto given = nlohmann::json::parse(options);
  options_ = {.fuse = given.value("fuse", true), .graphs = given.value("graphs", true), .tensor_cores = given.value("tensor_cores", true), .rounding = rounding_of(given, {})};
}

Devices& CudaBackend::open_devices(HostServices host) {
  if (const std::string why = Cards::get().why_none(); !why.empty()) host.table()->report(host.table()->self, TENON_NOT_FOUND, TENON_NO_NODE, why.c_str());
  return CudaDevices::get();
}

void CudaBackend::claim(const GraphView& graph, Claims& claims) { 
  claim_nodes(ir::read_buffer(graph.bytes()).value(), claims, {options_.tensor_cores, rounding_of(nlohmann::json::parse(claims.options()), options_.rounding)});
}

std::unique_ptr<Artefact> CudaBackend::compile(const GraphView& graph, std::span<const DLTensor* const> constants, const std::string& options) {
  CardProgram::Options chosen = options_;
  chosen.rounding = rounding_of(nlohmann::json::parse(options), chosen.rounding);
  return std::make_unique<CardProgram>(host_, ir::read_buffer(graph.bytes(), constants).value(), chosen);
}

}  // namespace tenon::cuda
