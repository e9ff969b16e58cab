"""The generated classes of the `kubernetes` package: core kinds, definitions, custom objects, errors and pages."""

import json

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from harbour import GROUP, NAMESPACE, VERSION, boat, eventually, register, run

config.load_kube_config()
core = client.CoreV1Api()
definitions = client.ApiextensionsV1Api()
custom = client.CustomObjectsApi()
BOATS = {"group": GROUP, "version": VERSION, "namespace": NAMESPACE, "plural": "boats"}


def refused(status, call, *arguments, **options):
    """Makes a call that the server must refuse with that HTTP status; returns the Status object of the answer."""
    try:
        call(*arguments, **options)
    except ApiException as error:
        assert error.status == status, error
        return json.loads(error.body)
    raise AssertionError(f"{call.__name__} was not refused")


def config_maps():
    """CoreV1Api creates, reads, replaces, patches, lists and deletes a ConfigMap"""
    created = core.create_namespaced_config_map(
        NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="tide-"), data={"high": "6:10"})
    )
    name = created.metadata.name
    assert name.startswith("tide-") and len(name) == len("tide-") + 5, name
    created.data["low"] = "12:20"
    replaced = core.replace_namespaced_config_map(name, NAMESPACE, created)
    assert replaced.metadata.resource_version != created.metadata.resource_version
    # A stale resourceVersion is a conflict.
    status = refused(409, core.replace_namespaced_config_map, name, NAMESPACE, created)
    assert status["reason"] == "Conflict", status
    # The class sends a strategic merge patch; null removes a key.
    patched = core.patch_namespaced_config_map(name, NAMESPACE, {"data": {"low": None, "moon": "full"}})
    assert patched.data == {"high": "6:10", "moon": "full"}, patched.data
    listed = core.list_namespaced_config_map(NAMESPACE, field_selector=f"metadata.name={name}")
    assert [item.metadata.uid for item in listed.items] == [created.metadata.uid]
    core.delete_namespaced_config_map(name, NAMESPACE)
    refused(404, core.read_namespaced_config_map, name, NAMESPACE)


def secrets():
    """CoreV1Api turns stringData of a Secret into base64"""
    secret = client.V1Secret(metadata=client.V1ObjectMeta(name="key"), string_data={"word": "ahoy"})
    assert core.create_namespaced_secret(NAMESPACE, secret).data == {"word": "YWhveQ=="}


def namespaces():
    """CoreV1Api deletes a namespace together with what is in it"""
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="north")))
    core.create_namespaced_config_map("north", client.V1ConfigMap(metadata=client.V1ObjectMeta(name="chart")))
    core.delete_namespace("north")
    def gone():
        return "north" not in [item.metadata.name for item in core.list_namespace().items]

    eventually(gone)
    refused(404, core.read_namespaced_config_map, "chart", "north")


def definition():
    """ApiextensionsV1Api registers a definition, reads it into its classes and lists it"""
    register()
    read = definitions.read_custom_resource_definition("boats.harbour.example.com")
    schema = read.spec.versions[0].schema.open_apiv3_schema.properties["spec"]
    assert schema.properties["crew"].default == 1
    assert schema.x_kubernetes_validations[0].rule == "self.crew * 2 <= self.length"
    assert [item.metadata.name for item in definitions.list_custom_resource_definition().items] == [read.metadata.name]


def custom_objects():
    """CustomObjectsApi creates, reads, replaces, patches and deletes an object, its status and its scale"""
    created = custom.create_namespaced_custom_object(**BOATS, body=boat("heron"))
    assert created["spec"] == {"length": 10, "crew": 1, "rig": "none"}, created
    created["spec"]["rig"] = "sloop"
    custom.replace_namespaced_custom_object(**BOATS, name="heron", body=created)
    # A merge patch, unless another type is named.
    operations = [{"op": "test", "path": "/spec/rig", "value": "sloop"}, {"op": "replace", "path": "/spec/crew", "value": 4}]
    patched = custom.patch_namespaced_custom_object(
        **BOATS, name="heron", body=operations, _content_type="application/json-patch+json"
    )
    assert patched["spec"]["crew"] == 4, patched
    patched = custom.patch_namespaced_custom_object(**BOATS, name="heron", body={"metadata": {"labels": {"port": "a"}}})
    assert patched["metadata"]["labels"] == {"port": "a"}, patched
    custom.patch_namespaced_custom_object_status(**BOATS, name="heron", body={"status": {"crew": 4}, "spec": {"crew": 9}})
    read = custom.get_namespaced_custom_object_status(**BOATS, name="heron")
    assert (read["spec"]["crew"], read["status"]["crew"]) == (4, 4), read
    assert read["metadata"]["generation"] == 3, read
    scale = custom.get_namespaced_custom_object_scale(**BOATS, name="heron")
    assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 4}, {"replicas": 4}), scale
    custom.patch_namespaced_custom_object_scale(**BOATS, name="heron", body={"spec": {"replicas": 5}})
    assert custom.get_namespaced_custom_object(**BOATS, name="heron")["spec"]["crew"] == 5
    deleted = custom.delete_namespaced_custom_object(**BOATS, name="heron")
    assert (deleted["status"], deleted["details"]["uid"]) == ("Success", created["metadata"]["uid"]), deleted


