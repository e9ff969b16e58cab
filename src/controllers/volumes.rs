//! Volumes: claims are bound to existing volumes, or to new ones without any storage behind them.
//!
//! DIFFERS: the provisioner of a StorageClass is not called: every claim of a class gets a volume, unless the class
//! names `kubernetes.io/no-provisioner`. If there is no class at all, a default one is created.
//!
//! Source: `pkg/controller/volume/persistentvolume`, `pvcprotection` and `pvprotection` of Kubernetes 1.37.

use std::collections::HashSet;
use std::sync::Arc;

use memchr::memmem;

use super::client::{Client, Kind, PODS, is_going, place, read, without_managers};
use super::finalizers;
use super::first_error::FirstError;
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::meta::quantity::Quantity;
use crate::meta::selector::LabelSelector;
use crate::object;
use crate::store::{ChangeEvent, Collection, Stored};
use crate::value::{Value, json};
use crate::work;

const CLAIMS: Kind = Kind("", "persistentvolumeclaims");
const VOLUMES: Kind = Kind("", "persistentvolumes");
const CLASSES: Kind = Kind("storage.k8s.io", "storageclasses");
/// The class that is created if there is none.
const CLASS: &str = "standard";
const PROVISIONER: &str = "skiff.invalid/simulated";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BOUND: &str = "pv.kubernetes.io/bind-completed";
const BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const ASKED_OF: &str = "volume.kubernetes.io/storage-provisioner";
const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";
/// The texts of which the bytes of a pod contain one if it uses claims.
const VOLUME_MARKS: [&[u8]; 2] = [b"\"claimName\":", b"\"ephemeral\":{"];
/// How many steps the comparison of a claim with a volume takes.
const STEPS_PER_VOLUME: usize = 4;
/// A key that is handled at the start, besides claims and volumes.
const FIRST: &str = "\u{0}class";

/// Binds claims.
struct Binder {
    client: Client,
}

impl Reconciler for Binder {
    const TASK: &str = "binding volumes";
    /// Two claims must not take the same volume.
    const AT_ONCE: usize = 1;

    fn collections(&self) -> Vec<Collection> {
        vec![VOLUMES.collection(), CLAIMS.collection()]
    }

    fn first_keys(&self) -> Vec<String> {
        vec![FIRST.to_owned()]
    }

    /// A key is that of a claim, or the name of a volume.
    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if CLAIMS.is(&change.collection) {
            let stored = change.stored.as_ref().and_then(|stored| json::decode(&stored.bytes).ok());
            let gone = || change.stored.is_none().then(|| FIRST.to_owned());
            let volume = stored.as_ref().map(|claim| claim.str_at(&["spec", "volumeName"]).to_owned());
            let volume = volume.filter(|volume| !volume.is_empty()).or_else(gone);
            return volume.into_iter().chain([change.key.to_string()]).collect();
        }
        match VOLUMES.is(&change.collection) {
            true => vec![change.key.to_string()],
            false if CLASSES.is(&change.collection) => vec![FIRST.to_owned()],
            false => Vec::new(),
        }
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        if key == FIRST {
            return self.look_around().await;
        }
        if key.contains('/') {
            return self.reconcile_claim(key, &mut KnownVolumes::default()).await;
        }
        self.reconcile_volume(key).await?;
        self.offer(key).await
    }
}

impl Binder {
    /// Creates a class if there is none, and checks every waiting claim and every bound volume.
    async fn look_around(&self) -> Result<Progress, Status> {
        if self.client.stored(CLASSES, "", |_| true).await?.is_empty() {
            self.client.create(CLASSES, &class()).await?;
        }
        let (mut failed, mut volumes) = (FirstError::default(), KnownVolumes::default());
        for claim in self.client.stored(CLAIMS, "", |_| true).await? {
            let claim = read(&claim)?;
            if claim.str_at(&["status", "phase"]) != "Bound" {
                failed.keep(self.reconcile_claim(&super::client::key_of(&claim), &mut volumes).await);
            }
        }
        for known in volumes.read(&self.client).await?.iter() {
            failed.keep(self.reconcile_volume(known.volume.str_at(&["metadata", "name"])).await);
        }
        failed.end()?;
        Ok(Progress::Done)
    }

