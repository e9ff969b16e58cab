"""SHA256SUMS of all files of a release, for `sha256sum --check`."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from release import Release

NAME = "SHA256SUMS"


def make(release: Release) -> Iterator[Path]:
    files = sorted(path for path in release.out.iterdir() if path.is_file() and path.name != NAME)
    made = release.out / NAME
    made.write_text("".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))
    yield made
