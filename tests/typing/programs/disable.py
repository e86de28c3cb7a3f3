from typing import assert_type

import tenon


@tenon.disable
def bare(n: int) -> str:
    return str(n)


@tenon.disable()
def with_brackets(n: int) -> str:
    return str(n)


assert_type(bare(1), str)
assert_type(with_brackets(1), str)
