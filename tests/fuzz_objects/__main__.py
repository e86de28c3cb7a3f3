"""Calls methods of objects of C types with odd arguments, compiled and in plain Python, and compares what they give, raise and leave.

    python -m tests.fuzz_objects [--seed N] [--count N] [--object EXPRESSION] [--show]
"""
import argparse
import sys

from tests.fuzz_objects import compare

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_objects")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--object", help="one of the expressions of objects.py, alone")
    parser.add_argument("--show", action="store_true", help="print each case before it is run")
    arguments = parser.parse_args()
    differences = compare.run(arguments.seed, arguments.count, arguments.object, arguments.show)
    for text in differences:
        print(text)
    print(f"seed {arguments.seed}: {arguments.count} cases, {len(differences)} differ")
    sys.exit(bool(differences))
