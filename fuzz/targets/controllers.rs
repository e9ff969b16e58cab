//! Controllers over objects that nobody has in earnest.

use std::cell::Cell;
use std::panic;
use std::sync::Once;
use std::time::Duration;

use kubeskiff::controllers::{NodePlan, Profile, Switches};
use kubeskiff::value::{Value, json, yaml};

use super::server::{Sent, Server};
use super::{Linear, Target};

/// Controllers go on for as long as they are let: counts near 2^31 have no end. So the bounds are those of a while.
pub const TARGET: Target = Target {
    name: "controllers",
    run,
    steps: Linear { beside: 1 << 26, per_byte: 1_000 },
    allocated_bytes: Linear { beside: 2 << 30, per_byte: 20_000 },
};

/// How long they work on an input.
const WORK: Duration = Duration::from_millis(60);
/// How many objects of an input are made.
const OBJECTS_MAX: usize = 12;

thread_local! {
    static PANICKED: Cell<bool> = const { Cell::new(false) };
}

/// The input is a stream of YAML: objects of built-in kinds. Each is created, and what it has as its status is written. A
/// controller that panics over an object goes on with others, and is found here all the same.
fn run(data: &[u8]) {
    notice_panics();
    let Ok(objects) = yaml::decode_all(data) else { return };
    let server = server();
    PANICKED.set(false);
    for object in objects.iter().take(OBJECTS_MAX) {
        create(&server, object, WORK);
    }
    server.wait(WORK);
    assert!(!PANICKED.get(), "a controller panicked");
}

/// The objects of an input, as YAML, that are not made within so long, each with the answer to its creation.
pub fn not_made(data: &[u8], within: Duration) -> Vec<(Value, String)> {
    let objects = yaml::decode_all(data).expect("it is YAML");
    let server = server();
    let refused = |object: &Value| match create(&server, object, within) {
        Some((201, _)) => None,
        Some((_, answer)) => Some(String::from_utf8_lossy(&answer).into_owned()),
        None => Some("there is no answer".to_owned()),
    };
    objects.into_iter().filter_map(|object| refused(&object).map(|answer| (object, answer))).collect()
}

fn server() -> Server {
    let nodes = NodePlan { count: 2, ..NodePlan::default() };
    let switches = Switches::parse(&["*".to_owned()], Profile::Cluster).expect("it names all");
    Server::with_controllers(switches, nodes)
}

/// A panic of a controller is caught where it runs.
fn notice_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            PANICKED.set(true);
            told(panic);
        }));
    });
}

/// Makes an object, and gives it its status; returns the answer to its creation, where it is one of a kind that is made.
fn create(server: &Server, object: &Value, within: Duration) -> Option<(u16, Vec<u8>)> {
    let path = collection(object)?;
    let send = |method: &str, path: &str, content_type: &str, body: &Value| {
        let body = json::encode(body);
        server.send(Sent { method, path, accept: "application/json", content_type, body: &body }, within)
    };
    let (code, answer) = send("POST", &path, "application/json", object)?;
    if let (201, Some(status)) = (code, object.get("status")) {
        let made = json::decode(&answer).unwrap_or_default();
        let name = made.str_at(&["metadata", "name"]);
        let patch = kubeskiff::object! { "status" => status.clone() };
        send("PATCH", &format!("{path}/{name}/status"), "application/merge-patch+json", &patch);
    }
    Some((code, answer))
}

/// Where objects of the kinds are that controllers read.
fn collection(object: &Value) -> Option<String> {
    const KINDS: [(&str, &str); 18] = [
        ("Deployment", "apis/apps/v1/namespaces/default/deployments"),
        ("ReplicaSet", "apis/apps/v1/namespaces/default/replicasets"),
        ("StatefulSet", "apis/apps/v1/namespaces/default/statefulsets"),
        ("DaemonSet", "apis/apps/v1/namespaces/default/daemonsets"),
        ("ControllerRevision", "apis/apps/v1/namespaces/default/controllerrevisions"),
        ("Job", "apis/batch/v1/namespaces/default/jobs"),
        ("CronJob", "apis/batch/v1/namespaces/default/cronjobs"),
        ("HorizontalPodAutoscaler", "apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"),
        ("PodDisruptionBudget", "apis/policy/v1/namespaces/default/poddisruptionbudgets"),
        ("Pod", "api/v1/namespaces/default/pods"),
        ("Service", "api/v1/namespaces/default/services"),
        ("Endpoints", "api/v1/namespaces/default/endpoints"),
        ("ResourceQuota", "api/v1/namespaces/default/resourcequotas"),
        ("PersistentVolumeClaim", "api/v1/namespaces/default/persistentvolumeclaims"),
        ("PersistentVolume", "api/v1/persistentvolumes"),
        ("Node", "api/v1/nodes"),
        ("Lease", "apis/coordination.k8s.io/v1/namespaces/default/leases"),
        ("CertificateSigningRequest", "apis/certificates.k8s.io/v1/certificatesigningrequests"),
    ];
    let kind = object.str_at(&["kind"]);
    KINDS.iter().find(|(known, _)| *known == kind).map(|(_, path)| format!("/{path}"))
}
