"""Methods of None, which cross a break like those of any other object."""
import tenon


def test_a_method_of_none_across_a_break(as_plain):
    def scenario(compile):
        def use(o, other):
            method = o.__ge__
            tenon.graph_break()
            return method(other), o.__eq__(None)

        fn = compile(use)
        return [fn(None, 1), fn(None, 1), fn(3, 1)]

    as_plain(scenario)
