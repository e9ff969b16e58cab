"""A Python wheel: the program among its scripts, the helper of helpers/python as its package. hatchling makes it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from release import ROOT, Failure, Release, run, scratch
from targets import MACOS_MIN


def make(release: Release) -> Iterator[Path]:
    variables = {
        "SKIFF_BINARY": str(release.program),
        "SKIFF_WHEEL_PLATFORM": platform(release),
        "SOURCE_DATE_EPOCH": str(max(release.time, 315532800)),  # Zip files begin in 1980.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    with scratch() as folder:
        run([*command, str(folder)], why="to make a wheel", folder=ROOT / "helpers/python", variables=variables)
        for wheel in folder.iterdir():
            made = release.out / wheel.name
            made.write_bytes(wheel.read_bytes())
            yield made


def platform(release: Release) -> str:
    """The tag of the systems that the program runs on: pip installs it nowhere else."""
    processor = release.target.architecture
    if release.target.is_windows:
        return f"win_{processor}"
    if not release.target.is_linux:
        return f"macosx_{MACOS_MIN[processor]}_{processor}"
    if not release.needs.libraries:
        return f"manylinux_2_17_{processor}.musllinux_1_1_{processor}"
    major, minor = release.needs.glibc
    if (major, minor) < (2, 17):
        raise Failure("the program is linked to another library than glibc, for which there is no wheel")
    return f"manylinux_{major}_{minor}_{processor}"
