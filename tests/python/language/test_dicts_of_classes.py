"""What a class shows of its attributes (vars(cls), a mappingproxy) is what it has at each call."""
import inspect
import types

import pytest


def subscript(c):
    try:
        return vars(c)["hook"]
    except KeyError:
        return "missing"


READS = {
    "get": lambda c: (vars(c).get("hook"), vars(c).get("present"), vars(c).get("nothing", "default")),
    "iteration": lambda c: [k for k in vars(c) if k[0] != "_"],
    "len": lambda c: len(vars(c)),
    "dict": lambda c: {k: v for k, v in dict(vars(c)).items() if k in ("present", "hook", "held")},
    "in": lambda c: ("hook" in vars(c), "hook" not in c.__dict__, "inherited" in vars(c)),
    "items": lambda c: [(k, v) for k, v in c.__dict__.items() if k in ("hook", "present")],
    "values": lambda c: [v for v in c.__dict__.values() if isinstance(v, int)],
    "keys": lambda c: sorted(c.__dict__.keys() & {"hook", "present"}),
    "subscript": subscript,
    "equality": lambda c: (vars(c) == {"a": 1}, vars(c) == vars(c), vars(c) != dict(vars(c))),
    "union": lambda c: ((vars(c) | {"z": 1}).get("hook"), ({"z": 1} | vars(c)).get("hook")),
    "copy": lambda c: vars(c).copy().get("hook"),
    "dir": lambda c: [k for k in dir(c) if k[0] != "_"],
    "getmembers": lambda c: [k for k, _ in inspect.getmembers(c) if k[0] != "_"],
    "getattr_static": lambda c: inspect.getattr_static(c, "hook", None),
    "sorted": lambda c: [k for k in sorted(vars(c)) if k[0] != "_"],
    "other containers": lambda c: (len([*vars(c)]), len({**vars(c)}), len(set(vars(c))), len(tuple(vars(c))), bool(vars(c))),
    "C code": lambda c: (len(list(zip(vars(c), range(99)))), len(list(map(len, vars(c)))), max(vars(c)), "hook" in str(vars(c))),
    "methods": lambda c: (vars(c).__len__(), vars(c).__contains__("hook"), vars(c).__getitem__("present")),
    "another proxy": lambda c: (len(types.MappingProxyType(vars(c))), types.MappingProxyType(vars(c)).get("hook")),
    "bases": lambda c: [k for b in c.__mro__[:2] for k in vars(b) if k[0] != "_"],
    "values inside": lambda c: (sum(vars(c)["held"]), vars(c)["method"](None)),
    "update": lambda c: (lambda d: (d.update(vars(c)), len(d))[1])({}),
}


@pytest.mark.parametrize("name", READS)
def test_a_class_that_is_changed_between_calls(name, as_plain):
    def scenario(compile):
        class Base:
            inherited = 1

        class Config(Base):
            present = 1
            held = [1]

            def method(self):
                return 1

        fn = compile(READS[name])
        seen = [fn(Config)]
        Config.hook = 5
        seen.append(fn(Config))
        Config.present = 9
        Base.more = 1
        seen.append(fn(Config))
        Config.held = [1, 2]
        seen.append(fn(Config))
        Config.held.append(3)
        del Config.hook
        seen.append(fn(Config))
        Config.method = lambda self: 2
        return [*seen, fn(Config)]

    as_plain(scenario)


def test_a_proxy_that_is_held_given_or_returned(as_plain):
    def scenario(compile):
        class Config:
            a = 1

        held = vars(Config)
        read = compile(lambda m: (len(held), held.get("b"), len(m), [k for k in m if k[0] != "_"], dict(m).get("b")))
        give = compile(lambda c: vars(c))
        seen = [read(held), type(give(Config)).__name__]
        Config.b = 2
        return [*seen, read(held), give(Config)["b"]]

    as_plain(scenario)


def test_classes_made_and_changed_in_the_call(as_plain):
    def scenario(compile):
        class Older:
            a = 1

        def use():
            class Made:
                a = 1

            Made.b = 2
            before = len(vars(Older))
            Older.c = 3
            after = len(vars(Older)) - before, "c" in vars(Older)
            del Older.c
            return [k for k in vars(Made) if k[0] != "_"], after

        fn = compile(use)
        return [fn(), fn()]

    as_plain(scenario)


def test_modules_and_instances(as_plain):
    def scenario(compile):
        module, o = types.ModuleType("m"), types.SimpleNamespace(a=1)
        module.a = 1
        fn = compile(lambda: [(len(vars(m)), vars(m).get("b"), "b" in vars(m), sorted(k for k in vars(m) if k[0] != "_"), [k for k in dir(m) if k[0] != "_"]) for m in (module, o)])
        seen = [fn()]
        module.b = o.b = 2
        seen.append(fn())
        del module.a, o.a
        return [*seen, fn()]

    as_plain(scenario)
