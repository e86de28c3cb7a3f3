// The guards of one capture: what must hold, at which source, for the segment to be valid.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/guards/source.h"

namespace tenon::python {

enum class GuardKind : std::uint8_t {
  type_is,         // type(value) is expected
  identity,        // value is expected
  constant,        // same type and equal value; floats by their bits
  length,          // len of a list, tuple, dict, set or deque
  dict_keys,       // the same keys in the same order (expected: tuple)
  key_missing,     // expected is not a key of the dict
  key_present,     // expected is a key of the dict
  number_missing,  // the int at `place` is no key of the dict
  number_present,  // the int at `place` is a key of the dict
  set_items,       // a set that gives the items of the tuple expected, in order
  same_object,     // value is the value of another source
  different_object,  // value is not the value of another source
  function_parts,  // expected: (code, defaults, kwdefaults, globals) by identity; None for absent, Ellipsis for any
  type_attribute,  // `key` as the type finds it along its bases is expected, or missing (expected empty)
  cached_result,   // the functools.lru_cache holds nothing under the first item of the tuple expected, or the second, where there is one
  special_methods,  // by the names of special methods the type finds what is in the tuple expected
  base_order,      // the type's `__mro__` is expected
  cell_empty,      // the cell has no contents
  slot_empty,      // the slot that expected, a member descriptor, reads has no contents
  more_items,      // the iterator has an item after `number` others
  no_more_items,   // the iterator has `number` items or fewer
  value_check,     // a check that someone else supplies: tensor metadata
  distinct,        // the values of `others` are pairwise different objects
  numbers,         // relations between sizes and integers of several sources
};

/// Names the guard that failed: where, what was expected, what is there now.
struct GuardFailure {
  std::string source;
  std::string guard;
  std::string expected;
  std::string found;
};

/// The check of what a capture assumed of sizes and integers, after all checks of single sources hold.
class NumbersGuard {
 public:
  virtual ~NumbersGuard() = default;
  /// Runs on every call: no allocation, no Python code, no exception set. `registers`: the value of each source, by its number.
  virtual bool holds(PyObject* const* registers) noexcept = 0;
  virtual std::optional<GuardFailure> failure(PyObject* const* registers) = 0;
  /// The relations in words: "2 <= x.shape[0]".
  virtual std::vector<std::string> describe() const = 0;
  virtual SourceId some_source() const = 0;
};

class Pins;

/// A check on one object that another part of the frontend supplies (the metadata of a tensor or array).
class ValueCheck {
 public:
  virtual ~ValueCheck() = default;
  /// Runs on every call: no allocation, no Python code, no exception set.
  virtual bool holds(PyObject* value) const noexcept = 0;
  /// Adds words which, while they stay, show that the check holds for `value`, if it holds now. False where no words do.
  virtual bool pin(PyObject* value, Pins& pins) const {
    (void)value, (void)pins;
    return false;
  }
  /// What it demands, in words: "float32[3, 4]".
  virtual std::string expected() const = 0;
  /// What `value` is instead, in the same words. `value` may be any object.
  virtual std::string found(PyObject* value) const = 0;
};

struct Guard {
  GuardKind kind;
  SourceId source;
  Ref expected;
  Ref key;                   // type_attribute: the name
  std::int64_t number = 0;   // length, items
  SourceId other;            // same_object
  std::vector<SourceId> others;  // distinct
  std::shared_ptr<ValueCheck> check;
  std::shared_ptr<NumbersGuard> numbers;
  std::shared_ptr<const ChosenPlace> place = {};  // number_missing, number_present
};

/// Collects guards, each once.
class GuardSet {
 public:
  explicit GuardSet(SourceTable& sources) : sources_(sources) {}

  SourceTable& sources() { return sources_; }
  const SourceTable& sources() const { return sources_; }
  const std::vector<Guard>& all() const { return guards_; }

