// The evaluator's own instruction set: one for all versions of CPython.
#pragma once

#include <cstdint>

namespace tenon::python {

enum class Op : std::uint8_t {
  unsupported,  // breaks the graph; `arg` is CPython's number
  nop,
  // stack
  pop_top, push_null, copy, swap, end_for, end_send,
  // names
  load_const, load_fast, load_fast_and_clear, store_fast, delete_fast, make_cell, copy_free_vars, load_closure, load_deref, store_deref,
  delete_deref, load_class_deref, load_from_dict_or_deref, load_global, load_name, load_from_dict_or_globals, load_locals, store_name, delete_name, store_global, delete_global,
  load_build_class, setup_annotations, load_assertion_error, import_name, import_from,
  // attributes and items
  load_attr, load_method, load_super_attr, store_attr, delete_attr, binary_subscr, store_subscr, delete_subscr, binary_slice, store_slice,
  // operators
  unary_negative, unary_positive, unary_invert, unary_not, to_bool, binary_op, compare_op, is_op, contains_op,
  // building and unpacking
  build_tuple, build_list, build_set, build_map, build_const_key_map, build_string, build_slice, list_append, set_add, map_add,
  list_extend, set_update, dict_update, dict_merge, list_to_tuple, unpack_sequence, unpack_ex, format_value, format_simple, format_with_spec, convert_value,
  get_len, match_mapping, match_sequence, match_keys, match_class,
  // control
  jump, pop_jump_if_true, pop_jump_if_false, pop_jump_if_none, pop_jump_if_not_none, jump_if_true_or_pop, jump_if_false_or_pop, get_iter, for_iter,
  // calls and functions
  kw_names, call, call_kw, call_function_ex, make_function, set_function_attribute, return_value, return_const,
  // generators
  return_generator, yield_value, send, get_yield_from_iter, cleanup_throw, stop_iteration_error,
  // exceptions
  push_exc_info, pop_except, check_exc_match, reraise, raise_varargs, before_with, with_except_start,
};

/// Flags of load_global, load_attr, load_method and the like, in `Instruction::flags`.
inline constexpr std::uint8_t kPushNullBefore = 1;  // load_global on 3.11 and 3.12
inline constexpr std::uint8_t kPushNullAfter = 2;   // load_global on 3.13
inline constexpr std::uint8_t kSelfAfter = 4;       // load_method on 3.13: callable, then self or null
inline constexpr std::uint8_t kTwoArgumentSuper = 16;
inline constexpr std::uint8_t kKeepReceiver = 32;  // send from 3.12 on: a finished receiver stays below its value

struct Instruction {
  Op op = Op::nop;
  std::uint8_t flags = 0;
  std::uint8_t prefixes = 0;  // code units before it that widen its argument: it is entered at the first of them
  std::int32_t arg = 0;     // CPython's argument, reduced to what the op means (name index, count, local slot, …)
  std::int32_t target = 0;  // jumps: index of an instruction
  std::int32_t unit = 0;    // where CPython has it, in code units of two bytes
};

}  // namespace tenon::python
