"""An OCI image in a tar file, made without a container daemon.

It has the program and nothing else; where that is linked to libraries, they are there, too. The file is an OCI layout, and
has what `docker load` reads beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

from kinds.archive import Tree, compressed
from release import Failure, Release, run

# Nobody: the user of images without a system.
USER = 65532
DATA = "/var/lib/skiff"
PORT = 6443


def make(release: Release) -> Iterator[Path]:
    if not release.target.is_linux:
        raise Failure("images are for Linux")
    tree = files(release)
    layer = compressed(tree, release)
    config = encoded(configuration(release, tree))
    blobs = Blobs()
    manifest = encoded({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blobs.add("application/vnd.oci.image.config.v1+json", config),
        "layers": [blobs.add("application/vnd.oci.image.layer.v1.tar+gzip", layer)],
    })
    described = blobs.add("application/vnd.oci.image.manifest.v1+json", manifest)
    name = f"kubeskiff:{release.version}"
    described["annotations"] = {
        "org.opencontainers.image.ref.name": release.version,
        "io.containerd.image.name": name,
    }
    described["platform"] = {"architecture": release.target.go, "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [described]}
    made = release.out / f"kubeskiff-{release.version}-image-{release.target.go}.tar"
    made.write_bytes(blobs.layout(index, [{"Config": path(config), "RepoTags": [name], "Layers": [path(layer)]}]))
    yield made


def files(release: Release) -> bytes:
    """The root of the image, as a tar file."""
    tree = Tree(release.time)
    for folder in ["etc", "usr", "usr/bin", "var", "var/lib"]:
        tree.add_folder(folder)
    tree.add_folder("tmp", 0o1777)
    tree.add_folder(DATA.lstrip("/"), 0o700, USER)
    tree.add("etc/passwd", f"skiff:x:{USER}:{USER}::{DATA}:/nonexistent\n".encode())
    tree.add("usr/bin/skiff", release.program.read_bytes(), 0o755)
    for library in libraries(release):
        tree.add(str(library).lstrip("/"), library.read_bytes(), 0o755)
    return tree.bytes()


def libraries(release: Release) -> list[Path]:
    """The libraries that the program loads, and what loads them, where this machine has them."""
    if not release.needs.libraries:
        return []
    told = run(["ldd", str(release.program)], why="to find the libraries that go along with the program")
    return [Path(path) for path in re.findall(r"(?:^\s*|=> )(/\S+)", told, re.MULTILINE)]


def configuration(release: Release, tree: bytes) -> dict[str, Any]:
    """What a container of the image is to be."""
    created = datetime.fromtimestamp(release.time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "created": created,
        "architecture": release.target.go,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {f"{PORT}/tcp": {}},
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": ["/usr/bin/skiff"],
            "Cmd": ["serve", "--listen", f"0.0.0.0:{PORT}", "--data-dir", DATA],
            "Volumes": {DATA: {}},
            "WorkingDir": DATA,
            "Labels": {
                "org.opencontainers.image.title": "kubeskiff",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(tree)]},
        "history": [{"created": created, "created_by": "packages/build image"}],
    }


class Blobs:
    """The parts of an image, by the digests of their bytes."""

    def __init__(self) -> None:
        self._parts: dict[str, bytes] = {}

    def add(self, media_type: str, content: bytes) -> dict[str, Any]:
        """Adds a part, and returns what others say of it."""
        self._parts[path(content)] = content
        return {"mediaType": media_type, "digest": digest(content), "size": len(content)}

    def layout(self, index: dict[str, Any], for_docker: list[dict[str, Any]]) -> bytes:
        """The file of the image."""
        tree = Tree(0)
        tree.add("oci-layout", encoded({"imageLayoutVersion": "1.0.0"}))
        tree.add("index.json", encoded(index))
        tree.add("manifest.json", encoded(for_docker))
        tree.add_folder("blobs")
        tree.add_folder("blobs/sha256")
        for name in sorted(self._parts):
            tree.add(name, self._parts[name])
        return tree.bytes()


def encoded(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(content: bytes) -> str:
    return f"sha256:{sha256(content).hexdigest()}"


def path(content: bytes) -> str:
    return f"blobs/sha256/{sha256(content).hexdigest()}"