def dry_runs():
    """dry runs answer as writes do and leave nothing"""
    answered = custom.create_namespaced_custom_object(**BOATS, body=boat("ghost"), dry_run="All")
    assert answered["metadata"]["uid"] and answered["spec"]["crew"] == 1, answered
    refused(404, custom.get_namespaced_custom_object, **BOATS, name="ghost")


def errors():
    """an ApiException holds the Status of the server, with a cause per field"""
    invalid = boat("whale", length=61, rig="mast")
    status = refused(422, custom.create_namespaced_custom_object, **BOATS, body=invalid)
    assert (status["kind"], status["reason"], status["details"]["kind"]) == ("Status", "Invalid", "Boat"), status
    causes = {cause["field"]: cause["reason"] for cause in status["details"]["causes"]}
    assert causes["spec.rig"] == "FieldValueNotSupported" and causes["spec.length"] == "FieldValueInvalid", causes
    status = refused(422, custom.create_namespaced_custom_object, **BOATS, body=boat("raft", length=4, crew=3))
    assert "a boat has 2 m for each of its crew" in status["message"], status
    unknown = boat("otter", colour="red")
    status = refused(400, custom.create_namespaced_custom_object, **BOATS, body=unknown, field_validation="Strict")
    assert status["message"].endswith('strict decoding error: unknown field "spec.colour"'), status
    custom.create_namespaced_custom_object(**BOATS, body=boat("otter"))
    status = refused(409, custom.create_namespaced_custom_object, **BOATS, body=boat("otter"))
    assert (status["reason"], status["details"]["name"]) == ("AlreadyExists", "otter"), status
    custom.delete_namespaced_custom_object(**BOATS, name="otter")


def pages():
    """lists come in pages of one revision, and hold what a selector asks for"""
    for number in range(25):
        body = boat(f"page-{number:02}", rig="ketch" if number % 5 == 0 else "none")
        custom.create_namespaced_custom_object(**BOATS, body=body)
    names, revisions, token = [], set(), None
    while token != "":
        page = custom.list_namespaced_custom_object(**BOATS, limit=10, _continue=token)
        names += [item["metadata"]["name"] for item in page["items"]]
        revisions.add(page["metadata"]["resourceVersion"])
        if token is None:
            assert page["metadata"]["remainingItemCount"] == 15, page["metadata"]
            # What is made between the pages is on none of them.
            custom.create_namespaced_custom_object(**BOATS, body=boat("page-99"))
        token = page["metadata"].get("continue", "")
    assert names == [f"page-{number:02}" for number in range(25)], names
    assert len(revisions) == 1, revisions
    ketches = custom.list_namespaced_custom_object(**BOATS, field_selector="spec.rig=ketch")
    assert len(ketches["items"]) == 5, ketches
    status = refused(400, custom.list_namespaced_custom_object, **BOATS, _continue="mud")
    assert "continue key is not valid" in status["message"], status


def collections():
    """a collection is deleted by selector"""
    custom.delete_collection_namespaced_custom_object(**BOATS, field_selector="spec.rig=ketch")
    assert len(custom.list_namespaced_custom_object(**BOATS)["items"]) == 21
    custom.delete_collection_namespaced_custom_object(**BOATS)
    assert custom.list_namespaced_custom_object(**BOATS)["items"] == []


def unregister():
    """a deleted definition takes its objects and its paths along"""
    custom.create_namespaced_custom_object(**BOATS, body=boat("last"))
    definitions.delete_custom_resource_definition("boats.harbour.example.com")
    def gone():
        return definitions.list_custom_resource_definition().items == []

    eventually(gone)
    # There is no such path any more, which is not answered with a Status.
    try:
        custom.list_namespaced_custom_object(**BOATS)
    except ApiException as error:
        assert (error.status, error.body) == (404, "404 page not found\n"), error


run([config_maps, secrets, namespaces, definition, custom_objects, dry_runs, errors, pages, collections, unregister])
