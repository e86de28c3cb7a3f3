"""python -m tests.opinfo: walks torch's operator database and reports native / opaque / refused / wrong by entry."""
from tests.walks.command import Walk, main

if __name__ == "__main__":
    raise SystemExit(main(Walk("tests.opinfo", "torch's operator database", __doc__)))
