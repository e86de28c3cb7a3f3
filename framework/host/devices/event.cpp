#include "host/devices/event.h"

#include "core/base/error.h"

namespace tenon::host {

void drain(Device& device, void* stream) {
  try {
    return Event(device, stream).wait();
  } catch (const Exception&) {
    // Asked again below: what failed may have been the question alone.
  }
  try {
    Event(device, stream).wait();
  } catch (const Exception& why) {
    device.lose(why.what());
    throw;
  }
}

}  // namespace tenon::host
