"""Fixtures for pytest, which are there once the package is installed.

- ``skiff`` is a `ControlPlane` for one test.
- ``skiff_session`` is one for all tests of a run, or of a worker of pytest-xdist.
- ``skiff_fork`` is a copy for one test of ``skiff_prepared``, a fixture that a suite overrides to prepare ``skiff_session``.

Both have the definitions of the setting ``skiff_crds`` (files or folders, seen from the folder of the settings), and what
``skiff_arguments`` say. ``@pytest.mark.skiff(crds=[...], arguments=[...])`` adds to them for one test. All tests of a run with
the same options have one server, in which each gets a control plane, in milliseconds;
``@pytest.mark.skiff(own_process=True)`` has one test start a server of its own. Where a test fails, what its control planes were
asked stands beneath its report.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ._control_plane import ControlPlane, start
from ._servers import Servers

_SESSION = pytest.StashKey[ControlPlane]()
"""The control plane of the run, once there is one."""

_BEFORE = pytest.StashKey[int]()
"""How many lines it had said before the test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the settings."""
    parser.addini("skiff_crds", "files or folders with definitions for control planes", type="paths", default=[])
    parser.addini("skiff_arguments", "further arguments of `skiff serve`", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Adds the mark."""
    config.addinivalue_line(
        "markers", "skiff(crds=[], arguments=[], own_process=False): more for the control plane of this test"
    )


@pytest.fixture(scope="session")
def _skiff_servers() -> Iterator[Servers]:
    """The servers of this run."""
    servers = Servers()
    yield servers
    servers.stop()


@pytest.fixture(scope="session")
def skiff_session(pytestconfig: pytest.Config, _skiff_servers: Servers) -> Iterator[ControlPlane]:
    """A control plane for all tests of this run."""
    with _plane(pytestconfig, _skiff_servers) as plane:
        pytestconfig.stash[_SESSION] = plane
        yield plane
        del pytestconfig.stash[_SESSION]


@pytest.fixture
def skiff(request: pytest.FixtureRequest, _skiff_servers: Servers) -> Iterator[ControlPlane]:
    """A control plane for this test alone."""
    with _plane(request.config, _skiff_servers, request.node.get_closest_marker("skiff")) as plane:
        yield plane


@pytest.fixture(scope="session")
def skiff_prepared(skiff_session: ControlPlane) -> ControlPlane:
    """What ``skiff_fork`` copies: the control plane of the run, unless a suite overrides this to prepare it, or another."""
    return skiff_session


@pytest.fixture
def skiff_fork(skiff_prepared: ControlPlane) -> Iterator[ControlPlane]:
    """A copy of the prepared control plane for this test alone."""
    with skiff_prepared.fork() as plane:
        yield plane


def _plane(config: pytest.Config, servers: Servers, mark: pytest.Mark | None = None) -> ControlPlane:
    more: dict[str, Any] = dict(mark.kwargs) if mark else {}
    crds: list[str | Path] = [*config.getini("skiff_crds"), *more.pop("crds", [])]
    arguments: list[str] = [*config.getini("skiff_arguments"), *more.pop("arguments", [])]
    own_process: bool = more.pop("own_process", False)
    if more or (mark and mark.args):
        raise pytest.UsageError("the mark skiff takes crds=[…], arguments=[…] and own_process=True")
    return start(crds=crds, arguments=arguments) if own_process else servers.plane(crds, arguments)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Notes what the control plane of the run was asked before."""
    plane = item.config.stash.get(_SESSION, None)
    item.stash[_BEFORE] = plane.lines_said if plane else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds what the servers were asked to the report of a test that failed."""
    report = yield
    if report.failed:
        session = item.config.stash.get(_SESSION, None)
        for name, plane in getattr(item, "funcargs", {}).items():
            if isinstance(plane, ControlPlane):
                before = item.stash.get(_BEFORE, 0) if plane is session else 0
                report.sections.append((f"{name}: {plane.url} was asked", "\n".join(plane.log_since(before))))
    return report
