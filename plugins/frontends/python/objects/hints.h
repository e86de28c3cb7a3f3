// What to do about a graph break: the hints that several reasons share. One that only one reason has stands where that is made.
#pragma once

namespace tenon::python {

/// Of what has no other.
inline constexpr const char* kOutsideHint = "do it outside of the compiled function; where it stays, it runs as plain Python";
inline constexpr const char* kBranchHint = "keep the decision in the graph: torch.where, or tenon.cond";
inline constexpr const char* kTensorHint = "keep it a tensor: torch.where, tenon.cond, indexing and arithmetic take tensors; its elements are known only when the graph has run";
inline constexpr const char* kDataSizeHint = "sizes that depend on data are known only when the graph runs: a mask and torch.where keep the size, or take this step outside of the compiled function";
inline constexpr const char* kGradHint = "call it under torch.no_grad(), or detach the inputs: gradients run eagerly";
inline constexpr const char* kRaisesHint = "the program raises this without tenon.compile, too: call the function without it to see where, or handle it inside";
inline constexpr const char* kImportHint = "import it before the compiled function is called, at the top of the file";
inline constexpr const char* kTextHint = "return the tensor, and make the text of what the compiled function returns";
inline constexpr const char* kWeakHint = "hold the object itself, not a weak reference to it, while the compiled function runs";
inline constexpr const char* kFinalizerHint = "keep the object until the call has ended: return it, or make it outside of the compiled function";
inline constexpr const char* kCodeInCHint = "code in C is not followed: call it outside of the compiled function, or give it plain lists, numbers and tensors";
inline constexpr const char* kAllowHint = "call it outside of the compiled function; a Python function around it that only computes new tensors can be one node: tenon.allow_in_graph";
inline constexpr const char* kErrstateHint = "enter np.errstate around the call of the compiled function, as `with np.errstate(...):`";
inline constexpr const char* kWarningHint = "issue it as warnings.warn(text), and change filters or record warnings around the call of the compiled function";
inline constexpr const char* kReturnHint = "return the new value instead of storing it";
inline constexpr const char* kClassHint = "make the class once, outside of the compiled function";
inline constexpr const char* kHookHint = "put the hook on before the compiled function is called, or on what it returns";
inline constexpr const char* kAutogradHint = "ask for it after the compiled function has returned";
inline constexpr const char* kAwaitHint = "await it outside of the compiled function; what it computes can be a compiled function that it calls";
inline constexpr const char* kAssignHint = "return it beside the tensor, or set it outside of the compiled function";
inline constexpr const char* kComplexGradHint = "compute it under torch.no_grad(), or with the real and the imaginary part as tensors";
inline constexpr const char* kRequireHint = "call requires_grad_() before the compiled function is called";
inline constexpr const char* kDrawHint = "draw with torch or NumPy, whose generators graphs follow, or pass the number as an argument";
inline constexpr const char* kConcurrentHint = "start, lock and wait outside of the compiled function; threads may call it";
inline constexpr const char* kStateHint = "call it where this does not hold: there it is compiled";
inline constexpr const char* kReportHint = "this is a defect of Tenon; please report it with what `tenon doctor` prints";
inline constexpr const char* kOneLibraryHint = "take both from one library: torch.from_numpy(array), or tensor.numpy()";

}  // namespace tenon::python
