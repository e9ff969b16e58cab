"""Faults of requests, on demand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, TypedDict

from ._api import Api, ApiError

_PATH = "/skiff/v1/faults"


class Failure(TypedDict, total=False):
    """An error that Kubernetes answers with."""

    code: int
    """401, 403, 404, 409, 410, 429, 500, 503 or 504."""
    reason: str
    """Where a code has several: ``AlreadyExists``, ``Gone``, ``ServerTimeout``."""
    message: str
    """In place of Kubernetes' words."""
    retryAfterSeconds: int
    """When the client may try again."""


class Fault:
    """A fault that a control plane has, until `remove` or the end of a ``with``."""

    def __init__(self, api: Api, id: str) -> None:
        self._api = api
        self._path = f"{_PATH}/{id}"

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    @property
    def hits(self) -> int:
        """How often it took effect."""
        hits: int = self._api.send("GET", self._path)["hits"]
        return hits

    def remove(self) -> None:
        """Has no request meet it any more; stalled watches go on. It may be called again."""
        try:
            self._api.send("DELETE", self._path)
        except ApiError as refused:
            if refused.code != 404:
                raise


def add(
    api: Api,
    *,
    verbs: Iterable[str] | None,
    group: str | None,
    resource: str | None,
    subresource: str | None,
    namespace: str | None,
    name: str | None,
    user: str | None,
    path: str | None,
    skip: int | None,
    times: int | None,
    probability: float | None,
    seed: int | None,
    delay: float | timedelta | None,
    error: int | Failure | None,
    watch: Literal["closed", "cut", "stalled", "expired"] | None,
    after_events: int | None,
    after: float | timedelta | None,
    stale: int | None,
    lose: Literal["request", "answer"] | None,
    conflict: bool,
) -> Fault:
    """Adds a fault; what the arguments mean stands at `ControlPlane.fault`."""
    matching = {
        "verbs": None if verbs is None else list(verbs),
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
        "user": user,
        "path": path,
    }
    ending = {"end": watch, "afterEvents": after_events, "after": _duration(after)}
    fault = {
        "match": matching,
        "skip": skip,
        "times": times,
        "probability": probability,
        "seed": seed,
        "delay": _duration(delay),
        "error": {"code": error} if isinstance(error, int) else error,
        "watch": ending if any(value is not None for value in ending.values()) else None,
        "stale": stale,
        "lose": lose,
        "conflict": conflict or None,
    }
    added: dict[str, Any] = api.send("POST", _PATH, fault)
    return Fault(api, added["id"])


def _duration(time: float | timedelta | None) -> str | None:
    """As Go writes it."""
    if time is None:
        return None
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    return f"{round(seconds * 1e6)}us"
