"""Requests to what a control plane has beside the API of Kubernetes: ``/skiff/v1``."""

from __future__ import annotations

import json
import os
import re
import ssl
import tempfile
import urllib.error
import urllib.request
from base64 import b64decode
from pathlib import Path
from typing import Any

_SECONDS_MAX = 60.0
"""How long an answer may take."""


class ApiError(Exception):
    """The control plane refused a request; the text is why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Api:
    """A client of the administrator that a kubeconfig of skiff's is for."""

    def __init__(self, url: str, kubeconfig: Path) -> None:
        text = kubeconfig.read_text(encoding="utf-8")
        self._url = url
        self._tls = ssl.create_default_context(cadata=_part(text, "certificate-authority-data").decode())
        # The library takes certificates from files alone.
        file, path = tempfile.mkstemp(prefix="skiff-", suffix=".pem")
        try:
            with os.fdopen(file, "wb") as papers:
                papers.write(_part(text, "client-certificate-data") + _part(text, "client-key-data"))
            self._tls.load_cert_chain(path)
        finally:
            os.unlink(path)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON that a request with a JSON body is answered with.

        Raises `ApiError` where that is not a success.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=_SECONDS_MAX) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read().decode(errors="replace")
            try:
                said = json.loads(said)["message"]
            except (ValueError, KeyError, TypeError):
                pass
            raise ApiError(error.code, said) from None


def _part(kubeconfig: str, name: str) -> bytes:
    """What stands in a kubeconfig in base64, of which there is one."""
    found = re.search(rf"^\s*{name}: (\S+)$", kubeconfig, re.MULTILINE)
    assert found is not None, f"the kubeconfig has no {name}"
    return b64decode(found[1])
