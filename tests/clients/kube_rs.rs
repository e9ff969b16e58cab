//! kube-rs against a server under test, as programs use it: a derived definition, typed and dynamic objects, watchers,
//! a controller, and a webhook.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event as PostedEvent;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use kube::core::{GroupVersionKind, Status};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event as NewEvent, EventType, Recorder};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt as _, reflector};
use kube::{Api, Client, Config, CustomResource, CustomResourceExt as _, Discovery, Resource as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::https::{Https, Identity, Reply};
use crate::server::{Folder, Server};

/// How long a change may take to arrive, also on a busy machine.
const CHANGE_MAX: Duration = Duration::from_secs(30);

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "harbour.example.com", version = "v1", kind = "Boat", namespaced, shortname = "bt")]
#[kube(status = "BoatStatus", scale(spec_replicas_path = ".spec.crew", status_replicas_path = ".status.crew"))]
#[kube(selectable = ".spec.rig", printcolumn(name = "Length", type_ = "integer", json_path = ".spec.length"))]
struct BoatSpec {
    #[schemars(range(min = 2, max = 60))]
    length: i64,
    #[serde(default = "alone")]
    crew: i64,
    #[serde(default)]
    rig: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct BoatStatus {
    phase: String,
}

fn alone() -> i64 {
    1
}

fn boat(name: &str, length: i64) -> Boat {
    Boat::new(name, BoatSpec { length, crew: 1, rig: String::new() })
}

/// A server, and kube-rs as its admin.
struct Harbour {
    client: Client,
    boats: Api<Boat>,
    _server: Server,
    _folder: Folder,
}

impl Harbour {
    /// Starts the server, and has it serve Boats.
    async fn open() -> Harbour {
        let folder = Folder::for_test();
        let server = Server::start(&folder.0, &["--store", "memory"]);
        let client = connect(&server.kubeconfig).await;
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let apply = PatchParams::apply("harbour-master");
        let applied = definitions.patch(Boat::crd_name(), &apply, &Patch::Apply(Boat::crd())).await;
        applied.expect("the derived definition is valid");
        let established = await_condition(definitions, Boat::crd_name(), conditions::is_crd_established());
        in_time(established).await.expect("the watch goes on");
        let boats = Api::default_namespaced(client.clone());
        Harbour { client, boats, _server: server, _folder: folder }
    }