    /// Offers a volume, if it is free, to the claims that wait and that it fits.
    async fn offer(&self, name: &str) -> Result<Progress, Status> {
        let Some(volume) = self.free_volume(name).await? else { return Ok(Progress::Done) };
        let offered = [KnownVolume::of(volume)];
        let (mut failed, mut volumes) = (FirstError::default(), KnownVolumes::default());
        for claim in self.client.stored(CLAIMS, "", |_| true).await? {
            let claim = read(&claim)?;
            if claim.str_at(&["status", "phase"]) == "Bound" || best(&claim, &offered).is_none() {
                continue;
            }
            failed.keep(self.reconcile_claim(&super::client::key_of(&claim), &mut volumes).await);
            if self.free_volume(name).await?.is_none() {
                break;
            }
        }
        failed.end()?;
        Ok(Progress::Done)
    }

    /// The volume `name`, if no claim has it.
    async fn free_volume(&self, name: &str) -> Result<Option<Value>, Status> {
        let volume = self.client.get(VOLUMES, name).await?;
        Ok(volume.filter(|volume| volume.str_at(&["spec", "claimRef", "uid"]).is_empty()))
    }

    async fn reconcile_claim(&self, key: &str, volumes: &mut KnownVolumes) -> Result<Progress, Status> {
        let Some(claim) = self.client.get(CLAIMS, key).await? else { return Ok(Progress::Done) };
        if claim.str_at(&["status", "phase"]) == "Bound" || is_going(&claim) {
            return Ok(Progress::Done);
        }
        let class = match claim.str_at(&["spec", "storageClassName"]) {
            "" => None,
            name => self.client.get(CLASSES, name).await?,
        };
        let waits = class.as_ref().is_some_and(|class| class.str_at(&["volumeBindingMode"]) == "WaitForFirstConsumer");
        let is_known = class.is_some();
        let has_node = claim.at(&["metadata", "annotations", SELECTED_NODE]).is_some();
        let named = claim.str_at(&["spec", "volumeName"]);
        if waits && !has_node && named.is_empty() {
            let message = "waiting for first consumer to be created before binding";
            self.client.tell_normal(&claim, "WaitForFirstConsumer", message.to_owned());
            return self.say_pending(&claim).await;
        }
        let volumes = volumes.read(&self.client).await?;
        if let Some(at) = best(&claim, volumes) {
            return self.bind(&claim, &mut volumes[at].volume).await;
        }
        match class.filter(|class| named.is_empty() && class.str_at(&["provisioner"]) != NO_PROVISIONER) {
            Some(class) => {
                let volume = new_volume(&claim, &class);
                let mut made = self.client.create(VOLUMES, &volume).await?;
                let message = format!("Successfully provisioned volume {}", made.str_at(&["metadata", "name"]));
                self.client.tell_normal(&claim, "ProvisioningSucceeded", message);
                self.bind(&claim, &mut made).await
            }
            None => {
                self.tell_unbound(&claim, is_known);
                self.say_pending(&claim).await
            }
        }
    }

    /// Reports why no volume is created for a claim that no existing one fits.
    fn tell_unbound(&self, claim: &Value, is_known: bool) {
        match (claim.str_at(&["spec", "storageClassName"]), is_known) {
            ("", _) => {
                let message = "no persistent volumes available for this claim and no storage class is set";
                self.client.tell_normal(claim, "FailedBinding", message.to_owned());
            }
            (_, true) => {
                let message = format!("no volume plugin matched name: {NO_PROVISIONER}");
                self.client.tell_warning(claim, "ProvisioningFailed", message);
            }
            (name, false) => {
                let message = format!("storageclass.storage.k8s.io {name:?} not found");
                self.client.tell_warning(claim, "ProvisioningFailed", message);
            }
        }
    }

