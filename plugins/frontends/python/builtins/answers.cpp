#include "python/builtins/answers.h"
#include "python/builtins/checkpoints.h"
#include "python/builtins/control.h"
#include "python/builtins/gradients.h"
#include "python/builtins/transforms.h"

#include <array>
#include <span>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

constexpr FunctionRule kDisabled = {.reason = "a function marked with tenon.disable is called", .hint = "call it outside of the compiled function, or take tenon.disable off it"};
constexpr FunctionRule kCompile = {.reason = "a function is compiled by the program", .hint = "compile it once, outside of the compiled function"};
constexpr FunctionRule kCompiledByTorch = {.reason = "a function that torch.compile has compiled is called", .hint = "give tenon.compile the function itself, not what torch.compile made of it"};
constexpr FunctionRule kSeed = {.reason = "torch's generators are seeded", .hint = "call torch.manual_seed before the compiled function"};
constexpr FunctionRule kGraphBreak = {.reason = "tenon.graph_break() is called", .hint = "take the call of tenon.graph_break() out"};

/// A break that the program asks torch's compiler for. torch's own (around the steps of its optimizers) are for that compiler alone.
std::optional<Ref> break_for_torch(Evaluator& evaluator, Arguments) {
  Ref module = Ref::borrow(PyDict_GetItemString(evaluator.frames().back()->globals.get(), "__name__"));
  const char* name = module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
  if (name == nullptr || !std::string_view(name).starts_with("torch.")) throw GraphBreak("torch._dynamo.graph_break() is called", "take the call of torch._dynamo.graph_break() out");
  return Ref::borrow(Py_None);
}
constexpr FunctionRule kGraphBreakOfTorch = {.handler = break_for_torch};

constexpr FunctionRule kIsCompiling = {.answers_is_compiling = true};
constexpr FunctionRule kCond = {.handler = call_cond};
constexpr FunctionRule kEnterInference = {.handler = enter_inference_mode};
constexpr FunctionRule kLeaveInference = {.handler = leave_inference_mode};
constexpr FunctionRule kFalse = {.handler = [](Evaluator&, Arguments) -> std::optional<Ref> { return Ref::borrow(Py_False); }};

// torch.autograd.profiler.record_function: a region has a name for profilers only. While none runs it neither begins nor ends.
void require_no_profiler() {
  Ref autograd = checked(imported("torch.autograd"));
  Ref profiled = checked(PyObject_CallMethod(autograd.get(), "_profiler_enabled", nullptr));
  if (!profiled.is(Py_False)) throw GraphBreak("a region is named for a profiler that runs", "profile without tenon.compile, or name the region around the call of the compiled function");
}
void store_in_region(Evaluator& evaluator, PyObject* region, const char* attribute, PyObject* value) {
  evaluator.attributes().store(region, checked(PyUnicode_InternFromString(attribute)).get(), value);
}
std::optional<Ref> make_region(Evaluator& evaluator, Arguments arguments) {
  require_no_profiler();
  if (arguments.named() != 0 || arguments.values.size() < 2 || arguments.values.size() > 3) throw GraphBreak("a region for profilers with arguments by name");
  store_in_region(evaluator, arguments[0], "name", arguments[1]);
  store_in_region(evaluator, arguments[0], "args", arguments.values.size() == 3 ? arguments[2] : Py_None);
  store_in_region(evaluator, arguments[0], "run_callbacks_on_exit", Py_True);
  store_in_region(evaluator, arguments[0], "record", Py_None);
  store_in_region(evaluator, arguments[0], "_cupti_monitor_external_id", Py_None);
  return Ref::borrow(Py_None);
}
std::optional<Ref> enter_region(Evaluator& evaluator, Arguments arguments) {
  require_no_profiler();
  store_in_region(evaluator, arguments[0], "run_callbacks_on_exit", Py_False);
  return std::move(arguments.values.front());
}
constexpr FunctionRule kMakeRegion = {.handler = make_region};
constexpr FunctionRule kEnterRegion = {.handler = enter_region};

/// torch compares a mask with the causal one to take a faster way to the same result. In a graph that would be a branch on elements: only
/// what the caller says counts.
std::optional<Ref> is_said_to_be_causal(Evaluator&, Arguments arguments) {
  PyObject* said = arguments.positional() > 1 ? arguments[1] : nullptr;
  for (std::size_t at = 0; at < arguments.named(); ++at)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(arguments.names.get(), static_cast<Py_ssize_t>(at)), "is_causal") == 0) said = arguments[arguments.positional() + at];
  return Ref::borrow(said == Py_True ? Py_True : Py_False);
}
constexpr FunctionRule kCausalMask = {.handler = is_said_to_be_causal};

