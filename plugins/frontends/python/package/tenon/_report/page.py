"""The page of a report, and a notebook's view of it."""
from __future__ import annotations

import base64
import html
import importlib.resources
import zlib

from tenon._explain import Explanation, Line
from tenon._report.contents import contents, packed


def page_of(name: str, explained: Explanation, lines: list[Line]) -> str:
    """The HTML of a call of `name`: page.html with its data inside."""
    template = importlib.resources.files("tenon._report").joinpath("page.html").read_text(encoding="utf-8")
    data = packed(contents(name, explained, lines))
    return template.replace("%TITLE%", html.escape(name)).replace("%DATA%", base64.b64encode(zlib.compress(data.encode(), 9)).decode())


def framed(page: str) -> str:
    """The page inside of another one."""
    return f'<iframe style="width:100%;height:640px;border:1px solid #8884" srcdoc="{html.escape(page, quote=True)}"></iframe>'