    async fn say_pending(&self, claim: &Value) -> Result<Progress, Status> {
        let mut status = claim.get("status").cloned().unwrap_or_default();
        status.make_object().insert("phase", Value::from("Pending"));
        self.client.update_status(CLAIMS, claim, status).await.map(|()| Progress::Done)
    }

    /// Binds a claim and a volume: the volume first, so that no other claim can take it.
    async fn bind(&self, claim: &Value, volume: &mut Value) -> Result<Progress, Status> {
        let (namespace, name) = place(claim);
        let reference = object! {
            "apiVersion" => "v1",
            "kind" => "PersistentVolumeClaim",
            "namespace" => namespace,
            "name" => name,
            "uid" => claim.str_at(&["metadata", "uid"]),
            "resourceVersion" => claim.str_at(&["metadata", "resourceVersion"]),
        };
        if volume.str_at(&["spec", "claimRef", "uid"]) != claim.str_at(&["metadata", "uid"]) {
            let mut taken = volume.clone();
            let fields = taken.make_object();
            fields.entry("spec").make_object().insert("claimRef", reference);
            let annotations = fields.entry("metadata").make_object().entry("annotations").make_object();
            annotations.insert(BY_CONTROLLER, Value::from("yes"));
            *volume = self.client.update(VOLUMES, &taken).await?;
        }
        self.say_phase(volume, "Bound").await?;
        let mut bound = claim.clone();
        let fields = bound.make_object();
        fields.entry("spec").make_object().insert("volumeName", Value::from(volume.str_at(&["metadata", "name"])));
        let annotations = fields.entry("metadata").make_object().entry("annotations").make_object();
        for name in [BOUND, BY_CONTROLLER] {
            annotations.insert(name, Value::from("yes"));
        }
        let provisioner = volume.str_at(&["metadata", "annotations", PROVISIONED_BY]);
        if !provisioner.is_empty() {
            annotations.insert(ASKED_OF, Value::from(provisioner));
        }
        let bound = self.client.update(CLAIMS, &bound).await?;
        let mut status = bound.get("status").cloned().unwrap_or_default();
        let fields = status.make_object();
        fields.insert("phase", Value::from("Bound"));
        for field in ["accessModes", "capacity"] {
            fields.insert(field, volume.at(&["spec", field]).cloned().unwrap_or_default());
        }
        self.client.update_status(CLAIMS, &bound, status).await.map(|()| Progress::Done)
    }

    async fn say_phase(&self, volume: &Value, phase: &str) -> Result<(), Status> {
        let mut status = volume.get("status").filter(|it| !it.is_null()).cloned().unwrap_or_else(|| object! {});
        status.make_object().insert("phase", Value::from(phase));
        self.client.update_status(VOLUMES, volume, status).await
    }

    /// Frees or deletes a volume whose claim is gone.
    async fn reconcile_volume(&self, name: &str) -> Result<Progress, Status> {
        let Some(volume) = self.client.get(VOLUMES, name).await? else { return Ok(Progress::Done) };
        let reference = |field: &str| volume.str_at(&["spec", "claimRef", field]);
        if reference("uid").is_empty() {
            return self.say_phase(&volume, "Available").await.map(|()| Progress::Done);
        }
        let key = format!("{}/{}", reference("namespace"), reference("name"));
        let claim = self.client.get(CLAIMS, &key).await?;
        if claim.is_some_and(|claim| claim.str_at(&["metadata", "uid"]) == reference("uid")) {
            return self.say_phase(&volume, "Bound").await.map(|()| Progress::Done);
        }
        self.say_phase(&volume, "Released").await?;
        if volume.str_at(&["spec", "persistentVolumeReclaimPolicy"]) == "Delete" {
            self.client.delete(VOLUMES, &volume, None).await?;
        }
        Ok(Progress::Done)
    }
}

