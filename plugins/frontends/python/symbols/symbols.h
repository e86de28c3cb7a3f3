// The symbolic integers of one capture: which numbers are symbols, how they compare, and what of that must be guarded.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/ir/graph.h"
#include "core/ir/relation.h"
#include "core/ops/size_questions.h"
#include "python/objects/ref.h"
#include "python/symbols/number_check.h"
#include "python/symbols/number_facts.h"

namespace tenon::python {

/// Which numbers may become symbols.
enum class Dynamic : std::uint8_t {
  never,
  when_varying,  // those that an earlier capture has found with another value
  always,        // extents of tensors and integers among the arguments, too
};

/// Extents and strides vary within one sign: -1, 0 and 1 mean something of their own there, and stay constants. An int varies among all values of
/// the signs that it has had; where an operation takes it for an extent, it is narrowed to what an extent would be.
///
/// Everything is decided by the values of the call that is captured. What a decision rests on is noted as a relation to be guarded; what
/// shape inference could not prove becomes a fact for the next capture of the same call, which then starts from it: equal extents are
/// one symbol, an extent that has to be at least 5 is a symbol of that range, a number that must be known is a constant.
class Symbols final : public ops::SizeQuestions {
 public:
  /// While it lives, what is learned of numbers is asked by a call of this function, whose name lives as long.
  class CallScope {
   public:
    CallScope(Symbols& symbols, std::string_view name) : symbols_(symbols), outer_(std::exchange(symbols.call_, name)) {}
    ~CallScope() { symbols_.call_ = outer_; }
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

   private:
    Symbols& symbols_;
    std::string_view outer_;
  };

  Symbols(ir::Graph& graph, Dynamic dynamic, NumberHistory& history, NumberFacts& facts);
  ~Symbols() override;
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  /// The symbols of the innermost capture of this thread, or null.
  static Symbols* active();

  /// The number as the graph must see it: a constant (which the caller guards), or an expression over symbols (guarded here).
  /// `from_the_start`: a symbol also without having varied, under Dynamic::always.
  ir::Dim number(NumberSource source, std::int64_t value, bool from_the_start);
  /// Takes note that the program says of a number, by the words of its source, that it varies.
  void expect_to_vary(const std::string& name, std::int64_t value) { history_.vary(name, value); }
  /// Whether what lies in row-major order, or does not, has strides that vary. `name`: of its source.
  bool layout_varies(const std::string& name, bool row_major) { return history_.layout_varies(name, row_major); }
  /// Whether a number varies and may be something else than a constant. `bits`: its value, for comparison.
  bool varies(const std::string& name, std::int64_t bits, bool from_the_start);
  /// Makes a number a constant, in a capture to come.
  void fix(const std::string& name, const char* why);
  /// Takes note that a number varies: its place does.
  void vary(const std::string& name, std::int64_t bits) { history_.vary(name, bits); }
  /// Whether a loop over a sequence of that name, or by bounds of these names, is rather gone through round by round.
  bool items_keep_varying(const std::string& sequence) const { return history_.items_keep_varying(sequence); }
  bool rounds_keep_varying(std::span<const std::string> bounds);
  /// Whether branches may be assumed to lead to no exception.
  bool may_assume() const { return history_.may_assume; }
  /// The place in a sequence that an expression over ints says; nothing where it is over sizes.
  std::optional<ChosenPlace> place(const ir::Dim& dim) const;
  /// The names of the numbers that an expression is over, as `fix` takes them.
  std::vector<std::string> names_of(const ir::Dim& dim) const;
  /// Records arithmetic of floats that symbolic ints take part in; gives nothing where it must be done with their values.
  using FloatArithmetic = Ref (*)(FloatTape::Op op, PyObject* a, PyObject* b);
  void record_floats_by(FloatArithmetic record) { float_arithmetic_ = record; }
  FloatArithmetic float_arithmetic() const { return float_arithmetic_; }
  FloatTape& floats() { return floats_; }
  /// A step of the tape, with the present values; nothing where it does not hold.
  std::optional<FloatTape::Position> float_step(FloatTape::Step step, double read = 0) { return floats_.add(std::move(step), values_, read); }
  /// Whether float64 holds the int, whatever it is in later calls: guarded.
  bool is_exact_in_floats(const ir::Dim& integer);
  /// The int as a float of the tape; nothing for one that no float is, which is guarded.
  std::optional<FloatTape::Position> as_float(const ir::Dim& integer);
  /// The whole number that a step gives, as an int; nothing for one that float64 does not tell from the next. It varies, since the floats do.
  std::optional<ir::Dim> whole(FloatTape::Position step);
  /// The whole number that a function of an int gives, as an int; nothing for an int that no float is.
  std::optional<ir::Dim> whole_of(const ir::Dim& integer, std::string_view name, double (*function)(double));
  bool dynamic() const { return dynamic_ != Dynamic::never; }
  bool any() const { return !made_.empty(); }

