"""A hundred tests, each with a copy of a prepared control plane, a fault and a clock of its own."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from kubeskiff import ApiError, ControlPlane, Failure, start

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="session")
def skiff_prepared(skiff_session: ControlPlane) -> ControlPlane:
    """The control plane of the run, with an object in it."""
    send(skiff_session, "POST", MAPS, {"metadata": {"name": "prepared"}})
    return skiff_session


@pytest.mark.parametrize("number", range(100))
def test_a_copy_has_a_fault_and_a_clock_of_its_own(skiff_fork: ControlPlane, number: int) -> None:
    body = {"metadata": {"name": f"settings-{number}"}}
    skiff_fork.clock.set(datetime(2030 + number, 1, 1, tzinfo=timezone.utc))
    with skiff_fork.fault(verbs=["create"], resource="configmaps", error=503, times=1) as fault:
        with pytest.raises(ApiError, match="503"):
            send(skiff_fork, "POST", MAPS, body)
        made = send(skiff_fork, "POST", MAPS, body)
        assert fault.hits == 1
    assert made["metadata"]["creationTimestamp"].startswith(str(2030 + number))
    names = [item["metadata"]["name"] for item in send(skiff_fork, "GET", MAPS)["items"]]
    assert [name for name in names if name != "kube-root-ca.crt"] == ["prepared", f"settings-{number}"]


def test_a_copy_of_a_copy_knows_what_it_was_asked() -> None:
    with start() as first, first.fork() as fork, fork.fork() as second:
        assert len({first.url, fork.url, second.url}) == 3
        with pytest.raises(ApiError):
            send(second, "GET", f"{MAPS}/none")
        while not any(line.startswith(f"get {MAPS}/none 404") for line in second.log):
            pass
        assert not any("none" in line for line in fork.log)
        second.stop()
        second.stop()


def test_a_copy_has_controllers_and_nodes_of_its_own(skiff_fork: ControlPlane) -> None:
    nodes = "/api/v1/nodes"
    with skiff_fork.fork(profile="cluster", controllers=["*", "-cronjob"], simulate_nodes="1,cpu=4") as large:
        while not (found := send(large, "GET", nodes)["items"]):
            pass
        assert found[0]["status"]["capacity"]["cpu"] == "4"
    assert send(skiff_fork, "GET", nodes)["items"] == []
    with pytest.raises(ApiError, match="nonsense"):
        skiff_fork.fork(controllers=["nonsense"])


def test_a_clock_is_frozen_moved_and_reset(skiff: ControlPlane) -> None:
    begin = datetime(2031, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
    skiff.clock.freeze()
    skiff.clock.set(begin)
    skiff.clock.advance(timedelta(minutes=90))
    assert skiff.clock.now == begin + timedelta(minutes=90)
    skiff.clock.run()
    skiff.clock.reset()
    assert abs(skiff.clock.now - datetime.now(timezone.utc)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    "fault",
    [
        {
            "watch": "expired", "after_events": 3, "after": timedelta(0), "verbs": ["watch"], "group": "", "resource": "pods",
            "namespace": "a", "name": "b", "user": "c", "path": "/api/*",
        },
        {"watch": "closed"},
        {"watch": "cut", "after": 1.5},
        {"watch": "stalled"},
        {
            "error": Failure(code=429, message="slow down", retryAfterSeconds=3), "subresource": "status",
            "delay": timedelta(milliseconds=1),
        },
        {"error": Failure(code=410, reason="Gone"), "skip": 1, "times": 2},
        {"error": 404},
        {"lose": "answer", "probability": 0.5, "seed": 7},
        {"lose": "request"},
        {"delay": 0.25},
        {"stale": 5},
        {"conflict": True},
    ],
    ids=str,
)
def test_faults_say_all_that_the_server_takes(skiff: ControlPlane, fault: dict[str, Any]) -> None:
    with skiff.fault(**fault) as injected:
        assert injected.hits == 0


def test_a_fault_that_makes_no_sense_is_refused(skiff: ControlPlane) -> None:
    with pytest.raises(ApiError, match="a fault does one thing, not stale and conflict"):
        skiff.fault(stale=2, conflict=True)
    with pytest.raises(ApiError, match="watch.end: must be one of"):
        skiff.fault(after_events=2)


def send(plane: ControlPlane, method: str, path: str, body: Any = None) -> Any:
    """A client of no lines: what the helper asks with."""
    return plane._asked().send(method, path, body)
