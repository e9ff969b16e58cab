//! The loop that every write of an object runs in.
//!
//! A write starts from the newest stored state, is admitted, prepared and validated (which is [`crate::write`]'s part,
//! without I/O) and committed under the guard that this state still holds. If it does not, everything runs again.

mod commit;
mod conditions;
mod desired;
mod kept;

use std::borrow::Cow;
use std::sync::Arc;

use uuid::Uuid;

use crate::admission::Operation;
use crate::admission::plugins::Charges;
use crate::apply::{FieldManager, keep_times};
use crate::auth::UserInfo;
use crate::kinds::prepare;
use crate::kinds::strategy::Strategy;
use crate::memory::{Growth, Portion};
use crate::meta::Status;
use crate::meta::api_version::split_api_version;
use crate::meta::field::ErrorList;
use crate::store::{self, Guard, Stored};
use crate::types::decoder::Empty;
use crate::value::Value;
use crate::write::metadata::{
    dedup_owner_references, ensure_namespace, generate_name, metadata_mut, name_suffix, wipe_system_fields,
};
use crate::write::{self, RawFieldTexts, Writer};

use super::admit::Admitted;
use super::convert::Conversions;
use super::derive::remove_resource_version;
use super::in_force::bytes_in_force;
use super::{Registry, Subresource, Target, Warnings, Written, policy, scaled, store_failed};

pub(super) use commit::write_failed;
pub(super) use conditions::{store_prefix, uid_precondition};
pub(super) use desired::{Desired, Sent};
pub(super) use kept::{RawField, encode_over};

/// A write as it was requested.
pub(super) struct RequestedWrite<'a> {
    pub user: &'a UserInfo,
    pub dry_run: bool,
    /// The fields of the request's options, for admission.
    pub options: &'a Value,
    pub presence: Presence,
    /// The desired state of the object.
    pub desired: Desired<'a>,
}

/// What must exist before a write.
pub(super) enum Presence {
    /// Nothing. If a generated name is taken, another one is generated, up to this number of names.
    Absent { names_max: usize },
    /// The object, with this uid if there is one.
    Present { uid: Option<String> },
    /// The object, with this uid if there is one; or nothing, and then it is created.
    Any { uid: Option<String> },
}

/// The object that a write finds.
struct Live {
    stored: Arc<Stored>,
    /// In the version of the request, with its resourceVersion.
    object: Value,
}

impl Registry {
    /// Runs a write until it is committed, refused, or turns out to change nothing.
    pub(super) async fn write(
        &self,
        target: &Target,
        write: &RequestedWrite<'_>,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let mut target = target.clone();
        let now = self.now();
        let charges = Charges::default();
        let mut names_left = match write.presence {
            Presence::Absent { names_max } => names_max,
            Presence::Present { .. } | Presence::Any { .. } => 1,
        };
        loop {
            let mut noted = warnings.for_next_try();
            let attempt = self.attempt((&target, &charges), write, &now, &mut noted).await;
            if matches!(&attempt, Err(status) if status.is_already_exists()) {
                names_left = names_left.saturating_sub(1);
            }
            let starts_over = match (&attempt, &write.presence) {
                (Ok(written), _) => written.is_none(),
                (Err(status), Presence::Absent { .. }) => status.is_already_exists() && names_left > 0,
                // Another request was first: the change is applied to its object.
                (Err(status), Presence::Any { .. }) => status.is_already_exists() && !write.dry_run,
                (Err(_), Presence::Present { .. }) => false,
            };
            if let Some(outcome) = attempt.transpose().filter(|_| !starts_over) {
                warnings.absorb(noted.into_notes());
                return outcome;
            }
            target = self.refresh(&target).await?.into_owned();
        }
    }

