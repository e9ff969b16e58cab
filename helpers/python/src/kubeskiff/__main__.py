"""``python -m kubeskiff`` is ``skiff``."""

from __future__ import annotations

import os
import subprocess
import sys

from ._program import ProgramNotFound, program


def main() -> int:
    """Runs the program with this one's arguments, in this one's place."""
    try:
        command = [str(program()), *sys.argv[1:]]
    except ProgramNotFound as error:
        print(f"kubeskiff: {error}", file=sys.stderr)
        return 2
    if os.name == "nt":
        # There a program can't take another's place: this one would end, and its caller not wait for the other.
        return subprocess.call(command)
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
