// Whether a function that does much between its graphs is better off as plain Python, as calls of either kind tell.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tenon::python {

/// What a graph costs and gains is known well enough where it works on arrays. Where a program goes through elements, or through a loop round by
/// round, or where a part of it is plain Python anyway, or variant comes after variant, much of the time goes by between the graphs: calls in turn, compiled and plain, are timed, and the faster way is taken for a long while.
class PlainTrial {
 public:
  enum class Way { compiled, plain };
  /// How the next call is to run.
  Way next();
  bool is_left() const { return state_ == State::left; }
  /// A compiled call that compiled nothing. `is_in_doubt`: that went through elements or rounds, or was plain in part.
  void took_compiled(double seconds, bool is_in_doubt);
  /// A plain one.
  void took_plain(double seconds);
  /// Something was compiled: what was timed before says nothing.
  void begin_anew();
  /// In words, when the function has just been left to plain Python.
  std::optional<std::string> decision();

 private:
  enum class State { watching, trying, kept, left };
  void settle();

  State state_ = State::watching;
  std::size_t calls_ = 0;      // in this state
  std::size_t patience_ = 1024;  // calls until the next trial
  std::vector<double> compiled_, plain_;
  std::optional<std::string> decision_;
};

}  // namespace tenon::python
