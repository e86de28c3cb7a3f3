// Memory that code runs in: many pieces a mapping, of which none is ever writable where it is executed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace tenon::llvm_backend {

/// A piece of executable memory. It is free for others when its last owner is gone.
class CodePiece {
 public:
  virtual ~CodePiece() = default;
  CodePiece(const CodePiece&) = delete;
  CodePiece& operator=(const CodePiece&) = delete;

  std::byte* address() const { return address_; }
  /// Puts the content there, before anything runs in it.
  virtual void write(std::span<const std::byte> content) = 0;

 protected:
  explicit CodePiece(std::byte* address) : address_(address) {}

 private:
  std::byte* const address_;
};

/// Takes a piece at a multiple of 64 bytes. Throws Exception where the process may have no more executable memory. Thread-safe, also across
/// forks: what a parent and its child both may run is written by neither.
std::unique_ptr<CodePiece> take_code_memory(std::size_t bytes);

/// Has code lie in anonymous mappings from now on, each piece on pages of its own: Linux perf looks for names of code in /tmp/perf-PID.map there only.
void use_anonymous_code_memory();

/// What is mapped for code and how much of it is taken, in bytes.
struct CodeMemoryUse {
  std::size_t mappings = 0, mapped = 0, taken = 0;
};
CodeMemoryUse code_memory_use();

}  // namespace tenon::llvm_backend
