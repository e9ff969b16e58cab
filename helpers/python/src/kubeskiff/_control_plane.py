"""A control plane for a test: a server in memory, from its start to its end."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from ._program import program

if TYPE_CHECKING:
    import kr8s
    import kubernetes.client
    import lightkube

_LINES_MAX = 10_000
"""How many lines of what the server says are kept: the newest."""

_STOP_SECONDS_MAX = 10.0
"""How long a server may take to end before it is killed."""


class StartError(Exception):
    """The server ended before it was ready; the text is what it said."""


def start(
    *,
    crds: Iterable[str | os.PathLike[str]] = (),
    arguments: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> ControlPlane:
    """Starts a control plane of its own, with its objects in memory, and waits until it is ready.

    ``crds`` are files or folders with definitions to register, ``arguments`` further ones of ``skiff serve``, and
    ``environment`` further variables. It ends with `ControlPlane.stop`, at the end of a ``with``, or with this process,
    however that ends.

    Raises `StartError` where the server does not start, and `ProgramNotFound` where there is none.
    """
    folder = Path(tempfile.gettempdir()) / f"skiff-{uuid.uuid4().hex}"
    command = [str(program()), "serve", "--temporary", "--listen", "127.0.0.1:0", "--store", "memory"]
    command += ["--data-dir", str(folder)]
    for path in crds:
        command += ["--crds", os.fspath(path)]
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "SKIFF_TRACE": "requests", **(environment or {})},
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    said = _Lines(process.stderr)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("ready "):
        process.kill()
        said.join()
        process.communicate()
        raise StartError("skiff did not start: " + "\n".join(said.since(0)))
    return ControlPlane(process, said, line.removeprefix("ready ").strip(), folder / "kubeconfig")


class ControlPlane:
    """A running control plane. Nobody else uses it; whoever has its kubeconfig may do everything in it."""

    url: str
    """Where it serves, as in ``https://127.0.0.1:34567``."""

    kubeconfig: Path
    """A kubeconfig of its administrator, which is there until the control plane ends."""

    def __init__(self, process: subprocess.Popen[str], said: _Lines, url: str, kubeconfig: Path) -> None:
        self._process = process
        self._said = said
        self.url = url
        self.kubeconfig = kubeconfig

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<ControlPlane {self.url}>"

    @property
    def log(self) -> list[str]:
        """What the server has said so far: a line a request, with verb, path, code, time, user, client and what was wrong,
        and what else it tells. Of very much, the newest lines."""
        return self.log_since(0)

    @property
    def lines_said(self) -> int:
        """How many lines the server has said so far, for `log_since`."""
        return self._said.count

    def log_since(self, line: int) -> list[str]:
        """What the server has said from that line on."""
        return self._said.since(line)

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which a program finds this control plane."""
        return {"KUBECONFIG": str(self.kubeconfig)}

    def kubernetes(self) -> kubernetes.client.ApiClient:
        """A client of the package ``kubernetes``, to be given to its APIs."""
        from kubernetes import config

        client: kubernetes.client.ApiClient = config.new_client_from_config(str(self.kubeconfig))
        return client

    def lightkube(self, **options: Any) -> lightkube.Client:
        """A client of the package ``lightkube``, with its options."""
        from lightkube import Client, KubeConfig

        return Client(config=KubeConfig.from_file(self.kubeconfig), **options)

    def kr8s(self) -> kr8s.Api:
        """A client of the package ``kr8s``: ``Pod.get("name", api=plane.kr8s())``."""
        import kr8s

        return kr8s.api(kubeconfig=str(self.kubeconfig))

    def stop(self) -> None:
        """Ends the control plane, and removes what it had. It may be called again."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._said.join()


class _Lines:
    """Takes what a server says as it comes, so that it never waits."""

    def __init__(self, stream: IO[str] | None) -> None:
        assert stream is not None
        self.count = 0
        self._newest: deque[str] = deque(maxlen=_LINES_MAX)
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                with self._lock:
                    self._newest.append(line.rstrip("\n"))
                    self.count += 1

    def since(self, line: int) -> list[str]:
        """The lines from that number on, of those that are kept."""
        with self._lock:
            wanted = min(self.count - line, len(self._newest))
            return list(self._newest)[len(self._newest) - wanted :]

    def join(self) -> None:
        """Waits until there will be no more."""
        self._thread.join()
