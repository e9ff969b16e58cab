"""The servers that the tests of a process share: one for each set of options."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ._control_plane import ControlPlane, Fork, start

_Options = tuple[Path, str | None, tuple[str, ...], tuple[str, ...]]


class Servers:
    """Those that were started so far, until `stop`. Nobody uses their own control planes: tests get copies."""

    def __init__(self) -> None:
        self._started: dict[_Options, ControlPlane] = {}

    def plane(self, crds: Sequence[str | os.PathLike[str]], arguments: Sequence[str]) -> Fork:
        """A new control plane in the server that was started with these options, or is now."""
        # Paths are seen from the folder, and tests may change that.
        options = (Path.cwd(), os.environ.get("SKIFF"), tuple(os.fspath(path) for path in crds), tuple(arguments))
        server = self._started.get(options)
        if server is None:
            server = self._started[options] = start(crds=crds, arguments=arguments)
        return server.fork()

    def stop(self) -> None:
        """Ends them."""
        while self._started:
            self._started.popitem()[1].stop()
