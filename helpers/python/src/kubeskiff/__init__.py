"""A small Kubernetes API server for tests.

`start` runs a control plane of its own, in memory, and gives it back once it is ready::

    import kubeskiff

    with kubeskiff.start(crds=["config/crd"]) as plane:
        print(plane.url, plane.kubeconfig)

A control plane is copied by `ControlPlane.fork`, has faults by `ControlPlane.fault`, and a clock of its own.

With pytest, the fixtures ``skiff`` and ``skiff_session`` do so for tests; see `kubeskiff.pytest_plugin`.
"""

from ._program import ProgramNotFound, program
from ._api import ApiError
from ._clock import Clock
from ._faults import Failure, Fault
from ._control_plane import ControlPlane, Fork, StartError, start

__all__ = [
    "ApiError",
    "Clock",
    "ControlPlane",
    "Failure",
    "Fault",
    "Fork",
    "ProgramNotFound",
    "StartError",
    "program",
    "start",
]