    async fn create(&self, boat: &Boat) -> Boat {
        self.boats.create(&PostParams::default(), boat).await.expect("the boat is valid")
    }
}

async fn connect(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the server wrote it");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("the kubeconfig is whole")).expect("the certificates are valid")
}

async fn in_time<T>(change: impl Future<Output = T>) -> T {
    tokio::time::timeout(CHANGE_MAX, change).await.expect("it happens in time")
}

/// The Status that the server refused a call with.
fn refused<T: std::fmt::Debug>(result: kube::Result<T>) -> Status {
    let error = result.expect_err("the server refuses it");
    let kube::Error::Api(status) = error else { unreachable!("no answer of the server: {error}") };
    *status
}

#[tokio::test]
async fn kube_rs_reads_and_writes_typed_objects() {
    let Harbour { boats, .. } = &Harbour::open().await;
    let post = PostParams::default();
    let mut heron = boats.create(&post, &boat("heron", 10)).await.expect("valid");
    heron.spec.crew = 3;
    let replaced = boats.replace("heron", &post, &heron).await.expect("the revision is the newest");
    assert_eq!((replaced.spec.crew, replaced.metadata.generation), (3, Some(2)));
    assert_eq!(refused(boats.replace("heron", &post, &heron).await).reason, "Conflict");
    let merge = Patch::Merge(json!({"spec": {"rig": "sloop"}}));
    assert_eq!(boats.patch("heron", &PatchParams::default(), &merge).await.expect("valid").spec.rig, "sloop");
    let status = Patch::Merge(json!({"status": {"phase": "Afloat"}}));
    boats.patch_status("heron", &PatchParams::default(), &status).await.expect("valid");
    assert_eq!(boats.get_scale("heron").await.expect("it has a scale").spec.and_then(|spec| spec.replicas), Some(3));

    let invalid = refused(boats.create(&post, &boat("whale", 61)).await);
    assert_eq!((invalid.code, invalid.reason.as_str()), (422, "Invalid"));
    assert_eq!(invalid.details.expect("it says where").causes[0].field, "spec.length");
    let sloops = boats.list_metadata(&ListParams::default().fields("spec.rig=sloop")).await.expect("it is selectable");
    assert_eq!(sloops.items.iter().map(|item| item.name_any()).collect::<Vec<_>>(), ["heron"]);
    boats.delete("heron", &DeleteParams::default()).await.expect("it is there");
    assert!(boats.get_opt("heron").await.expect("absence is not an error").is_none());
}

#[tokio::test]
async fn kube_rs_applies_with_field_managers() {
    let Harbour { boats, .. } = &Harbour::open().await;
    let apply = async |manager: &str, spec: serde_json::Value, force: bool| {
        let params = PatchParams { force, ..PatchParams::apply(manager) };
        let metadata = json!({"name": "tern"});
        let object = json!({"apiVersion": Boat::api_version(&()), "kind": "Boat", "metadata": metadata, "spec": spec});
        boats.patch("tern", &params, &Patch::Apply(&object)).await
    };
    apply("builder", json!({"length": 12}), false).await.expect("it is new");
    let both = apply("rigger", json!({"length": 12, "rig": "ketch"}), false).await.expect("they agree");
    let mut managers: Vec<_> = both.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
    managers.sort();
    assert_eq!(managers, ["builder", "rigger"]);
    let conflict = refused(apply("rigger", json!({"length": 14}), false).await);
    assert_eq!(conflict.message, "Apply failed with 1 conflict: conflict with \"builder\": .spec.length");
    assert_eq!(apply("rigger", json!({"length": 14}), true).await.expect("it is forced").spec.length, 14);
}

#[tokio::test]
async fn kube_rs_discovers_kinds_and_reads_them_without_types() {
    let Harbour { client, boats, .. } = &Harbour::open().await;
    boats.create(&PostParams::default(), &boat("swan", 8)).await.expect("valid");
    let gvk = GroupVersionKind::gvk("harbour.example.com", "v1", "Boat");
    let plain = Discovery::new(client.clone()).run().await.expect("every group is described");
    let aggregated = Discovery::new(client.clone()).run_aggregated().await.expect("in one document, too");
    for discovery in [plain, aggregated] {
        let (resource, capabilities) = discovery.resolve_gvk(&gvk).expect("Boats are served");
        assert_eq!((resource.plural.as_str(), capabilities.subresources.len()), ("boats", 2));
        assert!(capabilities.supports_operation(kube::discovery::verbs::WATCH));
        let any: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
        assert_eq!(any.get("swan").await.expect("it is there").data["spec"]["length"], 8);
    }
}

/// Waits for the next events of a watcher; tells their kinds and the names of their objects.
async fn next(events: &mut (impl Stream<Item = watcher::Result<Event<Boat>>> + Unpin), count: usize) -> Vec<String> {
    let mut told = Vec::new();
    while told.len() < count {
        let event = in_time(events.next()).await.expect("a watcher has no end").expect("the server answers");
        told.push(event.to_string());
    }
    told
}

#[tokio::test]
async fn kube_rs_watches_from_a_list_and_from_a_streamed_one() {
    let harbour = Harbour::open().await;
    harbour.create(&boat("heron", 10)).await;
    let listed = watcher::Config::default().page_size(1);
    for config in [listed, watcher::Config::default().streaming_lists()] {
        let mut events = Box::pin(watcher(harbour.boats.clone(), config));
        assert_eq!(next(&mut events, 3).await, ["Init", "InitApply(heron)", "InitDone"]);
        harbour.create(&boat("tern", 4)).await;
        harbour.boats.delete("tern", &DeleteParams::default()).await.expect("it is there");
        assert_eq!(next(&mut events, 2).await, ["Apply(tern)", "Delete(tern)"]);
    }
}

#[tokio::test]
async fn kube_rs_reflects_what_is_stored() {
    let harbour = Harbour::open().await;
    for name in ["heron", "swan"] {
        harbour.create(&boat(name, 10)).await;
    }
    let (store, writer) = reflector::store();
    let mut changes =
        Box::pin(watcher(harbour.boats.clone(), watcher::Config::default()).reflect(writer).applied_objects());
    for _ in 0..2 {
        in_time(changes.next()).await.expect("a watcher has no end").expect("the server answers");
    }
    harbour.boats.delete("swan", &DeleteParams::default()).await.expect("it is there");
    harbour.create(&boat("tern", 10)).await;
    // The store knows it before it is told here, and what happened before it.
    in_time(changes.next()).await.expect("a watcher has no end").expect("the server answers");
    let mut names: Vec<_> = store.state().iter().map(|boat| boat.name_any()).collect();
    names.sort();
    assert_eq!(names, ["heron", "tern"]);
}

/// Sees to it that each Boat has a log book, which it owns, and an Event and a status that say so.
async fn reconcile(boat: Arc<Boat>, client: Arc<Client>) -> Result<Action, finalizer::Error<kube::Error>> {
    let boats: Api<Boat> = Api::default_namespaced(Client::clone(&client));
    finalizer(&boats, "harbour.example.com/log-book", boat, async |event| match event {
        finalizer::Event::Apply(boat) => launch(&boat, &client).await,
        finalizer::Event::Cleanup(boat) => sign_off(&boat, &client).await,
    })
    .await
}

async fn launch(boat: &Boat, client: &Client) -> Result<Action, kube::Error> {
    let book = ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("{}-log", boat.name_any())),
            owner_references: Some(boat.controller_owner_ref(&()).into_iter().collect()),
            ..ObjectMeta::default()
        },
        data: Some([("crew".to_owned(), boat.spec.crew.to_string())].into()),
        ..ConfigMap::default()
    };
    let books: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let apply = PatchParams::apply("fleet").force();
    books.patch(&book.name_any(), &apply, &Patch::Apply(&book)).await?;
    if boat.status.is_none() {
        let launched = NewEvent {
            type_: EventType::Normal,
            reason: "Launched".to_owned(),
            note: Some(format!("{} is afloat", boat.name_any())),
            action: "Launch".to_owned(),
            secondary: None,
        };
        Recorder::new(client.clone(), "fleet".into()).publish(&launched, &boat.object_ref(&())).await?;
        let boats: Api<Boat> = Api::default_namespaced(client.clone());
        let status = Patch::Merge(json!({"status": {"phase": "Afloat"}}));
        boats.patch_status(&boat.name_any(), &PatchParams::default(), &status).await?;
    }
    Ok(Action::await_change())
}

