// Questions about sizes that the ranges of the symbols leave open, asked while a graph is built from the values of one call.
#pragma once

#include <cstdint>
#include <utility>

#include "core/ir/graph.h"

namespace tenon::ops {

/// Whoever builds a graph from one call's values can decide what shape inference cannot prove. It answers nothing here: it notes what was
/// asked, and builds the graph again from ranges and equalities under which nothing is left open.
class SizeQuestions {
 public:
  virtual ~SizeQuestions();
  /// Whether the two are equal was not known.
  virtual void equal(const ir::Dim& a, const ir::Dim& b) = 0;
  /// The same, where the first may be taken for the second from there on: whether it is so in the call for which the graph is built, which then
  /// holds for such calls alone.
  virtual bool is_same(const ir::Dim&, const ir::Dim&) { return false; }
  /// Whether it is at least 0 was not known.
  virtual void not_negative(const ir::Dim& dim) = 0;
  /// The same for a clamp, which stays in the expression where nobody settles it.
  virtual void clamps(const ir::Dim& dim) { not_negative(dim); }
  /// Whether one divides the other was not known.
  virtual void divisible(const ir::Dim& dim, const ir::Dim& by) = 0;
  /// A constant was needed.
  virtual void constant(const ir::Dim& dim) = 0;
  /// It was taken to be at least 0, which the ranges leave open: what was built is wrong where it is not.
  virtual void taken_not_negative(const ir::Dim&) {}
  /// Whether it is 0 in the call for which the graph is built, which then holds for such calls alone.
  virtual bool is_zero(const ir::Dim&) { return false; }
  /// The same of whether it lies between two numbers.
  virtual bool is_within(const ir::Dim&, std::int64_t, std::int64_t) { return true; }
  /// Whether it is negative in some calls and not in others, so that what is built should hold for either.
  virtual bool keeps_sign_open(const ir::Dim&) { return false; }
};

/// While it lives, inference on this thread asks `questions`, which may be null.
class AskingSizes {
 public:
  explicit AskingSizes(SizeQuestions* questions);
  ~AskingSizes();
  AskingSizes(const AskingSizes&) = delete;
  AskingSizes& operator=(const AskingSizes&) = delete;

 private:
  SizeQuestions* before_;
};

/// Does nothing where nobody asks.
namespace ask {
void equal(const ir::Dim& a, const ir::Dim& b);
bool is_same(const ir::Dim& size, const ir::Dim& other);
void not_negative(const ir::Dim& dim);
void clamps(const ir::Dim& dim);
void divisible(const ir::Dim& dim, const ir::Dim& by);
void constant(const ir::Dim& dim);
void taken_not_negative(const ir::Dim& dim);
bool is_zero(const ir::Dim& dim);
bool is_within(const ir::Dim& dim, std::pair<std::int64_t, std::int64_t> range);
bool keeps_sign_open(const ir::Dim& dim);
}  // namespace ask

namespace infer {
/// Whether the ranges of the symbols leave it possible that a dimension is not negative; asks where they leave it open, and takes it so.
bool may_be_positive_or_0(const ir::Graph& graph, const ir::Dim& dim);
/// Whether a place or a bound is counted from the end. Asks, and throws (unsupported), where the ranges leave that open.
bool is_negative(const ir::Graph& graph, const ir::Dim& place);
/// A size that a caller gives, where -1 has a meaning of its own: a constant, or never negative. Asks, and throws (unsupported), where it may be both.
void require_plain_size(const ir::Graph& graph, const ir::Dim& size);
/// The same without a question: for what eager refuses when a call has such sizes, so that no call is built for them.
bool taken_positive_or_0(const ir::Graph& graph, const ir::Dim& dim);
}  // namespace infer

}  // namespace tenon::ops
