"""Objects whose attributes, slots and cells a capture has read, also where their memory is used again. Calls before the change let guards settle."""
import collections

import pytest

import tenon
from tests.python.guards.settling import settled

torch = pytest.importorskip("torch")


class Slotted:
    """Keeps its value in a slot."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Holder:
    """An ordinary object."""

    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize("make", [Slotted, Holder])
def test_objects_as_arguments(check, make):
    def f(x, holder):
        return x * holder.value

    x, holder = torch.randn(3), make(2.0)
    compiled = settled(f, x, holder)
    holder.value = 3.0
    check.same(compiled(x, holder), f(x, holder))
    for value in (4.0, 5.0, 5.0, 6.0):
        holder = None  # the next one may take its place in memory
        holder = make(value)
        check.same(compiled(x, holder), f(x, holder))


def test_an_address_that_is_used_again(check):
    """Numbers, tuples, lists and dicts that are freed, and others of the same kind right after them."""

    def f(x, items):
        return x * items[0] + items[1][0] + items[2]["a"]

    x = torch.randn(3)
    compiled = tenon.compile(f, dynamic=False)
    items = [2.5, (1.5,), {"a": 0.5}]
    for _ in range(4):
        check.same(compiled(x, items), f(x, items))
    for at in range(6):
        items[0] = None
        items[0] = 3.5 + at
        check.same(compiled(x, items), f(x, items))
        items[1] = None
        items[1] = (4.5 + at,)
        check.same(compiled(x, items), f(x, items))
        items[2] = None
        items[2] = {"a": 5.5 + at}
        check.same(compiled(x, items), f(x, items))


def test_a_cell_whose_number_is_freed(check):
    value = 2.5

    def f(x):
        return x * value

    x = torch.randn(3)
    compiled = tenon.compile(f, dynamic=False)
    for at in range(12):
        if at % 3 == 2:
            value = None
            value = 3.5 + at
        check.same(compiled(x), f(x))


def test_a_dict_that_two_objects_share(check):
    class Reader:
        def read(self, x):
            return x * self.value

    one, other = Reader(), Reader()
    one.value = 2.0
    other.__dict__ = one.__dict__

    def f(x):
        return one.read(x) + other.read(x)

    x = torch.randn(3)
    compiled = settled(f, x)
    other.value = 5.0
    check.same(compiled(x), f(x))
    other.__dict__ = {"value": 1.0}
    check.same(compiled(x), f(x))
    one.value = 9.0
    check.same(compiled(x), f(x))


def test_a_name_that_appears(check):
    """A name that was found further out is defined further in."""

    class Base:
        scale = 2.0

    class Derived(Base):
        pass

    thing = Derived()

    def f(x):
        return x * thing.scale

    x = torch.randn(3)
    compiled = settled(f, x)
    Derived.scale = 3.0
    check.same(compiled(x), f(x))
    thing.scale = 4.0
    check.same(compiled(x), f(x))
    del thing.scale
    check.same(compiled(x), f(x))
    Derived.scale = property(lambda self: 6.0)
    check.same(compiled(x), f(x))


def test_an_object_with_its_own_way_of_finding_attributes(check):
    class Plain:
        value = 1.0

    class Own(Plain):
        def __getattribute__(self, name):
            return 8.0 if name == "value" else super().__getattribute__(name)

    thing = Plain()

    def f(x):
        return x * thing.value

    x = torch.randn(3)
    compiled = settled(f, x)
    thing.__class__ = Own
    check.same(compiled(x), f(x))
    thing.__class__ = Plain
    check.same(compiled(x), f(x))


def closures(same):
    def counter():
        count = 0

        def up():
            nonlocal count
            count += 1
            return count

        return up, lambda: count

    (up, now), (_, other) = counter(), counter()
    return up, now if same else other


def twice(make):
    def made(same):
        first = make()
        return first, first if same else make()

    return made


def held(make):
    def made(same):
        first, second = twice(make)(same)
        return Holder(first), Holder(second)

    return made


@pytest.mark.parametrize(
    "make, change",
    [
        (twice(lambda: Holder(1)), lambda a, b: (setattr(a, "new", 2), hasattr(b, "new"))),
        (twice(lambda: Holder(1)), lambda a, b: (vars(a).update(new=2), getattr(b, "new", 0))),
        (twice(lambda: Slotted(1)), lambda a, b: (setattr(a, "value", 2), setattr(b, "value", 3), a.value)),
        (twice(lambda: lambda: 0), lambda a, b: (setattr(a, "new", 2), hasattr(b, "new"))),
        (held(lambda: Holder(1)), lambda a, b: (setattr(a, "other", b.value), setattr(b.value, "value", 3), a.value.value, a.other.value)),
        (held(lambda: [1]), lambda a, b: (a.value.append(2), len(b.value))),
        (closures, lambda up, now: (up(), now(), up(), now())),
        (twice(lambda: iter([1, 2, 3, 4])), lambda a, b: (next(a), next(b), next(a))),
        (twice(lambda: collections.deque([1])), lambda a, b: (a.append(2), len(b))),
    ],
    ids=["attribute", "attributes", "slot", "function", "held_object", "held_list", "cell", "iterator", "deque"],
)
@pytest.mark.parametrize("order", [(True, False, True), (False, True, False, True)], ids=["one_first", "two_first"])
def test_objects_that_become_one(make, change, order):
    compiled = tenon.compile(change)
    for same in order:
        assert compiled(*make(same)) == change(*make(same))


@pytest.mark.parametrize("read", [lambda a: hasattr(a, "value"), lambda a: getattr(a, "value", "none"), lambda a: a.value], ids=["hasattr", "getattr", "attribute"])
def test_a_slot_that_is_filled(read):
    def outcome(call, given):
        try:
            return call(given)
        except AttributeError as error:
            return str(error)

    compiled = tenon.compile(read)
    for filled in (False, False, True, False, True):
        given = Slotted.__new__(Slotted)
        if filled:
            given.value = 2
        assert outcome(compiled, given) == outcome(read, given)


@pytest.mark.parametrize("container", [
    lambda tensors: collections.defaultdict(list, enumerate(tensors)),
    lambda tensors: collections.OrderedDict(enumerate(tensors)),
    lambda tensors: collections.defaultdict(dict, {t: {"state": t} for t in tensors}),
    lambda tensors: collections.deque(tensors),
    lambda tensors: set(tensors),
    lambda tensors: collections.UserList(tensors).data,
], ids=["defaultdict", "OrderedDict", "nested", "deque", "set", "list"])
def test_a_container_of_tensors_that_has_changed_is_not_printed(container, monkeypatch):
    """What an optimizer keeps for each parameter took longer to print than to compile."""
    printed = []
    monkeypatch.setattr(torch.Tensor, "__repr__", lambda self, **_: printed.append(1) or "printed")
    compiled = tenon.compile(lambda x, held: x * len(held))
    tensors = [torch.nn.Parameter(torch.randn(2, 2)) for _ in range(3)]
    for count in (1, 2, 3):
        assert torch.equal(compiled(torch.ones(2), container(tensors[:count])), torch.full((2,), float(count)))
    assert tenon.stats()["recompiles"] >= 1 and not printed


@pytest.mark.parametrize("moved", [[], [0, 1, 2, 3, 4], [2], [3, 3, 3]], ids=str)
@pytest.mark.parametrize("written", [False, True])
def test_an_ordered_dict_as_code_that_knows_dicts_goes_over_it(moved, written, as_plain):
    """By the order in which its keys came, which `move_to_end` does not change; nor does a capture that takes its writes back."""
    def scenario(compiled):
        held = collections.OrderedDict(a=1, b=2, c=3)

        @compiled
        def read(x):
            if written:
                held["d"] = held.pop("a")
                held["a"] = held.pop("d")
                held.move_to_end("b")
                held.move_to_end("a", last=False)
            return x * 2, list(dict.values(held)), list(dict.items(held)), list(held), list(dict.__iter__(held))

        found = []
        for call in range(5):
            if call in moved:
                held.move_to_end("abc"[call % 3])
            found.append((read(torch.ones(2)), list(held), list(dict.keys(held))))
        return found

    as_plain(scenario)
