"""Puts the program into the wheel, among the scripts: pip then lays it on the PATH.

In: SKIFF_BINARY, the program; SKIFF_WHEEL_PLATFORM, the platform it runs on, as in `manylinux_2_28_x86_64`. Without them the
wheel has the helper alone, which finds a program by SKIFF or on the PATH.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Program(BuildHookInterface[Any]):
    """The hook that hatchling calls."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the program, and tells which systems the wheel is for."""
        program = os.environ.get("SKIFF_BINARY")
        if not program or version == "editable":
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['SKIFF_WHEEL_PLATFORM']}"
        build_data["shared_scripts"] = {program: "skiff.exe" if program.endswith(".exe") else "skiff"}