fn class() -> Value {
    object! {
        "apiVersion" => "storage.k8s.io/v1",
        "kind" => "StorageClass",
        "metadata" => object! {
            "name" => CLASS,
            "annotations" => object! { "storageclass.kubernetes.io/is-default-class" => "true" },
        },
        "provisioner" => PROVISIONER,
        "reclaimPolicy" => "Delete",
        "volumeBindingMode" => "WaitForFirstConsumer",
    }
}

fn new_volume(claim: &Value, class: &Value) -> Value {
    let uid = claim.str_at(&["metadata", "uid"]);
    let (namespace, name) = place(claim);
    let policy = class.str_at(&["reclaimPolicy"]);
    object! {
        "apiVersion" => "v1",
        "kind" => "PersistentVolume",
        "metadata" => object! {
            "name" => format!("pvc-{uid}"),
            "annotations" => object! { PROVISIONED_BY => class.str_at(&["provisioner"]) },
        },
        "spec" => object! {
            "accessModes" => claim.at(&["spec", "accessModes"]).cloned().unwrap_or_default(),
            "capacity" => object! {
                "storage" => claim.at(&["spec", "resources", "requests", "storage"]).cloned().unwrap_or_default(),
            },
            "claimRef" => object! {
                "apiVersion" => "v1",
                "kind" => "PersistentVolumeClaim",
                "namespace" => namespace,
                "name" => name,
                "uid" => uid,
            },
            "hostPath" => object! { "path" => format!("/simulated/pvc-{uid}"), "type" => "DirectoryOrCreate" },
            "persistentVolumeReclaimPolicy" => if policy.is_empty() { "Delete" } else { policy },
            "storageClassName" => class.str_at(&["metadata", "name"]),
            "volumeMode" => match claim.str_at(&["spec", "volumeMode"]) {
                "" => "Filesystem",
                mode => mode,
            },
        },
    }
}

/// The volumes, as they were read for one pass: once for all claims.
#[derive(Default)]
struct KnownVolumes(Option<Vec<KnownVolume>>);

struct KnownVolume {
    volume: Value,
    capacity_bytes: i64,
}

impl KnownVolumes {
    /// The volumes, which are read if they were not yet.
    async fn read(&mut self, client: &Client) -> Result<&mut Vec<KnownVolume>, Status> {
        let volumes = match self.0.take() {
            Some(known) => known,
            None => {
                let stored = client.stored(VOLUMES, "", |_| true).await?;
                let volumes = stored.iter().map(|volume| {
                    let mut volume = read(volume)?;
                    without_managers(&mut volume);
                    Ok(KnownVolume::of(volume))
                });
                volumes.collect::<Result<Vec<_>, Status>>()?
            }
        };
        Ok(self.0.insert(volumes))
    }
}

impl KnownVolume {
    fn of(volume: Value) -> Self {
        let capacity_bytes = size(&volume, &["spec", "capacity", "storage"]);
        KnownVolume { volume, capacity_bytes }
    }
}

fn size(object: &Value, path: &[&str]) -> i64 {
    Quantity::parse(object.str_at(path)).map_or(0, |size| size.value())
}