/// torch.ops keeps what it has found: the first look-up gives what every other one gives.
std::optional<Ref> look_up_operator(Evaluator& evaluator, Arguments arguments) {
  if (arguments.named() != 0 || arguments.values.size() != 2) throw GraphBreak("an operator is looked up with other arguments than its name");
  Ref found = checked(PyObject_GetAttr(arguments[0], arguments[1]));
  Heap& heap = evaluator.heap();
  if (!heap.is_born(found.get()) && !heap.source_of(found.get())) heap.make_known(found.get(), heap.sources().constant(found.get()));
  return found;
}
/// torch.autograd.Function.apply: a call of `forward` without grad mode. Where a gradient is wanted, a walk in the same graph evaluates `backward`.
std::optional<Ref> apply_function(Evaluator& evaluator, Arguments arguments) {
  if (arguments.named() != 0) throw GraphBreak("a torch.autograd.Function is applied to arguments by name");
  return call_in_python(evaluator, "apply_function", std::move(arguments),
                        "a torch.autograd.Function gives or writes its inputs where a gradient is wanted, or saves an input that it gives");
}
constexpr FunctionRule kApplyFunction = {.handler = apply_function};

std::optional<Ref> group_tensors(Evaluator& evaluator, Arguments arguments) {
  return call_in_python(evaluator, "group_tensors", std::move(arguments), "tensors of several dtypes are put into groups");
}
constexpr FunctionRule kGroupTensors = {.handler = group_tensors};
constexpr FunctionRule kRunBackward = {.handler = run_backward};
constexpr FunctionRule kWalkBack = {.handler = walk_back};
constexpr FunctionRule kTrackFunction = {.handler = track_function};
constexpr FunctionRule kFunctionsMayLeave = {.handler = functions_may_leave};
constexpr FunctionRule kTrackLeaving = {.handler = track_leaving};
constexpr FunctionRule kRegisterHook = {.handler = register_hook};
constexpr FunctionRule kRegisterHookAfter = {.handler = register_hook_after};
constexpr FunctionRule kOutlookOn = {.handler = outlook_on};
constexpr FunctionRule kKeepNextRun = {.handler = keep_next_run};
constexpr FunctionRule kKeptRun = {.handler = kept_run};
constexpr FunctionRule kGradientCall = {.handler = gradient_call};
constexpr FunctionRule kApplyOnTensors = {.handler = apply_on_tensors};
constexpr FunctionRule kTrackHooks = {.handler = track_hooks};
constexpr FunctionRule kEvaluateRegion = {.handler = evaluate_region};
constexpr FunctionRule kEvaluateAgain = {.handler = evaluate_again};
constexpr FunctionRule kLetThrough = {.handler = let_through_to_all_leaves};
constexpr FunctionRule kMaybeStep = {.handler = maybe_step};
constexpr FunctionRule kAssume = {.handler = assume};

constexpr FunctionRule kGrad = {.handler = transform_by_grad};
constexpr FunctionRule kGradAndValue = {.handler = transform_by_grad_and_value};
constexpr FunctionRule kVjp = {.handler = transform_by_vjp};
constexpr FunctionRule kJacrev = {.closure_handler = transform_by_jacrev};
constexpr FunctionRule kForgetLeaves = {.handler = forget_leaves};
constexpr FunctionRule kRememberLeaves = {.handler = remember_leaves};
constexpr FunctionRule kLeaveToTorch = {.reason = kLeftToTorch};
constexpr FunctionRule kVmap = {.handler = vmap};
constexpr FunctionRule kByExample = {.handler = by_example};
constexpr FunctionRule kEnterFunctionMode = {.handler = enter_function_mode};
constexpr FunctionRule kLeaveFunctionMode = {.handler = leave_function_mode};
constexpr FunctionRule kTransform = {.reason = kTransformApplied, .hint = kTransformHint};
constexpr FunctionRule kControlOperator = {.reason = "a control operator of torch other than cond is called", .hint = "write it as a Python loop, or with tenon.cond"};

