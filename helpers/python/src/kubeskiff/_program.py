"""Where the program ``skiff`` is."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path


# What pip calls it.
_NAME = "skiff.exe" if os.name == "nt" else "skiff"


class ProgramNotFound(Exception):
    """There is no ``skiff``: not in ``SKIFF``, not in this package, not on the ``PATH``."""


def program() -> Path:
    """The program that ``SKIFF`` names, else that of this package, else that on the ``PATH``.

    Raises `ProgramNotFound` where there is none, or where ``SKIFF`` names none.
    """
    named = os.environ.get("SKIFF")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ProgramNotFound(f"SKIFF is {named}, which is not a program")
        return Path(found).absolute()
    for folder in _folders():
        if (folder / _NAME).is_file():
            return folder / _NAME
    found = shutil.which("skiff")
    if found is None:
        raise ProgramNotFound("no skiff is in this package or on the PATH; SKIFF may name one")
    return Path(found).absolute()


def _folders() -> Iterator[Path]:
    """Where pip may have put the scripts of this package."""
    yield Path(sysconfig.get_path("scripts"))
    # With `pip install --user`.
    yield Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    # With `pip install --target`, and with `--prefix`.
    package = Path(__file__).parent
    yield package.parent / "bin"
    yield package.parents[3] / "bin"
