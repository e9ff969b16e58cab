"""A small Kubernetes API server for tests.

`start` runs a control plane of its own, in memory, and gives it back once it is ready::

    import kubeskiff

    with kubeskiff.start(crds=["config/crd"]) as plane:
        print(plane.url, plane.kubeconfig)

With pytest, the fixtures ``skiff`` and ``skiff_session`` do so for tests; see `kubeskiff.pytest_plugin`.
"""

from ._program import ProgramNotFound, program
from ._control_plane import ControlPlane, StartError, start

__all__ = ["ControlPlane", "ProgramNotFound", "StartError", "program", "start"]
