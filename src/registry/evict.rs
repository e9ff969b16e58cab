//! `/eviction` of a pod: it is deleted, if its PodDisruptionBudgets allow that.
//!
//! Source: `EvictionREST` of `pkg/registry/core/pod/storage`, release 1.36.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::auth::UserInfo;
use crate::kinds::pod_object::eviction;
use crate::meta::Status;
use crate::meta::field::{Error, Path};
use crate::object;
use crate::store::{At, Collection, KeyRange, PartReader, PartRequest, PartSize, SnapshotError, Stored};
use crate::value::{Value, json};
use crate::write::metadata::wipe_system_fields;

use super::decode::{Body, FieldValidation, Format, decode_object};
use super::delete::{Named, check_preconditions, policy_errors};
use super::sent::as_sent;
use super::update::UpdateRequest;
use super::{CreateRequest, DeleteRequest, Registry, Subresource, Target, Warnings, store_failed};

const GROUP: &str = "policy";
const BUDGETS: &str = "poddisruptionbudgets";
/// How often a step is tried if other writes interfere.
const TRIES: usize = 20;
/// The pause between tries.
const PAUSE: Duration = Duration::from_millis(500);
/// The field manager of a budget's status.
const MANAGER: &str = "kube-apiserver";

impl Registry {
    /// Deletes the pod of `target`, unless a budget forbids it.
    ///
    /// Errors: 400 for another name, 404 for a missing pod, 409 if a precondition does not hold, 429 by a budget.
    pub async fn create_eviction(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &CreateRequest,
        warnings: &mut Warnings,
    ) -> Result<(), Status> {
        let sent = with_newest_version(&request.body);
        let kind = as_sent(target)?;
        let mut object = decode_object(&sent, &kind, request.field_validation, warnings)?;
        wipe_system_fields(&mut object);
        let dry_run = request.options.items_at(&["dryRun"]);
        let check = |object: &Value| {
            eviction::check(object, &target.name)?;
            Ok(options_of(&eviction::delete_options(object, dry_run)?))
        };
        let options = self.admit_sent((target, &target.name), user, request, object, check, warnings).await?;
        let target = self.pod(target, &target.name).await?;
        let Some(pod) = self.delete_beyond_budgets(&target, &options).await? else { return Ok(()) };
        self.delete_within_budgets(&target, &pod, &options).await
    }

    /// Deletes a pod that budgets do not apply to; otherwise returns the pod unchanged.
    async fn delete_beyond_budgets(&self, target: &Target, options: &DeleteRequest) -> Result<Option<Value>, Status> {
        let mut tries_left = if options.resource_version.is_none() { TRIES } else { 1 };
        loop {
            let stored = self.stored(target).await?.ok_or_else(|| target.not_found())?;
            let pod = self.derive_live(&target.resource, &target.version, &stored).await?;
            if !eviction::ignores_budgets(&pod) {
                return Ok(Some(pod));
            }
            let mut options = options.clone();
            if eviction::enforces_version(&pod) && options.resource_version.is_none() {
                options.resource_version = Some(stored.revision.to_string());
            }
            tries_left -= 1;
            match self.mark_and_delete(target, &options).await {
                Err(status) if status.code == 409 && tries_left > 0 => sleep(PAUSE).await,
                outcome => return outcome.map(|()| None),
            }
        }
    }

    /// Checks the budgets, and deletes the pod. The last conflict over a budget is the answer.
    async fn delete_within_budgets(&self, target: &Target, pod: &Value, options: &DeleteRequest) -> Result<(), Status> {
        let mut tries_left = TRIES;
        let (budget, verdict) = loop {
            let budgets = self.budgets_of(target, pod).await?;
            let budgets: Vec<&Value> = budgets.iter().collect();
            let name = budgets.first().map(|budget| budget.str_at(&["metadata", "name"])).unwrap_or_default();
            let verdict = eviction::ask(pod, &budgets, &self.now())?;
            tries_left -= 1;
            let (eviction::Verdict::Spent(status), [budget]) = (&verdict, budgets.as_slice()) else {
                break (name.to_owned(), verdict);
            };
            match self.write_budget(target, budget, status, options.dry_run).await {
                Err(status) if status.code == 409 && tries_left > 0 => sleep(PAUSE).await,
                outcome => {
                    outcome?;
                    break (name.to_owned(), verdict);
                }
            }
        };
        let stays_as_it_is = verdict == eviction::Verdict::Unhealthy && options.resource_version.is_none();
        let mut options = options.clone();
        if stays_as_it_is {
            options.resource_version = Some(pod.str_at(&["metadata", "resourceVersion"]).to_owned());
        }
        match self.mark_and_delete(target, &options).await {
            Err(status) if status.code == 409 && stays_as_it_is => Err(eviction::being_processed(&budget)),
            outcome => outcome,
        }
    }

