//! DELETE of one object.
//!
//! An object with finalizers is marked and stays until they are gone; an object without is removed at once.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::admission::Operation;
use crate::admission::plugins::Charges;
use crate::auth::UserInfo;
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::{Details, Revision, Status, object_meta, time};
use crate::store::{self, Guard, Stored, WriteError};
use crate::value::Value;
use crate::write::metadata::metadata_mut;

use super::admit::Admitted;
use super::derive::{Undecodable, readable, remove_resource_version, set_resource_version};
use super::write::{encode_over, write_failed};
use super::{Registry, Target, Warnings};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The options of a deletion that this server acts on.
#[derive(Clone, Debug, Default)]
pub struct DeleteRequest {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    /// `Background`, `Foreground` or `Orphan`.
    pub propagation_policy: Option<String>,
    /// The deprecated form of the policy.
    pub orphan_dependents: Option<bool>,
    /// The grace period in seconds, for kinds that have one.
    pub grace_period_s: Option<i64>,
    pub dry_run: bool,
    /// Deletes an object that can't be read, and only such a one.
    pub ignore_store_read_error: bool,
    /// The fields of the options that were sent, for admission.
    pub options: Value,
}

impl DeleteRequest {
    /// The requested seconds; a negative number counts as one.
    fn asked_seconds(&self) -> Option<i64> {
        self.grace_period_s.map(|seconds| if seconds < 0 { 1 } else { seconds })
    }
}

/// The errors of a deletion's policy and of its deprecated form.
pub fn policy_errors(policy: Option<&str>, orphan_dependents: Option<bool>) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(policy) = policy else { return errors };
    let path = Path::new("propagationPolicy");
    if orphan_dependents.is_some() {
        errors.push(Error::invalid(&path, policy, "orphanDependents and deletionPropagation cannot be both set"));
    }
    if !matches!(policy, "Foreground" | "Background" | "Orphan") {
        errors.push(Error::not_supported(&path, policy, &["Foreground", "Background", "Orphan", "nil"]));
    }
    errors
}

/// What a request for a deletion names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// The object itself.
    Object,
    /// The collection that the object is in: what its kind does in place of the first deletion of an object is left out,
    /// and admission sees no name.
    ///
    /// Source: `DeleteCollection` of the generic store calls the store's `Delete`, not the one of the resource.
    Collection,
}

/// What admission is told of a deletion, beside the object.
struct Asked<'a> {
    user: &'a UserInfo,
    dry_run: bool,
    options: &'a Value,
    warnings: &'a mut Warnings,
}

/// The outcome of a deletion.
pub enum Deletion {
    /// The object is gone.
    Gone(Status),
    /// The object is gone, and is part of the answer.
    Removed(Value),
    /// The object stays because of its finalizers or its grace period.
    Stays(Value),
}

impl Registry {
    /// Deletes the object of `target`.
    ///
    /// Errors: 403 by admission, 404, 409 if a precondition does not hold.
    pub async fn delete(
        &self,
        target: &Target,
        user: &UserInfo,
        options: &DeleteRequest,
        warnings: &mut Warnings,
    ) -> Result<Deletion, Status> {
        warn_of_orphans(target, options, warnings);
        if let Some(why) = target.resource.strategy.kept_for(&target.name) {
            let version = &target.version;
            return Err(Status::forbidden(&version.group, &version.names.plural, &target.name, why));
        }
        let deletion = self.delete_one(target, Named::Object, user, options, warnings).await?;
        self.follow_up(target, &target.name).await;
        Ok(deletion)
    }

    /// [`Registry::delete`] for an object that a request names, or whose collection it names.
    pub(super) async fn delete_one(
        &self,
        target: &Target,
        named: Named,
        user: &UserInfo,
        options: &DeleteRequest,
        warnings: &mut Warnings,
    ) -> Result<Deletion, Status> {
        let mut target = target.clone();
        loop {
            let stored = self.stored(&target).await?.ok_or_else(|| target.not_found())?;
            let deletion = if options.ignore_store_read_error {
                self.delete_unreadable(&target, options, stored).await?
            } else {
                self.delete_once((&target, named), user, options, stored, warnings).await?
            };
            if let Some(deletion) = deletion {
                return Ok(deletion);
            }
            target = self.refresh(&target).await?.into_owned();
        }
    }

