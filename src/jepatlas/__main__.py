"""Entry point of `python -m jepatlas`, equivalent to the command `jepatlas`."""

import sys

from jepatlas.cli import main

if __name__ == "__main__":
    sys.exit(main())