async fn sign_off(boat: &Boat, client: &Client) -> Result<Action, kube::Error> {
    let books: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let signed = Patch::Merge(json!({"data": {"signed": "off"}}));
    books.patch(&format!("{}-log", boat.name_any()), &PatchParams::default(), &signed).await?;
    Ok(Action::await_change())
}

#[tokio::test]
async fn a_kube_rs_controller_owns_objects_and_finalizes_its_own() {
    let harbour = Harbour::open().await;
    let Harbour { client, boats, .. } = &harbour;
    let books: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let controller = Controller::new(boats.clone(), watcher::Config::default())
        .owns(books.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), Arc::new(client.clone()))
        .for_each(async |_| {});
    let running = tokio::spawn(controller);

    let heron = harbour.create(&boat("heron", 10)).await;
    let afloat = |boat: Option<&Boat>| boat.is_some_and(|boat| boat.status.is_some());
    in_time(await_condition(boats.clone(), "heron", afloat)).await.expect("the watch goes on");
    let book = books.get("heron-log").await.expect("it came before the status");
    assert_eq!(book.owner_references()[0].uid, heron.uid().expect("it is stored"));
    let events: Api<PostedEvent> = Api::default_namespaced(client.clone());
    let launched = events.list(&ListParams::default().fields("reason=Launched")).await.expect("Events have reasons");
    assert_eq!(launched.items[0].note.as_deref(), Some("heron is afloat"));

    // The log book is looked after, too.
    books.delete("heron-log", &DeleteParams::default()).await.expect("it is there");
    let back = |new: Option<&ConfigMap>| new.is_some_and(|new| new.uid() != book.uid());
    in_time(await_condition(books.clone(), "heron-log", back)).await.expect("the watch goes on");

    boats.delete("heron", &DeleteParams::default()).await.expect("it is there");
    let uid = heron.uid().expect("it is stored");
    in_time(await_condition(boats.clone(), "heron", conditions::is_deleted(&uid))).await.expect("the watch goes on");
    running.abort();
}

