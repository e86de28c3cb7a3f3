// What is known of the numbers of a function (extents of its tensors, its integers) when a call of it is captured.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ir/dim.h"

namespace tenon::python {

/// Which numbers vary from call to call: those that two captures have found different. Lives as long as the function's cache.
/// Numbers are known by the words of their source: "x.shape[0]", "n", "self.scale".
class NumberHistory {
 public:
  /// Takes over the value that a capture found. Gives whether the number varies.
  bool varies(const std::string& name, std::int64_t value);
  /// Takes note that a number varies, whatever was found so far.
  void vary(const std::string& name, std::int64_t value) {
    varies(name, value);
    numbers_[name].varies = true;
  }
  /// The same of all numbers that will be found at a source or below it, by its words: not of the sizes of tensors.
  void vary_below(std::string source) { varying_.push_back(std::move(source)); }
  struct Span {
    std::int64_t least, most;
  };
  /// The least and the greatest value that captures have found.
  Span span(const std::string& name) const { return numbers_.at(name).span; }
  /// Takes note that a capture needs the number itself. Gives whether it has held so many values that each would be one more variant.
  bool wears_out(const std::string& name);
  /// The same whatever a capture may do: whether a number has held as many values as are variants each.
  bool takes_many(const std::string& name);
  /// Whether a number has held so many that the library rather makes a call with it itself.
  bool takes_several(const std::string& name);
  /// Takes note that what is at a source, by its words, was not what a capture had found there.
  void note_change(const std::string& source) { ++changes_[source]; }
  /// Whether items of a sequence, its length, or what an iterator has to give, have changed so often that all rounds of a loop over them would
  /// be one more variant.
  bool items_keep_varying(const std::string& sequence) const;
  /// Takes note that a capture has succeeded with constants for all numbers, as it has not with symbols.
  void note_constants() { ++constants_; }
  /// Whether so many have that it is rather to end where symbols do not do.
  bool constants_wear_out() const;
  /// Takes note of the answer that the present call gives to a question about numbers. Gives whether captures have found both.
  bool answers_vary(const std::string& question, bool answer) {
    unsigned& found = answers_[question];
    found |= answer ? 1U : 2U;
    return found == 3;
  }
  /// Takes note of whether what is at a source lies in row-major order. Gives whether it is rather taken for what lies with some strides: captures have
  /// found both, among several variants.
  bool layout_varies(const std::string& name, bool row_major) { return answers_vary(name + " in row-major order", row_major) && takes_any_layout; }
  void clear() {
    numbers_.clear();
    taken_.clear();
    answers_.clear();
    changes_.clear();
    constants_ = 0;
    late_sizes = true;
    branches_assumed = true;
  }

  bool may_break = false;    // rather than compile a variant for each value
  bool takes_any_layout = false;  // there are several variants: what lies now with gaps, now without, has strides that vary
  bool splits = false;       // there are many variants: a branch on a number that has gone both ways breaks
  bool late_sizes = true;    // sizes that depend on data stay in the graph, which does not hold where they are 0
  bool branches_assumed = true;  // that lead to no exception, where another way would do nothing but raise
  bool may_assume = false;   // branches
  bool graph_alone = false;  // the graph is for use without the guards, as when it is exported: it computes all floats itself

 private:
  struct Seen {
    std::int64_t value = 0;
    bool varies = false;
    Span span = {0, 0};
  };
  std::unordered_map<std::string, Seen> numbers_;
  bool takes_more_than(const std::string& name, std::size_t most);
  bool is_below_varying(std::string_view name) const;

  std::vector<std::string> varying_;  // sources: a property of the place, which stays
  std::unordered_map<std::string, std::set<std::int64_t>> taken_;
  std::unordered_map<std::string, unsigned> answers_;
  std::size_t constants_ = 0;
  std::unordered_map<std::string, unsigned> changes_;  // by words of a source
};

/// What the captures of one call have settled about its numbers, each with the help of the one before: constants, equalities, ranges.
/// Expressions are over positions in `names()`.
class NumberFacts {
 public:
  struct Range {
    std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
    bool holds(std::int64_t value) const { return value >= least && value <= most; }
  };

  /// The position of a name, made when it is new.
  std::size_t position(const std::string& name);
  const std::vector<std::string>& names() const { return names_; }

  bool is_fixed(std::size_t name) const { return all_fixed_ || facts_[name].fixed; }
  const std::optional<ir::Dim>& definition(std::size_t name) const { return facts_[name].definition; }
  const Range& range(std::size_t name) const { return facts_[name].range; }
  /// What a name stands for that is no number of the program but a difference of some.
  const std::optional<ir::Dim>& expression(std::size_t name) const { return facts_[name].expression; }

  // Each gives whether that was news.
  bool fix(std::size_t name);
  bool define(std::size_t name, ir::Dim value);
  /// Makes a name for an expression.
  std::size_t name_expression(const std::string& words, ir::Dim value);
  bool narrow(std::size_t name, Range range);
  /// No number is a symbol any more: the capture as it would be without symbols.
  bool fix_all();
  /// No least or greatest of numbers stays in an expression any more: which one it is, is guarded.
  bool decide_extremes() { return !std::exchange(extremes_decided_, true); }
  bool extremes_decided() const { return extremes_decided_; }

 private:
  struct Facts {
    bool fixed = false;
    std::optional<ir::Dim> definition, expression;
    Range range;
  };
  std::vector<std::string> names_;
  std::vector<Facts> facts_;
  std::map<std::string, std::size_t> positions_;
  bool all_fixed_ = false, extremes_decided_ = false;
};

}  // namespace tenon::python
