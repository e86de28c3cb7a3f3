"""What a program has told torch's own compiler, in Tenon's words: settings of ``torch._dynamo.config``, and the stance of ``torch.compiler.set_stance``.

Read where something is to be captured, and only where the program has imported ``torch._dynamo`` itself. What was given to ``tenon.compile`` goes first.
"""
from __future__ import annotations

import sys
from typing import Any

from tenon._messages import tell_once

# torch's own values: what a program leaves as it is says nothing.
_UNTOLD = {
    "recompile_limit": 8,
    "accumulated_recompile_limit": 256,
    "assume_static_by_default": True,
    "automatic_dynamic_shapes": True,
    "error_on_recompile": False,
    "suppress_errors": False,
}


def words() -> dict[str, Any]:
    """The settings that hold for a capture now; what is not said is None."""
    stance = getattr(getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None), "stance", "default")
    config = sys.modules.get("torch._dynamo.config")
    if getattr(config, "capture_scalar_outputs", False):
        tell_once("compile", "torch._dynamo.config.capture_scalar_outputs is not followed: an element that the graph computes stays in it as long as Python can do "
                  "without its value, and the graph ends where it cannot; tenon.explain says where")
    if _marks_functions():
        tell_once("compile", "torch.compiler.allow_in_graph is not followed: the function is captured op by op like any other; tenon.allow_in_graph makes it one node")
    dynamic = True if _told(config, "assume_static_by_default") is False else None
    forbids = "torch._dynamo.config.error_on_recompile" if _told(config, "error_on_recompile") else None
    return {
        "dynamic": False if _told(config, "automatic_dynamic_shapes") is False else dynamic,
        "recompile_limit": _told(config, "recompile_limit"),
        "accumulated_limit": _told(config, "accumulated_recompile_limit"),
        "runs_plainly": stance == "force_eager",
        "recompiles_plainly": stance == "eager_on_recompile",
        "no_recompiles": "torch.compiler.set_stance('fail_on_recompile')" if stance == "fail_on_recompile" else forbids,
    }


def suppresses_errors() -> bool:
    """Whether a backend that fails is to be passed over."""
    return bool(_told(sys.modules.get("torch._dynamo.config"), "suppress_errors"))


def _marks_functions() -> bool:
    """Whether the program has made functions nodes of torch's graphs."""
    marked = getattr(getattr(sys.modules.get("torch._dynamo.trace_rules"), "_allowed_callable_ids", None), "function_ids", None)
    return bool(marked)


def _told(config: Any, name: str) -> Any:
    value = getattr(config, name, None)
    return None if value == _UNTOLD[name] else value
