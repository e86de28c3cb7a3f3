// The backend: what it claims, compiles, and which devices it brings.
#pragma once

#include <memory>
#include <string>

#include "device/cuda_devices.h"
#include "run/card_program.h"
#include "tenon/backend.h"

namespace tenon::cuda {

class CudaBackend : public Backend {
 public:
  static constexpr std::uint32_t kFlags = TENON_DYNAMIC_SHAPES | TENON_COMPILE_REENTRANT | TENON_EXECUTE_REENTRANT | TENON_STRIDED_INPUTS;
  static constexpr DLDevice kDevices[] = {{kDLCUDA, -1}};

  /// `options`: see options.json.
  CudaBackend(HostServices host, const std::string& options);

  /// The cards that there are. Where there is none it reports why, and that is no failure.
  static Devices& open_devices(HostServices host);

  void claim(const GraphView& graph, Claims& claims) override;
  std::unique_ptr<Artefact> compile(const GraphView& graph, std::span<const DLTensor* const> constants, const std::string& options) override;

 private:
  HostServices host_;
  CardProgram::Options options_;
};

}  // namespace tenon::cuda