  /// The value in the call that is captured. Throws for symbols that depend on data, and on overflow.
  std::int64_t value(const ir::Dim& dim) const;
  std::vector<std::int64_t> values(std::span<const ir::Dim> dims) const;
  /// The values of all symbols in the call that is captured.
  std::span<const std::int64_t> present() const { return values_; }
  /// Values to go on with where a size depends on data: nothing may be decided by them.
  std::vector<std::int64_t> hints(std::span<const ir::Dim> dims) const;
  /// What they come to where every size that depends on data is `size`.
  std::vector<std::int64_t> values_where_data_is(std::int64_t size, std::span<const ir::Dim> dims) const;
  /// The graph is to hold only where the sizes that depend on data in it are at least `least`.
  void require_data_of_at_least(std::int64_t least, const ir::Dim& dim);
  /// Takes note of the sizes that depend on data of which the graph has come to know. The graph holds where none is 0.
  void take_data_symbols();
  bool any_data() const { return any_data_; }
  /// Whether every symbol in it has a value now.
  bool is_known(const ir::Dim& dim) const;
  /// Sizes of 0 and 1 have a meaning of their own: the size of a result is one of them, or guarded to be greater.
  void settle_extent(const ir::Dim& dim);
  /// Whether the relation holds, which is guarded where the ranges do not prove it.
  bool decide(ir::Relation::Operator op, const ir::Dim& left, const ir::Dim& right);
  /// Whether all pairs are equal; nothing where that is for each of them to say. That some differ is one relation, where several might.
  std::optional<bool> all_equal(std::span<const std::pair<ir::Dim, ir::Dim>> pairs);
  /// As `decide`, for a branch of the program. Where variants have mounted up it breaks the graph: what comes after it is compiled once for either
  /// way, not once for all that came before.
  bool branch(ir::Relation::Operator op, const ir::Dim& left, const ir::Dim& right);
  /// The program needs the number itself: guards its value.
  std::int64_t specialise(const ir::Dim& dim, const char* why);
  /// The same for one instruction, which runs as plain Python where that costs less than one more variant: a list that a loop with breaks
  /// reads at its counter.
  std::int64_t specialise_or_break(const ir::Dim& dim, const char* why);
  /// Whether the instruction that needs these numbers is to break the graph instead of taking them as constants.
  bool wear_out(std::span<const std::string> names);
  bool broke() const { return broke_; }
  /// While a call is recorded that the library may make itself: an operation of the catalogue that goes by a number which keeps varying is refused.
  void library_may(bool may) { library_may_ = may; }
  bool may_library() const { return library_may_; }
  bool hashes_unguarded = false;  // an int hashes as what it is now, which is not guarded
  /// The lesser of two ints, or the greater: one of them, which is guarded, until captures have found either.
  ir::Dim extreme(const ir::Dim& a, const ir::Dim& b, bool least);
  /// An expression that must be computable at every call.
  void compute(const ir::Dim& dim);