    /// The budgets that cover a pod.
    async fn budgets_of(&self, target: &Target, pod: &Value) -> Result<Vec<Value>, Status> {
        let collection = Collection::new(GROUP, BUDGETS);
        let (range, size) = (KeyRange::of(&format!("{}/", target.namespace)), PartSize::All);
        let request = PartRequest { at: At::Newest, range, size, reader: PartReader::Check };
        let part = self.storage.part(&collection, request).await;
        let part = part.map_err(|error| match error {
            SnapshotError::Expired { .. } => Status::internal_error("the newest state has expired"),
            SnapshotError::Store(error) => store_failed(&collection, "list", error),
        })?;
        let mut budgets = Vec::new();
        for stored in part.objects() {
            let mut budget = read(stored)?;
            if eviction::covers(&budget, pod) {
                super::derive::set_resource_version(&mut budget, stored.revision);
                budgets.push(budget);
            }
        }
        Ok(budgets)
    }

    /// Writes the status of a budget, unless it has changed meanwhile.
    async fn write_budget(&self, pod: &Target, budget: &Value, status: &Value, dry_run: bool) -> Result<(), Status> {
        let resource = self.resolve(GROUP, BUDGETS).await?.ok_or_else(Status::not_found_generic)?;
        if dry_run {
            return Ok(());
        }
        let target = Target {
            version: Arc::clone(resource.storage()),
            resource,
            subresource: Subresource::Status,
            namespace: pod.namespace.clone(),
            name: budget.str_at(&["metadata", "name"]).to_owned(),
        };
        let mut changed = budget.clone();
        changed.make_object().insert("status", status.clone());
        let request = UpdateRequest {
            body: Body { bytes: json::encode(&changed).into(), format: Format::Json },
            field_validation: FieldValidation::Ignore,
            manager: MANAGER.to_owned(),
            dry_run: false,
            options: object! {},
        };
        self.update(&target, &super::identity::own_user(), &request, &mut Warnings::default()).await.map(drop)
    }

    /// Notes in the pod that it is evicted, and deletes it.
    async fn mark_and_delete(&self, target: &Target, options: &DeleteRequest) -> Result<(), Status> {
        let mut options = options.clone();
        if !options.dry_run {
            let mark = |pod: &Value| {
                check_preconditions((target, Named::Object), &options, pod)?;
                Ok(eviction::mark(pod, &self.now()))
            };
            let written = self.change_unasked(target, false, mark).await?;
            if let Some(version) = &mut options.resource_version {
                *version = written.object.str_at(&["metadata", "resourceVersion"]).to_owned();
            }
        }
        // Only the deletion itself checks them: if they are invalid, the pod is already marked.
        check_options(&options)?;
        self.delete_unasked(target, &options).await
    }
}

fn read(stored: &Stored) -> Result<Value, Status> {
    json::decode(&stored.bytes).map_err(|error| Status::internal_error(&format!("{}: {error}", stored.key)))
}

/// The body; the one old version of an eviction, which has the same fields, is renamed to the new one.
fn with_newest_version(body: &Body) -> Body {
    let old = "policy/v1beta1";
    match json::decode(&body.bytes) {
        Ok(mut object) if body.format == Format::Json && object.str_at(&["apiVersion"]) == old => {
            object.make_object().insert("apiVersion", Value::from("policy/v1"));
            Body { bytes: json::encode(&object).into(), format: Format::Json }
        }
        _ => body.clone(),
    }
}

/// The delete options in an eviction.
fn options_of(options: &Value) -> DeleteRequest {
    let text = |path: &[&str]| Some(options.str_at(path).to_owned()).filter(|text| !text.is_empty());
    DeleteRequest {
        uid: text(&["preconditions", "uid"]),
        resource_version: text(&["preconditions", "resourceVersion"]),
        propagation_policy: text(&["propagationPolicy"]),
        orphan_dependents: options.get("orphanDependents").and_then(Value::as_bool),
        grace_period_s: options.get("gracePeriodSeconds").and_then(Value::as_i64),
        dry_run: !options.items_at(&["dryRun"]).is_empty(),
        ignore_store_read_error: false,
        options: options.clone(),
    }
}

/// Whether delete options are valid, and can be combined.
fn check_options(options: &DeleteRequest) -> Result<(), Status> {
    let mut errors = policy_errors(options.propagation_policy.as_deref(), options.orphan_dependents);
    let dry_run = options.options.items_at(&["dryRun"]);
    if dry_run.iter().any(|stage| stage.as_str() != Some("All")) {
        errors.push(Error::not_supported(&Path::new("dryRun"), dry_run.to_vec(), &["All"]));
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &errors)) }
}
