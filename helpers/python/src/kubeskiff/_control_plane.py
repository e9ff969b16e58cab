"""A control plane for a test: a server in memory, from its start to its end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal

from ._api import Api, ApiError
from ._clock import Clock
from ._faults import Failure, Fault, add
from ._program import program

if TYPE_CHECKING:
    import kr8s
    import kubernetes.client
    import lightkube

_LINES_MAX = 10_000
"""How many lines of what the server says are kept: the newest."""

_STOP_SECONDS_MAX = 10.0
"""How long a server may take to end before it is killed."""


_PLANES = "/skiff/v1/planes"


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
    command = [str(program()), "serve", f"--temporary={os.getpid()}", "--listen", "127.0.0.1:0", "--store", "memory"]
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
        self._folder = kubeconfig.parent
        self._api: Api | None = None

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

        # The package has types for what it returns alone.
        connect: Callable[[str], kubernetes.client.ApiClient] = config.new_client_from_config
        client = connect(str(self.kubeconfig))
        return client

    def lightkube(self, **options: Any) -> lightkube.Client:
        """A client of the package ``lightkube``, with its options."""
        from lightkube import Client, KubeConfig

        return Client(config=KubeConfig.from_file(self.kubeconfig), **options)

    def kr8s(self) -> kr8s.Api:
        """A client of the package ``kr8s``: ``Pod.get("name", api=plane.kr8s())``."""
        import kr8s

        return kr8s.api(kubeconfig=str(self.kubeconfig))

    def fault(
        self,
        *,
        verbs: Iterable[str] | None = None,
        group: str | None = None,
        resource: str | None = None,
        subresource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        user: str | None = None,
        path: str | None = None,
        skip: int | None = None,
        times: int | None = None,
        probability: float | None = None,
        seed: int | None = None,
        delay: float | timedelta | None = None,
        error: int | Failure | None = None,
        watch: Literal["closed", "cut", "stalled", "expired"] | None = None,
        after_events: int | None = None,
        after: float | timedelta | None = None,
        stale: int | None = None,
        lose: Literal["request", "answer"] | None = None,
        conflict: bool = False,
    ) -> Fault:
        """Has requests fail, wait or get old answers, until the `Fault` is removed or the end of its ``with``::

            with plane.fault(verbs=["update"], resource="widgets", error=409, times=2) as fault:
                ...
                assert fault.hits == 2

        It is for the requests that fit all of ``verbs``, ``group``, ``resource`` (the plural), ``subresource`` (``""`` for
        the object itself), ``namespace``, ``name``, ``user`` and ``path`` (with a ``*`` behind a beginning). ``skip`` lets so
        many go by, ``times`` are so many meet it, each with a ``probability`` that ``seed`` makes the same in each run.

        It does one thing, if it is not a ``delay`` alone (in seconds, before anything else): it answers with an ``error`` (a code,
        or a `Failure`); ends a ``watch``, also one that is open, ``after_events`` or ``after`` a time; begins lists and
        watches at ``resourceVersion=0`` with the state of ``stale`` changes ago; cuts the connection to ``lose`` the request
        or the answer; or has the object written before, a ``conflict`` for who updates what they have read.

        Raises `ApiError` where that makes no sense.
        """
        return add(
            self._asked(),
            verbs=verbs,
            group=group,
            resource=resource,
            subresource=subresource,
            namespace=namespace,
            name=name,
            user=user,
            path=path,
            skip=skip,
            times=times,
            probability=probability,
            seed=seed,
            delay=delay,
            error=error,
            watch=watch,
            after_events=after_events,
            after=after,
            stale=stale,
            lose=lose,
            conflict=conflict,
        )

    @property
    def clock(self) -> Clock:
        """What time it is for this control plane alone."""
        return Clock(self._asked())

    def fork(
        self,
        *,
        profile: Literal["server", "cluster"] | None = None,
        controllers: Iterable[str] | None = None,
        simulate_nodes: str | None = None,
    ) -> Fork:
        """A copy of this control plane as it is now, with its objects, definitions and users, in milliseconds.

        Neither sees what becomes of the other. It ends with `stop`, at the end of a ``with``, or with the first one.

        ``profile``, ``controllers`` and ``simulate_nodes`` say what runs in it beside its requests, as with ``skiff serve``:
        ``fork(profile="cluster", controllers=["*", "-cronjob"], simulate_nodes="3,cpu=8")``. Without any, that is what runs
        in the control plane that was started.
        """
        return _fork(self, "main", profile, controllers, simulate_nodes)

    def _asked(self) -> Api:
        if self._api is None:
            self._api = Api(self.url, self.kubeconfig)
        return self._api

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
        # One that is killed leaves it behind, and on Windows each is.
        shutil.rmtree(self._folder, ignore_errors=True)


class Fork(ControlPlane):
    """A copy of a control plane, in the same process as the first one."""

    def __init__(self, first: ControlPlane, name: str, url: str, kubeconfig: Path) -> None:
        super().__init__(first._process, first._said, url, kubeconfig)
        self._first = first
        self._name = name
        self._written = kubeconfig

    def log_since(self, line: int) -> list[str]:
        """What it was asked, of what the server has said from that line on."""
        prefix = f"[{self._name}] "
        return [said.removeprefix(prefix) for said in super().log_since(line) if said.startswith(prefix)]

    def fork(
        self,
        *,
        profile: Literal["server", "cluster"] | None = None,
        controllers: Iterable[str] | None = None,
        simulate_nodes: str | None = None,
    ) -> Fork:
        """A copy of this copy."""
        return _fork(self._first, self._name, profile, controllers, simulate_nodes)

    def stop(self) -> None:
        """Ends it, and gives its memory back. It may be called again."""
        self._written.unlink(missing_ok=True)
        try:
            self._first._asked().send("DELETE", f"{_PLANES}/{self._name}")
        except ApiError as refused:
            if refused.code != 404:
                raise


def _fork(
    first: ControlPlane, of: str, profile: str | None, controllers: Iterable[str] | None, simulate_nodes: str | None
) -> Fork:
    """A copy of the control plane that has the name ``of`` in the process of the first one."""
    wanted: dict[str, Any] = {"from": of, "profile": profile, "simulateNodes": simulate_nodes}
    if controllers is not None:
        wanted["controllers"] = list(controllers)
    made = first._asked().send("POST", _PLANES, wanted)
    kubeconfig = first._folder / f"{made['name']}.kubeconfig"
    with open(kubeconfig, "w", encoding="utf-8", opener=_private) as file:
        file.write(made["kubeconfig"])
    return Fork(first, made["name"], made["url"], kubeconfig)


def _private(path: str, flags: int) -> int:
    """Opens a file that is for this user alone."""
    return os.open(path, flags, 0o600)


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
