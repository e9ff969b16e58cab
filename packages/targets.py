"""What each ecosystem calls the kinds of machine that there are packages for."""

from __future__ import annotations

import platform
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A kind of machine, under the names of others."""

    triple: str
    """Rust's name."""
    npm: tuple[str, str]
    """`process.platform` and `process.arch`."""
    architecture: str
    """Python's name of the processor."""
    go: str
    """Go's name of the processor, which OCI and Debian use, too."""

    @property
    def is_linux(self) -> bool:
        return self.npm[0] == "linux"

    @property
    def is_windows(self) -> bool:
        return self.npm[0] == "win32"

    @property
    def skiff(self) -> str:
        """What the file of the program is called."""
        return "skiff.exe" if self.is_windows else "skiff"


TARGETS = {
    target.triple: target
    for target in [
        Target("x86_64-unknown-linux-gnu", ("linux", "x64"), "x86_64", "amd64"),
        Target("aarch64-unknown-linux-gnu", ("linux", "arm64"), "aarch64", "arm64"),
        Target("x86_64-apple-darwin", ("darwin", "x64"), "x86_64", "amd64"),
        Target("aarch64-apple-darwin", ("darwin", "arm64"), "arm64", "arm64"),
        Target("x86_64-pc-windows-gnu", ("win32", "x64"), "amd64", "amd64"),
    ]
}

# The oldest macOS that the compiler makes programs for, on each processor.
MACOS_MIN = {"x86_64": "10_12", "arm64": "11_0"}


def host() -> str | None:
    """Rust's name of this machine, where there are packages for it."""
    processor = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    system = {"Linux": "unknown-linux-gnu", "Darwin": "apple-darwin", "Windows": "pc-windows-gnu"}.get(platform.system())
    triple = f"{processor}-{system}"
    return triple if triple in TARGETS else None
