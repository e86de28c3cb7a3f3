// What a compile has to do with whoever waits for it: giving it up (the driver is asked between steps, and by plugins while they work), and how far it is.
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

class Progress;

/// While it lives, what plugins say of how far they are goes to `told`, on this thread and on the workers of its loops; null: nowhere.
class ProgressScope {
 public:
  explicit ProgressScope(Progress* told);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;

 private:
  Progress* outer_;
};

/// Whether the driver has given up what this thread compiles.
bool cancelled();

/// Throws Exception (cancelled) when it has.
void stop_if_cancelled();

}  // namespace tenon::host
