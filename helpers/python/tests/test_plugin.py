"""What the fixtures do beside: what is told of a failed test, and what is left of one that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kubeskiff
from kubeskiff import ControlPlane

DEADLINE_SECONDS = 60


def test_a_failed_test_is_told_what_its_server_was_asked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from kubernetes import client

        def ask(plane, name):
            try:
                with plane.kubernetes() as api:
                    client.CoreV1Api(api).read_namespaced_config_map(name, "default")
            except client.ApiException:
                pass
            # A line is told behind its answer.
            while not any(name in line for line in plane.log):
                pass

        def test_before(skiff_session):
            ask(skiff_session, "before")

        def test_it(skiff, skiff_session):
            ask(skiff, "alone")
            ask(skiff_session, "session")
            assert False
        """
    )
    told = pytester.runpytest_subprocess("-p", "no:xdist")
    told.assert_outcomes(passed=1, failed=1)
    told.stdout.fnmatch_lines_random(["*skiff: https://* was asked*", "get */configmaps/alone 404 *"])
    told.stdout.fnmatch_lines_random(["*skiff_session: https://* was asked*", "get */configmaps/session 404 *"])
    told.stdout.no_fnmatch_line("get */before *")


def test_a_failed_test_is_told_what_its_copy_alone_was_asked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from kubeskiff import ApiError

        def ask(plane, name):
            with pytest.raises(ApiError):
                plane._asked().send("GET", "/api/v1/namespaces/default/configmaps/" + name)
            while not any(name in line for line in plane.log):
                pass

        def test_it(skiff_fork, skiff_prepared):
            ask(skiff_prepared, "origin")
            with skiff_prepared.fork() as other:
                ask(other, "other")
            ask(skiff_fork, "own")
            print(skiff_fork.url, "is the copy")
            assert False
        """
    )
    told = pytester.runpytest_subprocess("-p", "no:xdist")
    told.assert_outcomes(failed=1)
    url = next(line.split()[0] for line in told.outlines if line.endswith(" is the copy"))
    _, section = told.stdout.str().split(f"skiff_fork: {url} was asked")
    section = section.split("\n---", 1)[0]
    assert "get /api/v1/namespaces/default/configmaps/own 404 " in section
    assert "origin" not in section and "other" not in section


def test_tests_with_the_same_options_have_one_server(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        folders = {}

        @pytest.mark.parametrize("number", range(2))
        def test_same(skiff, skiff_session, number):
            assert skiff.url != skiff_session.url
            folders[f"same {number}"] = skiff.kubeconfig.parent
            assert skiff_session.kubeconfig.parent == skiff.kubeconfig.parent

        @pytest.mark.skiff(arguments=["--authorization-mode=RBAC"])
        def test_arguments(skiff):
            folders["arguments"] = skiff.kubeconfig.parent

        @pytest.mark.skiff(own_process=True)
        def test_own(skiff):
            folders["own"] = skiff.kubeconfig.parent

        def test_all():
            assert folders.pop("same 0") == folders["same 1"]
            assert len(set(folders.values())) == len(folders) == 3
            print("the folder is", folders["same 1"])
        """
    )
    told = pytester.runpytest_subprocess("-p", "no:xdist", "-rP")
    told.assert_outcomes(passed=5)
    folder = next(line.removeprefix("the folder is ") for line in told.outlines if line.startswith("the folder is "))
    assert not Path(folder).exists(), "it ends with the run"


def test_settings_say_what_is_served(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nskiff_arguments = --authorization-mode=Nonsense\n")
    pytester.makepyfile("def test_it(skiff): pass")
    told = pytester.runpytest_subprocess("-p", "no:xdist")
    told.assert_outcomes(errors=1)
    told.stdout.fnmatch_lines(["*StartError: skiff did not start: *Nonsense*"])


def test_a_run_has_one_server_for_all_its_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        seen = set()

        def test_one(skiff_session): seen.add(skiff_session.url)
        def test_two(skiff_session):
            seen.add(skiff_session.url)
            assert len(seen) == 1
        """
    )
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=2)


def test_nothing_is_left_at_the_end() -> None:
    with kubeskiff.start() as plane:
        assert plane.kubeconfig.exists()
    assert not plane.kubeconfig.parent.exists()
    plane.stop()


PROGRAM = """
import time, kubeskiff
plane = kubeskiff.start()
print(plane.kubeconfig, plane._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="it looks for processes in /proc")
def test_nothing_is_left_after_a_kill() -> None:
    killed = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    kubeconfig, process = killed.stdout.readline().split()
    assert Path(kubeconfig).exists()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    until_gone(Path(f"/proc/{process}"))
    until_gone(Path(kubeconfig).parent)


def until_gone(path: Path) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while path.exists():
        assert time.monotonic() < deadline, f"{path} is there"
        time.sleep(0.01)


def test_what_does_not_start_says_why() -> None:
    with pytest.raises(kubeskiff.StartError, match="nowhere"):
        kubeskiff.start(crds=["nowhere"])


def test_a_program_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIFF", "/nowhere/skiff")
    with pytest.raises(kubeskiff.ProgramNotFound, match="/nowhere/skiff"):
        kubeskiff.program()


def test_a_control_plane_has_a_name_for_programs(skiff: ControlPlane) -> None:
    assert skiff.environment == {"KUBECONFIG": str(skiff.kubeconfig)}
    assert os.access(skiff.kubeconfig, os.R_OK)