/// Where the smallest of the volumes is that fit a claim; a volume that is reserved for it wins over all others.
fn best(claim: &Value, volumes: &[KnownVolume]) -> Option<usize> {
    work::steps(STEPS_PER_VOLUME * volumes.len());
    let (namespace, name) = place(claim);
    let is_for_it = |volume: &Value| {
        let reference = |field: &str| volume.str_at(&["spec", "claimRef", field]);
        let uid = reference("uid");
        (reference("namespace"), reference("name")) == (namespace, name)
            && (uid.is_empty() || uid == claim.str_at(&["metadata", "uid"]))
    };
    let named = claim.str_at(&["spec", "volumeName"]);
    if !named.is_empty() {
        let at = volumes.iter().position(|known| known.volume.str_at(&["metadata", "name"]) == named)?;
        let volume = &volumes[at].volume;
        return (volume.at(&["spec", "claimRef"]).is_none() || is_for_it(volume)).then_some(at);
    }
    if let Some(at) = volumes.iter().position(|known| is_for_it(&known.volume)) {
        return Some(at);
    }
    let wanted_bytes = size(claim, &["spec", "resources", "requests", "storage"]);
    let modes = claim.items_at(&["spec", "accessModes"]);
    let selector = claim.at(&["spec", "selector"]).filter(|it| !it.is_null()).map(LabelSelector::decode);
    let fits = |known: &KnownVolume| {
        let volume = &known.volume;
        let is_equal = |field: &str| volume.str_at(&["spec", field]) == claim.str_at(&["spec", field]);
        known.capacity_bytes >= wanted_bytes
            && volume.at(&["spec", "claimRef"]).is_none()
            && !is_going(volume)
            && is_equal("storageClassName")
            && is_equal("volumeMode")
            && modes.iter().all(|mode| volume.items_at(&["spec", "accessModes"]).contains(mode))
            && selector
                .as_ref()
                .is_none_or(|it| it.as_ref().is_ok_and(|it| it.matches(&volume.at(&["metadata", "labels"]))))
    };
    let fitting = volumes.iter().enumerate().filter(|(_, known)| fits(known));
    fitting.min_by_key(|(_, known)| known.capacity_bytes).map(|(at, _)| at)
}

/// Removes the protection finalizers of claims that no pod uses any more, and of unbound volumes.
struct Protection {
    client: Client,
}

impl Reconciler for Protection {
    const TASK: &str = "letting go of volumes";

    fn collections(&self) -> Vec<Collection> {
        vec![CLAIMS.collection(), VOLUMES.collection(), PODS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if CLAIMS.is(&change.collection) || VOLUMES.is(&change.collection) {
            let is_going =
                change.stored.as_ref().is_some_and(|it| it.metadata_field("\"deletionTimestamp\"").is_some());
            return is_going.then(|| change.key.to_string()).into_iter().collect();
        }
        // A pod that is gone may have been the last to use a claim: the namespace is looked at.
        let is_pod = PODS.is(&change.collection) && change.stored.is_none();
        let namespace = change.key.split_once('/').filter(|_| is_pod).map(|(namespace, _)| format!("{namespace}/"));
        namespace.into_iter().collect()
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some((namespace, name)) = key.split_once('/') else { return self.reconcile_volume(key).await };
        let is_it =
            |it: &Stored| (name.is_empty() || *it.key == *key) && it.metadata_field("\"deletionTimestamp\"").is_some();
        let going = self.client.stored(CLAIMS, namespace, is_it).await?;
        if going.is_empty() {
            return Ok(Progress::Done);
        }
        let used = self.used_claims(namespace).await?;
        let mut failed = FirstError::default();
        for claim in going {
            let claim = read(&claim)?;
            if !used.contains(claim.str_at(&["metadata", "name"])) {
                failed.keep(finalizers::remove(&self.client, CLAIMS, &claim, CLAIM_FINALIZER).await);
            }
        }
        failed.end()?;
        Ok(Progress::Done)
    }
}

/// The names of the claims that a pod uses, also for ephemeral volumes.
fn claims_of(pod: &Value) -> impl Iterator<Item = String> {
    let pod_name = pod.str_at(&["metadata", "name"]);
    pod.items_at(&["spec", "volumes"]).iter().filter_map(move |volume| {
        let is_ephemeral = volume.at(&["ephemeral"]).is_some_and(|it| !it.is_null());
        match volume.str_at(&["persistentVolumeClaim", "claimName"]) {
            "" => is_ephemeral.then(|| format!("{pod_name}-{}", volume.str_at(&["name"]))),
            claim => Some(claim.to_owned()),
        }
    })
}

impl Protection {
    /// The names of the claims in a namespace that are used by pods which may run.
    async fn used_claims(&self, namespace: &str) -> Result<HashSet<String>, Status> {
        let has_volumes = |pod: &Stored| VOLUME_MARKS.iter().any(|mark| memmem::find(&pod.bytes, mark).is_some());
        let mut used = HashSet::new();
        for pod in self.client.stored(PODS, namespace, has_volumes).await? {
            let pod = read(&pod)?;
            if !pods::is_over(&pod) && !pod.str_at(&["spec", "nodeName"]).is_empty() {
                used.extend(claims_of(&pod));
            }
        }
        Ok(used)
    }

