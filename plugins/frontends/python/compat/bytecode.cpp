#include "python/compat/bytecode.h"

#include <Python.h>

#include <opcode.h>

#include <array>

#include "python/compat/object_layout.h"

namespace tenon::python::compat {
namespace {

using Table = std::array<Meaning, 256>;

/// Pseudo opcodes have numbers above 255 on some versions and never occur in code objects.
constexpr void put(Table& table, int raw, Op op, Jump jump = Jump::none) {
  if (raw < 256) table[raw] = {op, jump, false};
}
constexpr void skip(Table& table, int raw) {
  if (raw < 256) table[raw] = {Op::nop, Jump::none, true};
}

constexpr Table make_table() {
  Table t{};
  skip(t, CACHE);
  skip(t, EXTENDED_ARG);
  put(t, NOP, Op::nop);
  put(t, RESUME, Op::nop);
  put(t, POP_TOP, Op::pop_top);
  put(t, PUSH_NULL, Op::push_null);
  put(t, COPY, Op::copy);
  put(t, SWAP, Op::swap);
  put(t, LOAD_CONST, Op::load_const);
  put(t, LOAD_FAST, Op::load_fast);
  put(t, STORE_FAST, Op::store_fast);
  put(t, DELETE_FAST, Op::delete_fast);
  put(t, MAKE_CELL, Op::make_cell);
  put(t, COPY_FREE_VARS, Op::copy_free_vars);
  put(t, LOAD_DEREF, Op::load_deref);
  put(t, STORE_DEREF, Op::store_deref);
  put(t, DELETE_DEREF, Op::delete_deref);
  put(t, LOAD_GLOBAL, Op::load_global);
  put(t, LOAD_NAME, Op::load_name);
  put(t, STORE_NAME, Op::store_name);
  put(t, DELETE_NAME, Op::delete_name);
  put(t, STORE_GLOBAL, Op::store_global);
  put(t, DELETE_GLOBAL, Op::delete_global);
  put(t, LOAD_BUILD_CLASS, Op::load_build_class);
  put(t, SETUP_ANNOTATIONS, Op::setup_annotations);
  put(t, LOAD_ASSERTION_ERROR, Op::load_assertion_error);
  put(t, IMPORT_NAME, Op::import_name);
  put(t, IMPORT_FROM, Op::import_from);
  put(t, LOAD_ATTR, Op::load_attr);
  put(t, STORE_ATTR, Op::store_attr);
  put(t, DELETE_ATTR, Op::delete_attr);
  put(t, BINARY_SUBSCR, Op::binary_subscr);
  put(t, STORE_SUBSCR, Op::store_subscr);
  put(t, DELETE_SUBSCR, Op::delete_subscr);
  put(t, UNARY_NEGATIVE, Op::unary_negative);
  put(t, UNARY_INVERT, Op::unary_invert);
  put(t, UNARY_NOT, Op::unary_not);
  put(t, BINARY_OP, Op::binary_op);
  put(t, COMPARE_OP, Op::compare_op);
  put(t, IS_OP, Op::is_op);
  put(t, CONTAINS_OP, Op::contains_op);
  put(t, BUILD_TUPLE, Op::build_tuple);
  put(t, BUILD_LIST, Op::build_list);
  put(t, BUILD_SET, Op::build_set);
  put(t, BUILD_MAP, Op::build_map);
  put(t, BUILD_CONST_KEY_MAP, Op::build_const_key_map);
  put(t, BUILD_STRING, Op::build_string);
  put(t, BUILD_SLICE, Op::build_slice);
  put(t, LIST_APPEND, Op::list_append);
  put(t, SET_ADD, Op::set_add);
  put(t, MAP_ADD, Op::map_add);
  put(t, LIST_EXTEND, Op::list_extend);
  put(t, SET_UPDATE, Op::set_update);
  put(t, DICT_UPDATE, Op::dict_update);
  put(t, DICT_MERGE, Op::dict_merge);
  put(t, UNPACK_SEQUENCE, Op::unpack_sequence);
  put(t, UNPACK_EX, Op::unpack_ex);
  put(t, GET_LEN, Op::get_len);
  put(t, MATCH_MAPPING, Op::match_mapping);
  put(t, MATCH_SEQUENCE, Op::match_sequence);
  put(t, MATCH_KEYS, Op::match_keys);
  put(t, MATCH_CLASS, Op::match_class);
  put(t, JUMP_FORWARD, Op::jump, Jump::forward);
  put(t, JUMP_BACKWARD, Op::jump, Jump::backward);
  put(t, JUMP_BACKWARD_NO_INTERRUPT, Op::jump, Jump::backward);
  put(t, GET_ITER, Op::get_iter);
  put(t, FOR_ITER, Op::for_iter, Jump::forward);
  put(t, CALL, Op::call);
  put(t, CALL_FUNCTION_EX, Op::call_function_ex);
  put(t, MAKE_FUNCTION, Op::make_function);
  put(t, RETURN_VALUE, Op::return_value);
  put(t, RETURN_GENERATOR, Op::return_generator);
  put(t, YIELD_VALUE, Op::yield_value);
  put(t, SEND, Op::send, Jump::forward);
  put(t, GET_YIELD_FROM_ITER, Op::get_yield_from_iter);
  put(t, PUSH_EXC_INFO, Op::push_exc_info);
  put(t, POP_EXCEPT, Op::pop_except);
  put(t, CHECK_EXC_MATCH, Op::check_exc_match);
  put(t, RERAISE, Op::reraise);
  put(t, RAISE_VARARGS, Op::raise_varargs);
  put(t, BEFORE_WITH, Op::before_with);
  put(t, WITH_EXCEPT_START, Op::with_except_start);
#if PY_VERSION_HEX < 0x030C0000  // 3.11 only
  put(t, UNARY_POSITIVE, Op::unary_positive);
  put(t, LIST_TO_TUPLE, Op::list_to_tuple);
  put(t, LOAD_METHOD, Op::load_method);
  put(t, LOAD_CLASSDEREF, Op::load_class_deref);
  skip(t, PRECALL);
  put(t, JUMP_IF_TRUE_OR_POP, Op::jump_if_true_or_pop, Jump::forward);
  put(t, JUMP_IF_FALSE_OR_POP, Op::jump_if_false_or_pop, Jump::forward);
  put(t, POP_JUMP_FORWARD_IF_TRUE, Op::pop_jump_if_true, Jump::forward);
  put(t, POP_JUMP_FORWARD_IF_FALSE, Op::pop_jump_if_false, Jump::forward);
  put(t, POP_JUMP_FORWARD_IF_NONE, Op::pop_jump_if_none, Jump::forward);
  put(t, POP_JUMP_FORWARD_IF_NOT_NONE, Op::pop_jump_if_not_none, Jump::forward);
  put(t, POP_JUMP_BACKWARD_IF_TRUE, Op::pop_jump_if_true, Jump::backward);
  put(t, POP_JUMP_BACKWARD_IF_FALSE, Op::pop_jump_if_false, Jump::backward);
  put(t, POP_JUMP_BACKWARD_IF_NONE, Op::pop_jump_if_none, Jump::backward);
  put(t, POP_JUMP_BACKWARD_IF_NOT_NONE, Op::pop_jump_if_not_none, Jump::backward);
#else  // from 3.12 on
  put(t, POP_JUMP_IF_TRUE, Op::pop_jump_if_true, Jump::forward);
  put(t, POP_JUMP_IF_FALSE, Op::pop_jump_if_false, Jump::forward);
  put(t, POP_JUMP_IF_NONE, Op::pop_jump_if_none, Jump::forward);
  put(t, POP_JUMP_IF_NOT_NONE, Op::pop_jump_if_not_none, Jump::forward);
  put(t, END_FOR, Op::end_for);
  put(t, END_SEND, Op::end_send);
  put(t, BINARY_SLICE, Op::binary_slice);
  put(t, STORE_SLICE, Op::store_slice);
  put(t, CLEANUP_THROW, Op::cleanup_throw);
  put(t, LOAD_LOCALS, Op::load_locals);
  put(t, RETURN_CONST, Op::return_const);
  put(t, LOAD_FAST_CHECK, Op::load_fast);
  put(t, LOAD_FAST_AND_CLEAR, Op::load_fast_and_clear);
  put(t, LOAD_SUPER_ATTR, Op::load_super_attr);
  put(t, LOAD_FROM_DICT_OR_GLOBALS, Op::load_from_dict_or_globals);
  put(t, LOAD_FROM_DICT_OR_DEREF, Op::load_from_dict_or_deref);
  put(t, CALL_INTRINSIC_1, Op::unsupported);
  put(t, CALL_INTRINSIC_2, Op::unsupported);
#endif
#if PY_VERSION_HEX < 0x030D0000  // 3.11 and 3.12
  put(t, LOAD_CLOSURE, Op::load_closure);
  put(t, FORMAT_VALUE, Op::format_value);
  put(t, KW_NAMES, Op::kw_names);
#else  // 3.13
  put(t, FORMAT_SIMPLE, Op::format_simple);
  put(t, FORMAT_WITH_SPEC, Op::format_with_spec);
  put(t, CONVERT_VALUE, Op::convert_value);
  put(t, CALL_KW, Op::call_kw);
  put(t, SET_FUNCTION_ATTRIBUTE, Op::set_function_attribute);
  put(t, TO_BOOL, Op::to_bool);
  put(t, LOAD_FAST_LOAD_FAST, Op::load_fast);
  put(t, STORE_FAST_LOAD_FAST, Op::store_fast);
  put(t, STORE_FAST_STORE_FAST, Op::store_fast);
#endif
  return t;
}

constexpr Table kTable = make_table();

#if PY_VERSION_HEX >= 0x030C0000
/// Numbers of CALL_INTRINSIC_1, from CPython's pycore_intrinsics.h; the same on 3.12 and 3.13.
constexpr int kIntrinsicStopIterationError = 3, kIntrinsicUnaryPositive = 5, kIntrinsicListToTuple = 6;

void refine_intrinsic(int number, Instruction& instruction) {
  if (number == kIntrinsicStopIterationError) instruction.op = Op::stop_iteration_error;
  if (number == kIntrinsicUnaryPositive) instruction.op = Op::unary_positive;
  if (number == kIntrinsicListToTuple) instruction.op = Op::list_to_tuple;
}
#endif

}  // namespace

Meaning meaning_of(int raw) { return kTable[raw & 0xFF]; }
int extended_arg() { return EXTENDED_ARG; }
bool is_cache(int raw) { return raw == CACHE; }
bool close_gives_result() { return PY_VERSION_HEX >= 0x030D0000; }
int loop_exit_length() { return PY_VERSION_HEX < 0x030C0000 ? 0 : PY_VERSION_HEX < 0x030D0000 ? 1 : 2; }

bool refine(int raw, int raw_arg, Instruction& instruction, [[maybe_unused]] Instruction& second) {
  if (instruction.op == Op::unsupported) instruction.arg = raw;
  switch (raw) {
    case LOAD_GLOBAL:
      instruction.arg = raw_arg >> 1;
      if (raw_arg & 1) instruction.flags = PY_VERSION_HEX >= 0x030D0000 ? kPushNullAfter : kPushNullBefore;
      return false;
#if PY_VERSION_HEX >= 0x030C0000
    case SEND: instruction.flags = kKeepReceiver; return false;
    case LOAD_ATTR:
      instruction.arg = raw_arg >> 1;
      if (raw_arg & 1) {
        instruction.op = Op::load_method;
        if (PY_VERSION_HEX >= 0x030D0000) instruction.flags = kSelfAfter;
      }
      return false;
    case LOAD_SUPER_ATTR:
      instruction.arg = raw_arg >> 2;
      if (raw_arg & 1) instruction.flags |= PY_VERSION_HEX >= 0x030D0000 ? kPushNullAfter : kPushNullBefore;
      if (raw_arg & 2) instruction.flags |= kTwoArgumentSuper;
      return false;
    case CALL_INTRINSIC_1: refine_intrinsic(raw_arg, instruction); return false;
#endif
#if PY_VERSION_HEX >= 0x030D0000
    case COMPARE_OP:
      instruction.arg = raw_arg >> 5;
      second = instruction;
      second.op = Op::to_bool;
      return (raw_arg & 16) != 0;
    case LOAD_FAST_LOAD_FAST:
    case STORE_FAST_LOAD_FAST:
    case STORE_FAST_STORE_FAST:
      second = instruction;
      instruction.arg = raw_arg >> 4;
      second.arg = raw_arg & 15;
      if (raw == STORE_FAST_LOAD_FAST) second.op = Op::load_fast;
      return true;
#elif PY_VERSION_HEX >= 0x030C0000
    case COMPARE_OP: instruction.arg = raw_arg >> 4; return false;
#endif
    default: return false;
  }
}

}  // namespace tenon::python::compat
