"""Runs one program plainly and captured, on two worlds that live on from call to call, and compares what is left of each."""
import builtins
import copy
import gc
import pathlib
import random
import signal
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "evaluator"))

from harness import Break, Captured, Number  # noqa: E402
from state import Differs, alike, shown  # noqa: E402

PRELUDE = compile((HERE / "prelude.py").read_text(), str(HERE / "prelude.py"), "exec")


class Probe:
    """Captures whole calls with the evaluator alone; tensors are the harness's toy numbers."""

    arrays = False

    def stop(self, value):
        return value

    def tensor(self, value):
        return Number(float(value))

    def compiled(self, fn, _seed):
        held = []

        def call(*args):
            for captured in held:
                if captured.check(args):
                    return captured(*args)
            captured = Captured(fn, args)
            held.insert(0, captured)
            return captured(*args)

        return call


class Tenon:
    """The package itself: breaks go on behind them. Tensors are NumPy arrays, or torch's with `torch=True`."""

    arrays = True

    def __init__(self, torch=False):
        import numpy
        import tenon

        self.package, self.library = tenon, numpy
        if torch:
            import torch as library

            self.library = library

    def stop(self, value):
        self.package.graph_break()
        return value

    def tensor(self, value):
        return self.library.asarray([float(value), 1.5, -2.0])

    def compiled(self, fn, seed):
        return self.package.compile(fn, options={"recompile_limit": 1} if seed % 4 == 0 else None)  # past the limit the rest runs as plain Python


class World:
    """One side: a module's globals with the prelude and the program, and the arguments."""

    def __init__(self, source, engine, seed):
        self.module = type(sys)("fuzz_world")
        self.globals = self.module.__dict__
        self.globals["__builtins__"] = builtins
        self.enter()
        exec(PRELUDE, self.globals)
        self.globals["stop"] = engine.stop
        exec(compile(source, "<fuzz>", "exec"), self.globals)
        rng, g = random.Random(seed), self.globals
        items = [rng.randint(-3, 9) for _ in range(rng.randint(0, 5))]
        box = g[rng.choice(["Box", "Child"])](rng.randint(-2, 5), rng.choice([items, [1, 2]]), engine.tensor(2))
        self.args = [engine.tensor(1), engine.tensor(-3), rng.randint(-2, 6), rng.randint(0, 4), rng.choice([0.5, -2.25]), rng.choice(["ab", "k", ""]), items,
                     {"k": rng.randint(0, 4), "j": 2}, box, iter([7, 8, 9][: rng.randint(0, 3)])]
        self.fn = g["fn"]

    def enter(self):
        """Makes this side's module the one of the name that both have."""
        sys.modules["fuzz_world"] = self.module

    def change(self, seed, engine):
        """Changes something that the program may have read."""
        rng, g = random.Random(seed), self.globals
        what = rng.randrange(8)
        if what == 0:
            self.args[2] = rng.randint(-2, 6)
        elif what == 1:
            self.args[6] = [rng.randint(0, 5) for _ in range(3)]
        elif what == 2:
            self.args[7]["new"] = rng.randint(0, 5)
        elif what == 3:
            self.args[8].v = rng.randint(-2, 5)
        elif what == 4:
            g["G"] = rng.randint(-2, 5)
        elif what == 5:
            self.args[9] = iter([4, 5])
        elif what == 6:
            g["Box"].kind = "changed"
        else:
            self.args[0] = engine.tensor(7)

    def left(self):
        g = self.globals
        return [*self.args[:9], list(copy.copy(self.args[9])), g["G"], g["LOG"], g["TABLE"], *(g[name] for name in ("MEMO", "GROUP", "QUEUE", "COUNTS", "NAMES", "ORDER")), g["Box"].kind]


MOST_ITEMS = 10**5  # lists that a program makes longer take long to copy and compare


class TooLong(BaseException):
    """The program itself does not end soon: it says nothing about what captures it."""


def plain_outcome(call, args, seconds=1.0):
    late = False

    def give_up(signum, frame):
        nonlocal late
        late = True
        raise TooLong

    before, left = signal.signal(signal.SIGALRM, give_up), signal.alarm(0)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        result = outcome(call, args)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.alarm(left)
    if late:  # somebody made another error of it, as the making of a class does with one in __set_name__
        raise TooLong
    return result


def outcome(call, args):
    try:
        return ["returned", call(*args)]
    except (Break, Differs):
        raise
    except Exception as error:
        return ["raised", type(error).__name__, str(error)]


def run(source, seed, engine):
    """'same', 'break' (and why) or 'raises'. Raises Differs with an account of what differs."""
    gc.freeze()
    gc.disable()  # what is in a cycle (since 3.12 an exception that went through a context manager) ends after each call, on both sides
    try:
        return compared(source, seed, engine)
    finally:
        gc.enable()


def compared(source, seed, engine):
    plain, mine = World(source, engine, seed), World(source, engine, seed)
    compiled, verdict = engine.compiled(mine.fn, seed), "same"
    for number in range(4):
        if number == 2:
            plain.change(seed, engine), mine.change(seed, engine)
        plain.enter()
        try:
            want = plain_outcome(plain.fn, plain.args)
        except TooLong:
            return "invalid", ""
        gc.collect()
        if any(len(each) > MOST_ITEMS for each in (plain.args[6], plain.args[8].w, plain.globals["LOG"])):
            return "invalid", ""
        mine.enter()
        try:
            got = outcome(compiled, mine.args)
        except Break as stop:
            if "the call raises" in str(stop):
                if want[0] != "raised" or f"raises {want[1]}" not in str(stop):
                    raise Differs(f"call {number}: {stop} instead of {shown(want)}") from None
                return "raises", str(stop)
            if "does not hold right after" in str(stop) or "internal" in str(stop):
                raise Differs(f"call {number}: {stop}") from None
            return "break", str(stop)
        gc.collect()
        try:
            alike([got, *mine.left()], [want, *plain.left()])
        except Differs as difference:
            raise Differs(f"call {number}: {difference}\n captured: {shown(got)}\n plain:    {shown(want)}") from None
    return verdict, ""