    async fn reconcile_volume(&self, name: &str) -> Result<Progress, Status> {
        let Some(volume) = self.client.get(VOLUMES, name).await? else { return Ok(Progress::Done) };
        if is_going(&volume) && volume.str_at(&["status", "phase"]) != "Bound" {
            finalizers::remove(&self.client, VOLUMES, &volume, VOLUME_FINALIZER).await?;
        }
        Ok(Progress::Done)
    }
}

/// Starts the controller that binds claims.
pub(super) fn start(context: &ControllerContext) -> Running {
    let binder = Binder { client: context.client("persistent-volume-binder").called("persistentvolume-controller") };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), binder))
}

/// Starts the controller that removes the protection of claims and volumes.
pub(super) fn start_protection(context: &ControllerContext) -> Running {
    let protection = Protection { client: context.client("pvc-protection-controller") };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), protection))
}

#[cfg(test)]
mod tests {
    use super::super::client::WHOLE;
    use super::*;
    use crate::controllers::fixture::{client, oversized, read, store};
    use crate::registry::{Registry, fixture};

    #[test]
    fn a_pod_uses_the_claims_that_it_names_and_those_of_its_ephemeral_volumes() {
        let pod = read(
            "metadata: {name: p}\nspec: {volumes: [{name: a, persistentVolumeClaim: {claimName: c}}, {name: b, ephemeral: {}}]}",
        );
        assert_eq!(claims_of(&pod).collect::<Vec<_>>(), ["c", "p-b"]);
    }

    #[test]
    fn a_claim_gets_the_smallest_volume_that_fits() {
        let volume = |name: &str, size: &str, rest: &str| {
            read(&format!(
                "metadata: {{name: {name}}}\nspec: {{capacity: {{storage: {size}}}, accessModes: [ReadWriteOnce], \
                 storageClassName: fast{rest}}}"
            ))
        };
        let volumes = [
            volume("small", "1Gi", ""),
            volume("large", "10Gi", ""),
            volume("middle", "5Gi", ""),
            volume("taken", "2Gi", ", claimRef: {namespace: d, name: other, uid: v}"),
            volume("kept", "1Gi", ", claimRef: {namespace: d, name: mine}"),
        ]
        .map(KnownVolume::of);
        let check = |claim: &str, rest: &str, expected: Option<&str>| {
            let claim = read(&format!(
                "metadata: {{name: {claim}, namespace: d, uid: u}}\nspec: {{accessModes: [ReadWriteOnce], \
                 storageClassName: fast, resources: {{requests: {{storage: 2Gi}}}}{rest}}}"
            ));
            let found = best(&claim, &volumes).map(|at| volumes[at].volume.str_at(&["metadata", "name"]));
            assert_eq!(found, expected);
        };
        check("c", "", Some("middle"));
        check("mine", "", Some("kept"));
        check("c", ", volumeName: large", Some("large"));
        check("c", ", volumeName: taken", None);
        check("c", ", selector: {matchLabels: {a: b}}", None);
    }

