//! Objects that are sent and not stored: reviews, and those sent to a subresource of another object, such as a Binding
//! or an Eviction. The latter change the other object without a second admission.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::admission::Operation;
use crate::admission::plugins::Charges;
use crate::auth::UserInfo;
use crate::kinds::{self, Kind};
use crate::meta::Status;
use crate::value::Value;
use crate::write::metadata::ensure_namespace;

use super::admit::Admitted;
use super::write::RawField;
use super::{CreateRequest, Registry, Resource, Subresource, Target, Warnings, Written, built_in};

type SentResources = Vec<(&'static Kind, Arc<Resource>)>;

/// The resources of these kinds, each built on first use.
static MADE: LazyLock<Mutex<SentResources>> = LazyLock::new(Mutex::default);

/// The kind, as the verbs take it.
fn resource(kind: &'static Kind) -> Arc<Resource> {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, resource)) = made.iter().find(|(known, _)| std::ptr::eq(*known, kind)) {
        return Arc::clone(resource);
    }
    let resource = Arc::new(built_in::make(kind, &[kind]));
    made.push((kind, Arc::clone(&resource)));
    resource
}

/// The object of `target`, as a target of the kind that is sent to it: its own kind, or that of its subresource.
///
/// # Errors
///
/// 404 if it is not of a built-in kind.
pub fn as_sent(target: &Target) -> Result<Target, Status> {
    let resource = resource(kind_sent(target).ok_or_else(Status::not_found_generic)?);
    let version = Arc::clone(&resource.versions[0]);
    Ok(Target { resource, version, ..target.clone() })
}

fn kind_sent(target: &Target) -> Option<&'static Kind> {
    let own = kinds::find(&target.version.group, &target.version.names.plural)?;
    match target.subresource {
        Subresource::Part(name) => own.part(name)?.kind,
        _ => Some(own),
    }
}

impl Registry {
    /// Lets admission see what was sent to `target` for the object `name`; `check` is the kind's own validation in
    /// between, and returns what is to be done.
    pub(super) async fn admit_sent<T>(
        &self,
        (target, name): (&Target, &str),
        user: &UserInfo,
        request: &CreateRequest,
        mut object: Value,
        check: impl FnOnce(&Value) -> Result<T, Status>,
        warnings: &mut Warnings,
    ) -> Result<T, Status> {
        ensure_namespace(&mut object, &target.namespace)?;
        let admitted = Admitted {
            operation: Operation::Create,
            target,
            name,
            old: None,
            user,
            dry_run: request.dry_run,
            options: &request.options,
            charges: &Charges::default(),
        };
        self.admit_mutating(&admitted, &mut object, warnings).await?;
        let asked = check(&object)?;
        self.admit_validating(&admitted, &object, warnings).await?;
        Ok(asked)
    }

    /// Changes the object of `target` without a new admission or validation. `change` is called again if the object has
    /// changed meanwhile.
    pub(super) async fn change_unasked(
        &self,
        target: &Target,
        dry_run: bool,
        change: impl Fn(&Value) -> Result<Value, Status>,
    ) -> Result<Written, Status> {
        loop {
            let stored = self.stored(target).await?.ok_or_else(|| target.not_found())?;
            let object = self.derive_live(&target.resource, &target.version, &stored).await?;
            let changed = change(&object)?;
            let conditions = (self.guards(target).await?, Vec::new());
            let kept = RawField::of_stored(target.resource.strategy, &stored);
            if let Some(written) = self.commit_change(target, (changed, &kept), stored, conditions, dry_run).await? {
                return Ok(written);
            }
        }
    }

    /// The pod `name`, for a request on a subresource of it or on another resource in its namespace.
    pub(super) async fn pod(&self, target: &Target, name: &str) -> Result<Target, Status> {
        let resource = self.resolve("", "pods").await?.ok_or_else(Status::not_found_generic)?;
        let version = resource.served("v1").cloned().ok_or_else(Status::not_found_generic)?;
        let namespace = target.namespace.clone();
        Ok(Target { resource, version, subresource: Subresource::Main, namespace, name: name.to_owned() })
    }
}
