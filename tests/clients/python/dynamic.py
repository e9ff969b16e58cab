"""The dynamic client of the `kubernetes` package: kinds that are found by discovery, and need no classes."""

import json

from kubernetes import client, config, dynamic
from kubernetes.dynamic.exceptions import (
    BadRequestError,
    ConflictError,
    DynamicApiError,
    NotFoundError,
    ResourceNotFoundError,
    UnprocessibleEntityError,
)

from harbour import GROUP, NAMESPACE, VERSION, boat, register, run

config.load_kube_config()
cluster = dynamic.DynamicClient(client.ApiClient())


def boats():
    """The resource as discovery describes it."""
    return cluster.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Boat")


def refused(error, call, *arguments, **options):
    """Makes a call that must raise that error; returns the Status object that the server answered."""
    try:
        call(*arguments, namespace=NAMESPACE, **options)
    except error as raised:
        return json.loads(raised.body)
    raise AssertionError(f"no {error.__name__}")


def discovery():
    """discovery finds a kind once it is registered, with its verbs and subresources"""
    try:
        boats()
        raise AssertionError("Boat is served before it is registered")
    except ResourceNotFoundError:
        pass
    register()
    found = boats()
    assert (found.name, found.singular_name, found.short_names) == ("boats", "boat", ["bt"]), found
    assert set(found.subresources) == {"scale", "status"}, found.subresources
    assert {"deletecollection", "patch", "watch"} <= set(found.verbs), found.verbs
    assert cluster.version["kubernetes"]["major"] == "1"


def writes():
    """an object is created, read, replaced, listed and deleted"""
    created = boats().create(body=boat("heron"), namespace=NAMESPACE)
    assert (created.spec.crew, created.spec.rig) == (1, "none"), created
    body = created.to_dict()
    body["spec"]["crew"] = 2
    replaced = boats().replace(body=body, namespace=NAMESPACE)
    assert replaced.metadata.generation == 2, replaced
    status = refused(ConflictError, boats().replace, body=body)
    assert "the object has been modified" in status["message"], status
    listed = boats().get(namespace=NAMESPACE, label_selector="!port", field_selector="spec.rig=none")
    assert listed.kind == "BoatList" and [item.metadata.name for item in listed.items] == ["heron"], listed
    boats().delete(name="heron", namespace=NAMESPACE)
    refused(NotFoundError, boats().get, name="heron")


def patches():
    """JSON patch and merge patch change an object, strategic merge patch is for built-in kinds alone"""
    boats().create(body=boat("swan"), namespace=NAMESPACE)

    def patch(kind, body):
        return boats().patch(body=body, name="swan", namespace=NAMESPACE, content_type=f"application/{kind}+json")

    assert patch("merge-patch", {"spec": {"crew": 3}, "metadata": {"labels": {"port": "a"}}}).spec.crew == 3
    assert patch("merge-patch", {"metadata": {"labels": None}}).metadata.labels is None
    assert patch("json-patch", [{"op": "add", "path": "/spec/sails", "value": [{"name": "jib"}]}]).spec.sails[0].name == "jib"
    status = refused(
        UnprocessibleEntityError,
        boats().patch,
        body=[{"op": "test", "path": "/spec/crew", "value": 9}],
        name="swan",
        content_type="application/json-patch+json",
    )
    assert status["reason"] == "Invalid", status
    # The dynamic client's default.
    status = refused(DynamicApiError, boats().patch, body={"spec": {"crew": 4}}, name="swan")
    assert (status["code"], status["reason"]) == (415, "UnsupportedMediaType"), status
    maps = cluster.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body={"metadata": {"name": "tide"}, "data": {"high": "6:10"}}, namespace=NAMESPACE)
    assert maps.patch(body={"data": {"low": "12:20"}}, name="tide", namespace=NAMESPACE).data.high == "6:10"


def apply():
    """server-side apply merges what several managers say, and names those in conflict"""

    def applied(manager, force=None, **spec):
        body = boat("tern")
        body["spec"] = spec
        return boats().server_side_apply(
            body=body, namespace=NAMESPACE, field_manager=manager, force_conflicts=force
        )

    applied("builder", length=12, sails=[{"name": "jib", "area": 9}])
    both = applied("sailmaker", length=12, sails=[{"name": "main", "area": 20}])
    assert [sail.name for sail in both.spec.sails] == ["jib", "main"], both
    try:
        applied("sailmaker", length=14)
        raise AssertionError("two managers own the length")
    except ConflictError as error:
        status = json.loads(error.body)
    assert status["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "builder"',
            "field": ".spec.length",
        }
    ], status
    forced = applied("sailmaker", force=True, length=14)
    # What a manager leaves out is gone, unless another one wants it.
    assert forced.spec.length == 14 and [sail.name for sail in forced.spec.sails] == ["jib"], forced
    assert sorted(entry.manager for entry in forced.metadata.managedFields) == ["builder", "sailmaker"], forced


def subresources():
    """status and scale are written by themselves"""
    boats().status.patch(
        body={"status": {"phase": "Afloat", "crew": 2}},
        name="tern",
        namespace=NAMESPACE,
        content_type="application/merge-patch+json",
    )
    assert boats().get(name="tern", namespace=NAMESPACE).status.phase == "Afloat"
    scale = boats().scale.get(name="tern", namespace=NAMESPACE)
    assert (scale.kind, scale.status.replicas) == ("Scale", 2), scale


def options():
    """dry runs, preconditions and selectors are passed on"""
    boats().create(body=boat("ghost"), namespace=NAMESPACE, dry_run="All")
    refused(NotFoundError, boats().get, name="ghost")
    stale = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "none"}}
    status = refused(ConflictError, boats().delete, name="tern", body=stale)
    assert "the UID in the precondition (none) does not match" in status["message"], status
    status = refused(BadRequestError, boats().get, label_selector="a in")
    assert "unable to parse requirement" in status["message"], status
    boats().delete(namespace=NAMESPACE, label_selector="!port")
    assert boats().get(namespace=NAMESPACE).items == []


run([discovery, writes, patches, apply, subresources, options])
