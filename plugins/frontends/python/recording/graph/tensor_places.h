// Which devices the tensors of a graph may be on.
#pragma once

#include <string>
#include <vector>

#include "core/ir/device.h"

namespace tenon::python {

class TensorPlaces {
 public:
  /// Beside the host, the devices that the backends bring (none named: the configuration's); without a list all that torch has.
  struct Allowed {
    bool host_only = true;
    const std::vector<std::string>* backends = nullptr;
  };
  explicit TensorPlaces(Allowed allowed) : allowed_(allowed) {}

  /// Throws GraphBreak for a device that none of the backends brings, in words.
  void require_served(ir::Device device);

 private:
  const Allowed allowed_;
  std::vector<ir::Device> served_;  // what was asked about
};

}  // namespace tenon::python
