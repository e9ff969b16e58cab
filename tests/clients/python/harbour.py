"""What the programs beside this one share: the definition of Boat, boats, and the way to run checks.

Every program is run as `python3 PROGRAM` with KUBECONFIG set. It prints a line per check and ends with an error at the
first that fails.
"""

import pathlib
import time

import yaml
from kubernetes import client

GROUP = "harbour.example.com"
VERSION = "v1"
NAMESPACE = "default"
DEFINITION = pathlib.Path(__file__).parent.parent / "boats.yaml"


def boat(name, **spec):
    """A Boat of 10 m, unless the spec says otherwise."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Boat",
        "metadata": {"name": name},
        "spec": {"length": 10} | spec,
    }


def register():
    """Registers Boat and waits until the server serves it."""
    definitions = client.ApiextensionsV1Api()
    created = definitions.create_custom_resource_definition(yaml.safe_load(DEFINITION.read_text()))

    def established():
        status = definitions.read_custom_resource_definition_status(created.metadata.name).status
        return any(c.type == "Established" and c.status == "True" for c in status.conditions or [])

    eventually(established)
    return created


def eventually(condition, seconds=20):
    """Waits until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{condition.__name__} is not so after {seconds} s"
        time.sleep(0.02)


def run(checks):
    """Calls the checks in order; what each shows is its documentation."""
    for check in checks:
        check()
        print("ok:", check.__doc__, flush=True)
