//! What policies look up for a request: whether they are about it, parameters, namespaces, other versions.

use std::sync::Arc;

use super::{Asked, Policies, Seen, Target};
use crate::crd::ServedVersion;
use crate::kinds;
use crate::object;
use crate::policy::environment::show_namespace;
use crate::policy::matching::{self, Asked as Subject};
use crate::policy::{Criteria, Head, Operation, ParamRef};
use crate::value::Value;

/// Where an object is that names no namespace.
pub const DEFAULT_NAMESPACE: &str = "default";

impl Policies {
    /// The version in which something with these criteria sees the request; `None` where it is not about it.
    pub(super) fn version(
        &self,
        criteria: &Criteria,
        asked: &Asked<'_>,
        object: &Value,
    ) -> Result<Option<Arc<ServedVersion>>, String> {
        let subject = Subject {
            operation: asked.operation,
            version: &asked.target.version,
            versions: asked.target.versions(),
            subresource: &asked.target.subresource,
            namespace: asked.namespace_or_own(),
            name: asked.name,
        };
        let Some(version) = criteria.version(&subject) else { return Ok(None) };
        let old = Some(asked.old).filter(|old| !old.is_null());
        let selected = criteria.selects_object(object, old);
        if selected == Ok(false) || !self.selects_namespace(criteria, asked, object)? {
            return Ok(None);
        }
        selected.map_err(str::to_owned)?;
        Ok(Some(version))
    }

    fn selects_namespace(&self, criteria: &Criteria, asked: &Asked<'_>, object: &Value) -> Result<bool, String> {
        let namespace = asked.namespace_or_own();
        if namespace.is_empty() && !asked.target.is_namespaces() {
            return Ok(true);
        }
        let selector = criteria.namespaces()?;
        if selector.is_empty() {
            return Ok(true);
        }
        let is_new = asked.target.is_namespaces() && asked.operation != Operation::Delete;
        let found = if is_new { object.clone() } else { self.namespace(asked, namespace) };
        Ok(matching::matches(selector, found.at(&["metadata", "labels"])))
    }

    /// A namespace that is among the manifests, or as it would have been made.
    fn namespace(&self, asked: &Asked<'_>, name: &str) -> Value {
        let is_it = |object: &&Value| is_of(object, "", "Namespace") && object.str_at(&["metadata", "name"]) == name;
        let found = asked.beside.iter().chain(&self.others).find(is_it).cloned();
        let mut namespace = found.unwrap_or_else(|| {
            object! { "apiVersion" => "v1", "kind" => "Namespace", "metadata" => object! { "name" => name } }
        });
        if let Some(kind) = kinds::find("", "namespaces") {
            let decoded = kind.strategy.decode(namespace.clone(), &[]);
            namespace = decoded.map_or(namespace, |decoded| decoded.object);
            kind.strategy.prepare_create(&kind.served_version(), &mut namespace);
        }
        namespace
    }

    /// The namespace as expressions see it; null for cluster scope and for namespaces themselves.
    fn namespace_object(&self, asked: &Asked<'_>) -> Value {
        if asked.namespace.is_empty() || asked.target.is_namespaces() {
            return Value::Null;
        }
        let mut namespace = self.namespace(asked, asked.namespace);
        show_namespace(&mut namespace);
        namespace
    }

    /// What expressions see in `version`.
    ///
    /// # Errors
    /// Why the objects can't be converted.
    pub(super) fn seen(&self, asked: &Asked<'_>, version: &ServedVersion, object: &Value) -> Result<Seen, String> {
        let failed = |why: String| format!("failed to convert object version: {why}");
        Ok(Seen {
            object: asked.target.convert(object, version).map_err(failed)?,
            old: asked.target.convert(asked.old, version).map_err(failed)?,
            request: asked.encode(version),
            namespace: self.namespace_object(asked),
            resource: asked.resource(),
        })
    }

    /// How the parameters of a policy are served; `None` where it has none.
    ///
    /// # Errors
    /// That there is no such kind.
    pub(super) fn param_target(&self, asked: &Asked<'_>, head: &Head) -> Result<Option<Target>, String> {
        let Some(kind) = &head.param_kind else { return Ok(None) };
        let target = Target::of_kind(&kind.api_version, &kind.kind, "", asked.catalog);
        target.map(Some).ok_or_else(|| kind.not_found())
    }

    /// What a policy is asked with: each of its parameters, or null where it takes none.
    ///
    /// # Errors
    /// That there is none, or why they can't be read.
    pub(super) fn params(
        &self,
        asked: &Asked<'_>,
        target: Option<&Target>,
        reference: Option<&ParamRef>,
    ) -> Result<Vec<Value>, String> {
        let (Some(target), Some(reference)) = (target, reference) else { return Ok(vec![Value::Null]) };
        let namespace = reference.namespace_for(target.version.scope, asked.namespace_or_own())?;
        let selector = match &reference.selector {
            _ if !reference.name.is_empty() => None,
            Some(selector) => Some(selector.as_ref().map_err(Clone::clone)?),
            None => return Err("one of name or selector must be provided".to_owned()),
        };
        let (group, kind) = (&target.version.group, &target.version.names.kind);
        let mut names = Vec::new();
        let mut found = Vec::new();
        for object in asked.beside.iter().chain(&self.others).filter(|object| is_of(object, group, kind)) {
            let name = object.str_at(&["metadata", "name"]);
            let is_asked = match selector {
                None => name == reference.name,
                Some(selector) => matching::matches(selector, object.at(&["metadata", "labels"])),
            };
            if is_asked && is_in(object, namespace) && !names.contains(&name) {
                names.push(name);
                let decoded = target.decode(object)?;
                found.push(target.convert(&decoded, &target.version)?);
            }
        }
        found.sort_by_cached_key(|object| object.str_at(&["metadata", "name"]).to_owned());
        reference.settle(found)
    }
}

fn is_of(object: &Value, group: &str, kind: &str) -> bool {
    let own = object.str_at(&["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    own == group && object.str_at(&["kind"]) == kind
}

/// Whether an object is in a namespace, which is empty for cluster scope.
fn is_in(object: &Value, namespace: &str) -> bool {
    let own = object.str_at(&["metadata", "namespace"]);
    namespace.is_empty() || own == namespace || (own.is_empty() && namespace == DEFAULT_NAMESPACE)
}
