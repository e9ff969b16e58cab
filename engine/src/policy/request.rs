//! The `AdmissionRequest`, as webhooks and expressions see it.

use super::rule::Operation;
use crate::object;
use crate::value::Value;

/// A group, a version, and the name of a kind or of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupVersionName<'n> {
    /// The API group; empty for the core group.
    pub group: &'n str,
    /// The version without its group.
    pub version: &'n str,
    /// The name of a kind or a resource.
    pub name: &'n str,
}

/// The facts about a request besides its objects.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRequest<'r> {
    /// The kind that the policy's rule matched.
    pub kind: GroupVersionName<'r>,
    /// The resource that the policy's rule matched.
    pub resource: GroupVersionName<'r>,
    /// The kind that the request named.
    pub request_kind: GroupVersionName<'r>,
    /// The resource that the request named.
    pub request_resource: GroupVersionName<'r>,
    /// The subresource; empty for the object itself.
    pub subresource: &'r str,
    /// The object's name; empty if it is still to be generated.
    pub name: &'r str,
    /// The namespace; empty for cluster scope; for a namespace, its own name.
    pub namespace: &'r str,
    /// The operation.
    pub operation: Operation,
    /// The user, as a UserInfo of `authentication.k8s.io/v1`.
    pub user: &'r Value,
    /// Whether it is a dry run, which stores nothing.
    pub dry_run: bool,
    /// The CreateOptions, UpdateOptions or DeleteOptions.
    pub options: &'r Value,
}

impl AdmissionRequest<'_> {
    /// Encodes the AdmissionRequest without uid and objects.
    pub fn encode(&self) -> Value {
        let mut request = object! {
            "kind" => kind(self.kind),
            "resource" => resource(self.resource),
            "requestKind" => kind(self.request_kind),
            "requestResource" => resource(self.request_resource),
            "operation" => self.operation.as_str(),
            "userInfo" => self.user.clone(),
            "object" => Value::Null,
            "oldObject" => Value::Null,
            "dryRun" => self.dry_run,
            "options" => self.options.clone(),
        };
        let texts = [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            request.make_object().insert(name, Value::from(text));
        }
        request
    }
}

fn kind(name: GroupVersionName<'_>) -> Value {
    object! { "group" => name.group, "version" => name.version, "kind" => name.name }
}

fn resource(name: GroupVersionName<'_>) -> Value {
    object! { "group" => name.group, "version" => name.version, "resource" => name.name }
}
