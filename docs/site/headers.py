"""The reference of C: what the public headers declare, with their comments."""
from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from docs.site.cpp_text import end_of_bracket

HEADERS = ("sdk/include/tenon/host.h", "framework/core/abi/plugin.h", "framework/core/abi/device.h", "framework/core/abi/profiling.h", "framework/core/abi/bytes.h", "framework/core/abi/graph_buffer.h")
COMMENT = re.compile(r"/\*.*?\*/|(?:[ \t]*//[^\n]*\n?)+", re.S)
# What is no declaration of its own: preprocessor lines other than constants, and brackets around all.
AROUND = re.compile(r'^(?:#(?!define TENON_(?!API\b)).*|extern "C" \{|namespace [\w:]+ \{|\}(?:  // namespace.*)?|class \w+;|struct \w+;|using namespace .*)\n', re.M)


class Item(NamedTuple):
    words: str  # the comment
    code: str
    section: bool = False


def prose(comment: str) -> str:
    """A comment without its marks."""
    lines = [re.sub(r"^[ \t]*(?:///?<?|/\*+|\*+/|\*)? ?", "", line) for line in comment.strip().splitlines()]
    return re.sub(r"\s*\*/$", "", "\n".join(lines)).strip()


def shown(words: str) -> str:
    """A comment as Markdown: what is indented is code, angles and stars are themselves."""
    made = []
    for paragraph in re.split(r"\n[ \t]*\n", words):
        if paragraph and all(line.startswith("  ") for line in paragraph.splitlines()):
            made.append(f"```cpp\n{paragraph}\n```")
        else:
            parts = re.split(r"(`[^`]*`)", paragraph)
            made.append("".join(part if part.startswith("`") else re.sub(r"([*_\[\]])", r"\\\1", part.replace("<", "&lt;")) for part in parts))
    return "\n\n".join(made)


def items(text: str) -> Iterator[Item]:
    """The declarations of a header behind its opening comment, in order. Those without a comment of their own belong to the one before them."""
    text = _without_conditions(re.sub(r"\\\n", " ", text))
    text = re.sub(r"namespace detail \{.*?\n\}  // namespace detail\n", "", text, flags=re.S)
    position, words, code = 0, "", ""
    while position < len(text):
        if blank := re.compile(r"\s*\n").match(text, position):
            if code:
                yield Item(words, code)
            words, code, position = ("", "", blank.end()) if code else (words, code, blank.end())
        elif comment := COMMENT.match(text, position):
            if code:
                yield Item(words, code)
            words, code, position = prose(comment[0]), "", comment.end()
            if heading := re.fullmatch(r"-{4} (.*?) ?-{4}", words, re.S):
                yield Item(heading[1], "", True)
                words = ""
        elif around := AROUND.match(text, position):
            position = around.end()
        else:
            end = _end_of_declaration(text, position)
            code, position = code + text[position:end], end
    if code:
        yield Item(words, code)


def _without_conditions(text: str) -> str:
    return re.sub(r"^#(?:if|ifdef|ifndef|elif|else|endif|pragma|include|undef).*\n", "", text, flags=re.M)


def _end_of_declaration(text: str, start: int) -> int:
    if text.startswith("#define", start):
        return text.find("\n", start) + 1 or len(text)
    i = start
    while i < len(text):
        if text[i] in "([{":
            body = text[i] == "{"
            i = end_of_bracket(text, i)
            if body and not re.match(r"\s*(?:\w[\w\s\[\]]*)?;|\s*[,{]", text[i:]) and not text[start:i].lstrip().startswith("typedef"):
                return text.find("\n", i) + 1 or len(text)
        elif text[i] == ";":
            return text.find("\n", i) + 1 or len(text)
        else:
            i += 1
    return len(text)


def declared(code: str) -> str:
    """A declaration without what is not the reader's: bodies of functions, private members."""
    code = re.sub(r"^( *) private:\n.*?(?=^\1 public:|^\1\};?)", "", code, flags=re.S | re.M)
    made, i = "", 0
    signature = re.compile(r"\)(?:\s*(?:const|noexcept|override|final|&&?))*(?:\s*->\s*[\w:<> ]+?)?\s*(?=[:{])(?!::)")
    while match := signature.search(code, i):
        at = match.end()
        if code[at] == ":":
            at += 1
            while member := re.compile(r"[\s,]*[\w:<>, ]+?(?=[({])").match(code, at):
                at = end_of_bracket(code, member.end())
                if not re.match(r"\s*,", code[at:]):
                    break
            at += len(re.match(r"\s*", code[at:])[0])
        if at >= len(code) or code[at] != "{":
            made, i = made + code[i:match.end()], match.end()
            continue
        made, i = made + code[i:match.start()] + re.sub(r"\s+$", "", match[0]) + ";", end_of_bracket(code, at)
    return re.sub(r"\n\s*\n(?= *\};)", "\n", made + code[i:]).strip("\n")


def names(code: str) -> list[str]:
    """What a piece of code declares, for its heading."""
    first = re.sub(r"^template <.*?>\n?", "", code.strip(), flags=re.S)
    if match := re.match(r"(?:typedef )?(?:struct|class|enum(?: class)?|union) (\w+)|using (\w+) =", first):
        return [match[1] or match[2]]
    if "#define" in code:
        return re.findall(r"#define (\w+)", code)
    found = re.findall(r"^(?!\s)[^\n=(]*?\b([\w~]+)\(", code, re.M) or re.findall(r"\b(k\w+)\b(?= =|\[|\{)", code)
    return list(dict.fromkeys(found))


def section(root: pathlib.Path, header: str) -> str:
    text = (root / header).read_text()
    opening = COMMENT.match(text)
    included = re.sub(r"^(?:sdk/include|framework)/", "", header)
    lines = [f"## {included}", "", f"```cpp\n#include \"{included}\"\n```", "", shown(prose(opening[0])) if opening else "", ""]
    for item in items(text[opening.end() :] if opening else text):
        if item.section:
            lines += [f"**{item.words[0].upper()}{item.words[1:]}**", ""]
        elif called := names(item.code):
            lines += [f"### {', '.join(called[:6])}{', …' if len(called) > 6 else ''}", "", shown(item.words), "", f"```cpp\n{declared(item.code)}\n```", ""]
    return "\n".join(lines)


def page(root: pathlib.Path) -> str:
    opening = ("# C reference", "", "The public headers of C: what drives Tenon (a program of yours, the command, the Python package) includes `tenon/host.h`; the contract between host and "
               "plugins is the rest. A sample is [samples/06_embed_in_cpp](../samples/06_embed_in_cpp/README.md).", "")  # fmt: skip
    return "\n".join([*opening, *(section(root, header) for header in HEADERS)])
