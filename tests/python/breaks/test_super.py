"""super() right after a break, when nothing else has read its object yet: what the other class's method does is seen."""
import abc

import tenon


class Base:
    def __init__(self):
        self.value, self.seen = 1, []

    def step(self):
        self.value += 1
        self.seen.append(self.value)
        return self


class Without(Base):
    def step(self):
        tenon.graph_break()
        super().step()
        return self.value


class InACell(Base):
    def step(self):
        tenon.graph_break()
        read = lambda: self.value  # noqa: E731
        super().step()
        return read()


class Kept(Base):
    def step(self):
        above = super()
        tenon.graph_break()
        above.step()
        return self.value


class Named(Base):
    def step(self):
        tenon.graph_break()
        return super(Named, self).step().value


class Nested(Base):
    def step(self):
        class Inner(Base):
            def step(own):
                tenon.graph_break()
                super().step()
                return own.value + self.value

        return Inner().step()


def test_what_the_other_method_does_is_done_once_a_call():
    def run(kind):
        made = kind()
        return made.step(), made.step(), made.value, made.seen

    for kind in (Without, InACell, Kept, Named, Nested):
        compiled = tenon.compile(run)
        for _ in range(3):
            assert compiled(kind) == run(kind), kind


class Owner:
    """A descriptor that says of which class it was asked."""

    def __get__(self, o, owner):
        return type(o).__name__, owner.__name__


class OwnerAndSetter(Owner):
    def __set__(self, o, value):
        raise AssertionError("nobody assigns it")


class Above:
    read, data = Owner(), OwnerAndSetter()

    @abc.abstractclassmethod
    def made(cls):
        return cls.__name__


class Below(Above):
    read, data = 5, 6

    def ask(self):
        return super().read, super().data, super().__class__.__name__, super().made()

    @classmethod
    def made(cls):
        return super().made(), super().read


class Lowest(Below):
    pass


def test_what_super_finds_is_bound_to_the_class_of_the_object():
    def run(o):
        return o.ask(), o.made(), type(o).made()

    compiled = tenon.compile(run)
    for o in (Below(), Lowest(), Below(), Lowest()):
        assert compiled(o) == run(o)