    /// One attempt on the stored object, if any; `None` if that, or something else that the write depends on, has
    /// changed meanwhile.
    async fn attempt(
        &self,
        (target, charges): (&Target, &Charges),
        write: &RequestedWrite<'_>,
        now: &str,
        warnings: &mut Warnings,
    ) -> Result<Option<Written>, Status> {
        let RequestedWrite { user, dry_run, options, .. } = *write;
        let live = self.live(target, &write.presence, dry_run).await?;
        let old = live.as_ref().map(|live| &live.object);
        let mut new = self.desired(target, write, old, now, warnings).await?;
        let guards = self.guards(target).await?;
        let known = live.as_ref().map(|live| (&live.object, &*live.stored));
        let origin = write.desired.origin(target.subresource);
        let kept = RawField::of(target.resource.strategy, origin, &new, known);
        let seen_old = old.map(|old| seen_by_admission(target, old)).transpose()?;
        let sent_name = new.str_at(&["metadata", "name"]).to_owned();
        let admitted = Admitted {
            operation: if live.is_some() { Operation::Update } else { Operation::Create },
            target,
            name: if target.name.is_empty() { &sent_name } else { &target.name },
            old: seen_old.as_deref(),
            user,
            dry_run,
            options,
            charges,
        };
        let sent = unlabelled(target, write, live.is_none(), &new);
        self.admit_change(&admitted, &mut new, warnings).await?;
        let shares_labels = sent.is_some_and(|sent| sent == new);
        let _counted = self.admit_counted((target, user), &mut new, old, warnings)?;
        self.check_escalation(target, user, &new, old).await?;
        if let Some(live) = &live {
            conditions::check_resource_version(target, &mut new, live.stored.revision)?;
        }
        ensure_namespace(&mut new, &target.namespace)?;
        let now = self.now();
        if live.is_none() {
            fill_new(&mut new, &now, target.resource.strategy);
        }
        let claims = self.allocate(target, &mut new, old, dry_run).await?;
        let outcome = {
            let writer = Writer { user: &|| user.encode(), now: &now, shares_labels };
            prepared(target, new, old, (&writer, kept.texts()), warnings)
        };
        let unmet = self.unmet_demands(target, (user, write.desired.verb()), &outcome.object, old).await?;
        let mut new = valid(target, outcome, unmet, warnings)?;
        self.check_parameters(target, user, &new, old).await?;
        let name = new.str_at(&["metadata", "name"]).to_owned();
        if let Some(old) = old {
            count_emptied(target, &mut new, old, warnings);
            keep_times(&mut new, old);
        } else if matches!(write.presence, Presence::Any { .. }) {
            self.check_create(target, user, &name).await?;
        }
        let admitted = Admitted { name: if admitted.name.is_empty() { &name } else { admitted.name }, ..admitted };
        self.admit_validating(&admitted, &*seen_by_admission(target, &new)?, warnings).await?;

        self.commit(target, (new, &kept), live, (guards, claims), (&name, dry_run)).await
    }

    /// Stores the object, or removes it if the write ends it.
    async fn commit(
        &self,
        target: &Target,
        (new, kept): (Value, &RawField),
        live: Option<Live>,
        (guards, claims): (Vec<Guard>, Vec<store::Write>),
        (name, dry_run): (&str, bool),
    ) -> Result<Option<Written>, Status> {
        let Some(Live { stored, object: old }) = live else {
            conditions::check_unversioned(&new, dry_run)?;
            return self.commit_new(target, (new, kept), (name, dry_run), guards, claims).await;
        };
        if is_deleted_by(&new, &old) && !target.resource.strategy.must_stay(&new) {
            let gone = self.delete_now(target, &stored, guards, dry_run).await?;
            return Ok(gone.map(|_| Written { created: false, object: new, encoded: None }));
        }
        self.commit_change(target, (new, kept), stored, (guards, claims), dry_run).await
    }

    /// The object that the write finds, if it may find one.
    ///
    /// Errors: 404 if there is none and the write does not create it; 409 if it does not have the given uid, or does
    /// not exist although a uid is given.
    async fn live(&self, target: &Target, presence: &Presence, dry_run: bool) -> Result<Option<Live>, Status> {
        let uid = match presence {
            // Whether the name is free is checked once the name is known.
            Presence::Absent { .. } => return Ok(None),
            Presence::Present { uid } | Presence::Any { uid } => uid.as_deref(),
        };
        let Some(stored) = self.stored(target).await? else {
            if !matches!(presence, Presence::Any { .. }) {
                return Err(target.not_found());
            }
            conditions::check_uid(target, uid, &Value::Null, dry_run)?;
            return Ok(None);
        };
        let object = self.derive_live(&target.resource, &target.version, &stored).await?;
        conditions::check_uid(target, uid, &object, dry_run)?;
        Ok(Some(Live { stored, object }))
    }

    /// The desired object, before admission.
    async fn desired(
        &self,
        target: &Target,
        write: &RequestedWrite<'_>,
        live: Option<&Value>,
        now: &str,
        warnings: &mut Warnings,
    ) -> Result<Value, Status> {
        let make = |fields: &FieldManager<'_>| write.desired.make(target, fields, live, now, warnings);
        let mut object = self.manage_fields(target, make).await?;
        if live.is_none() && matches!(write.presence, Presence::Any { .. }) {
            conditions::parse_resource_version(object.str_at(&["metadata", "resourceVersion"]))?;
            wipe_system_fields(&mut object);
            // The reference's store drops it; a dry run does not reach the store.
            if !write.dry_run {
                remove_resource_version(&mut object);
            }
        }
        Ok(object)
    }