  void equal(const ir::Dim& a, const ir::Dim& b) override;
  bool is_same(const ir::Dim& size, const ir::Dim& other) override;
  void not_negative(const ir::Dim& dim) override;
  void clamps(const ir::Dim& dim) override;
  void divisible(const ir::Dim& dim, const ir::Dim& by) override;
  void constant(const ir::Dim& dim) override;
  bool is_zero(const ir::Dim& dim) override { return is_known(dim) && decide(ir::Relation::Operator::equal, dim, 0); }
  bool is_within(const ir::Dim& dim, std::int64_t least, std::int64_t most) override;
  bool keeps_sign_open(const ir::Dim& dim) override { return is_known(dim) && stays_open(dim); }

  /// Takes note of a number that the graph computes, for whose value the capture ends.
  void note_needed(ir::ValueId number) { needed_ = number; }
  ir::ValueId needed() const { return needed_; }

  /// Whether the capture must be repeated from what it has found out.
  bool learned() const { return learned_; }
  /// What guards the numbers, or null when there are none.
  std::shared_ptr<NumberCheck> guard();
  std::string describe(const ir::Dim& dim) const;

 private:
  NumberFacts::Range range_of(const NumberSource& source, std::int64_t value) const;
  ir::Dim symbol(std::size_t name, NumberSource source, std::int64_t value);
  ir::Dim make(std::size_t name, NumberSource source, std::int64_t value);
  void make_expression(std::size_t name);
  /// A symbol and what it is added to, or (where it does not rise) subtracted from.
  struct Summand {
    SymbolId symbol;
    bool rises;
    ir::Dim rest;
  };
  std::optional<Summand> latest_alone(const ir::Dim& sum) const;
  ir::Dim over_names(const ir::Dim& over_symbols) const;
  void guard_range(const ir::Dim& dim, const NumberFacts::Range& range);
  bool note(ir::Relation relation);
  bool define_latest(const ir::Dim& difference);
  void define(std::size_t name, ir::Dim value);
  bool pair_factors(const ir::Dim& difference);
  bool keep_length(const ir::Dim& difference);
  void settle(const ir::Dim& dim);
  void refine(bool news);
  /// Makes constants of them, unless the next capture may do without.
  void fix_symbols_of(const ir::Dim& dim, const char* why);
  std::string_view call_;  // the library's function that asks; empty for the program itself
  void say_constant(const std::string& words, std::int64_t value, const char* why);
  bool narrow_single(const ir::Dim& dim);
  void narrow_sign(std::size_t name, bool natural, bool rises, std::int64_t offset);
  bool name_difference(const ir::Dim& dim);
  bool name_quotient(const ir::Dim& given, std::int64_t by);
  bool name_quotients_of(const ir::Dim& dim);
  bool fix_divisors(const ir::Dim& dim, std::int64_t number);
  bool stays_open(const ir::Dim& dim);
  ir::Dim as_read(const ir::Dim& dim) const;
  std::optional<ir::Dim> over_symbols(const ir::Dim& over_names) const;

  ir::Graph& graph_;
  Dynamic dynamic_;
  NumberHistory& history_;
  NumberFacts& facts_;
  Symbols* outer_;
  ops::AskingSizes asking_;
  std::vector<NumberSource> sources_;       // by symbol
  std::vector<std::int64_t> values_;        // by symbol
  std::vector<std::size_t> names_;          // by symbol: position in the facts
  std::unordered_map<std::size_t, ir::Dim> made_;  // by name: as the capture sees them
  std::unordered_map<std::size_t, ir::Dim> raw_;   // by name: as they are read
  std::vector<ir::Relation> relations_;
  std::vector<ir::Dim> computed_;
  FloatTape floats_;
  std::unordered_set<std::string> said_;    // specialisations that were logged
  std::shared_ptr<NumberCheck> guard_;
  FloatArithmetic float_arithmetic_ = nullptr;
  ir::ValueId needed_;
  std::unordered_set<std::size_t> defined_;  // names that were defined in this capture
  bool learned_ = false;
  bool refined_ = false;  // what is learned (a range, a definition) may settle what is asked after it, without making a number a constant
  bool broke_ = false;
  bool library_may_ = false;
  bool any_data_ = false;
};

}  // namespace tenon::python
