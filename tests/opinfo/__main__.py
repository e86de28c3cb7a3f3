"""python -m tests.opinfo: walks torch's operator database and reports native / opaque / refused / wrong by entry; with --gradients, the gradients."""
import sys

from tests.walks.command import Walk, main

COMPILED = Walk("tests.opinfo", "torch's operator database through `tenon.compile`", __doc__)
DIFFERENTIATED = Walk(
    "tests.opinfo",
    "Gradients of torch's operator database",
    __doc__,
    "gradients",
    """An entry counts as its worst case: a sample in float64 as it is given, or
with its operands at kinks, ties, and ends of ranges. *native* has torch's gradient; *opaque* has a node that another library runs, which has none;
*refused* says why it has none, or is no single graph; *wrong* differs from torch.autograd. What torch itself leaves open is no case: `LEFT_OPEN` in
`gradients.py`, with a reason each.""",
    " --gradients",
)

if __name__ == "__main__":
    gradients = "--gradients" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--gradients"]
    raise SystemExit(main(DIFFERENTIATED if gradients else COMPILED))
