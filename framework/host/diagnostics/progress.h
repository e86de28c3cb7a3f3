// Tells on stderr how far a compile is that takes more than a second.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace tenon::host {

/// One compile. A thread of its own writes, and holds no lock while it does: a compile never waits for a terminal.
class Progress {
 public:
  /// `when` is the flag diagnostics.progress; nothing is started where it says that nothing is told. Throws (invalid_argument) for
  /// another word.
  Progress(const std::string& when, std::size_t nodes);
  ~Progress();
  Progress(const Progress&) = delete;

  /// A backend begins to compile a group of so many nodes.
  void begin_group(std::string_view backend, std::size_t nodes);

 private:
  void tell();
  std::string line(double seconds);

  const std::size_t nodes_;
  bool terminal_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::string backend_;
  std::size_t begun_ = 0, group_ = 0;  // nodes of all groups that were begun, and of the last one
  std::thread teller_;
};

}  // namespace tenon::host