    /// One attempt; `None` where the object has changed meanwhile.
    async fn delete_once(
        &self,
        (target, named): (&Target, Named),
        user: &UserInfo,
        options: &DeleteRequest,
        stored: Arc<Stored>,
        warnings: &mut Warnings,
    ) -> Result<Option<Deletion>, Status> {
        let old = self.derive_for_deletion(&target.resource, &target.version, &stored).await;
        let old = old.map_err(|error| error.refuse_read(&target.resource.collection, &stored))?;
        check_preconditions((target, named), options, &old)?;
        if is_pending(target, options, &old) || is_kept(target, &old) {
            return Ok(Some(Deletion::Stays(old)));
        }
        let seen = seen_options((target, named), options, &old);
        let mut asked = Asked { user, dry_run: options.dry_run, options: &seen, warnings };
        self.admit_deletion((target, named), &mut asked, &old).await?;
        self.remove((target, named), options, old, stored, Some(&mut asked)).await
    }

    /// Asks admission about the deletion of `old`.
    async fn admit_deletion(
        &self,
        (target, named): (&Target, Named),
        asked: &mut Asked<'_>,
        old: &Value,
    ) -> Result<(), Status> {
        let write = Admitted {
            operation: Operation::Delete,
            target,
            name: if named == Named::Object { &target.name } else { "" },
            old: Some(old),
            user: asked.user,
            dry_run: asked.dry_run,
            options: asked.options,
            charges: &Charges::default(),
        };
        self.admit_mutating(&write, &mut Value::Null, asked.warnings).await?;
        self.admit_validating(&write, &Value::Null, asked.warnings).await
    }

    /// [`Registry::delete`] without admission.
    pub(super) async fn delete_unasked(&self, target: &Target, options: &DeleteRequest) -> Result<(), Status> {
        let mut target = target.clone();
        loop {
            let stored = self.stored(&target).await?.ok_or_else(|| target.not_found())?;
            let old = self.derive_live(&target.resource, &target.version, &stored).await?;
            check_preconditions((&target, Named::Object), options, &old)?;
            if self.remove((&target, Named::Object), options, old, stored, None).await?.is_some() {
                return Ok(());
            }
            target = self.refresh(&target).await?.into_owned();
        }
    }

    /// Marks the object or removes it; `None` if it has changed meanwhile. An object that is to be updated before it is
    /// removed is `asked` about once more, as it is then; in a dry run it is not.
    ///
    /// Source: `Delete` of `k8s.io/apiserver/pkg/registry/generic/registry/store.go`, release 1.37.
    async fn remove(
        &self,
        (target, named): (&Target, Named),
        options: &DeleteRequest,
        old: Value,
        stored: Arc<Stored>,
        asked: Option<&mut Asked<'_>>,
    ) -> Result<Option<Deletion>, Status> {
        let strategy = &target.resource.strategy;
        let now = self.now();
        if named == Named::Object
            && let Some(mut marked) = strategy.begin_delete(&old, &now)
        {
            // The first deletion of a definition only marks it.
            if target.resource.collection != self.definitions.collection() {
                set_first_finalizers(&mut marked, options);
            }
            return self.commit_marked(target, marked, &stored, options.dry_run).await;
        }
        let asked = asked.filter(|_| !options.dry_run);
        // Where its finalizers go as the options say, it is not stored without them.
        let may_lose_them = || finalizers(&old).iter().any(|name| [ORPHAN, FOREGROUND].contains(&name.as_str()));
        let unmarked = (asked.is_some() && may_lose_them()).then(|| old.clone());
        let mut marked = old;
        let graceful = match self.grace(target, options, &mut marked) {
            Grace::Pending => return Ok(Some(Deletion::Stays(marked))),
            Grace::None => None,
            Grace::Seconds(seconds) => Some(seconds),
        };
        if strategy.collects_garbage() {
            set_policy_finalizers(&mut marked, options, strategy.orphans_dependents());
        }
        let may_go = finalizers(&marked).is_empty() && !strategy.must_stay(&marked);
        if may_go && graceful.is_none_or(|seconds| seconds == 0) {
            let gone = match graceful {
                Some(_) if !options.dry_run => {
                    self.delete_marked((target, named), marked.clone(), &stored, asked).await?
                }
                _ => {
                    if let (Some(asked), Some(unmarked)) = (asked, &unmarked) {
                        self.admit_deletion((target, named), asked, unmarked).await?;
                    }
                    self.delete_now(target, &stored, Vec::new(), options.dry_run).await?
                }
            };
            return Ok(gone.map(|revision| {
                if strategy.returns_deleted() {
                    set_resource_version(&mut marked, revision);
                    Deletion::Removed(marked)
                } else {
                    Deletion::Gone(gone_status(target, &marked))
                }
            }));
        }
        if graceful.is_none() {
            object_meta::mark_deleted(&mut marked, &now);
        }
        self.commit_marked(target, marked, &stored, options.dry_run).await
    }