/// A step of an optimizer by the package's function of that name, or as it is written where that leaves it.
std::optional<Ref> optimizer_step(Evaluator& evaluator, PyObject* function, Arguments arguments, const char* name) {
  Ref step = checked(PyObject_GetAttrString(checked(imported("tenon._optimizer_steps")).get(), name));
  Ref result = evaluator.call_now(step.get(), arguments);
  return result.is(Py_NotImplemented) ? evaluator.functions().run(function, std::move(arguments)) : std::move(result);
}
constexpr FunctionRule kUpdateAverage = {.closure_handler = [](Evaluator& e, PyObject* f, Arguments a) { return optimizer_step(e, f, std::move(a), "update_average"); }};
constexpr FunctionRule kRadamOfOne = {.closure_handler = [](Evaluator& e, PyObject* f, Arguments a) { return optimizer_step(e, f, std::move(a), "radam_of_one"); }};
constexpr FunctionRule kRadamOfLists = {.closure_handler = [](Evaluator& e, PyObject* f, Arguments a) { return optimizer_step(e, f, std::move(a), "radam_of_lists"); }};
constexpr FunctionRule kAsgdOfOne = {.closure_handler = [](Evaluator& e, PyObject* f, Arguments a) { return optimizer_step(e, f, std::move(a), "asgd_of_one"); }};
constexpr FunctionRule kAsgdOfLists = {.closure_handler = [](Evaluator& e, PyObject* f, Arguments a) { return optimizer_step(e, f, std::move(a), "asgd_of_lists"); }};

constexpr FunctionRule kLookUp = {.handler = look_up_operator};
constexpr FunctionRule kNothing = {.handler = [](Evaluator&, Arguments) { return std::optional(Ref::borrow(Py_None)); }};  // what it notes, only torch's own compiler asks for

constexpr FunctionRule kRecursionGuard = {.closure_handler = call_past_recursion_guard};
constexpr FunctionRule kDisabledLate = {.closure_handler = call_past_disabling};
constexpr FunctionRule kSignature = {.closure_handler = inspect_signature};
constexpr FunctionRule kStaticAttribute = {.handler = static_attribute};
constexpr FunctionRule kPattern = {.closure_handler = compile_pattern};
constexpr FunctionRule kEnterErrorState = {.handler = enter_error_state};
constexpr FunctionRule kLeaveErrorState = {.handler = leave_error_state};
constexpr FunctionRule kLazyProperty = {.closure_handler = read_lazy_property};
constexpr FunctionRule kDecoratedByErrorState = {.instead = call_in_error_state};
constexpr FunctionRule kIsLogged = {.closure_handler = is_logged};
constexpr FunctionRule kFindModule = {.closure_handler = find_module};
constexpr FunctionRule kAsksCard = {.closure_handler = ask_of_card};
constexpr FunctionRule kWhole = {.closure_handler = call_whole};
constexpr FunctionRule kInspect = {.reason = "a call into inspect", .hint = "inspect functions outside of the compiled function, and pass what is found as an argument"};
constexpr FunctionRule kDispatch = {.closure_handler = dispatch_on_class};
constexpr FunctionRule kNumbersClass = {.closure_handler = number_autograd_function};
constexpr FunctionRule kMakesClass = {.closure_handler = make_class_for_real};

struct Closure {
  const char *file_end, *code_name;
  const FunctionRule* rule;
};
/// Inner functions of the standard library and of torch, known by their code: their module and name are those of what they wrap.
constexpr std::array<Closure, 12> kClosures = {{
    {"/torch/_functorch/eager_transforms.py", "_vjp_with_argnums.<locals>.wrapper", &kTransform},
    {"/numpy/_core/_ufunc_config.py", "errstate.__call__.<locals>.inner", &kDecoratedByErrorState},
    {"/torch/_functorch/eager_transforms.py", "linearize.<locals>.jvp_fn", &kTransform},
    {"/torch/_functorch/eager_transforms.py", "jacrev.<locals>.wrapper_fn", &kJacrev},
    {"/torch/_functorch/eager_transforms.py", "jacfwd.<locals>.wrapper_fn", &kTransform},
    {"/torch/_functorch/eager_transforms.py", "functionalize.<locals>.wrapped", &kTransform},
    {"/reprlib.py", "recursive_repr.<locals>.decorating_function.<locals>.wrapper", &kRecursionGuard},
    {"/dataclasses.py", "_recursive_repr.<locals>.wrapper", &kRecursionGuard},
    {"/functools.py", "singledispatch.<locals>.dispatch", &kDispatch},
    {"/torch/_compile.py", "_disable_dynamo.<locals>.inner", &kDisabledLate},
    {"/torch/_dynamo/eval_frame.py", "_TorchDynamoContext.__call__.<locals>.compile_wrapper", &kCompiledByTorch},
    {"/torch/_dynamo/eval_frame.py", "DisableContext.__call__.<locals>._fn", &kDisabledLate},
}};