    /// Stores a claim of 1Gi for each of these names, and volumes of this size.
    async fn stored(claims: &[&str], volumes: usize, size: &str) -> Arc<Registry> {
        let registry = fixture::registry().await;
        let class = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: kubernetes.io/no-provisioner}";
        store(&registry, CLASSES, "fast", &read(class)).await;
        let spec = "accessModes: [ReadWriteOnce], storageClassName: fast, volumeMode: Filesystem";
        for name in claims {
            let claim = read(&format!(
                "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}, namespace: d, uid: {name}}}, \
                 spec: {{{spec}, resources: {{requests: {{storage: 1Gi}}}}}}, status: {{phase: Pending}}}}"
            ));
            let claim = if *name == "large" { oversized(claim) } else { claim };
            store(&registry, CLAIMS, &format!("d/{name}"), &claim).await;
        }
        for at in 0..volumes {
            let volume = read(&format!(
                "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: v{at}, uid: v{at}}}, spec: {{{spec}, capacity: {{storage: {size}}}, \
                 persistentVolumeReclaimPolicy: Retain, hostPath: {{path: /x, type: ''}}}}, status: {{phase: Available}}}}"
            ));
            store(&registry, VOLUMES, &format!("v{at}"), &volume).await;
        }
        registry
    }

    #[tokio::test]
    async fn a_claim_that_can_not_be_written_holds_up_no_other() {
        let registry = stored(&["large", "other"], 2, "1Gi").await;
        let binder = Binder { client: client(&registry) };
        assert!(binder.look_around().await.is_err());
        let phase = |claim: Option<Value>| claim.map(|claim| claim.str_at(&["status", "phase"]).to_owned());
        let other = binder.client.get(CLAIMS, "d/other").await.expect("it is read");
        let retried = binder.reconcile_claim("d/other", &mut KnownVolumes::default()).await;
        assert_eq!(phase(other).as_deref(), Some("Bound"), "{retried:?}");
    }

    #[tokio::test]
    async fn a_volume_is_offered_to_the_claims_that_it_fits() {
        let registry = stored(&["a", "b"], 1, "1Gi").await;
        let binder = Binder { client: client(&registry) };
        binder.reconcile("v0").await.expect("it is offered");
        let claims = binder.client.list(CLAIMS, "", |_| true, WHOLE).await.expect("they are read");
        let bound = claims.iter().filter(|claim| claim.str_at(&["status", "phase"]) == "Bound");
        assert_eq!(bound.count(), 1);
        assert!(binder.free_volume("v0").await.expect("it is read").is_none());
    }

    #[test]
    fn a_volume_that_fits_no_claim_is_compared_with_each_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _context = runtime.enter();
        let steps_with = |volumes: usize| {
            let binder = Binder { client: client(&runtime.block_on(stored(&["a", "b", "c"], volumes, "1Mi"))) };
            let (offered, steps) = work::counted(|| runtime.block_on(binder.reconcile("v0")));
            offered.expect("nothing stands in the way");
            steps
        };
        let (alone, beside) = (steps_with(1), steps_with(200));
        assert!(beside < 2 * alone, "{alone} and {beside} steps");
    }

    #[test]
    fn the_volumes_are_decoded_once_for_all_claims() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _context = runtime.enter();
        let steps_for = |claims: usize| {
            let names: Vec<String> = (0..claims).map(|at| format!("c{at}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let binder = Binder { client: client(&runtime.block_on(stored(&names, 500, "1Mi"))) };
            let (looked, steps) = work::counted(|| runtime.block_on(binder.look_around()));
            looked.expect("nothing stands in the way");
            let (read, steps_to_read) =
                work::counted(|| runtime.block_on(binder.client.list(VOLUMES, "", |_| true, WHOLE)));
            assert_eq!(read.map(|volumes| volumes.len()).ok(), Some(500));
            (steps, steps_to_read)
        };
        let ((few, steps_to_read), (many, _)) = (steps_for(10), steps_for(20));
        assert!((many - few) / 10 < steps_to_read / 2, "{few} to {many} steps, {steps_to_read} to read the volumes");
    }

    #[test]
    fn a_volume_is_made_as_the_claim_asks() {
        let claim = read("metadata: {name: c, namespace: d, uid: u}\nspec: {resources: {requests: {storage: 2Gi}}}");
        let volume = new_volume(&claim, &class());
        assert_eq!(volume.str_at(&["spec", "capacity", "storage"]), "2Gi");
        assert_eq!((volume.str_at(&["metadata", "name"]), volume.str_at(&["spec", "claimRef", "uid"])), ("pvc-u", "u"));
    }
}
