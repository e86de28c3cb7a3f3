"""What a class is made of (its bases, their order, its name, the classes below it) where the program asks for it or changes it."""
import tenon


class Base:
    pass


def names(classes):
    return [each.__name__ for each in classes]


def twice(program):
    compiled = tenon.compile(program)
    want = program()
    for _ in range(2):
        assert compiled() == want


def test_a_base_knows_the_classes_that_are_there_and_no_others():
    def run():
        class Local:
            pass

        class One(Local):
            pass

        tenon.graph_break()

        class Two(Local):
            pass

        class Three(Base):
            pass

        del Three
        return names(Local.__subclasses__())

    twice(run)
    assert len(Base.__subclasses__()) <= 3  # one a call waits for the collector


def test_other_bases():
    def run():
        class First:
            pass

        class Second:
            value = 1

        class Below(First):
            pass

        Below.__bases__ = (Second,)
        return Below.value, names(Below.__mro__[:2]), names(First.__subclasses__()), names(Second.__subclasses__())

    twice(run)


def test_a_metaclass_with_an_order_of_its_own_is_asked_once():
    def run():
        asked = []

        class Meta(type):
            def mro(cls):
                asked.append(cls.__name__)
                return type.mro(cls)

        class One(metaclass=Meta):
            pass

        class Two(One):
            pass

        return asked, names(Two.__mro__)

    twice(run)


def test_another_name(capfd):
    def run():
        Base.__name__ = "Other"
        seen = Base.__name__
        Base.__name__ = "Base"
        return seen, Base.__name__

    twice(run)
    assert capfd.readouterr().err == ""