const FunctionRule* closure_rule(PyObject* function) {
  auto* parts = reinterpret_cast<PyFunctionObject*>(function);
  if (parts->func_closure == nullptr) return nullptr;
  auto* code = reinterpret_cast<PyCodeObject*>(parts->func_code);
  for (const Closure& closure : kClosures) {
    if (PyUnicode_CompareWithASCIIString(code->co_qualname, closure.code_name) != 0) continue;
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    if (file != nullptr && std::string_view(file).ends_with(closure.file_end)) return closure.rule;
    PyErr_Clear();
  }
  return nullptr;
}

bool marked(PyObject* function, const char* name) {
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  return dict != nullptr && PyDict_GetItemString(dict, name) != nullptr;
}

struct Named {
  const char *module, *name;
  const FunctionRule* rule;
};
/// Questions about being traced by somebody else's compiler are answered no, about being compiled yes (by option).
constexpr std::array<Named, 69> kNamed = {{
    {"torch", "cond", &kCond},
    {"torch.compiler", "is_compiling", &kIsCompiling},
    {"torch.compiler", "is_dynamo_compiling", &kIsCompiling},
    {"torch._dynamo.external_utils", "is_compiling", &kIsCompiling},
    {"torch._utils", "is_compiling", &kIsCompiling},
    {"torch.compiler", "is_exporting", &kFalse},
    {"torch._jit_internal", "is_scripting", &kFalse},
    {"torch._jit_internal", "is_tracing", &kFalse},
    {"torch.jit._trace", "is_tracing", &kFalse},
    {"torch.overrides", "has_torch_function", &kFalse},
    {"torch", "compile", &kCompile},
    {"tenon._compile", "compile", &kCompile},
    {"torch.autograd.function", "Function.apply", &kApplyFunction},
    {"torch.autograd.function", "FunctionMeta.__init__", &kNumbersClass},
    {"torch.autograd.graph", "_engine_run_backward", &kRunBackward},
    {"tenon._torch_in_python", "walk", &kWalkBack},
    {"tenon._torch_gradients", "outlook_on", &kOutlookOn},
    {"tenon._torch_gradients", "keep_next_run", &kKeepNextRun},
    {"tenon._torch_gradients", "kept_run", &kKeptRun},
    {"tenon._torch_gradients", "gradient_call", &kGradientCall},
    {"tenon._hooks", "track_function", &kTrackFunction},
    {"tenon._hooks", "functions_may_leave", &kFunctionsMayLeave},
    {"tenon._hooks", "track_leaving", &kTrackLeaving},
    {"tenon._hooks", "track_hooks", &kTrackHooks},
    {"tenon._torch_in_python", "assume", &kAssume},
    {"tenon._checkpoint", "evaluate_region", &kEvaluateRegion},
    {"tenon._checkpoint", "evaluate_again", &kEvaluateAgain},
    {"tenon._checkpoint", "let_through_to_all_leaves", &kLetThrough},
    {"tenon._gradient_transforms", "forget_leaves", &kForgetLeaves},
    {"tenon._gradient_transforms", "leave_to_torch", &kLeaveToTorch},
    {"tenon._gradient_transforms", "remember_leaves", &kRememberLeaves},
    {"torch._tensor", "Tensor.register_hook", &kRegisterHook},
    {"torch._tensor", "Tensor.register_post_accumulate_grad_hook", &kRegisterHookAfter},
    {"torch.utils.hooks", "BackwardHook._apply_on_tensors", &kApplyOnTensors},
    {"torch.amp.grad_scaler", "GradScaler._maybe_opt_step", &kMaybeStep},
    {"torch.utils._foreach_utils", "_group_tensors_by_device_and_dtype", &kGroupTensors},
    {"torch.optim.swa_utils", "AveragedModel.update_parameters", &kUpdateAverage},
    {"torch.optim.radam", "_single_tensor_radam", &kRadamOfOne},
    {"torch.optim.radam", "_multi_tensor_radam", &kRadamOfLists},
    {"torch.optim.asgd", "_single_tensor_asgd", &kAsgdOfOne},
    {"torch.optim.asgd", "_multi_tensor_asgd", &kAsgdOfLists},
    {"torch._functorch.vmap", "vmap_impl", &kVmap},
    {"tenon._batching", "by_example", &kByExample},
    {"torch.overrides", "TorchFunctionMode.__enter__", &kEnterFunctionMode},
    {"torch.overrides", "TorchFunctionMode.__exit__", &kLeaveFunctionMode},
    {"torch._functorch.eager_transforms", "grad_impl", &kGrad},
    {"torch._functorch.eager_transforms", "grad_and_value_impl", &kGradAndValue},
    {"torch._functorch.eager_transforms", "_jvp_with_argnums", &kTransform},
    {"torch._functorch.eager_transforms", "_vjp_with_argnums", &kVjp},
    {"torch.func", "linearize", &kTransform},
    {"torch._functorch.vmap", "chunk_vmap", &kTransform},
    {"torch._higher_order_ops.associative_scan", "associative_scan", &kControlOperator},
    {"torch.nn.attention.flex_attention", "flex_attention", &kControlOperator},
    {"torch._ops", "HigherOrderOperator.__call__", &kControlOperator},
    {"torch._dynamo.decorators", "graph_break", &kGraphBreakOfTorch},
    {"torch._dynamo.mutation_guard", "GenerationTracker.tag", &kNothing},
    {"torch._ops", "_Ops.__getattr__", &kLookUp},
    {"torch._ops", "_OpNamespace.__getattr__", &kLookUp},
    {"torch._ops", "OpOverloadPacket.__getattr__", &kLookUp},
    {"torch.distributions.utils", "lazy_property.__get__", &kLazyProperty},
    {"torch.cuda", "is_bf16_supported", &kAsksCard},
    {"torch.cuda", "get_device_capability", &kAsksCard},
    {"torch.random", "manual_seed", &kSeed},
    {"torch.random", "set_rng_state", &kSeed},
    {"torch.nn.modules.transformer", "_detect_is_causal_mask", &kCausalMask},
    {"torch.autograd.profiler", "record_function.__init__", &kMakeRegion},
    {"torch.autograd.profiler", "record_function.__enter__", &kEnterRegion},
    {"torch.autograd.grad_mode", "inference_mode.__enter__", &kEnterInference},
    {"torch.autograd.grad_mode", "inference_mode.__exit__", &kLeaveInference},
}};

