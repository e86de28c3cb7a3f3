// Tells how far a compile is that takes more than a second: on stderr, or to whoever listens in this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace tenon::host {

/// Takes what is told in this process in place of stderr: a line and which part of the whole is done, from 0 to 1; an empty line when the compile has
/// ended. Called on a thread of its own, also after the compile where it takes long. Null puts stderr back.
using ProgressListener = void (*)(const char* line, double part);
void set_progress_listener(ProgressListener listener);

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
  /// Of what it compiles now, so many pieces of all are done.
  void note_pieces(std::int64_t done, std::int64_t total);

 private:
  struct State;

  std::shared_ptr<State> state_;  // null: nothing is told
  std::thread teller_;            // detached where a listener is told, which may take as long as it likes
};

}  // namespace tenon::host
