"""python -m tests.array_api: walks NumPy's functions of the array API standard and reports native / opaque / refused / wrong by function."""
from tests.walks.command import Walk, main

if __name__ == "__main__":
    raise SystemExit(main(Walk("tests.array_api", "The array API standard in NumPy through `tenon.compile`", __doc__)))