/// A signature is an object like any other once it is there; the rest of the module looks at frames and source files.
const FunctionRule* rule_of_inspect(PyFunctionObject* function) {
  const char* name = PyUnicode_AsUTF8(function->func_qualname);
  if (name == nullptr) PyErr_Clear();
  const std::string_view qualified = name ? name : "";
  if (qualified == "signature") return &kSignature;
  if (qualified == "getattr_static") return &kStaticAttribute;
  // Questions about types and flags.
  if (qualified == "_has_code_flag" || qualified == "_signature_is_functionlike" || (qualified.starts_with("is") && qualified != "isabstract")) return nullptr;
  return qualified.starts_with("Signature.") || qualified.starts_with("Parameter.") ? nullptr : &kInspect;
}

/// Functions with rules outside of torch. Many make a class by means that the evaluator would break at, one by one: source text, frames,
/// hooks in C.
constexpr std::array<Named, 14> kOfLibraries = {{
    {"copy", "deepcopy", &kWhole},
    {"logging", "Logger.isEnabledFor", &kIsLogged},
    {"importlib.util", "find_spec", &kFindModule},
    {"re", "_compile", &kPattern},
    {"numpy._core._ufunc_config", "errstate.__enter__", &kEnterErrorState},
    {"numpy._core._ufunc_config", "errstate.__exit__", &kLeaveErrorState},
    {"functools", "total_ordering", &kMakesClass},
    {"dataclasses", "_process_class", &kMakesClass},
    {"dataclasses", "make_dataclass", &kMakesClass},
    {"collections", "namedtuple", &kMakesClass},
    {"typing", "NamedTupleMeta.__new__", &kMakesClass},
    {"typing", "NamedTuple", &kMakesClass},
    {"enum", "EnumType.__new__", &kMakesClass},
    {"enum", "EnumType._create_", &kMakesClass},
}};

const FunctionRule* rule_in(std::span<const Named> table, PyFunctionObject* function, std::string_view module) {
  const auto is_called = [](PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; };
  for (const Named& named : table)
    if (module == named.module && (is_called(function->func_name, named.name) || is_called(function->func_qualname, named.name))) return named.rule;
  return nullptr;
}

