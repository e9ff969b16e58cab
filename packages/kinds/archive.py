"""A tar.gz: the program, the licence and what is told of it. cargo-binstall and Homebrew take it, too."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from release import ROOT, Release


def make(release: Release) -> Iterator[Path]:
    made = release.out / f"{release.name}.tar.gz"
    tree = Tree(release.time)
    tree.add(f"{release.name}/{release.target.skiff}", release.program.read_bytes(), 0o755)
    for name in ["LICENSE", "README.md", "CHANGELOG.md"]:
        tree.add(f"{release.name}/{name}", (ROOT / name).read_bytes())
    made.write_bytes(compressed(tree.bytes(), release))
    yield made


class Tree:
    """A tar file of root's, with one time for all."""

    def __init__(self, time: int) -> None:
        self._time = time
        self._bytes = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._bytes, mode="w", format=tarfile.GNU_FORMAT)

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """Adds a file."""
        info = self._info(name, mode)
        info.size = len(content)
        self._tar.addfile(info, io.BytesIO(content))

    def add_folder(self, name: str, mode: int = 0o755, owner: int = 0) -> None:
        """Adds a folder, of that user and group."""
        info = self._info(name, mode)
        info.type, info.uid, info.gid = tarfile.DIRTYPE, owner, owner
        self._tar.addfile(info)

    def _info(self, name: str, mode: int) -> tarfile.TarInfo:
        info = tarfile.TarInfo(name)
        info.mtime, info.mode = self._time, mode
        return info

    def bytes(self) -> bytes:
        """The whole file."""
        self._tar.close()
        return self._bytes.getvalue()


def compressed(content: bytes, release: Release) -> bytes:
    """By gzip, without a name or a time of its own."""
    return gzip.compress(content, release.level, mtime=0)
