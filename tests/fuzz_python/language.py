"""Statements for generated programs that leave blocks in the middle, bind in unusual places, and make generators, functions and classes."""

INDENT = "    "


class Language:
    """A mixin of `Program`: needs its choices, expressions and blocks."""

    def lines_of(self, depth, text):
        for line in text.splitlines():
            self.emit(depth, line)

    def leave(self):
        """A statement that leaves the block that it stands in."""
        options = [f"return {self.value(1)[1]}", f"raise Trouble({self.int(1)})"]
        return self.pick(*options, *["break", "continue"] * (2 if self.loops else 0))

    # ---- leaving blocks
    def escape(self, depth):
        loop = self.maybe(0.6)
        if loop:
            self.emit(depth, f"for {self.name('int')} in {self.pick(f'range({self.int(1)} % 4)', f'{self.list(1)}[:3]')}:")
            self.loops += 1
        inner = depth + loop
        self.emit(inner, "try:")
        self.block(inner + 1, 1)
        self.emit(inner + 1, f"if {self.bool(1)}: {self.leave()}")
        self.emit(inner, "finally:")
        self.block(inner + 1, 1)
        if self.maybe(0.3):
            self.emit(inner + 1, f"if {self.bool(1)}: {self.leave()}")
        self.loops -= loop
        if loop and self.maybe(0.3):
            self.emit(depth, "else:")
            self.block(depth + 1, 1)

    def chained_error(self, depth):
        i = self.int(1)
        cause = self.pick("", " from error", " from None", f" from Trouble({i})")
        self.lines_of(depth, self.pick(
            f"try:\n    try: raise KeyError({i})\n    except LookupError as error: raise ValueError({i}){cause}\n"
            "except ValueError as caught: LOG.append((type(caught.__cause__).__name__, type(caught.__context__).__name__, caught.__suppress_context__))",
            f"try: raise ExceptionGroup('g', [ValueError({i}), Trouble({i})])\nexcept* ValueError as group: LOG.append(len(group.exceptions))\nexcept* Trouble: LOG.append('t')",
            f"try: checked({i})\nexcept Trouble as error:\n    LOG.append(error.code)\n    try: checked({self.int(1)})\n    except Trouble as error: LOG.append(type(error.__context__).__name__)\n    LOG.append(error.args)",
            f"try:\n    try: checked({i})\n    finally: LOG.append(type(sys.exception() if hasattr(sys, 'exception') else sys.exc_info()[1]).__name__)\nexcept Trouble: pass",
            f"with contextlib.ExitStack() as stack:\n    stack.callback(LOG.append, {i})\n    stack.enter_context(Context(LOG, {self.bool(0)}))\n    checked({i})",
            f"while True:\n    with Context(LOG, {self.bool(0)}):\n        if {self.bool(1)}: break\n        checked({i})\n    break",
        ))

    # ---- binding
    def augment_place(self, depth):
        i, j = self.int(1), self.list(1)
        number = self.pick("+=", "-=", "*=", "//=", "%=", "|=", "^=")
        tensor = f"{self.var('tensor')} {self.pick('+=', '-=', '*=')} {self.tensor(1)}"
        self.emit(depth, self.pick(
            f"{self.var('list')}[{i}] {number} {i}", f"{self.var('dict')}[{self.key()}] {number} {i}", f"box.v {number} {i}", f"box.double {number} {i}", f"box[{i}] {number} {i}",
            f"NAMES[{self.key()}] += {j}[:2]", f"TABLE['x'] {number} {i}", f"{self.var('list')}[{i}:{i}] += {j}[:2]", f"box.w += {j}[:2]", f"COUNTS['a'] {number} {i}",
            f"box.t {self.pick('+=', '*=')} {self.tensor(1)}", tensor if not self.nested else "box.t -= 1", f"box.w[{i}] {number} {i}", f"Box.count = getattr(Box, 'count', 0) + {i}"))

    def star(self, depth):
        i, j = self.int(1), self.list(1)
        first, second, third = self.name("int"), self.name("int"), self.name("list")
        self.lines_of(depth, self.pick(
            f"({first}, *{third}), {second} = {j}, {i}", f"*{third}, {first} = {j}", f"{third} = {self.name('list')} = {j}", f"{first}, {second} = {i}, {self.int(1)}\n{first}, {second} = {second}, {first}",
            f"[{first}, *{third}] = ({i}, *{j})", f"{third} = [varied(*p, *q[:1]) for p, *q in [({j}[:2], {j}), ([1, 2], 3)]]", f"items[0], box.v = {i}, {self.int(1)}", f"TABLE['x'], *{third} = {j}",
            f"{first} = varied(*{j}[:2], *{j}[:1], **{{'k': {i}}}, z={i})", f"{first} = varied(**{{'p': {i}, 'q': 1}}, **{self.dict(1)})", f"for {first}, *{third} in [({i}, 2), ({i},), {j} or [1]]: LOG.append({third})",
            f"{third} = list({self.pick('set', 'tuple', 'iter')}({j}[:1]))", f"del {self.var('list')}[{i}:{self.int(1)}], {self.var('dict')}[{self.key()}]"))

    def comprehension(self, depth):
        i, j = self.int(1), self.list(1)
        v, w = self.name("int"), self.name("list")
        self.lines_of(depth, self.pick(
            f"{w} = [({v} := q) for q in {j}]", f"{w} = [p + q for p in {j}[:3] if p > {i} for q in range(p % 3) if q]", f"LOG.append({{q: [p for p in range(q % 3)] for q in {j}}})",
            f"{w} = [k() for k in [(lambda: q) for q in {j}]]", f"{w} = [sum([q for q in (q, {i})]) for q in {j}]", f"{w} = [n for n in {j}]\nLOG.append(n)", f"{w} = [checked(q) for q in {j}]",
            f"{w} = (q + {i} for q in {j})\nLOG.append(next({w}, 0))\n{w} = list({w})", f"{w} = [q for q in {j} if ({v} := q % 4) > 1]", f"{v} = max(({v} for {v} in {j}), default={i})",
            f"{w} = [stop(q) for q in {j}[:3]]", f"LOG.append({{stop(q) % 3 for q in {j}[:3]}})", f"{w} = sorted({j}, key=lambda q: (stop(q) % 2, q))"))

    def changed_loop(self, depth):
        i, v = self.int(1), self.name("int")
        self.lines_of(depth, self.pick(
            f"for {v} in table: table.pop({v}) if {self.bool(1)} else None", f"for {v} in items:\n    if {v} > {i}: items.remove({v})", f"for {v} in list(table): del table[{v}]",
            f"for {v} in items:\n    if len(items) > 6: break\n    items.append({v})", f"for {v}, box.v in enumerate({self.list(1)}[:3]): stop(0)", f"for box.extra in {self.list(1)}: pass",
            f"while items:\n    if items.pop() > {i}: continue\n    stop(0)", f"for {v} in GROUP: GROUP.discard({i})", f"for {v} in QUEUE:\n    if {v} > {i}: break\nelse: QUEUE.append({i})"))

    def formatting(self, depth):
        i, s, name = self.int(1), self.str(1), self.var("str")
        self.emit(depth, "LOG.append(%s)" % self.pick(
            'f"{%s = }"' % i, 'f"{%s!r:>{abs(%s) %% 9}}"' % (name, i), 'f"{stop(%s):+05d}{box.v!s}"' % i, f"{s}.partition('a')", f"{s}.split({s} or None)", f"{s}.encode()[{i}:]", f"bytes([abs({i}) % 256])",
            f"format({i}, 'x')", f"~{i} >> 1", f"complex({i}, 1) * 2", f"pow({i}, 3, 7)", f"{s}.join({s})", f"'{{0}}{{k}}'.format({s}, k={i})", f"{s} * ({i} % 3)", f"{s} < {s} <= {s}"))

    # ---- functions and generators
    def stateful_generator(self, depth):
        g, h, i = self.name(), self.name(), self.int(1)
        body = self.pick("got = yield p\nLOG.append(got)\nyield (got or 0) + p", "got = yield from counting(p)\nyield got", "for q in range(stop(p) % 4):\n    yield q * p", "with Context(LOG, True):\n    yield p\n    checked(p)\nyield -p",
                         "yield stop(p)\nraise Trouble(p)")
        self.emit(depth, f"def {g}(p):")
        self.emit(depth + 1, "try:")
        self.lines_of(depth + 2, body)
        self.emit(depth + 1, f"except {self.pick('Trouble', 'ValueError', 'GeneratorExit')} as error:")
        self.emit(depth + 2, self.pick("LOG.append(type(error).__name__); yield 5", "return 7", "raise"))
        self.emit(depth + 1, "finally: LOG.append('end')")
        self.emit(depth, f"{h} = {g}({i})")
        for _ in range(self.rng.randint(1, 3)):
            self.emit(depth, self.pick(f"LOG.append(next({h}, 'none'))", f"LOG.append({h}.send({self.pick('None', i)}))", f"LOG.append({h}.throw(Trouble({i})))", f"{h}.close()", f"LOG.append([*{h}])", f"for {self.name('int')} in {h}: break",
                                       f"LOG.append([q for q in zip({h}, range(2))])", f"del {h}", f"MEMO['g'] = {h}", "LOG.append(next(MEMO['g'], 'none') if 'g' in MEMO else 0)"))

    def function(self, depth):
        f, v, i, j = self.name(), self.name("int"), self.int(1), self.list(1)
        self.lines_of(depth, self.pick(
            f"def {f}(k): return k if k < 2 else {f}(k - 1) + {f}(k - 2)\n{v} = {f}({i} % 6)", f"@twice\ndef {f}(k): return stop(k) + {i}\n{v} = {f}({i})",
            f"@functools.lru_cache(maxsize=2)\ndef {f}(k):\n    LOG.append(k)\n    return k * 2\n{v} = {f}(1) + {f}(1) + {f}({i})", f"@contextlib.contextmanager\ndef {f}(k):\n    try: yield k\n    except Trouble: LOG.append('caught')\nwith {f}({i}) as {v}: checked(stop({v}))",
            f"def {f}(*args, k=2, **more): return len(args) + k + len(more)\n{v} = {f}(*{j}, **{{'k': 1, 'w': {i}}})", f"{f} = [lambda q, s=s: q + s + n for s in {j}]\n{v} = sum(k(1) for k in {f})",
            f"def {f}(p, /, q, *, r=[]):\n    r.append(p)\n    return len(r) + q\n{v} = {f}(1, {i}) + {f}(2, q=1)", f"{v} = MEMO.pop('f', abs)({i})", f"def {f}(k=[]):\n    k.append({i})\n    return k\nLOG.append(({f}(), {f}()))",
            f"def {f}():\n    x = {i}\n    def inner():\n        nonlocal x\n        x += stop(1)\n        return x\n    return inner\nMEMO['f2'] = {f}()\n{v} = MEMO['f2']() + MEMO['f2']()", f"{v} = MEMO['f2']() if 'f2' in MEMO else 0"))

    # ---- classes
    def local_object(self, depth):
        c, v, i, j = f"C{self.fresh}", self.name("int"), self.int(1), self.int(1)
        self.lines_of(depth, self.pick(
            f"@dataclasses.dataclass({self.pick('order=True', 'frozen=True', 'slots=True', 'eq=False', 'unsafe_hash=True')})\nclass {c}:\n    x: int\n    y: list = dataclasses.field(default_factory=list)\n    def __post_init__(self): LOG.append(self.x)\n"
            f"{v} = {c}({i}).x\nLOG.append({self.pick(f'{c}({i}) < {c}({j})', f'{c}({i}) == {c}({j})', f'len({{{c}({i}), {c}({j})}})', f'len(repr({c}({i})))', f'dataclasses.asdict({c}({i}))')})",
            f"class {c}(Box):\n    many = [q for q in range(2)]\n    def __init__(self, x):\n        super().__init__(stop(x), [], None)\n        self.x = x\n    def __call__(self, k): return self.v + k\n    @classmethod\n    def of(cls, k): return cls(k)\n    @property\n    def more(self): return stop(self.x) + 1\n"
            f"{v} = {c}.of({i})({j}) + {c}({i}).more + len({c}.many)",
            f"class {c}(enum.Enum):\n    A = 1\n    B = 2\n    @property\n    def twice(self): return self.value * 2\nLOG.append(({c}(abs({i}) % 2 + 1).name, {c}.B.twice, [q.value for q in {c}], {c}.A is {c}['A']))",
            f"class {c}(typing.NamedTuple):\n    x: int\n    y: int = 2\n    def sum(self): return self.x + self.y\n{v} = {c}({i}).sum() + {c}({i}, {j})._replace(x=1)[0]",
            f"class {c}:\n    __slots__ = ('x', 'y')\n    def __init__(self, x): self.x = x\n    def __eq__(self, other): return self.x == stop(other.x)\n    def __lt__(self, other): return self.x < other.x\n    __hash__ = None\n"
            f"LOG.append({self.pick(f'{c}({i}) == {c}({j})', f'sorted([{c}({i}), {c}({j})])[0].x', f'{c}({i}).y', f'{c}({i}) in [{c}({j})]', f'hash({c}({i}))')})",
            f"class {c}:\n    def __enter__(self): return stop({i})\n    def __exit__(self, *error): return {self.bool(0)}\n    def __iter__(self): yield {i}; yield {j}\n    def __len__(self): return 2\n    def __bool__(self): return {self.bool(0)}\n"
            f"with {c}() as {v}: checked({j})\nLOG.append((sum({c}()), bool({c}()), [*{c}()]))",
            f"class {c}(Trouble):\n    def __str__(self): return f'<{{self.code}}>'\ntry: raise {c}({i})\nexcept Trouble as error: LOG.append((str(error), error.code))",
            f"LOG.append(type('{c}', (Box,), {{'kind': {self.str(1)}}})({i}, [], None).kind)"))

    def patterns(self, depth):
        i, v, w = self.int(1), self.name("int"), self.name("list")
        self.emit(depth, f"match {self.pick(f'Pair({i}, {self.list(1)})', f'[{i}, {i}, *{self.list(1)}]', self.dict(1), 'box', f'(({i}, 2), {self.str(1)})', f'Key({self.key()}, {i})', f'stop({i})', 'dict(k=%s)' % self.list(1), 'a', 'None')}:")
        for pattern in self.rng.sample([f"Pair({v}, [_, *{w}])", f"Pair(first={v})", f"[1 | 2 as {v}, _, *_]", f"[{v}, *{w}, _]", f"{{'k': [*{w}]}}", "{'k': 0 | 1, **rest}", f"Box(v={v}) if {v} > 1", f"(({v}, 2), str())", f"Key('k', index={v})", "G.real", "Box.kind",
                                        f"int({v}) if stop({v}) > 2", "None", "Child()", "[]", "{}", "float() | bool()", f"Child(v=0 | 1 as {v}, w=[])"], 4):
            self.emit(depth + 1, f"case {pattern}:")
            self.block(depth + 2, 1)
        self.emit(depth + 1, f"case other: LOG.append(other is {self.pick('box', 'None')})")