    /// Stores the object with its deletion time, and then deletes it: watches see both changes, and controllers act on
    /// the first. `None` if it had already changed. If admission is `asked` and refuses, the object stays as it was stored.
    ///
    /// Source: `Delete` of `k8s.io/apiserver/pkg/registry/generic/registry/store.go`, for objects whose grace period is
    /// zero.
    async fn delete_marked(
        &self,
        (target, named): (&Target, Named),
        marked: Value,
        stored: &Arc<Stored>,
        mut asked: Option<&mut Asked<'_>>,
    ) -> Result<Option<Revision>, Status> {
        if self.commit_marked(target, marked, stored, false).await?.is_none() {
            return Ok(None);
        }
        // From here on it is deleted, whatever else is written to it, unless it is already gone.
        let mut newest = stored.revision;
        while let Some(marked) = self.stored(target).await?.filter(|marked| marked.uid == stored.uid) {
            newest = marked.revision;
            if let Some(asked) = &mut asked {
                let old = self.derive_for_deletion(&target.resource, &target.version, &marked).await;
                let old = old.map_err(|error| error.refuse_read(&target.resource.collection, &marked))?;
                self.admit_deletion((target, named), asked, &old).await?;
            }
            if let Some(revision) = self.delete_now(target, &marked, Vec::new(), false).await? {
                return Ok(Some(revision));
            }
        }
        Ok(Some(newest))
    }

    /// Sets the grace period of an object whose kind has one; once set, it can only be shortened.
    ///
    /// Source: `BeforeDelete` of `k8s.io/apiserver/pkg/registry/rest`.
    fn grace(&self, target: &Target, options: &DeleteRequest, object: &mut Value) -> Grace {
        if is_pending(target, options, object) {
            return Grace::Pending;
        }
        let asked = options.asked_seconds();
        let Some(seconds) = target.resource.strategy.grace_period(object, asked) else { return Grace::None };
        let now = self.clock.now();
        let after = |start: Timestamp, seconds: i64| {
            let time = start.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(start);
            Value::from(time::format_seconds(time))
        };
        let metadata = metadata_mut(object);
        let text = |name: &str| metadata.get(name).and_then(Value::as_str);
        let Some(ends) = text("deletionTimestamp").map(|ends| ends.parse().unwrap_or(now)) else {
            if let Some(Value::Int(generation @ 1..)) = metadata.get_mut("generation") {
                *generation = generation.saturating_add(1);
            }
            metadata.insert("deletionTimestamp", after(now, seconds));
            metadata.insert("deletionGracePeriodSeconds", Value::Int(seconds));
            return Grace::Seconds(seconds);
        };
        let given = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
        match asked {
            None => Grace::None,
            Some(_) if given == 0 => Grace::None,
            Some(asked) => {
                let shortened = ends.checked_sub(SignedDuration::from_secs(given)).unwrap_or(now);
                let ends = shortened.checked_add(SignedDuration::from_secs(asked)).unwrap_or(now);
                // A grace period that has run out becomes as short as possible, but not zero.
                let (ends, seconds) = if ends < now { (now, asked.min(1)) } else { (ends, asked) };
                metadata.insert("deletionTimestamp", after(ends, 0));
                metadata.insert("deletionGracePeriodSeconds", Value::Int(seconds));
                Grace::Seconds(seconds)
            }
        }
    }

