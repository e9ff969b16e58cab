"""Runs the operator of fleet.py, and does to Boats what its users do."""

import asyncio
import threading

import kopf
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

import fleet
from harbour import GROUP, NAMESPACE, VERSION, boat, eventually, register, run

config.load_kube_config()
core = client.CoreV1Api()
custom = client.CustomObjectsApi()
BOATS = {"group": GROUP, "version": VERSION, "namespace": NAMESPACE, "plural": "boats"}


def heron():
    return custom.get_namespaced_custom_object(**BOATS, name="heron")


def log_book():
    return core.read_namespaced_config_map("heron-log", NAMESPACE)


def admitted():
    """kopf writes the configurations of its webhooks, and is asked about every Boat"""
    admission = client.AdmissionregistrationV1Api()

    def configured():
        kinds = [admission.list_mutating_webhook_configuration(), admission.list_validating_webhook_configuration()]
        return all(len(kind.items) == 1 and kind.items[0].webhooks for kind in kinds)

    eventually(configured)
    created, _, headers = custom.create_namespaced_custom_object_with_http_info(**BOATS, body=boat("ark", crew=11, length=30))
    assert created["metadata"]["labels"] == {"registered": "yes"}, created
    assert headers["Warning"] == '299 - "it will be crowded"', headers
    try:
        custom.patch_namespaced_custom_object(**BOATS, name="ark", body={"spec": {"length": 40}})
        raise AssertionError("it grew")
    except ApiException as error:
        assert error.status == 409 and "denied the request: ark does not grow" in error.body, error
    custom.delete_namespaced_custom_object(**BOATS, name="ark")


def launched():
    """kopf retries a handler that failed, and writes what it did to the status"""
    custom.create_namespaced_custom_object(**BOATS, body=boat("heron", crew=2))

    def afloat():
        return heron().get("status") == {"phase": "Afloat", "crew": 2}

    eventually(afloat)
    assert "harbour.example.com/kopf" in heron()["metadata"]["finalizers"]


def adopted():
    """kopf.adopt makes the Boat the owner of its log book"""
    owner = log_book().metadata.owner_references[0]
    assert (owner.kind, owner.name, owner.uid) == ("Boat", "heron", heron()["metadata"]["uid"]), owner
    assert owner.controller and owner.block_owner_deletion, owner


def told():
    """kopf posts Events that name the Boat"""

    def posted():
        events = core.list_namespaced_event(NAMESPACE, field_selector="involvedObject.kind=Boat,reason=Launched")
        return [event.message for event in events.items] == ["heron is afloat"]

    eventually(posted)


def mustered():
    """kopf sees which field of an object changed"""
    custom.patch_namespaced_custom_object(**BOATS, name="heron", body={"spec": {"crew": 5}})

    def entered():
        return heron()["status"]["crew"] == 5 and log_book().data == {"crew": "5"}

    eventually(entered)


def rung():
    """kopf's timers run beside its handlers"""

    def three_bells():
        return heron()["metadata"]["annotations"].get("harbour.example.com/bells") == "3"

    eventually(three_bells)


def signed_off():
    """a finalizer keeps a deleted Boat until kopf's handler has run"""
    custom.delete_namespaced_custom_object(**BOATS, name="heron")

    def gone():
        try:
            return heron() is None
        except ApiException as error:
            assert error.status == 404, error
            return True

    eventually(gone)


def operator(ready, stop):
    asyncio.run(kopf.operator(ready_flag=ready, stop_flag=stop, namespaces=[NAMESPACE]))


register()
ready, stop = threading.Event(), threading.Event()
thread = threading.Thread(target=operator, args=(ready, stop), daemon=True)
thread.start()
assert ready.wait(20), "kopf does not start"
run([admitted, launched, adopted, told, mustered, rung, signed_off])
stop.set()
thread.join(20)
assert not thread.is_alive(), "kopf does not stop"
