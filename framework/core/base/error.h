// What went wrong, in a form that a caller can act on, and the two words for checking.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace tenon {

/// The classes of failure. The numbers are those of `TenonCode` in abi/plugin.h.
enum class Code : std::int32_t {
  ok = 0,
  invalid_argument = 1,  // the caller's fault: what was given is outside what is allowed
  malformed = 2,         // damaged input: text, buffer, file
  unsupported = 3,       // a clear refusal: legal, but not done here
  not_found = 4,         // a name that nothing answers to
  incompatible = 5,      // no common version, another machine, a wrong build
  plugin_failed = 6,     // a plugin threw, crashed in the probe, or returned nonsense
  out_of_memory = 7,
  cancelled = 8,
  internal = 9,          // our fault
  device_lost = 10,      // nothing can run on a device any more
};

/// Names a code as it appears in messages and JSON ("invalid_argument").
const char* code_name(Code code);

/// The class of failure for a number that a plugin gave: plugin_failed for one that is none.
Code failure_code(std::int32_t number);

/// Carries one failure: its class and a sentence for people.
struct Error {
  Code code = Code::internal;
  std::string message;
};

/// The exception used inside a library. It never crosses the C ABI: entry guards turn it into an Error.
class Exception : public std::runtime_error {
 public:
  Exception(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  explicit Exception(const Error& error) : Exception(error.code, error.message) {}

  Code code() const { return code_; }
  Error error() const { return {code_, what()}; }

 private:
  Code code_;
};

/// Holds a value, or the reason why there is none: for operations where failing is an answer.
template <class T>
class Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  const Error& error() const { return std::get<1>(state_); }

  /// Gives the value or throws the error as an Exception.
  T value() && {
    if (!ok()) throw Exception(error());
    return std::get<0>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

[[noreturn]] void fail_check(const char* condition, const char* file, int line, const std::string& message);

/// Makes an Error with a formatted message.
template <class... Args>
Error error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace tenon

/// Throws when the caller gave something that is not allowed. The message says what was given, what is allowed, what to do.
#define TENON_USER_CHECK(condition, ...) \
  do {                                   \
    if (!(condition)) [[unlikely]]       \
      throw ::tenon::Exception(::tenon::Code::invalid_argument, ::fmt::format(__VA_ARGS__)); \
  } while (0)

/// Throws when we broke an invariant of our own.
#define TENON_CHECK(condition, ...) \
  do {                              \
    if (!(condition)) [[unlikely]]  \
      ::tenon::fail_check(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
  } while (0)
