// Built-in functions that need the evaluator itself: they read attributes, ask for types, iterate, or look at library state.
#pragma once

#include <cstddef>
#include <optional>

#include "python/evaluator/builtins.h"
#include "python/objects/ref.h"

namespace tenon::python {

class Evaluator;
class Heap;
struct Arguments;
struct Builtin;

/// Runs a C function that has no handler, or whose handler knows nothing better: what it reads is guarded first.
Handled run_listed(Evaluator& evaluator, PyObject* callable, const Builtin& builtin, Arguments& arguments);

/// Handlers take positional arguments only; anything else is a call that the real function should judge. Throws GraphBreak.
void require_arguments(const Arguments& arguments, std::size_t least, std::size_t most, const char* function);
/// True where the one argument given by name is `start`.
bool only_start_is_named(const Arguments& arguments);

Handled builtin_len(Evaluator&, Arguments&);
Handled builtin_issubclass(Evaluator&, Arguments&);
Handled type_instance_check(Evaluator&, Arguments&);
Handled abstract_instance_check(Evaluator&, Arguments&);
Handled abstract_subclass_check(Evaluator&, Arguments&);
Handled builtin_getattr(Evaluator&, Arguments&);
Handled builtin_hasattr(Evaluator&, Arguments&);
Handled builtin_setattr(Evaluator&, Arguments&);
Handled builtin_iter(Evaluator&, Arguments&);
Handled builtin_next(Evaluator&, Arguments&);
Handled builtin_type(Evaluator&, Arguments&);
Handled builtin_str(Evaluator&, Arguments&);
Handled builtin_format(Evaluator& evaluator, Arguments& arguments);
Handled builtin_repr(Evaluator&, Arguments&);
Handled builtin_bool(Evaluator&, Arguments&);
Handled builtin_super(Evaluator&, Arguments&);
Handled builtin_vars(Evaluator&, Arguments&);
Handled object_new(Evaluator&, Arguments&);
Handled object_init(Evaluator&, Arguments&);
Handled object_getattribute(Evaluator&, Arguments&);
Handled object_setattr(Evaluator&, Arguments&);
/// An address: only as the key that the modules `copy` uses it for.
Handled builtin_id(Evaluator&, Arguments&);
Handled exc_info(Evaluator&, Arguments&);
Handled handled_exception(Evaluator&, Arguments&);
Handled os_fspath(Evaluator&, Arguments&);
/// `function.__get__(object, type)`.
Handled bind_function(Evaluator&, Arguments&);
Handled builtin_sum(Evaluator&, Arguments&);
Handled operator_getitem(Evaluator&, Arguments&);
Handled operator_setitem(Evaluator&, Arguments&);
Handled operator_delitem(Evaluator&, Arguments&);
Handled operator_contains(Evaluator&, Arguments&);
Handled object_delattr(Evaluator&, Arguments&);
Handled builtin_delattr(Evaluator&, Arguments&);
Handled builtin_hash(Evaluator&, Arguments&);
Handled builtin_callable(Evaluator&, Arguments&);
Handled count_elements(Evaluator&, Arguments&);
Handled type_call(Evaluator&, Arguments&);
Handled build_class(Evaluator&, Arguments&);
Handled type_new(Evaluator&, Arguments&);
Handled type_init(Evaluator&, Arguments&);
Handled init_abstract_class(Evaluator&, Arguments&);
Handled object_reduce(Evaluator&, Arguments&);
/// heapq's functions and bisect.insort: C code that changes the list that it is given first.
Handled change_list_in_c(Evaluator&, Arguments&);
Handled list_append(Evaluator&, Arguments&);
Handled dict_get(Evaluator&, Arguments&);
Handled dict_getitem(Evaluator&, Arguments&);
Handled dict_contains(Evaluator&, Arguments&);

/// Guards that no abstract class is told of another virtual subclass.
void guard_registrations(Heap& heap);

/// Nothing overrides torch functions for the program, and nothing traces it.
Handled answer_false(Evaluator&, Arguments&);
Handled answer_none(Evaluator&, Arguments&);
/// Reads library state that the entry of every compiled call guards (grad mode, autocast, default dtype).
Handled state_read(Evaluator&, Arguments&);
/// Calls a function that takes nothing and does nothing but read: it is asked at each call.
Ref read_by(Evaluator& evaluator, PyObject* reader);
/// Reads a flag of torch that entries do not hold, by a function of torch._C.
Ref read_flag(Evaluator& evaluator, const char* function);
/// warnings.warn: into the journal.
Handled issue_warning(Evaluator&, Arguments&);
/// What the module warnings calls after its filters were changed.
Handled note_changed_filters(Evaluator&, Arguments&);
/// Changes grad mode for real while the capture lasts.
Handled set_grad_enabled(Evaluator&, Arguments&);

// ---- torch_modes.cpp: objects of classes with a `__torch_function__` of their own, which are no tensors
Handled overrides_torch_functions(Evaluator&, Arguments&);
Handled any_overrides_torch_functions(Evaluator&, Arguments&);
// Likewise autocast on the CPU and for CUDA, of which the entry guards what it reads
Handled set_autocast_enabled(Evaluator&, Arguments&);
Handled get_autocast_dtype(Evaluator&, Arguments&);
Handled set_autocast_dtype(Evaluator&, Arguments&);
Handled is_autocast_cache_enabled(Evaluator&, Arguments&);
Handled set_autocast_cache_enabled(Evaluator&, Arguments&);
Handled autocast_increment_nesting(Evaluator&, Arguments&);
Handled autocast_decrement_nesting(Evaluator&, Arguments&);
Handled clear_autocast_cache(Evaluator&, Arguments&);

}  // namespace tenon::python