const FunctionRule* named_rule(PyObject* function) {
  auto* parts = reinterpret_cast<PyFunctionObject*>(function);
  if (parts->func_module == nullptr || !PyUnicode_Check(parts->func_module) || !is_written_where_it_says(function)) return nullptr;
  const char* text = PyUnicode_AsUTF8(parts->func_module);
  if (text == nullptr) return nullptr;
  const std::string_view module = text;
  if (module == "inspect") return rule_of_inspect(parts);
  if (module.starts_with("torch") || module.starts_with("tenon")) return rule_in(kNamed, parts, module);
  return rule_in(kOfLibraries, parts, module);
}

/// The filters are a list like any other; what is issued goes through C.
bool changes_filters(PyFunctionObject* function) {
  const char* name = PyUnicode_AsUTF8(function->func_qualname);
  if (name == nullptr) PyErr_Clear();
  const std::string_view qualified = name ? name : "";
  return qualified.starts_with("catch_warnings.") || qualified == "simplefilter" || qualified == "filterwarnings" || qualified == "_add_filter";
}

/// What is not logged does nothing; what is, goes through `Logger._log`.
bool asks_for_level(PyFunctionObject* function) {
  static constexpr std::string_view kNames = " debug info warning error critical log isEnabledFor getEffectiveLevel ";
  const char* name = PyUnicode_AsUTF8(function->func_qualname);
  if (name == nullptr) PyErr_Clear();
  std::string_view qualified = name ? name : "";
  if (qualified.starts_with("Logger.")) qualified.remove_prefix(7);
  return !qualified.empty() && kNames.find(fmt::format(" {} ", qualified)) != kNames.npos;
}

}  // namespace

Ref call_in_python(Evaluator& evaluator, const char* name, Arguments arguments, const char* why_not, const char* of, const char* hint) {
  Ref module = checked(imported(of));
  Ref function = checked(PyObject_GetAttrString(module.get(), name));
  Ref result = evaluator.call_now(function.get(), std::move(arguments));
  if (result.is(Py_NotImplemented)) throw GraphBreak(why_not, hint);
  return result;
}

const FunctionRule* rule_of_function(PyObject* function) {
  if (marked(function, "_tenon_disabled")) return &kDisabled;
  if (marked(function, "_tenon_graph_break")) return &kGraphBreak;
  if (marked(function, "_tenon_is_compiling")) return &kIsCompiling;
  if (marked(function, "_tenon_cond")) return &kCond;
  if (const FunctionRule* rule = closure_rule(function)) return rule;
  return named_rule(function);
}

const FunctionRule* rule_of_module(PyObject* function) {
  auto* parts = reinterpret_cast<PyFunctionObject*>(function);
  PyObject* name = PyDict_GetItemWithError(parts->func_globals, names().__name__);
  const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  struct Module {
    std::string_view name;
    FunctionRule rule;
  };
  static constexpr std::array<Module, 11> kModules = {{
      {"logging", {.reason = "a call into logging", .hint = "log outside of the compiled function; below the logger's level a call of it is captured"}},
      {"warnings", {.reason = "a warning is issued", .hint = kWarningHint}},
      {"importlib", {.reason = "a call into importlib", .hint = kImportHint}},
      {"threading", {.reason = "a call into threading", .hint = kConcurrentHint}},
      {"random", {.reason = "a call into random", .hint = kDrawHint}},
      {"traceback", {.reason = "a call into traceback"}},
      {"subprocess", {.reason = "a call into subprocess", .hint = kConcurrentHint}},
      {"asyncio", {.reason = "a call into asyncio", .hint = kConcurrentHint}},
      {"concurrent", {.reason = "a call into concurrent.futures", .hint = kConcurrentHint}},
      {"multiprocessing", {.reason = "a call into multiprocessing", .hint = kConcurrentHint}},
      {"uuid", {.reason = "a call into uuid", .hint = "make the identifier outside of the compiled function, and pass it as an argument"}},
  }};
  const std::string_view module = text;
  if (module == "warnings" && changes_filters(parts)) return nullptr;
  if (module == "logging" && asks_for_level(parts)) return nullptr;
  for (const Module& each : kModules)
    if (module == each.name || (module.size() > each.name.size() && module.substr(0, each.name.size()) == each.name && module[each.name.size()] == '.'))
      return &each.rule;
  return nullptr;
}

}  // namespace tenon::python
