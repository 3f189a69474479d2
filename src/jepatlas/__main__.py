"""`python -m jepatlas` is `jepatlas`."""

import sys

from jepatlas.cli import main

if __name__ == "__main__":
    sys.exit(main())