  void add(GuardKind kind, SourceId source, PyObject* expected = nullptr);
  void add_length(SourceId source, std::int64_t length);
  /// Whether that is guarded already.
  bool has_length(SourceId source, std::int64_t length) const { return seen_.contains({GuardKind::length, source.value, static_cast<std::uint64_t>(length), 0}); }
  /// Whether the iterator goes on after `count` items.
  void add_items_to_come(SourceId source, std::int64_t count, bool more);
  void add_same_object(SourceId source, SourceId other);
  void add_different_object(SourceId source, SourceId other);
  void add_type_attribute(PyTypeObject* type, PyObject* name, PyObject* value);
  /// The dict at `source` has the int as a key that numbers of the call say, or has it not.
  void add_number_in_keys(SourceId source, ChosenPlace number, bool present);
  /// `methods` is a fresh tuple of special_methods_of.
  void add_special_methods(PyTypeObject* type, Ref methods);
  void add_base_order(PyTypeObject* type);
  /// `parts` is a fresh tuple; `code` tells two guards on one source apart.
  void add_function_parts(SourceId source, Ref parts, PyObject* code);
  void add_value_check(SourceId source, std::shared_ptr<ValueCheck> check);
  /// The objects at all sources given so far to this function must be pairwise different: one guard for all.
  void add_distinct(SourceId source) { distinct_.push_back(source); }
  const std::vector<SourceId>& distinct() const { return distinct_; }
  /// At most one; null for none.
  void set_numbers(std::shared_ptr<NumbersGuard> numbers) { numbers_ = std::move(numbers); }
  const std::shared_ptr<NumbersGuard>& numbers() const { return numbers_; }

  /// While it lives, what is guarded is read by a reader that runs after the call: it must be the same then.
  class ReadAgain {
   public:
    ReadAgain(GuardSet& guards, PyObject* reader) : flag_(guards.are_read_again_), before_(std::exchange(flag_, true)) { guards.readers_.push_back(Ref::borrow(reader)); }
    ~ReadAgain() { flag_ = before_; }
    ReadAgain(const ReadAgain&) = delete;
    ReadAgain& operator=(const ReadAgain&) = delete;

   private:
    bool& flag_;
    bool before_;
  };
  bool are_read_again() const { return are_read_again_; }
  const std::vector<Ref>& readers() const { return readers_; }
  /// Whose code keeps tensors by itself, which somebody may write before it reads them.
  const std::vector<Ref>& keepers() const { return keepers_; }
  void add_keeper(PyObject* keeper) { keepers_.push_back(Ref::borrow(keeper)); }
  /// The guards on what is read again, with those by which it is found. Throws GraphBreak where an argument of the call leads to it, which is gone by then.
  std::vector<Guard> read_again() const;

 private:
  SourceTable& sources_;
  std::vector<Guard> guards_;
  std::vector<SourceId> distinct_;
  std::shared_ptr<NumbersGuard> numbers_;
  /// What makes two guards one. Two checks on one source that differ in what they expect are a contradiction, not one guard, so
  /// `expected` takes part.
  struct Identity {
    GuardKind kind;
    std::uint64_t place;     // source, or type
    std::uint64_t detail;    // other source, length, or key
    std::uint64_t expected;  // address
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  struct IdentityHash {
    std::size_t operator()(const Identity& identity) const;
  };
  bool stays(const Guard& guard) const;
  bool is_new(const Identity& identity) {
    const auto [known, is_new] = seen_.try_emplace(identity, guards_.size());
    if (are_read_again_) read_again_.insert(known->second);
    return is_new;
  }

  std::unordered_map<Identity, std::size_t, IdentityHash> seen_;  // and the place of the guard
  std::set<std::size_t> read_again_;                              // by place
  std::vector<Ref> readers_, keepers_;
  bool are_read_again_ = false;
};

/// Whether a guard is about what a class finds along its bases, which cannot change while the class has its version.
inline bool is_on_class(GuardKind kind) { return kind == GuardKind::type_attribute || kind == GuardKind::special_methods || kind == GuardKind::base_order; }

/// Says what a guard demands, in words: `x.scale == 3`.
std::string describe(const SourceTable& sources, const Guard& guard);

/// Whether two constants are the same for a program: same type and value, floats by their bits.
bool same_constant(PyObject* a, PyObject* b) noexcept;

}  // namespace tenon::python
