"""A Debian package: the program, its manual pages and completions."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Iterator
from pathlib import Path

from release import ROOT, Failure, Release, run, scratch

# Which packages have the libraries that Rust programs are linked to.
PACKAGES = {"libc.so.6": "libc6", "libm.so.6": "libc6", "libgcc_s.so.1": "libgcc-s1"}


def make(release: Release) -> Iterator[Path]:
    if not release.target.is_linux:
        raise Failure("Debian packages are for Linux")
    made = release.out / f"kubeskiff_{release.version}_{release.target.go}.deb"
    with scratch() as folder:
        put(folder / "usr/bin/skiff", release.program.read_bytes(), 0o755)
        put(folder / "usr/share/doc/kubeskiff/copyright", copyright_file().encode())
        put(folder / "DEBIAN/control", control(release).encode())
        for path, content in shell_files(release).items():
            put(folder / path, content)
        level = ["-Zgzip", "-z1"] if release.fast else ["-Zxz"]
        run(
            ["dpkg-deb", "--root-owner-group", *level, "--build", str(folder), str(made)],
            why="to make a Debian package",
            variables={"SOURCE_DATE_EPOCH": str(release.time)},
        )
    yield made


def put(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    for folder in path.parents[:2]:
        folder.chmod(0o755)


def control(release: Release) -> str:
    lines = [
        "Package: kubeskiff",
        f"Version: {release.version}",
        f"Architecture: {release.target.go}",
        "Maintainer: the kubeskiff project <kubeskiff@users.noreply.github.com>",
        "Section: devel",
        "Priority: optional",
        "Homepage: https://github.com/kubeskiff/kubeskiff",
        "Description: small Kubernetes API server for tests and laptops",
        " One program, skiff, that serves CustomResourceDefinitions and the built-in kinds of",
        " Kubernetes, and tells authors of definitions what they do to objects.",
    ]
    if release.needs.libraries:
        major, minor = release.needs.glibc
        packages = {PACKAGES[library] for library in release.needs.libraries if library in PACKAGES}
        needed = sorted(f"{name} (>= {major}.{minor})" if name == "libc6" else name for name in packages)
        lines.insert(3, f"Depends: {', '.join(needed)}")
    return "\n".join(lines) + "\n"


def copyright_file() -> str:
    return (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: kubeskiff\n\n"
        "Files: *\n"
        "Copyright: the kubeskiff authors\n"
        "License: Apache-2.0\n On Debian systems, the text of the licence is in /usr/share/common-licenses/Apache-2.0.\n"
    )


def shell_files(release: Release) -> dict[str, bytes]:
    """What the program tells of itself: asked of it, and so left out where it is for another kind of machine."""
    try:
        return {
            "usr/share/man/man1/skiff.1.gz": gzip.compress(printed(release, "man"), mtime=0),
            "usr/share/bash-completion/completions/skiff": printed(release, "completion", "bash"),
            "usr/share/zsh/vendor-completions/_skiff": printed(release, "completion", "zsh"),
            "usr/share/fish/vendor_completions.d/skiff.fish": printed(release, "completion", "fish"),
        }
    except OSError:
        return {}


def printed(release: Release, *arguments: str) -> bytes:
    return subprocess.run([release.program, *arguments], check=True, capture_output=True, cwd=ROOT).stdout
