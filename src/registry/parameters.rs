//! Whether the writer of a policy, or of a binding, may read the parameters that it names: a policy shows them to
//! others.
//!
//! Source: `authz.go` of the four resources in `pkg/registry/admissionregistration`, release 1.36.

use std::fmt::Display;

use super::{Registry, Subresource, Target, store_failed};
use crate::auth::{Attributes, ResourceAttributes, UserInfo};
use crate::meta::Status;
use crate::meta::api_version::split_api_version;
use crate::meta::field::{Error, ErrorList, Path};
use crate::policy::{GROUP, Mutating, Policy as _, Validating};
use crate::store::Collection;
use crate::value::{Value, json};

/// What must be readable, as far as it is known: `*` stands for all of them.
struct Wanted {
    group: String,
    version: String,
    resource: String,
    /// Why some of it is not known.
    unknown: Option<String>,
}

impl Registry {
    /// Checks the rights of a user who writes a valid policy or binding.
    ///
    /// # Errors
    ///
    /// 422 with the right that is missing.
    pub(super) async fn check_parameters(
        &self,
        target: &Target,
        user: &UserInfo,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let version = &target.version;
        if version.group != GROUP || target.subresource != Subresource::Main || user.is_in(UserInfo::MASTERS) {
            return Ok(());
        }
        let (field, why) = match version.names.plural.as_str() {
            Validating::POLICIES | Mutating::POLICIES => ("paramKind", self.lacks_kind(user, new, old).await?),
            Validating::BINDINGS => ("paramRef", self.lacks_parameters(user, (Validating::POLICIES, new)).await?),
            Mutating::BINDINGS => ("paramRef", self.lacks_parameters(user, (Mutating::POLICIES, new)).await?),
            _ => return Ok(()),
        };
        let Some(why) = why else { return Ok(()) };
        let errors = ErrorList::from(Error::forbidden(&Path::new("spec").child(field), why));
        let (kind, name) = (new.str_at(&["kind"]), new.str_at(&["metadata", "name"]));
        Err(Status::invalid(target.resource.kind_group(version), kind, name, &errors))
    }

    /// Why the user may not name the kind of parameters of a policy; `None` if it may.
    async fn lacks_kind(&self, user: &UserInfo, new: &Value, old: Option<&Value>) -> Result<Option<String>, Status> {
        const PATH: &[&str] = &["spec", "paramKind"];
        let Some(kind) = named(new, PATH) else { return Ok(None) };
        if old.and_then(|old| named(old, PATH)) == Some(kind) {
            return Ok(None);
        }
        let wanted = self.parameters_of(kind).await?;
        if self.may_read(user, &wanted, ("get", "*", "*")).await {
            return Ok(None);
        }
        let (kind, api_version) = (kind.str_at(&["kind"]), kind.str_at(&["apiVersion"]));
        Ok(Some(format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, apiVersion={api_version})",
            shown(user)
        )))
    }

    /// Why the user may not name the parameters of a binding to one of `policies`; `None` if it may. The reference asks
    /// at each update, as it compares references and not what they refer to.
    async fn lacks_parameters(
        &self,
        user: &UserInfo,
        (policies, new): (&str, &Value),
    ) -> Result<Option<String>, Status> {
        const PATH: &[&str] = &["spec", "paramRef"];
        let Some(parameters) = named(new, PATH) else { return Ok(None) };
        let policy = new.str_at(&["spec", "policyName"]);
        let wanted = self.parameters_of_policy(policies, policy).await?;
        let (namespace, name) = (parameters.str_at(&["namespace"]), parameters.str_at(&["name"]));
        let verb = if name.is_empty() { "list" } else { "get" };
        if self.may_read(user, &wanted, (verb, namespace, name)).await {
            return Ok(None);
        }
        let user = shown(user);
        Ok(Some(match wanted.unknown {
            Some(unknown) => format!(
                "unable to {unknown} to determine minimum required permissions and user {user} does not have \"{verb}\" permission \
                 for all groups, versions and resources"
            ),
            // The reference exchanges the two.
            None if policies == Mutating::POLICIES => {
                format!("user {verb} does not have \"{user}\" permission on the object referenced by paramRef")
            }
            None => format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef"),
        }))
    }

    /// The parameters of the policy `name`.
    async fn parameters_of_policy(&self, policies: &str, name: &str) -> Result<Wanted, Status> {
        let collection = Collection::new(GROUP, policies);
        let stored = self.storage.get(&collection, name).await;
        let stored = stored.map_err(|error| store_failed(&collection, "get", error))?;
        let Some(stored) = stored else { return Ok(Wanted::all(format!("get policy {name}"))) };
        let policy = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        match named(&policy, &["spec", "paramKind"]) {
            Some(kind) => self.parameters_of(kind).await,
            None => Ok(Wanted { unknown: None, ..Wanted::all("") }),
        }
    }

    /// The parameters of a kind.
    async fn parameters_of(&self, kind: &Value) -> Result<Wanted, Status> {
        let (name, api_version) = (kind.str_at(&["kind"]), kind.str_at(&["apiVersion"]));
        let of_kind = |what: &str| format!("{what} paramKind &{{{api_version} {name}}}");
        let Ok((group, version)) = split_api_version(api_version) else { return Ok(Wanted::all(of_kind("parse"))) };
        let resource = self.resolve_kind(group, version, name).await?;
        let plural = resource.as_ref().and_then(|resource| resource.served(version)).map(|it| it.names.plural.clone());
        Ok(Wanted {
            group: group.to_owned(),
            version: version.to_owned(),
            unknown: plural.is_none().then(|| of_kind("resolve")),
            resource: plural.unwrap_or_else(|| "*".to_owned()),
        })
    }

    async fn may_read(&self, user: &UserInfo, wanted: &Wanted, (verb, namespace, name): (&str, &str, &str)) -> bool {
        let attributes = ResourceAttributes {
            verb,
            group: &wanted.group,
            version: &wanted.version,
            resource: &wanted.resource,
            namespace,
            name,
            ..ResourceAttributes::default()
        };
        self.authorizer.authorize(user, &Attributes::Resource(attributes)).await.is_allowed()
    }
}

impl Wanted {
    fn all(unknown: impl Into<String>) -> Self {
        let all = || "*".to_owned();
        Wanted { group: all(), version: all(), resource: all(), unknown: Some(unknown.into()) }
    }
}

/// What stands at `path`, if that is an object.
fn named<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
    object.at(path).filter(|value| matches!(value, Value::Object(_)))
}

/// A user as Go prints it.
fn shown(user: &UserInfo) -> impl Display {
    let extra: Vec<String> = user.extra.iter().map(|(name, values)| format!("{name}:[{}]", values.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}
