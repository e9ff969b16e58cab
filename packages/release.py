"""What packages are made of: the program, its version, and how they are to be made."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from targets import Target

ROOT = Path(__file__).resolve().parent.parent


class Failure(Exception):
    """A package can't be made; the text says why."""


@dataclass(frozen=True)
class Release:
    """A program that packages are to be made of."""

    binary: Path
    target: Target
    out: Path
    fast: bool
    version: str
    time: int
    """What packages say of when they were made, in seconds since 1970."""

    @classmethod
    def of(cls, binary: Path, target: Target, out: Path, fast: bool) -> Release:
        manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
        out.mkdir(parents=True, exist_ok=True)
        return cls(
            binary.resolve(), target, out.resolve(), fast, manifest["workspace"]["package"]["version"], _time()
        )

    @property
    def program(self) -> Path:
        """The program, which must be there."""
        if not self.binary.is_file():
            raise Failure(f"there is no program {self.binary}; build it, or name it by --binary or SKIFF_BINARY")
        return self.binary

    @property
    def name(self) -> str:
        """How files are called that have no name of their own."""
        return f"kubeskiff-{self.version}-{self.target.triple}"

    @property
    def level(self) -> int:
        """How much is compressed."""
        return 1 if self.fast else 9

    def runs_with_glibc(self, most: tuple[int, int]) -> None:
        """Fails where the program needs a newer glibc than that."""
        if self.needs.glibc > most:
            needed, allowed = (".".join(map(str, version)) for version in (self.needs.glibc, most))
            raise Failure(f"{self.program} needs glibc {needed}, which is newer than {allowed}")

    @cached_property
    def needs(self) -> Needs:
        """What a Linux program needs of its system."""
        return Needs.of(self.program)


@dataclass(frozen=True)
class Needs:
    """What a Linux program needs of its system. A static one needs nothing."""

    libraries: list[str]
    glibc: tuple[int, int]

    @classmethod
    def of(cls, program: Path) -> Needs:
        headers = run(["objdump", "-p", str(program)], why="to read what the program needs")
        versions = [(int(a), int(b)) for a, b in re.findall(r"\bGLIBC_(\d+)\.(\d+)", headers)]
        return cls(re.findall(r"^\s+NEEDED\s+(\S+)", headers, re.MULTILINE), max(versions, default=(0, 0)))


def _time() -> int:
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    try:
        log = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return 0
    return int(log.stdout) if log.returncode == 0 else 0


def run(
    command: Sequence[str], *, why: str, folder: Path | None = None, variables: Mapping[str, str] | None = None
) -> str:
    """Runs a program of others, and returns what it printed."""
    if shutil.which(command[0]) is None:
        raise Failure(f"{command[0]} is missing; it is needed {why}")
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for as long as a package is made."""
    with tempfile.TemporaryDirectory(prefix="skiff-package-") as folder:
        yield Path(folder)
