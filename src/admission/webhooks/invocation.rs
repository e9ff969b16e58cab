//! Whether a webhook is called, and in which version.

use std::sync::Arc;

use super::rules::{Rule, Subject};
use super::{Asking, Sent, Source, Webhook, Webhooks, review};
use crate::admission::{Attributes, Operation};
use crate::cel::library::authorizer::Resource;
use crate::crd::ServedVersion;
use crate::kinds::match_conditions::{self, Variables};
use crate::meta::Status;
use crate::meta::selector::LabelSelector;
use crate::value::Value;

impl<S: Source> Webhooks<S> {
    /// The version that `webhook` is to be called in; `None` where it is not concerned. Its conditions are asked later,
    /// with the objects in that version.
    ///
    /// What is wrong with its selectors matters to requests alone that its rules are about.
    pub(super) async fn concerned(
        &self,
        webhook: &Webhook,
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<Option<Arc<ServedVersion>>, Status> {
        let namespace = self.selects_namespace(webhook, attributes, object).await;
        if namespace == Ok(false) {
            return Ok(None);
        }
        let selected = selects_object(webhook, attributes, object);
        if selected == Ok(false) {
            return Ok(None);
        }
        let Some(version) = matched_version(webhook, attributes) else { return Ok(None) };
        namespace?;
        selected?;
        Ok(Some(version))
    }

    async fn selects_namespace(
        &self,
        webhook: &Webhook,
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<bool, Status> {
        let namespace = attributes.namespace_or_own();
        // The reference looks at the plural alone.
        let is_namespaces = attributes.version.names.plural == "namespaces";
        if namespace.is_empty() && !is_namespaces {
            return Ok(true);
        }
        let selector = parsed(&webhook.namespace_selector)?;
        if selector.is_empty() {
            return Ok(true);
        }
        // The labels that a namespace is to have count, not those that it has.
        if is_namespaces && attributes.subresource.is_empty() && attributes.operation != Operation::Delete {
            return Ok(matches(selector, object.at(&["metadata", "labels"])));
        }
        match self.source.namespace_labels(namespace).await? {
            Some(labels) => Ok(matches(selector, Some(&labels))),
            None => Err(Status::not_found("", "namespaces", namespace)),
        }
    }

    /// Whether the conditions of `webhook` hold; where that can't be told, the failure policy decides.
    pub(super) fn fulfils(
        &self,
        webhook: &Webhook,
        attributes: &Attributes<'_>,
        sent: Sent<'_>,
    ) -> Result<bool, Status> {
        if webhook.conditions.is_empty() {
            return Ok(true);
        }
        let version = attributes.version;
        let resource = Resource {
            group: version.group.clone(),
            resource: version.names.plural.clone(),
            subresource: attributes.subresource.to_owned(),
            namespace: attributes.namespace_or_own().to_owned(),
            name: attributes.name.to_owned(),
        };
        let request = review::request(attributes, sent.version);
        let asking = Asking { authorizer: Arc::clone(&self.authorizer), user: attributes.user.clone() };
        let variables = Variables {
            object: sent.object,
            old_object: sent.old,
            request: &request,
            authorizer: Arc::new(asking),
            request_resource: resource,
        };
        match match_conditions::hold(&webhook.conditions, &variables) {
            Ok(holds) => Ok(holds),
            Err(_) if webhook.is_ignored => Ok(false),
            Err(why) => Err(Status::forbidden(&version.group, &version.names.plural, attributes.name, &why)),
        }
    }
}

/// The object or what it was must have the labels.
fn selects_object(webhook: &Webhook, attributes: &Attributes<'_>, object: &Value) -> Result<bool, Status> {
    let selector = parsed(&webhook.object_selector)?;
    let selects = |object: &Value| !object.is_null() && matches(selector, object.at(&["metadata", "labels"]));
    Ok(selector.is_empty() || selects(object) || attributes.old.is_some_and(selects))
}

fn parsed(selector: &Result<LabelSelector, String>) -> Result<&LabelSelector, Status> {
    selector.as_ref().map_err(|why| Status::internal_error(why))
}

fn matches(selector: &LabelSelector, labels: Option<&Value>) -> bool {
    selector.matches(|name| labels?.get(name)?.as_str())
}

/// The version of the request where a rule names it; else the first of the others that one names, rule by rule.
fn matched_version(webhook: &Webhook, attributes: &Attributes<'_>) -> Option<Arc<ServedVersion>> {
    let is_matched = |rule: &Rule, version: &ServedVersion| {
        rule.matches(&Subject {
            operation: attributes.operation,
            group: &version.group,
            version: &version.version,
            resource: &version.names.plural,
            subresource: attributes.subresource,
            namespace: attributes.namespace_or_own(),
        })
    };
    let versions = attributes.forms.versions();
    let is_own = |version: &ServedVersion| {
        (&version.group, &version.version) == (&attributes.version.group, &attributes.version.version)
    };
    if webhook.rules.iter().any(|rule| is_matched(rule, attributes.version)) {
        return versions.into_iter().find(|version| is_own(version));
    }
    if !webhook.takes_equivalents {
        return None;
    }
    let others = || versions.iter().filter(|version| !is_own(version));
    webhook.rules.iter().find_map(|rule| others().find(|version| is_matched(rule, version))).cloned()
}