    /// Removes an object that can't be converted to the wanted version; `None` if it has changed meanwhile.
    ///
    /// Neither finalizers nor admission count, as the object can't be decoded for them. An object that can be read is a
    /// conflict.
    /// Source: `k8s.io/apiserver/pkg/registry/generic/registry/corrupt_obj_deleter.go`, release 1.37.
    async fn delete_unreadable(
        &self,
        target: &Target,
        options: &DeleteRequest,
        stored: Arc<Stored>,
    ) -> Result<Option<Deletion>, Status> {
        if self.derive(&target.resource, &target.version, &stored).await.is_ok() {
            return Err(target.conflict(&readable(&target.resource.collection, &stored)));
        }
        let gone = self.delete_now(target, &stored, Vec::new(), options.dry_run).await?;
        let details =
            Details { name: target.name.clone(), kind: target.version.names.kind.clone(), ..Details::default() };
        Ok(gone.map(|_| Deletion::Gone(Status::success(details))))
    }

    /// Stores the object that was marked for deletion.
    async fn commit_marked(
        &self,
        target: &Target,
        marked: Value,
        stored: &Arc<Stored>,
        dry_run: bool,
    ) -> Result<Option<Deletion>, Status> {
        let resource = &target.resource;
        let mut raw = marked.clone();
        remove_resource_version(&mut raw);
        let raw = self.convert_to(resource, resource.storage(), raw).await;
        let raw = raw.map_err(|error| Undecodable::from(error).refuse_write())?;
        let encoded = encode_over(resource.strategy, &raw, stored);
        if dry_run || *encoded.bytes() == stored.bytes {
            return Ok(Some(Deletion::Stays(marked)));
        }
        let write = store::Write {
            collection: resource.collection.clone(),
            key: stored.key.clone(),
            op: self.put_marked(resource, &raw, &encoded),
            guards: vec![Guard::At { revision: stored.revision }],
        };
        match self.storage.write(write).await {
            Ok(committed) => {
                let object = self.derive_value(resource, &target.version, raw).await;
                let mut object = object.map_err(Undecodable::refuse_write)?;
                set_resource_version(&mut object, committed.revision);
                Ok(Some(Deletion::Stays(object)))
            }
            Err(WriteError::GuardFailed) => Ok(None),
            Err(error) => Err(write_failed(&resource.collection, "delete", error)),
        }
    }
}

/// The grace period of an object.
enum Grace {
    /// Its kind has none, or it is over.
    None,
    /// It is running already, and nothing changes.
    Pending,
    Seconds(i64),
}

/// Whether the grace period of an object is still running, and is not shortened. Admission is not asked again about its
/// deletion.
fn is_pending(target: &Target, options: &DeleteRequest, object: &Value) -> bool {
    let metadata = |name: &str| object.at(&["metadata", name]);
    let given = metadata("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
    let asked = options.asked_seconds();
    metadata("deletionTimestamp").is_some()
        && given != 0
        && asked.is_none_or(|asked| asked >= given)
        && target.resource.strategy.grace_period(object, asked).is_some()
}

/// Whether an object stays as it is, as it is being deleted and must be kept for another reason than its finalizers.
/// Admission is not asked again about its deletion.
///
/// Source: `Delete` of `pkg/registry/core/namespace/storage`.
fn is_kept(target: &Target, object: &Value) -> bool {
    target.resource.strategy.must_stay(object) && object.at(&["metadata", "deletionTimestamp"]).is_some()
}

/// The options as admission sees them: with the object's grace period, if its kind has one, and with its uid, if the
/// kind checks preconditions itself.
///
/// Source: `BeforeDelete` of `k8s.io/apiserver/pkg/registry/rest`, the strategy of pods, and `Delete` of namespaces and
/// definitions, which add them first.
fn seen_options<'o>((target, named): (&Target, Named), options: &'o DeleteRequest, object: &Value) -> Cow<'o, Value> {
    let asked = options.asked_seconds();
    let is_marked = object.at(&["metadata", "deletionTimestamp"]).is_some();
    let own = target.resource.strategy.grace_period(object, asked).filter(|_| !is_marked);
    let seconds = own.or(asked).filter(|seconds| options.grace_period_s != Some(*seconds));
    let lacks_uid =
        named == Named::Object && target.resource.strategy.precondition_failed().is_some() && options.uid.is_none();
    if seconds.is_none() && !lacks_uid {
        return Cow::Borrowed(&options.options);
    }
    let mut seen = options.options.clone();
    if let Some(seconds) = seconds {
        seen.make_object().insert("gracePeriodSeconds", Value::Int(seconds));
    }
    if lacks_uid {
        let uid = object.at(&["metadata", "uid"]).cloned().unwrap_or_default();
        seen.make_object().entry("preconditions").make_object().insert("uid", uid);
    }
    Cow::Owned(seen)
}

