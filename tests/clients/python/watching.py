"""Watches of the `kubernetes` package, and its informer: from a revision, in time, and after history is gone.

The server must have forgotten what happened up to revision 1, as one has whose snapshot was restored.
"""

import itertools

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import SharedInformer

from harbour import GROUP, NAMESPACE, VERSION, boat, eventually, register, run

FORGOTTEN = "1"

config.load_kube_config()
core = client.CoreV1Api()
custom = client.CustomObjectsApi()
BOATS = {"group": GROUP, "version": VERSION, "namespace": NAMESPACE, "plural": "boats"}


def merge(name, **spec):
    return custom.patch_namespaced_custom_object(**BOATS, name=name, body={"spec": spec})


def seen(events, count):
    """What the first so many events say: their types, and the names of their objects."""
    return [(event["type"], event["object"]["metadata"]["name"]) for event in itertools.islice(events, count)]


def from_a_list():
    """a watch from a list's revision gets every change after it, and ends in time"""
    register()
    custom.create_namespaced_custom_object(**BOATS, body=boat("heron"))
    revision = custom.list_namespaced_custom_object(**BOATS)["metadata"]["resourceVersion"]
    custom.create_namespaced_custom_object(**BOATS, body=boat("swan"))
    merge("heron", crew=2)
    custom.delete_namespaced_custom_object(**BOATS, name="swan")
    events = watch.Watch().stream(
        custom.list_namespaced_custom_object, **BOATS, resource_version=revision, timeout_seconds=1
    )
    # No count: the server ends the stream after a second.
    assert seen(events, None) == [("ADDED", "swan"), ("MODIFIED", "heron"), ("DELETED", "swan")]


def selected():
    """an object that leaves a selector is deleted for its watchers, with its last state that fitted"""
    revision = custom.list_namespaced_custom_object(**BOATS)["metadata"]["resourceVersion"]
    merge("heron", rig="sloop")
    merge("heron", rig="none")
    events = watch.Watch().stream(
        custom.list_namespaced_custom_object,
        **BOATS,
        resource_version=revision,
        field_selector="spec.rig=sloop",
        timeout_seconds=1,
    )
    states = [(event["type"], event["object"]["spec"]["rig"]) for event in events]
    assert states == [("ADDED", "sloop"), ("DELETED", "sloop")], states


def streamed_list():
    """a dynamic watch streams the list first, closed by a bookmark that says so"""
    boats = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version=f"{GROUP}/{VERSION}", kind="Boat")
    events = boats.watch(
        namespace=NAMESPACE,
        send_initial_events=True,
        allow_watch_bookmarks=True,
        resource_version_match="NotOlderThan",
        timeout=5,
    )
    added, bookmark = itertools.islice(events, 2)
    assert (added["type"], added["object"].metadata.name) == ("ADDED", "heron"), added
    assert bookmark["type"] == "BOOKMARK", bookmark
    annotations = bookmark["raw_object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}, bookmark


def expired():
    """a watch from a forgotten revision fails with 410, and goes on after a new list"""
    listing = custom.list_namespaced_custom_object
    try:
        next(watch.Watch().stream(listing, **BOATS, resource_version=FORGOTTEN))
        raise AssertionError("the server remembers everything")
    except ApiException as error:
        assert error.status == 410 and error.reason.startswith("Expired: too old resource version: 1 ("), error
    revision = listing(**BOATS)["metadata"]["resourceVersion"]
    custom.create_namespaced_custom_object(**BOATS, body=boat("swan"))
    watcher = watch.Watch()
    assert seen(watcher.stream(listing, **BOATS, resource_version=revision), 1) == [("ADDED", "swan")]
    watcher.stop()


def informer():
    """the informer keeps a cache up to date, and lists anew when its revision has expired"""
    informer = SharedInformer(core.list_namespaced_config_map, namespace=NAMESPACE, field_selector="metadata.name=tide")
    happened = []
    for kind in ["ADDED", "MODIFIED", "DELETED"]:
        informer.add_event_handler(kind, lambda _, kind=kind: happened.append(kind))
    informer.add_event_handler("ERROR", lambda error: happened.append(getattr(error, "status", "broken")))
    # As if it had been away for long.
    informer._resource_version = FORGOTTEN
    core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="tide")))
    informer.start()

    def cached():
        return [item.metadata.name for item in informer.cache.list()] == ["tide"]

    eventually(cached)
    core.patch_namespaced_config_map("tide", NAMESPACE, {"data": {"high": "6:10"}})

    def changed():
        return informer.cache.get_by_key(f"{NAMESPACE}/tide").data == {"high": "6:10"}

    eventually(changed)
    core.delete_namespaced_config_map("tide", NAMESPACE)

    def emptied():
        return informer.cache.list() == [] and happened[-1] == "DELETED"

    eventually(emptied)
    assert happened[:2] == [410, "ADDED"], happened
    informer.stop()


run([from_a_list, selected, streamed_list, expired, informer])
