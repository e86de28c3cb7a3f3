"""super() right after a break, when nothing else has read its object yet: what the other class's method does is seen."""
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
