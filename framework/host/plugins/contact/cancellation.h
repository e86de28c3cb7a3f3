// Giving up a compile: the driver is asked whether it still waits, by the host between steps and by plugins while they work.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::host {

/// While it lives, `cancelled` asks the driver on this thread, and on the workers of its loops. Once given up is given up.
class CancelScope {
 public:
  /// `asked` may be null: then nothing is cancelled. It is called on any thread of the compile, maybe on several at a time.
  CancelScope(std::int32_t (*asked)(void* context), void* context);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;

  bool given_up();

 private:
  std::int32_t (*asked_)(void*);
  void* context_;
  std::atomic<bool> given_up_{false};
  CancelScope* outer_;
};

/// Whether the driver has given up what this thread compiles.
bool cancelled();

/// Throws Exception (cancelled) when it has.
void stop_if_cancelled();

}  // namespace tenon::host