    /// Computes the owners of the fields of `target`; again if a webhook had to convert something first.
    pub(super) async fn manage_fields<T>(
        &self,
        target: &Target,
        mut compute: impl FnMut(&FieldManager<'_>) -> T + Send,
    ) -> T
    where
        T: Send,
    {
        let resource = &target.resource;
        let mut conversions = Conversions::new(resource);
        loop {
            let computed = compute(&resource.field_manager(&target.version, target.subresource, &conversions));
            let Some((object, to)) = conversions.take_wanted() else { return computed };
            let outcome = self.convert.convert(resource, object.clone(), &to).await;
            conversions.add(object, to, outcome);
        }
    }

    /// Drops repeated references to owners. Refuses more of them than before, a role or binding that takes more memory
    /// than before, or a longer object that all requests depend on, if those that are known have taken the memory for
    /// them. What the server and its controllers write is bounded. Returns the memory of an admission
    /// policy, until it is stored and counted with the others.
    fn admit_counted(
        &self,
        (target, user): (&Target, &UserInfo),
        new: &mut Value,
        old: Option<&Value>,
        warnings: &mut Warnings,
    ) -> Result<Option<Portion>, Status> {
        warnings.extend(dedup_owner_references(new, " after mutating admission happens"));
        let references = |object: &Value| object.items_at(&["metadata", "ownerReferences"]).len();
        self.memory.check_references(old.map(references).unwrap_or_default(), references(new))?;
        if user.is_of_the_server() {
            return Ok(None);
        }
        let collection = &target.resource.collection;
        let growth = self.storage.check_growth((collection, target.version.is_namespaced()), || {
            new.size_bytes().saturating_sub(old.map(Value::size_bytes).unwrap_or_default())
        });
        growth.map_err(|error| store_failed(collection, "create", error))?;
        if self.policy.is_some() {
            let version = &target.version;
            let grant_bytes = |object: &Value| policy::grant_bytes(&version.group, &version.names.plural, object);
            let bytes_before = old.map(grant_bytes).unwrap_or_default();
            self.memory.check_grant(&Growth { bytes_before, bytes: grant_bytes(new) })?;
        }
        let version = &target.version;
        let kind = (&*version.group, &*version.names.plural);
        let bound = (version.minor, self.memory.policies_bytes_max());
        let policy_bytes = |object: &Value| bytes_in_force(kind, object, bound);
        let growth = Growth { bytes_before: old.map(policy_bytes).unwrap_or_default(), bytes: policy_bytes(new) };
        Ok(self.memory.for_policy(&growth)?)
    }

    /// Lets admission change the new object; of a Scale, the replicas in the object that it represents.
    async fn admit_change(&self, write: &Admitted<'_>, new: &mut Value, warnings: &mut Warnings) -> Result<(), Status> {
        if write.operation == Operation::Create {
            conditions::check_creatable(write.target, write.name)?;
        }
        if write.target.subresource != Subresource::Scale {
            return self.admit_mutating(write, new, warnings).await;
        }
        let mut scale = seen_by_admission(write.target, new)?.into_owned();
        self.admit_mutating(write, &mut scale, warnings).await?;
        scaled::write_back(write.target, &scale, new)
    }
}

/// Counts an empty list or map in the request as a change, if Go does.
fn count_emptied(target: &Target, new: &mut Value, old: &Value, warnings: &Warnings) {
    if target.resource.strategy.counts_empty() && warnings.has_empty_in(new) {
        prepare::raise_generation(new, old);
    }
}

/// A new object that gets the labels of its template. An object that admission changes is decoded again, and shares
/// nothing.
fn unlabelled(target: &Target, write: &RequestedWrite<'_>, is_new: bool, object: &Value) -> Option<Value> {
    let shares = is_new && target.resource.strategy.shares_labels(object) && write.desired.leaves_labels_out(target);
    shares.then(|| object.clone())
}

/// The object, prepared, with its errors.
fn prepared(
    target: &Target,
    mut new: Value,
    old: Option<&Value>,
    (by, texts): (&Writer<'_>, RawFieldTexts<'_>),
    warnings: &Warnings,
) -> write::Outcome {
    // The sent object has them; Go decodes the result of admission or apply again.
    target.resource.strategy.set_times(&mut new, by.now);
    let (version, subresource) = (&*target.version, target.subresource);
    let write = write::Write { strategy: target.resource.strategy, version, subresource, by: Some(*by), texts };
    let run = |new| match old {
        None => write.create(new, &mut |_| {}),
        Some(old) => write.update(new, old, &mut |_| {}),
    };
    let mut outcome = run(new);
    let is_told = |empty: &Empty| tells_empty(write.strategy, empty);
    outcome.errors = warnings.with_empty(&outcome.object, outcome.errors, is_told, |sent| run(sent).errors);
    outcome
}

/// The object, which is valid; `errors` are those that follow from other objects and from the user. Errors: 422.
fn valid(
    target: &Target,
    outcome: write::Outcome,
    mut errors: ErrorList,
    warnings: &mut Warnings,
) -> Result<Value, Status> {
    errors.extend(outcome.errors);
    warnings.extend(outcome.early_warnings);
    warnings.extend(outcome.ratcheted.iter().map(ToString::to_string));
    if !errors.is_empty() {
        let (kind, name) = (outcome.object.str_at(&["kind"]), outcome.object.str_at(&["metadata", "name"]));
        return Err(match kind_group(target, &outcome.object) {
            Ok(group) => Status::invalid(group, kind, name, &errors),
            Err(why) => Status::internal_error(why),
        });
    }
    warnings.extend(outcome.warnings);
    Ok(outcome.object)
}

/// The group of the kind of an invalid object. Go reads that of a custom object from its apiVersion, whatever a patch
/// made of it, and fails where there is none.
fn kind_group<'a>(target: &'a Target, object: &'a Value) -> Result<&'a str, &'static str> {
    if target.resource.definition.is_none() {
        return Ok(target.resource.kind_group(&target.version));
    }
    match split_api_version(object.str_at(&["apiVersion"])) {
        Ok((_, "")) => Err("Object 'apiVersion' is missing in 'object has no apiVersion field'"),
        Ok((group, _)) => Ok(group),
        Err(_) => Err("Object 'Kind' is missing in 'object has no kind field '"),
    }
}

