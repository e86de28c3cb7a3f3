// Runs groups as `reference` does, on a stream of a mock device.
#pragma once

#include <memory>
#include <string>

#include "devices.h"
#include "tenon/backend.h"

namespace tenon::mock {

class MockBackend : public Backend {
 public:
  static constexpr std::uint32_t kFlags = TENON_DYNAMIC_SHAPES | TENON_STRIDED_INPUTS | TENON_COMPILE_REENTRANT | TENON_EXECUTE_REENTRANT;
  static constexpr DLDevice kDevices[] = {{kDLExtDev, -1}};

  /// `options`: see README.md.
  MockBackend(HostServices host, const std::string& options);

  static Devices& open_devices(HostServices) { return MockDevices::get(); }

  void claim(const GraphView& graph, Claims& claims) override;
  std::unique_ptr<Artefact> compile(const GraphView& graph, std::span<const DLTensor* const> constants, const std::string& options) override;

 private:
  HostServices host_;
  bool single_nodes_ = false;
};

}  // namespace tenon::mock
