"""python -m tests.opinfo: walks torch's operator database and reports native / opaque / refused / wrong by entry; with --gradients, the gradients."""
import sys

from tests.walks.command import Walk, main

if __name__ == "__main__":
    gradients = "--gradients" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--gradients"]
    raise SystemExit(main(Walk("tests.opinfo", "torch's operator database", __doc__, "gradients" if gradients else "samples")))