/// The harbour's own webhook: it counts the crew that nobody counted, and refuses what is longer than its quay.
fn judge(review: AdmissionReview<Boat>) -> AdmissionResponse {
    let request: AdmissionRequest<Boat> = match review.try_into() {
        Ok(request) => request,
        Err(_) => return AdmissionResponse::invalid("there is no request"),
    };
    let mut response = AdmissionResponse::from(&request);
    let Some(boat) = &request.object else { return response };
    if boat.spec.length > 30 {
        return response.deny(format!("{} is longer than the quay", boat.name_any()));
    }
    if boat.spec.crew == 1 {
        response.warnings = Some(vec!["who sails alone tells the harbour master".to_owned()]);
        let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"sails": "alone"}}]);
        let patch = serde_json::from_value(patch).expect("the test's patch is one");
        return response.with_patch(patch).expect("a patch can be written");
    }
    response
}

#[tokio::test]
async fn a_kube_rs_program_has_its_own_webhook() {
    let harbour = Harbour::open().await;
    let identity = Identity::new("127.0.0.1");
    let https = Https::listen((Ipv4Addr::LOCALHOST, 0).into(), &identity, |request| {
        let review = serde_json::from_str(request["review"].as_str()?).ok()?;
        let body = serde_json::to_string(&judge(review).into_review()).ok()?;
        Some(Reply { status: 200, content_type: "application/json".to_owned(), body })
    });
    let authority = identity.authority.as_str();
    let configuration: MutatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": {"name": "harbour"},
        "webhooks": [{
            "name": "judge.harbour.example.com",
            "clientConfig": {"url": format!("https://{}/judge", https.address), "caBundle": authority},
            "rules": [{
                "apiGroups": ["harbour.example.com"], "apiVersions": ["v1"], "resources": ["boats"],
                "operations": ["CREATE", "UPDATE"],
            }],
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "reinvocationPolicy": "IfNeeded",
        }],
    }))
    .expect("the test's configuration is one");
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(harbour.client.clone());
    configurations.create(&PostParams::default(), &configuration).await.expect("it is valid");

    let heron = harbour.create(&boat("heron", 10)).await;
    assert_eq!(heron.labels().get("sails").map(String::as_str), Some("alone"));
    let denied = refused(harbour.boats.create(&PostParams::default(), &boat("whale", 31)).await);
    let why = "admission webhook \"judge.harbour.example.com\" denied the request: whale is longer than the quay";
    assert_eq!(denied.message, why);
    configurations.delete("harbour", &DeleteParams::default()).await.expect("it is there");
    harbour.create(&boat("whale", 31)).await;
}

/// Takes the Lease if it is free or has run out; whether `candidate` leads now.
async fn lead(leases: &Api<Lease>, candidate: &str) -> kube::Result<bool> {
    let post = PostParams::default();
    let now = k8s_openapi::jiff::Timestamp::now();
    let held = LeaseSpec {
        holder_identity: Some(candidate.to_owned()),
        lease_duration_seconds: Some(1),
        renew_time: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(now)),
        ..LeaseSpec::default()
    };
    let taken = match leases.get_opt("fleet").await? {
        None => {
            let metadata = ObjectMeta { name: Some("fleet".to_owned()), ..ObjectMeta::default() };
            leases.create(&post, &Lease { metadata, spec: Some(held) }).await
        }
        Some(mut lease) => {
            let spec = lease.spec.take().unwrap_or_default();
            let renewed = spec.renew_time.map_or(0, |time| time.0.as_second());
            let free = renewed + i64::from(spec.lease_duration_seconds.unwrap_or_default()) < now.as_second();
            if !free && spec.holder_identity.as_deref() != Some(candidate) {
                return Ok(false);
            }
            lease.spec = Some(held);
            leases.replace("fleet", &post, &lease).await
        }
    };
    match taken {
        Ok(_) => Ok(true),
        // Another one was faster.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

#[tokio::test]
async fn one_of_many_kube_rs_programs_leads() {
    let harbour = Harbour::open().await;
    let leases: Api<Lease> = Api::default_namespaced(harbour.client.clone());
    let candidates = ["ada", "ben", "cleo", "dan"];
    let elect = || async {
        let won = futures_util::future::join_all(candidates.map(|candidate| lead(&leases, candidate))).await;
        won.into_iter()
            .zip(candidates)
            .filter_map(|(won, name)| won.expect("the server answers").then_some(name))
            .collect()
    };
    let leaders: Vec<&str> = elect().await;
    assert_eq!(leaders.len(), 1, "{leaders:?}");
    // The leader renews; nobody else gets in.
    assert_eq!(elect().await, leaders);
}
