"""What each client library makes of the fixture ``skiff``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import kr8s
import lightkube
import pytest
from kr8s.objects import ConfigMap, new_class
from kubernetes import client, watch
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap as LightConfigMap

from kubeskiff import ControlPlane

DEFINITIONS = Path(__file__).parents[3] / "crd-examples/rules/crd.yaml"


def test_kubernetes(skiff: ControlPlane) -> None:
    with skiff.kubernetes() as api:
        core = client.CoreV1Api(api)
        core.create_namespaced_config_map("default", {"metadata": {"name": "settings"}, "data": {"mode": "fast"}})
        assert core.read_namespaced_config_map("settings", "default").data == {"mode": "fast"}


def test_lightkube(skiff: ControlPlane) -> None:
    api = skiff.lightkube(field_manager="test")
    api.apply(LightConfigMap(metadata=ObjectMeta(name="settings", namespace="default"), data={"mode": "fast"}))
    assert api.get(LightConfigMap, "settings").data == {"mode": "fast"}
    with pytest.raises(lightkube.ApiError):
        api.get(LightConfigMap, "none")


def test_kr8s(skiff: ControlPlane) -> None:
    api = skiff.kr8s()
    settings = ConfigMap({"metadata": {"name": "settings", "namespace": "default"}, "data": {"mode": "fast"}}, api=api)
    settings.create()
    assert ConfigMap.get("settings", "default", api=api).data == {"mode": "fast"}
    with pytest.raises(kr8s.NotFoundError):
        ConfigMap.get("none", "default", api=api)


OPERATOR = """
import kopf

@kopf.on.create("", "v1", "configmaps", labels={"boat": kopf.PRESENT})
def named(spec, patch, **_):
    patch.metadata.annotations["seen"] = "yes"
"""


def test_kopf(skiff: ControlPlane, tmp_path: Path) -> None:
    operator = tmp_path / "operator.py"
    operator.write_text(OPERATOR)
    command = [sys.executable, "-m", "kopf", "run", "--all-namespaces", "--standalone", str(operator)]
    running = subprocess.Popen(command, env={**os.environ, **skiff.environment}, stderr=subprocess.PIPE)
    try:
        with skiff.kubernetes() as api:
            core = client.CoreV1Api(api)
            core.create_namespaced_config_map("default", {"metadata": {"name": "a", "labels": {"boat": "daisy"}}})
            for event in watch.Watch().stream(core.list_namespaced_config_map, "default", timeout_seconds=60):
                if (event["object"].metadata.annotations or {}).get("seen"):
                    return
    finally:
        running.terminate()
        said = running.communicate()[1].decode()
    pytest.fail(said)


@pytest.mark.skiff(crds=[DEFINITIONS])
def test_definitions_are_served_from_the_start(skiff: ControlPlane) -> None:
    Release = new_class("Release", "rules.example.com/v1")
    assert list(kr8s.get(Release, api=skiff.kr8s())) == []
