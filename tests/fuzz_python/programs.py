"""Writes random functions over numbers, strings, containers, objects, closures, exceptions, loops, generators and toy tensors."""
import random

from language import INDENT, Language


class Program(Language):
    """One random function `fn(a, b, n, m, f, s, items, table, box, it)` as source text. With `arrays`, values of tensors decide too."""

    def __init__(self, seed, arrays=False):
        self.rng, self.arrays = random.Random(seed), arrays
        self.scopes = {"int": ["n", "m"], "float": ["f"], "str": ["s"], "list": ["items", "box.w"], "dict": ["table"], "tensor": ["a", "b", "box.t"]}
        self.fresh, self.lines, self.budget = 0, [], self.rng.randint(3, 14)
        self.loops, self.nested = 0, 0
        self.globals_written = set()

    # ---- choices
    def pick(self, *options):
        return self.rng.choice(options)

    def maybe(self, chance):
        return self.rng.random() < chance

    def name(self, kind=None):
        self.fresh += 1
        name = f"v{self.fresh}"
        if kind:
            self.scopes[kind].append(name)
        return name

    def var(self, kind):
        return self.rng.choice(self.scopes[kind])

    # ---- expressions
    def int(self, d=2):
        if d <= 0 or self.maybe(0.25):
            return self.pick(str(self.rng.randint(-3, 9)), self.var("int"), self.var("int"), "box.v", "G")
        i, j = (lambda: self.int(d - 1)), (lambda: self.list(d - 1))
        return self.rng.choice([
            lambda: f"({i()} {self.pick('+', '-', '*', '//', '%', '&', '|', '^')} {i()})",
            lambda: f"-{i()}", lambda: f"len({j()})", lambda: f"{j()}[{i()}]", lambda: f"table[{self.key()}]", lambda: f"table.get({self.key()}, {i()})",
            lambda: f"sum({j()})", lambda: f"max({j()}, default={i()})", lambda: f"min({i()}, {i()})", lambda: f"({i()} if {self.bool(d - 1)} else {i()})",
            lambda: f"next(it, {i()})", lambda: f"varied({i()}, *{j()}[:2], k={i()})", lambda: f"(lambda q, r={i()}: q + r)({i()})", lambda: f"len({self.str(d - 1)})",
            lambda: f"{j()}.index({i()})", lambda: f"{j()}.count({i()})", lambda: f"plus_one({i()})", lambda: f"checked({i()})", lambda: f"power({i()}, {i()} % 4)",
            lambda: f"divmod({i()}, {i()})[1]", lambda: f"int({self.bool(d - 1)})", lambda: f"Point({i()}, {i()}).shifted({i()}).x", lambda: "box.double", lambda: "box.dyn_attr",
            lambda: f"getattr(box, {self.pick(repr('v'), repr('none'), repr('dyn'))}, {i()})", lambda: f"sum({i()} for _ in range({i()} % 3))", lambda: f"box.bump({i()}).v",
            lambda: f"next(g for g in counting({i()}) if g >= 0)", lambda: f"sum(chained({i()}))", lambda: f"functools.reduce(operator.add, {j()}, {i()})",
            lambda: f"(Child({i()}, [], None) + {i()}).v", lambda: f"({self.name('int')} := {i()})", lambda: f"{{Key('k', {i()}): {i()}}}.get(Key('k', {i()}), {i()})",
            lambda: f"operator.itemgetter({i()})({j()})", lambda: f"box[{i()}]", lambda: f"math.gcd({i()}, {i()})", lambda: f"Pair({i()}, {i()}).second", lambda: f"hash(({i()}, {i()})) % 7",
            lambda: f"stop({i()})", lambda: f"{i()} ** 2", lambda: f"({i()} << {i()} % 5)", lambda: f"~{i()}", lambda: self.of_array(f"int(total({self.tensor(d - 1)}) > {i()})", f"{self.tensor(d - 1)}.shape[0]"),
            lambda: f"abs({i()}).bit_length()", lambda: f"len(collections.Counter({self.str(d - 1)}))", lambda: f"TABLE[{self.pick(repr('x'), repr('y'))}]",
        ])()

    def of_array(self, *texts):
        """One of the texts where tensors are arrays, and a number where they are toys."""
        return self.pick(*texts) if self.arrays else self.int(0)

    def bool(self, d=2):
        if d <= 0:
            return self.pick("True", "False", "n > m", "not items")
        i = lambda: self.int(d - 1)
        return self.rng.choice([
            lambda: f"{i()} {self.pick('<', '<=', '==', '!=', '>', '>=')} {i()}", lambda: f"{i()} in {self.list(d - 1)}", lambda: f"{self.key()} not in table",
            lambda: f"not {self.bool(d - 1)}", lambda: f"({self.bool(d - 1)} {self.pick('and', 'or')} {self.bool(d - 1)})", lambda: f"{i()} < {i()} <= {i()}",
            lambda: f"isinstance(box, {self.pick('Child', 'Box', '(int, Child)')})", lambda: f"any(q > {i()} for q in {self.list(d - 1)})", lambda: f"all({self.list(d - 1)})",
            lambda: f"bool({self.list(d - 1)})", lambda: f"{self.str(d - 1)}.startswith({self.str(0)})", lambda: f"box.w is {self.var('list')}", lambda: f"{i()} in box",
            lambda: f"Point({i()}) == Point({i()})", lambda: f"Child({i()}, [], None) == Child({i()}, [], None)", lambda: f"hasattr(box, {self.pick(repr('v'), repr('zzz'), repr('bumps'))})",
            lambda: f"{self.list(d - 1)} == {self.list(d - 1)}", lambda: f"bool({self.of_array(f'total({self.tensor(d - 1)}) > 0')})", lambda: f"stop({self.bool(d - 1)})", lambda: f"{{{i()}, {i()}}} >= {{{i()}}}",
        ])()

    def float(self, d=2):
        if d <= 0 or self.maybe(0.3):
            return self.pick("0.5", "-1.25", "2e3", "-0.0", self.var("float"))
        return self.rng.choice([
            lambda: f"({self.float(d - 1)} {self.pick('+', '-', '*', '/')} {self.float(d - 1)})", lambda: f"float({self.int(d - 1)})", lambda: f"round({self.float(d - 1)}, 1)",
            lambda: f"math.sqrt(abs({self.float(d - 1)}))", lambda: f"({self.int(d - 1)} / {self.int(d - 1)})", lambda: f"math.floor({self.float(d - 1)}) + 0.5",
        ])()

    def key(self):
        return self.pick("'k'", "'j'", "'new'", "s", "s[:1]", "str(n)")

    def str(self, d=2):
        if d <= 0 or self.maybe(0.3):
            return self.pick("'ab'", "'x-y'", "''", self.var("str"))
        return self.rng.choice([
            lambda: f"({self.str(d - 1)} + {self.str(d - 1)})", lambda: f"{self.str(d - 1)}.{self.pick('upper()', 'title()', 'strip()', 'zfill(3)', '''replace('a', 'zz')''')}",
            lambda: f"{self.str(d - 1)}[{self.int(d - 1)}:]", lambda: f"f'{{{self.int(d - 1)}:03d}}{{{self.var('str')}!r:>6}}'", lambda: f"','.join(map(str, {self.list(d - 1)}))",
            lambda: f"str({self.list(d - 1)})", lambda: f"repr({self.int(d - 1)})", lambda: f"'%s|%d' % ({self.str(d - 1)}, {self.int(d - 1)})", lambda: f"repr(Point({self.int(d - 1)}))",
            lambda: f"type({self.list(d - 1)}).__name__", lambda: "box.kind", lambda: f"'{{:>4}}'.format({self.int(d - 1)})", lambda: f"str({self.dict(d - 1)})", lambda: f"f'{{{self.float(d - 1)}:.2f}}'",
        ])()

    def list(self, d=2):
        if d <= 0 or self.maybe(0.3):
            return self.pick(self.var("list"), self.var("list"), f"[{self.int(0)}, {self.int(0)}]", "[]")
        i, j = (lambda: self.int(d - 1)), (lambda: self.list(d - 1))
        return self.rng.choice([
            lambda: f"[{i()}, {i()}, {i()}]", lambda: f"[q {self.pick('+', '*', '-')} {i()} for q in {j()} if q != {i()}]", lambda: f"list(range({i()} % 5))",
            lambda: f"sorted({j()}, key=lambda q: -q)", lambda: f"sorted({j()}, reverse={self.bool(0)})", lambda: f"{j()}[{i()}:{i()}]", lambda: f"({j()} + {j()})",
            lambda: f"[*{j()}, {i()}]", lambda: f"list(map(lambda q: q + {i()}, {j()}))", lambda: f"list({self.pick('counting', 'chained')}({i()}))", lambda: f"list({self.dict(d - 1)}.values())",
            lambda: f"list(reversed({j()}))", lambda: f"[len(q) for q in {self.dict(d - 1)}]", lambda: f"list(itertools.chain({j()}, {j()}))", lambda: f"list(itertools.accumulate({j()}))",
            lambda: f"{j()}.copy()", lambda: f"[p * q for p, q in zip({j()}, {j()})]", lambda: f"[p - q for p, q in enumerate({j()})]", lambda: f"list(filter(None, {j()}))",
            lambda: f"[z for y in ({j()}, {j()}) for z in y]", lambda: f"sorted({{q % 4 for q in {j()}}})", lambda: f"list(box)", lambda: f"({j()} or [{i()}])", lambda: f"list(itertools.islice(itertools.count({i()}), 3))",
            lambda: f"[k() for k in [lambda q=q: q + n for q in {j()}]]",
        ])()

    def dict(self, d=2):
        if d <= 0 or self.maybe(0.3):
            return self.pick(self.var("dict"), f"{{'k': {self.int(0)}}}")
        return self.rng.choice([
            lambda: f"{{{self.key()}: {self.int(d - 1)}, 'z': {self.int(d - 1)}}}", lambda: f"{{str(q): q for q in {self.list(d - 1)}}}", lambda: f"{{**{self.dict(d - 1)}, 'y': {self.int(d - 1)}}}",
            lambda: f"dict(zip({self.str(d - 1)}, {self.list(d - 1)}))", lambda: f"({self.dict(d - 1)} | {self.dict(d - 1)})", lambda: f"dict(sorted({self.dict(d - 1)}.items()))",
            lambda: f"collections.OrderedDict({self.dict(d - 1)})", lambda: f"dict.fromkeys({self.str(d - 1)}, {self.int(d - 1)})",
        ])()

    def tensor(self, d=2):
        if d <= 0 or self.maybe(0.3):
            return self.var("tensor")
        t = lambda: self.tensor(d - 1)
        if self.arrays and self.maybe(0.3):  # of zeros of both signs the width of NumPy's vectors decides which is the largest: + 0.0
            return self.pick(f"abs({t()})", f"({t()} * {t()}.sum())", f"{t()}[{self.int(0)} % 3]", f"(({t()} > 0) * {t()})", f"{t()}[1:]", f"stop({t()})", f"({t()} + 0.0).max()", f"{t()}[:2].sum()")
        return self.rng.choice([
            lambda: f"({self.tensor(d - 1)} {self.pick('+', '-', '*')} {self.tensor(d - 1)})", lambda: f"({self.tensor(d - 1)} * {self.int(d - 1)})", lambda: f"(-{self.tensor(d - 1)})",
            lambda: f"({self.float(d - 1)} + {self.tensor(d - 1)})", lambda: f"sum([{self.tensor(d - 1)}, {self.tensor(d - 1)}])", lambda: f"[{self.tensor(d - 1)}, {self.tensor(d - 1)}][{self.int(0)} % 2]",
            lambda: f"({self.tensor(d - 1)} if {self.bool(d - 1)} else {self.tensor(d - 1)})", lambda: f"functools.reduce(operator.mul, [{self.tensor(d - 1)}], {self.tensor(d - 1)})",
        ])()

    def value(self, d=2):
        kind = self.pick("int", "int", "list", "str", "float", "dict", "tensor", "tensor")
        return kind, getattr(self, kind)(d)

    # ---- statements
    def emit(self, depth, text):
        self.lines.append(INDENT * depth + text)

    def block(self, depth, size=None):
        saved = {kind: list(names) for kind, names in self.scopes.items()}
        before = len(self.lines)
        for _ in range(size or self.rng.randint(1, 3)):
            self.statement(depth)
        if len(self.lines) == before:
            self.emit(depth, "pass")
        if self.maybe(0.85):  # otherwise names may be unbound later
            self.scopes = saved

    def statement(self, depth):
        if depth == 1 and self.maybe(0.75):  # an exception should not end most programs early
            self.emit(1, "try:")
            self.block(2, 1)
            self.emit(1, "except Exception as error: LOG.append(type(error).__name__)")
            return
        self.budget -= 1
        simple = [self.assign, self.assign, self.augment, self.mutate, self.mutate, self.collections, self.collections, self.attribute, self.unpack, self.global_write, self.delete, self.log,
                  self.augment_place, self.star, self.comprehension, self.formatting, self.array_write]
        nesting = [self.branch, self.loop, self.loop, self.attempt, self.attempt, self.with_, self.closure, self.match, self.while_, self.generator, self.local_class,
                   self.escape, self.chained_error, self.changed_loop, self.stateful_generator, self.function, self.local_object, self.patterns]
        self.rng.choice(simple if self.budget <= 0 or depth > 4 else simple + nesting)(depth)

    def assign(self, depth):
        kind, text = self.value(3)
        self.emit(depth, f"{self.name()} = {text}")
        self.scopes[kind].append(f"v{self.fresh}")

    def augment(self, depth):
        names = [n for n in self.scopes["int"] if "." not in n]
        self.emit(depth, f"{self.rng.choice(names)} {self.pick('+=', '-=', '*=', '//=')} {self.int()}")

    def mutate(self, depth):
        i, j, target, table = self.int(1), self.list(1), self.var("list"), self.var("dict")
        self.emit(depth, self.pick(
            f"{target}.append({i})", f"{target}.extend({j}[:3])", f"{target}.insert({self.int(0)}, {i})", f"{target}.pop()", f"{target}.pop({i})", f"{target}.remove({i})", f"{target}.sort()",
            f"{target}.sort(key=lambda q: q % 3)", f"{target}.reverse()", f"{target}.clear()", f"{target}[{i}] = {self.int(0)}", f"{target}[{self.int(0)}:{self.int(0)}] = {j}", f"del {target}[{i}]",
            f"{target} += {j}[:3]" if "." not in target else f"{target}.append(0)", f"{table}[{self.key()}] = {i}", f"{table}.update({self.dict(1)})", f"{table}.pop({self.key()}, {i})", f"{table}.pop({self.key()})",
            f"del {table}[{self.key()}]", f"{table}.setdefault({self.key()}, {i})", f"{table}.popitem()", f"box[{i}] = {self.int(0)}", f"MEMO[{i}] = {j}", f"MEMO.setdefault({i}, []).append({self.int(0)})",
            f"LOG.append({i})", f"LOG.extend({j}[:3])", f"TABLE['x'] = {i}"))

    def collections(self, depth):
        i, j = self.int(1), self.list(1)
        self.emit(depth, self.pick(
            f"GROUP.add({i})", f"GROUP.discard({i})", f"GROUP.remove({i})", f"GROUP.update({j})", f"GROUP.intersection_update({j})", f"GROUP.difference_update({j})", f"LOG.append({i} in GROUP)",
            "LOG.append(sorted(GROUP))", "LOG.append(len(GROUP))", f"QUEUE.append({i})", f"QUEUE.appendleft({i})", "LOG.append(QUEUE.popleft())", "LOG.append(QUEUE.pop())", f"QUEUE.rotate({i} % 3)",
            f"QUEUE.extend({j}[:3])", f"LOG.append(QUEUE[{i}])", f"QUEUE[{i}] = {self.int(0)}", "LOG.append(list(QUEUE))", f"COUNTS.update({self.str(1)})", f"COUNTS[{self.str(1)}] += {i}",
            "LOG.append(COUNTS.most_common(1))", f"NAMES[{self.key()}].append({i})", f"LOG.append(len(NAMES[{self.key()}]))", f"NAMES.pop({self.key()}, None)", f"ORDER.move_to_end({self.pick(repr('p'), repr('q'), repr('x'))})",
            f"ORDER[{self.key()}] = {i}", "LOG.append(list(ORDER.items()))", "LOG.append(ORDER.popitem())", f"LOG.append(next(iter(ORDER.values()), {i}))", f"MEMO[Key('m', {i})] = {self.value(1)[1]}",
            f"LOG.append(MEMO.get(Key('m', {i})))", f"MEMO[Child({i}, [], None)] = {i}", f"LOG.append(max([Point({i}), Point({i})], key=lambda p: p.x).x)", f"LOG.append(sorted([Pair({i}, 1), Pair({i}, 0)]))",
            f"LOG.append(copy.deepcopy({self.pick('items', 'table', 'LOG[-1:]')}))", f"LOG.append(dataclasses.astuple(Point({i}, {i})))", f"LOG.append(GROUP & {{{i}, 1}})", f"GROUP.symmetric_difference_update({{{i}}})",
            f"LOG.append(operator.attrgetter('v')(box))", f"LOG.append([*map(operator.methodcaller('upper'), {self.str(1)})])", f"LOG.append({{*{j}}} | GROUP)", f"LOG.append(dict(ORDER, n={i}))"))

    def array_write(self, depth):
        t = self.var("tensor")
        self.emit(depth, self.pick(f"{t}[{self.int(0)} % 3] = {self.int(1)}", f"{t}[1:] = {self.tensor(1)}[1:]", f"{t}[1:] += 1", f"if total({t}) > {self.int(1)}: LOG.append(0)", f"box.t[:] = {self.tensor(1)}") if self.arrays else "stop(0)")

    def attribute(self, depth):
        self.emit(depth, self.pick(f"box.v = {self.int()}", f"box.v += {self.int(1)}", f"box.double = {self.int(1)}", f"box.t = {self.tensor()}", f"box.extra = {self.value()[1]}", f"box.w = {self.list()}",
                                   "del box.extra", f"box.bump({self.int(1)})", f"setattr(box, {self.key()}, {self.int(1)})", f"box.self = box", f"box.pair = Pair(items, {self.int(1)})", f"Box.kind = {self.str(1)}"))

    def unpack(self, depth):
        first, second = self.name("int"), self.name("list" if self.maybe(0.5) else None)
        if second in self.scopes["list"]:
            self.emit(depth, f"{first}, *{second} = {self.list()}")
        else:
            self.emit(depth, f"{first}, {second} = {self.list()}")
            self.scopes["int"].append(second)

    def global_write(self, depth):
        if not self.nested:
            self.emit(depth, f"G {self.pick('=', '+=', '-=')} {self.int(1)}")

    def delete(self, depth):
        names = [n for kind in ("int", "str", "list") for n in self.scopes[kind] if n.startswith("v")]
        if names and self.maybe(0.3) and not self.nested:
            self.emit(depth, f"del {self.rng.choice(names)}")
        else:
            self.emit(depth, f"assert {self.bool(1)}, {self.str(1)}" if self.maybe(0.3) else f"LOG.append({self.value(1)[1]})")

    def log(self, depth):
        if self.loops and self.maybe(0.4):
            self.emit(depth, f"if {self.bool(1)}: {self.pick('break', 'continue')}")
        elif self.maybe(0.15):
            self.emit(depth, f"if {self.bool(1)}: return {self.value(1)[1]}")
        elif self.maybe(0.2):
            self.emit(depth, f"if {self.bool(1)}: raise {self.pick('ValueError', 'KeyError', 'Trouble')}({self.int(1)})")
        else:
            self.emit(depth, f"LOG.append(({self.value(1)[1]}, {self.value(1)[1]}))")

    def branch(self, depth):
        self.emit(depth, f"if {self.bool()}:")
        self.block(depth + 1)
        if self.maybe(0.4):
            self.emit(depth, f"elif {self.bool()}:")
            self.block(depth + 1)
        if self.maybe(0.5):
            self.emit(depth, "else:")
            self.block(depth + 1)

    def loop(self, depth):
        v, w = self.name("int"), self.name("int")
        self.emit(depth, self.pick(f"for {v} in range({self.int(1)} % 4):", f"for {v} in {self.list()}[:4]:", f"for {w}, {v} in enumerate({self.list()}[:3]):", f"for {w}, {v} in zip({self.list()}[:3], {self.list()}):",
                                   f"for {v} in counting({self.int(1)}):", f"for {v} in {self.dict()}.values():", f"for {v} in it:", f"for {v} in itertools.islice(box, 3):"))
        self.loops += 1
        self.block(depth + 1)
        if self.maybe(0.1):  # jumps over more than 255 code units
            self.emit(depth + 1, "; ".join(["n ^= 0"] * 60))
        self.loops -= 1
        if self.maybe(0.25):
            self.emit(depth, "else:")
            self.block(depth + 1, 1)

    def while_(self, depth):
        v = self.name()  # nothing else may change it, so that the loop ends
        self.emit(depth, f"{v} = 0")
        self.emit(depth, f"while {v} < 3 and {self.bool(1)}:")
        self.emit(depth + 1, f"{v} += 1")
        self.loops += 1
        self.block(depth + 1)
        self.loops -= 1

    def attempt(self, depth):
        self.emit(depth, "try:")
        self.block(depth + 1)
        if self.maybe(0.5):
            self.emit(depth + 1, f"raise {self.pick('ValueError', 'KeyError', 'Trouble')}({self.int(1)})")
        handled = self.maybe(0.85)
        if handled:
            self.emit(depth, f"except {self.pick('Exception', 'Trouble', '(ValueError, KeyError)', 'LookupError', 'ArithmeticError', 'TypeError')} as error:")
            self.emit(depth + 1, self.pick("LOG.append(type(error).__name__)", "LOG.append(str(error))", "LOG.append(error.args)", "raise", f"raise Trouble({self.int(1)}) from error", f"return {self.value(1)[1]}", "pass"))
            self.block(depth + 1, 1)
            if self.maybe(0.3):
                self.emit(depth, "else:")
                self.block(depth + 1, 1)
        if not handled or self.maybe(0.3):
            self.emit(depth, "finally:")
            self.block(depth + 1, 1)

    def with_(self, depth):
        v = self.name("int")
        self.emit(depth, self.pick(f"with Context(LOG, {self.bool(0)}) as {v}:", f"with noted(LOG, {self.int(1)}) as {v}:", f"with contextlib.suppress(LookupError), Context(LOG, False) as {v}:", f"with contextlib.nullcontext({self.int(1)}) as {v}:"))
        self.block(depth + 1)

    def closure(self, depth):
        f, v = self.name(), self.name("int")
        self.emit(depth, f"{v} = {self.int()}")
        self.emit(depth, f"def {f}(p, q={self.int(1)}, *, r={self.int(1)}):")
        self.emit(depth + 1, f"nonlocal {v}")
        self.emit(depth + 1, f"{v} {self.pick('+=', '-=')} p")
        saved, loops = {kind: list(names) for kind, names in self.scopes.items()}, self.loops
        self.scopes["int"] = ["p", "q", "r", v]
        for kind in ("float", "str", "list", "dict", "tensor"):
            self.scopes[kind] = [n for n in self.scopes[kind] if not n.startswith("v")]
        self.loops, self.nested = 0, self.nested + 1
        if self.maybe(0.5):
            self.block(depth + 1)
        self.emit(depth + 1, f"return {self.int()}")
        self.scopes, self.loops, self.nested = saved, loops, self.nested - 1
        result = self.name("int")
        self.emit(depth, f"{result} = {self.pick(f'{f}({self.int(1)})', f'{f}({self.int(1)}, r=2) + {f}(1)', f'sum(map({f}, {self.list(1)}))', f'functools.partial({f}, 2)(q=3)')}")
        if self.maybe(0.2):
            self.emit(depth, f"MEMO['f'] = {f}")

    def generator(self, depth):
        g, v = self.name(), self.name("list")
        self.emit(depth, f"def {g}(p):")
        saved = {kind: list(names) for kind, names in self.scopes.items()}
        self.scopes = {"int": ["p"], "float": ["f"], "str": ["s"], "list": ["items"], "dict": ["table"], "tensor": ["a"]}
        self.emit(depth + 1, f"for q in range(p % 4):")
        self.emit(depth + 2, self.pick("yield q", f"yield q + {self.int(1)}", "got = yield q; LOG.append(got)", "yield from counting(q)", f"try: yield {self.int(1)}\n{INDENT * (depth + 2)}finally: LOG.append(q)"))
        self.emit(depth + 1, f"return {self.int(1)}")
        self.scopes = saved
        self.emit(depth, f"{v} = {self.pick(f'list({g}({self.int(1)}))', f'[q for q in {g}({self.int(1)})]', f'[next({g}({self.int(1)}), 9)]', f'sorted({g}(3))')}")

    def local_class(self, depth):
        c = f"C{self.fresh}"
        self.emit(depth, f"class {c}{self.pick('', '(Point)', '(Trouble)') if self.maybe(0.3) else ''}:")
        self.emit(depth + 1, f"k = {self.pick('3', 'G')}")
        self.emit(depth + 1, f"def m(self, q): return self.k + q")
        v = self.name("int")
        self.emit(depth, f"{v} = {c}.m({c}, {self.int(1)})")

    def match(self, depth):
        self.emit(depth, f"match {self.pick(self.list(), self.int(), self.dict(), f'Point({self.int(1)}, {self.int(1)})', self.str())}:")
        v = self.name("int")
        for pattern in self.rng.sample(["0 | 1", f"int({v}) if {v} > 2", f"[{v}, *_]", f"[{v}, _]", f"{{'k': {v}, **rest}}", f"Point(x={v})", f"Point(1, {v})", "str()", "[]"], 3):
            self.emit(depth + 1, f"case {pattern}:")
            self.block(depth + 2, 1)
        self.emit(depth + 1, "case _:")
        self.block(depth + 2, 1)

    def text(self):
        self.emit(1, "global G")
        while self.budget > 0:
            self.statement(1)
        results = [self.value(1)[1] for _ in range(self.rng.randint(1, 4))]
        self.emit(1, f"return {', '.join(results + self.rng.sample(['items', 'box', 'table', 'LOG', 'a'], 2))}")
        return "def fn(a, b, n, m, f, s, items, table, box, it):\n" + "\n".join(self.lines) + "\n"