/// Lists in pods and pod templates for which Go distinguishes empty from absent.
const OF_PODS: [&[&str]; 11] = [
    &["spec", "resources", "claims"],
    &["spec", "securityContext", "supplementalGroups"],
    &["ephemeral", "volumeClaimTemplate", "metadata", "ownerReferences"],
    &["ephemeral", "volumeClaimTemplate", "metadata", "finalizers"],
    &["ephemeral", "volumeClaimTemplate", "metadata", "managedFields"],
    &["ephemeralContainers", "*", "ports"],
    &["ephemeralContainers", "*", "resizePolicy"],
    &["ephemeralContainers", "*", "restartPolicyRules"],
    &["ephemeralContainers", "*", "resources", "claims"],
    &["ephemeralContainers", "*", "resources", "limits"],
    &["ephemeralContainers", "*", "resources", "requests"],
];

/// Whether validation distinguishes this empty list or map from an absent one.
fn tells_empty(strategy: &dyn Strategy, empty: &Empty) -> bool {
    strategy.tells_empty().iter().any(|path| empty.is_at(path)) || OF_PODS.iter().any(|path| empty.ends_with(path))
}

/// What admission sees of an object: itself, or its Scale.
fn seen_by_admission<'o>(target: &Target, object: &'o Value) -> Result<Cow<'o, Value>, Status> {
    match target.subresource {
        Subresource::Scale => scaled::shown(target, object).map(Cow::Owned),
        _ => Ok(Cow::Borrowed(object)),
    }
}

/// Sets the system fields of a new object, and a name, too, if its kind names objects that have none.
fn fill_new(object: &mut Value, now: &str, strategy: &dyn Strategy) {
    fill_system_fields(object, now, strategy);
    if strategy.names_nameless() {
        name_nameless(object);
    }
}

/// Sets the time and the uid, and generates a name if one is requested.
pub(super) fn fill_system_fields(object: &mut Value, now: &str, strategy: &dyn Strategy) {
    let metadata = metadata_mut(object);
    metadata.insert("creationTimestamp", Value::from(now));
    metadata.insert("uid", Value::String(Uuid::new_v4().to_string()));
    let suffix = || if strategy.generates_names() { name_suffix(Uuid::new_v4().as_u128()) } else { String::new() };
    generate_name(object, suffix);
}

/// Names an object by its own uid, if it has no name and requests none.
fn name_nameless(object: &mut Value) {
    if object.str_at(&["metadata", "name"]).is_empty() {
        metadata_mut(object).insert("name", Value::String(Uuid::new_v4().to_string()));
    }
}

/// Whether this write removes the last finalizer of an object that is being deleted.
fn is_deleted_by(new: &Value, old: &Value) -> bool {
    let finalizers = new.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    let grace = old.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or_default();
    finalizers.is_empty() && old.at(&["metadata", "deletionTimestamp"]).is_some() && grace == 0
}
