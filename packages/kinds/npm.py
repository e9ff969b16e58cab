"""npm packages: one for each kind of machine, with the program, and `kubeskiff`, which depends on them all.

npm installs the one that fits, as the others name another system or processor.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from release import ROOT, Release, run, scratch
from targets import TARGETS, Target

HELPER = ROOT / "helpers/node"


def make(release: Release) -> Iterator[Path]:
    """The package of one kind of machine."""
    system, processor = release.target.npm
    manifest = {
        "name": platform_package(release.target),
        "version": release.version,
        "description": f"The program skiff for {system} on {processor}; the package kubeskiff finds it",
        "license": "Apache-2.0",
        "os": [system],
        "cpu": [processor],
        "files": ["bin"],
    }
    if release.target.is_linux and release.needs.libraries:
        manifest["libc"] = ["glibc"]
    with scratch() as folder:
        (folder / "bin").mkdir()
        program = folder / "bin" / release.target.skiff
        shutil.copyfile(release.program, program)
        program.chmod(0o755)
        shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
        yield packed(folder, manifest, release)


def make_main(release: Release) -> Iterator[Path]:
    """The package that users name, without a program of its own."""
    manifest = json.loads((HELPER / "package.json").read_text())
    manifest["version"] = release.version
    manifest["optionalDependencies"] = {platform_package(target): release.version for target in TARGETS.values()}
    manifest.pop("devDependencies", None)
    manifest.pop("scripts", None)
    with scratch() as folder:
        for name in manifest["files"]:
            shutil.copytree(HELPER / name, folder / name)
        shutil.copyfile(HELPER / "README.md", folder / "README.md")
        shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
        yield packed(folder, manifest, release)


def platform_package(target: Target) -> str:
    return "@kubeskiff/" + "-".join(target.npm)


def packed(folder: Path, manifest: dict[str, Any], release: Release) -> Path:
    (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
    command = ["npm", "pack", "--json", "--loglevel=error", "--pack-destination", str(release.out)]
    run(command, why="to make npm packages", folder=folder)
    name = manifest["name"].removeprefix("@").replace("/", "-")
    return release.out / f"{name}-{release.version}.tgz"
