"""What a captured program has read of containers, exceptions and addresses is read anew at every later call that differs in it."""
import collections
import copy

import numpy as np
import pytest

import tenon

Pair = collections.namedtuple("Pair", "first second")


def test_the_order_of_an_ordered_dict_is_read():
    order = collections.OrderedDict(p=1, q=2, r=3)

    def moved(a):
        seen = list(order)
        order.move_to_end(seen[0])
        return seen, a + 1

    compiled = tenon.compile(moved)
    assert ["".join(compiled(np.ones(2))[0]) for _ in range(4)] == ["pqr", "qrp", "rpq", "pqr"]


@pytest.mark.parametrize("after", [[True], [1.0]], ids=repr)
def test_equal_items_of_a_set_are_told_apart(after):
    items = {1}
    compiled = tenon.compile(lambda a: (list(items), a * 2))
    assert [type(item) for item in compiled(np.ones(2))[0]] == [int]
    items.clear()
    items.update(after)
    assert [type(item) for item in compiled(np.ones(2))[0]] == [type(item) for item in after]


def test_the_order_of_a_set_is_read():
    one_way, other_way = {8}, {0}
    one_way.add(0), other_way.add(8)
    assert list(one_way) != list(other_way)  # 0 and 8 collide
    compiled = tenon.compile(lambda items, a: (list(items), a * 2))
    for items in (one_way, other_way, one_way):
        assert compiled(items, np.ones(2))[0] == list(items)


def test_the_text_of_an_exception_is_read_where_a_break_follows():
    def fails(number, log):
        try:
            raise KeyError(number)
        except KeyError as error:
            log.append(str(error))
            undefined_name  # noqa: B018

    compiled, log = tenon.compile(fails), []
    for number in (7, 7, 8, 9):
        with pytest.raises(NameError):
            compiled(number, log)
    assert log == ["7", "7", "8", "9"]


@pytest.mark.parametrize("items", [[-2, 5], [np.ones(1), 5]], ids=["numbers", "arrays"])
def test_a_sum_that_raises_asks_for_no_further_item(items):
    asked = []

    def give(item):
        asked.append(item)

    def total():
        try:
            return sum(map(give, items))
        except TypeError:
            return len(asked)

    compiled = tenon.compile(total)
    assert (compiled(), compiled()) == (1, 2)


def test_a_copy_that_a_graph_break_interrupts_finds_its_own_objects():
    def copies():
        log = []
        for _ in range(3):
            log.append(copy.deepcopy(log[-1:]))
            log.append([Pair(1, [2]), Pair(3, [4])])
        return log

    compiled = tenon.compile(copies)
    assert compiled() == copies()
    assert compiled() == copies()


class Token:
    """Hashed by its address."""


def keys_of_both_kinds():
    torch = pytest.importorskip("torch")
    return [(Token(), Token()), (torch.zeros(2), torch.zeros(2))]


def counted(table, key, x):
    state = table[key]
    state["n"] = state.get("n", 0) + 1
    return x + state["n"], len(table)


@pytest.mark.parametrize("kind", [0, 1], ids=["objects", "tensors"])
def test_what_a_dict_holds_for_an_object_is_read_for_that_object(kind):
    one, other = keys_of_both_kinds()[kind]
    table = {one: 5.0}
    look = lambda key, x: (x + table.get(key, 0.0), key in table)  # noqa: E731
    compiled, x = tenon.compile(look), np.zeros(1)
    for key in (one, one, other, one, other):
        assert compiled(key, x)[0].tolist() == look(key, x)[0].tolist()
        assert compiled(key, x)[1] is look(key, x)[1]


@pytest.mark.parametrize("kind", [0, 1], ids=["objects", "tensors"])
def test_what_a_dict_gets_for_an_object_is_found_there_again(kind):
    one, other = keys_of_both_kinds()[kind]
    compiled, x = tenon.compile(counted), np.zeros(1)
    mine, plain = collections.defaultdict(dict), collections.defaultdict(dict)
    for key in (one, other, one, other, one, one):
        assert compiled(mine, key, x)[1] == counted(plain, key, x)[1]
        assert list(mine.values()) == list(plain.values())
        assert all(a is b for a, b in zip(mine, plain))
