"""``tenon.report``: a captured call as one HTML file."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any, ParamSpec, overload

from tenon._compile import Backend, uncompiled
from tenon._errors import ConfigError
from tenon._explain import Explanation, explained_with_logs, settings_of

DEFAULT_PATH = "tenon-report.html"  # in the working directory
LOGS = "steps,kernel_times,kernel_code,claims,fusion,passes"

P = ParamSpec("P")


@dataclasses.dataclass(frozen=True)
class Report:
    """A page that was written, and what it shows. A notebook draws the page."""

    path: str
    explanation: Explanation

    def __str__(self) -> str:
        return f"a report of {self.explanation.graph_count} graphs and {self.explanation.graph_break_count} breaks: {self.path}"

    def _repr_html_(self) -> str:
        from tenon._report.page import framed

        with open(self.path, encoding="utf-8") as page:
            return framed(page.read())


@overload
def report(
    fn: Callable[P, object],
    *,
    path: str | os.PathLike[str] = ...,
    backend: Backend | None = None,
    mode: str | None = None,
    dynamic: bool | None = None,
    options: dict[str, Any] | None = None,
    runs: int = ...,
) -> Callable[P, Report]: ...
@overload
def report(
    fn: Callable[..., object],
    first: Any,
    /,
    *args: Any,
    path: str | os.PathLike[str] = ...,
    backend: Backend | None = None,
    mode: str | None = None,
    dynamic: bool | None = None,
    options: dict[str, Any] | None = None,
    runs: int = ...,
) -> Report: ...
def report(fn: Callable[..., object], *args: Any, path: str | os.PathLike[str] = DEFAULT_PATH, runs: int = 1, **options: Any) -> Any:
    """Gives a function that takes the arguments of `fn`, captures and runs it once, and writes what there is to see to `path` as one HTML file.

    The page shows graphs, breaks, guards, the program's lines with what is computed for them, kernels with their code and the time that each took,
    memory, and the times of compiling. The first run is cold; with ``runs=2`` and more `fn` is called so often with the same arguments, whatever else it
    does, and the fastest of the later times stands beside the first. The page needs no network. ``report(fn)(x)`` and ``report(fn, x)`` give a :class:`Report`; `options` are those of
    ``compile``. Code is generated anew for it, on one thread: compiling takes longer than it does for a call. Raises ConfigError, before `fn` runs, where
    nothing can be written to `path`.
    """
    if type(runs) is not int or runs < 1:
        raise ConfigError(f"tenon.report takes runs= as a whole number from 1 on, not {runs!r}")
    settings = settings_of("report", fn, options)
    plain = uncompiled(fn)

    def reported(*args: Any, **kwargs: Any) -> Report:
        from tenon._report.page import page_of  # not with the package: few programs write a report

        target = check_writable(path)
        explained, lines = explained_with_logs(plain, settings, args, kwargs, LOGS, runs)
        name = getattr(plain, "__qualname__", type(plain).__name__)
        with open(target, "w", encoding="utf-8") as page:
            page.write(page_of(name, explained, lines))
        return Report(target, explained)

    return reported(*args) if args else reported


def check_writable(path: str | os.PathLike[str]) -> str:
    """Gives the whole path of a file that can be written; ConfigError where it cannot."""
    try:
        target = os.path.abspath(os.fspath(path))
        existed = os.path.exists(target)
        with open(target, "a", encoding="utf-8"):
            pass
        if not existed:
            os.remove(target)
    except (OSError, TypeError, ValueError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else str(failure)
        raise ConfigError(f"tenon.report cannot write to {path!r}: {why}; path= takes the name of a file in a folder that exists and may be written") from None
    return target
