"""The helper for Java: its jar, sources, documentation and description, as Maven Central takes them. Maven makes them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from release import ROOT, Release, run, scratch

HELPER = ROOT / "helpers/java"


def make(release: Release) -> Iterator[Path]:
    name = f"kubeskiff-junit-{release.version}"
    with scratch() as folder:
        run(
            ["mvn", "--offline", "--quiet", "--batch-mode", "--activate-profiles", "release", "package",
             "-Dmaven.test.skip=true", f"-Dbuild.folder={folder}"],
            why="to make the jars of helpers/java",
            folder=HELPER,
        )
        for file in [f"{name}.jar", f"{name}-sources.jar", f"{name}-javadoc.jar"]:
            yield Path(shutil.copyfile(folder / file, release.out / file))
    yield Path(shutil.copyfile(HELPER / "pom.xml", release.out / f"{name}.pom"))
