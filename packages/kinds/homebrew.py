"""A Homebrew formula, of the archives of all targets, which must be in the release's folder."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from string import Template

from release import ROOT, Failure, Release
from targets import TARGETS


def make(release: Release) -> Iterator[Path]:
    values = {"version": release.version}
    for triple in (triple for triple, target in TARGETS.items() if not target.is_windows):
        archive = release.out / f"kubeskiff-{release.version}-{triple}.tar.gz"
        if not archive.is_file():
            raise Failure(f"there is no {archive.name} in {release.out}, which the formula names")
        values[triple.replace("-", "_")] = sha256(archive.read_bytes()).hexdigest()
    made = release.out / "skiff.rb"
    made.write_text(Template((ROOT / "packages/homebrew/skiff.rb").read_text()).substitute(values))
    yield made
