"""A kopf operator for Boats, as a user would write it: `kopf run fleet.py`, or by operate.py beside this file.

It keeps a ConfigMap, the log book, for each Boat: owned by the Boat, with an Event when it was made. A Boat that is
deleted waits for the harbour master to sign it off. Its webhooks register each Boat, and let none change its length.
"""

import os
import pathlib

import kopf
from kubernetes import client, config

config.load_kube_config()
core = client.CoreV1Api()


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.persistence.finalizer = "harbour.example.com/kopf"
    settings.posting.enabled = True
    settings.peering.standalone = True
    if certificates := os.environ.get("CERTIFICATES"):
        folder = pathlib.Path(certificates)
        settings.admission.server = kopf.WebhookServer(
            addr="127.0.0.1",
            host="127.0.0.1",
            cafile=folder / "ca.pem",
            certfile=folder / "tls.pem",
            pkeyfile=folder / "key.pem",
        )
        # kopf writes the configurations of its webhooks itself.
        settings.admission.managed = "fleet.harbour.example.com"


@kopf.on.mutate("harbour.example.com", "v1", "boats", operations=["CREATE"])
def register(patch, warnings, spec, **_):
    patch.meta["labels"] = {"registered": "yes"}
    if spec["crew"] > 10:
        warnings.append("it will be crowded")


@kopf.on.validate("harbour.example.com", "v1", "boats", operations=["UPDATE"])
def measure(old, new, name, **_):
    if old["spec"]["length"] != new["spec"]["length"]:
        raise kopf.AdmissionError(f"{name} does not grow", code=409)


@kopf.on.create("harbour.example.com", "v1", "boats", retries=5, backoff=0.2)
def launch(spec, name, namespace, body, patch, retry, **_):
    # The first attempt fails: kopf keeps count in the Boat's annotations, and comes back.
    if retry == 0:
        raise kopf.TemporaryError("the slipway is busy", delay=0.2)
    book = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-log"}, "data": {"crew": str(spec["crew"])}}
    kopf.adopt(book)
    core.create_namespaced_config_map(namespace, book)
    kopf.info(body, reason="Launched", message=f"{name} is afloat")
    patch.status["phase"] = "Afloat"
    patch.status["crew"] = spec["crew"]


@kopf.on.update("harbour.example.com", "v1", "boats", field="spec.crew")
def muster(new, name, namespace, patch, **_):
    core.patch_namespaced_config_map(f"{name}-log", namespace, {"data": {"crew": str(new)}})
    patch.status["crew"] = new


@kopf.timer("harbour.example.com", "v1", "boats", interval=0.3)
def watch_bell(patch, meta, **_):
    bells = int(meta.get("annotations", {}).get("harbour.example.com/bells", 0))
    if bells < 3:
        patch.metadata.annotations["harbour.example.com/bells"] = str(bells + 1)


@kopf.on.delete("harbour.example.com", "v1", "boats")
def sign_off(name, namespace, **_):
    core.patch_namespaced_config_map(f"{name}-log", namespace, {"data": {"signed": "off"}})
