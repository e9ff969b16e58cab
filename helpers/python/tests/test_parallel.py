"""A hundred small tests, each with a control plane of its own."""

from __future__ import annotations

import json
import os
import ssl
import urllib.request
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeskiff import ControlPlane


# helpers/measure sets the variable.
pytestmark = pytest.mark.skiff(own_process="SKIFF_TEST_OWN_PROCESS" in os.environ)


@pytest.mark.parametrize("number", range(100))
def test_a_test_sees_its_own_objects_alone(skiff: ControlPlane, tmp_path: Path, number: int) -> None:
    api = Api(skiff, tmp_path)
    body = {"metadata": {"name": f"settings-{number}"}, "data": {"number": str(number)}}
    api.send("POST", "/api/v1/namespaces/default/configmaps", body)
    kept = api.send("GET", "/api/v1/namespaces/default/configmaps?labelSelector=!kube")["items"]
    names = [item["metadata"]["name"] for item in kept if item["metadata"]["name"] != "kube-root-ca.crt"]
    assert names == [f"settings-{number}"]


class Api:
    """A client of a few lines: the libraries would take longer to load than the servers to start."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        config = yaml.safe_load(plane.kubeconfig.read_text())
        user, cluster = config["users"][0]["user"], config["clusters"][0]["cluster"]
        papers = folder / "papers.pem"
        papers.write_bytes(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)
        self._tls.load_cert_chain(papers)
        self._url = plane.url

    def send(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(self._url + path, method=method, headers={"Content-Type": "application/json"})
        request.data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, context=self._tls) as answer:
            return json.load(answer)