/// Some kinds orphan their dependents by default; this warns those who may not expect it.
pub fn warn_of_orphans(target: &Target, options: &DeleteRequest, warnings: &mut Warnings) {
    let says_nothing = options.propagation_policy.is_none() && options.orphan_dependents.is_none();
    if let Some(warning) = target.resource.strategy.deletion_warning().filter(|_| says_nothing) {
        warnings.add(warning);
    }
}

/// The answer for an object that is gone.
fn gone_status(target: &Target, object: &Value) -> Status {
    let version = &target.version;
    Status::success(Details {
        name: target.name.clone(),
        group: version.group.clone(),
        kind: version.names.plural.clone(),
        uid: object.str_at(&["metadata", "uid"]).to_owned(),
        ..Details::default()
    })
}

pub(super) fn check_preconditions(
    (target, named): (&Target, Named),
    options: &DeleteRequest,
    object: &Value,
) -> Result<(), Status> {
    let conditions = [("UID", &options.uid, "uid"), ("ResourceVersion", &options.resource_version, "resourceVersion")];
    for (what, wanted, name) in conditions {
        let found = object.str_at(&["metadata", name]);
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) {
            return Err(precondition_failed((target, named), what, wanted, found));
        }
    }
    Ok(())
}

fn precondition_failed((target, named): (&Target, Named), what: &str, wanted: &str, found: &str) -> Status {
    if let Some(failed) = target.resource.strategy.precondition_failed().filter(|_| named == Named::Object) {
        return target.conflict(&format!("{failed}: {what} in precondition: {wanted}, {what} in object meta: {found}"));
    }
    let hint = match what {
        "UID" => "The object might have been deleted and then recreated",
        _ => "The object might have been modified",
    };
    let why =
        format!("the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). {hint}");
    let version = &target.version;
    // The reference names the kind here, where every other conflict names the resource.
    Status::conflict(target.resource.kind_group(version), &version.names.kind, &target.name, &why)
}

/// Sets the finalizers that the garbage collector acts on from the policy; without a policy they stay as they are.
///
/// `orphans_by_default` applies if the object itself decides nothing, either.
fn set_policy_finalizers(object: &mut Value, options: &DeleteRequest, orphans_by_default: bool) {
    let present = finalizers(object);
    let (orphans, foreground) = match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (Some(orphans), _) => (orphans, false),
        (None, Some("Orphan")) => (true, false),
        (None, Some("Foreground")) => (false, true),
        (None, Some(_)) => (false, false),
        (None, None) => match present.iter().find(|name| [ORPHAN, FOREGROUND].contains(&name.as_str())) {
            Some(first) => (first == ORPHAN, first == FOREGROUND),
            None => (orphans_by_default, false),
        },
    };
    put_policy_finalizers(object, orphans, foreground);
}

/// Does the same for the first deletion of a namespace: `orphanDependents: false` asks for a deletion in the foreground,
/// and without a policy both finalizers may stay.
///
/// Source: `Delete` of `pkg/registry/core/namespace/storage`.
fn set_first_finalizers(object: &mut Value, options: &DeleteRequest) {
    match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (Some(orphans), _) => put_policy_finalizers(object, orphans, !orphans),
        (None, Some(policy)) => put_policy_finalizers(object, policy == "Orphan", policy == "Foreground"),
        (None, None) => {}
    }
}

/// Adds and removes the finalizers of policies; they are the last ones.
fn put_policy_finalizers(object: &mut Value, orphans: bool, foreground: bool) {
    let present = finalizers(object);
    let has = |name: &str| present.iter().any(|finalizer| finalizer == name);
    if orphans == has(ORPHAN) && foreground == has(FOREGROUND) {
        return;
    }
    let mut wanted: Vec<String> =
        present.into_iter().filter(|name| ![ORPHAN, FOREGROUND].contains(&name.as_str())).collect();
    wanted.extend(orphans.then(|| ORPHAN.to_owned()));
    wanted.extend(foreground.then(|| FOREGROUND.to_owned()));
    let metadata = metadata_mut(object);
    if wanted.is_empty() {
        _ = metadata.remove("finalizers");
    } else {
        let wanted = wanted.into_iter().map(Value::String).collect();
        metadata.insert("finalizers", Value::Array(wanted));
    }
}

fn finalizers(object: &Value) -> Vec<String> {
    let list = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
