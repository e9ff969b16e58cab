//! What the roles and bindings of `rbac.authorization.k8s.io` have in common: rules, subjects, and their validation.
//!
//! Source: the types of `k8s.io/api/rbac/v1` and the validation of Kubernetes 1.37.

use super::metadata;
use super::strategy::{Cell, Strategy, Subresource, Table};
use crate::crd::{Column, ServedVersion};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names;
use crate::meta::selector::LabelSelector;
use crate::value::Value;
use crate::value::json;
use crate::work;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether a kind is namespaced or cluster-scoped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Namespace,
    Cluster,
}

impl Reach {
    fn is_namespaced(self) -> bool {
        self == Reach::Namespace
    }
}

/// Validates the metadata: names only need to be valid in a path.
fn validate_metadata(object: &Value, reach: Reach) -> ErrorList {
    // As in the reference, a name prefix must be a valid name itself.
    metadata::validate(object, reach.is_namespaced(), |name, _| names::is_path_segment(name, false))
}

/// The strategy of Roles and ClusterRoles.
pub struct Roles(pub Reach);

impl Strategy for Roles {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate_role(object, self.0, true)
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let path = Path::new("");
        let is_valid = |selector| LabelSelector::validate(selector, true, &path).is_empty();
        let mut errors = validate_role(new, self.0, selectors(old).iter().all(is_valid));
        errors.extend(metadata::validate_update(new, old));
        errors
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(role_table())
    }
}

/// The selectors of the cluster roles from which this one is aggregated.
fn selectors(role: &Value) -> &[Value] {
    role.items_at(&["aggregationRule", "clusterRoleSelectors"])
}

/// Validates a role. `checks_values` tells whether invalid values in its selectors are reported; they are not if the
/// old object has some.
fn validate_role(role: &Value, reach: Reach, checks_values: bool) -> ErrorList {
    let rules = Path::new("rules");
    let mut errors = validate_metadata(role, reach);
    for (index, rule) in role.items_at(&["rules"]).iter().enumerate() {
        errors.extend(validate_rule(rule, reach, &rules.index(index)));
    }
    let (path, selectors) = (Path::new("aggregationRule.clusterRoleSelectors"), selectors(role));
    if role.at(&["aggregationRule"]).is_some() && selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(Error::required(&path, why));
    }
    for (index, selector) in selectors.iter().enumerate() {
        let path = path.index(index);
        errors.extend(LabelSelector::validate(selector, checks_values, &path));
        if !LabelSelector::validate(selector, true, &path).is_empty() {
            errors.push(Error::invalid(&path, Value::Null, "invalid label selector."));
        }
    }
    errors
}

fn validate_rule(rule: &Value, reach: Reach, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    work::step();
    let parts = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];
    work::steps(parts.iter().map(|part| rule.items_at(&[part]).len()).sum());
    let require = |name: &str, why: &str| Error::required(&path.child(name), why);
    if rule.items_at(&["verbs"]).is_empty() {
        errors.push(require("verbs", "verbs must contain at least one value"));
    }
    let (groups, resources) = (rule.items_at(&["apiGroups"]), rule.items_at(&["resources"]));
    let (object_names, urls) = (rule.items_at(&["resourceNames"]), rule.items_at(&["nonResourceURLs"]));
    if !urls.is_empty() {
        let invalid = |why: &str| Error::invalid(&path.child("nonResourceURLs"), urls.to_vec(), why);
        if reach.is_namespaced() {
            errors.push(invalid("namespaced rules cannot apply to non-resource URLs"));
        }
        if !(groups.is_empty() && resources.is_empty() && object_names.is_empty()) {
            errors.push(invalid("rules cannot apply to both regular resources and non-resource URLs"));
        }
        return errors;
    }
    if groups.is_empty() {
        errors.push(require("apiGroups", "resource rules must supply at least one api group"));
    }
    if resources.is_empty() {
        errors.push(require("resources", "resource rules must supply at least one resource"));
    }
    errors
}

/// Sets the default API groups of a binding's role and subjects.
pub fn set_binding_defaults(binding: &mut Value) {
    let fields = binding.make_object();
    let role = fields.entry("roleRef").make_object();
    if role.get("apiGroup").and_then(Value::as_str).unwrap_or_default().is_empty() {
        role.insert("apiGroup", Value::from(GROUP));
    }
    let Some(Value::Array(subjects)) = fields.get_mut("subjects") else { return };
    for subject in subjects {
        let is_of_group = matches!(subject.str_at(&["kind"]), "User" | "Group");
        if is_of_group && subject.str_at(&["apiGroup"]).is_empty() {
            subject.make_object().insert("apiGroup", Value::from(GROUP));
        }
    }
}

/// Validates a binding.
pub fn validate_binding(binding: &Value, reach: Reach) -> ErrorList {
    let role_kinds: &[&str] = if reach.is_namespaced() { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let mut errors = validate_metadata(binding, reach);
    let role = |name: &str| binding.str_at(&["roleRef", name]);
    let path = Path::new("roleRef");
    if role("apiGroup") != GROUP {
        errors.push(Error::not_supported(&path.child("apiGroup"), role("apiGroup"), &[GROUP]));
    }
    if !role_kinds.contains(&role("kind")) {
        errors.push(Error::not_supported(&path.child("kind"), role("kind"), role_kinds));
    }
    let at = path.child("name");
    match role("name") {
        "" => errors.push(Error::required(&at, "")),
        name => {
            let faults = names::is_path_segment(name, false).into_iter();
            errors.extend(faults.map(|fault| Error::invalid(&at, name, fault)));
        }
    }
    let subjects = Path::new("subjects");
    for (index, subject) in binding.items_at(&["subjects"]).iter().enumerate() {
        errors.extend(validate_subject(subject, reach, &subjects.index(index)));
    }
    errors
}

fn validate_subject(subject: &Value, reach: Reach, path: &Path<'_>) -> ErrorList {
    const KINDS: [&str; 3] = ["ServiceAccount", "User", "Group"];
    let mut errors = ErrorList::new();
    let text = |name: &str| subject.str_at(&[name]);
    let (name, group) = (text("name"), text("apiGroup"));
    let (name_path, group_path) = (path.child("name"), path.child("apiGroup"));
    if name.is_empty() {
        errors.push(Error::required(&name_path, ""));
    }
    match text("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                let faults = names::name_is_dns1123_subdomain(name, false).into_iter();
                errors.extend(faults.map(|fault| Error::invalid(&name_path, name, fault)));
            }
            if !group.is_empty() {
                errors.push(Error::not_supported(&group_path, group, &[""]));
            }
            if !reach.is_namespaced() && text("namespace").is_empty() {
                errors.push(Error::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(Error::not_supported(&group_path, group, &[GROUP]));
            }
        }
        kind => errors.push(Error::not_supported(&path.child("kind"), kind, &KINDS)),
    }
    errors
}

/// Validates an update of a binding, whose role must not change.
pub fn validate_binding_update(new: &Value, old: &Value, reach: Reach) -> ErrorList {
    let mut errors = validate_binding(new, reach);
    errors.extend(metadata::validate_update(new, old));
    let role = |binding: &Value| ["apiGroup", "kind", "name"].map(|name| binding.str_at(&["roleRef", name]).to_owned());
    if role(new) != role(old) {
        let [group, kind, name] = role(new).map(|text| json::encode_to_string(&Value::String(text)));
        let error = Error::invalid(&Path::new("roleRef"), Value::Null, "cannot change roleRef");
        errors.push(error.shown_as(format!(r#"{{"APIGroup":{group},"Kind":{kind},"Name":{name}}}"#)));
    }
    errors
}

/// The table of roles.
fn role_table() -> Table {
    let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
    let created = Column { type_: "date".to_owned(), ..Column::string("Created At", "") };
    Table {
        columns: vec![name, created],
        cells: |role| {
            let created = role.str_at(&["metadata", "creationTimestamp"]);
            vec![Cell::text(role.str_at(&["metadata", "name"])), Cell::text(created)]
        },
    }
}

/// The table of bindings of the kind `of_role`.
pub fn binding_table(of_role: &str) -> Table {
    let wide = |name, description| Column { priority: 1, ..Column::string(name, description) };
    let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
    let (role, users, groups, accounts) = match of_role {
        "RoleBinding" => (
            "RoleRef can reference a Role in the current namespace or a ClusterRole in the global namespace. If the \
             RoleRef cannot be resolved, the Authorizer must return an error. This field is immutable.",
            "Users in the roleBinding",
            "Groups in the roleBinding",
            "ServiceAccounts in the roleBinding",
        ),
        _ => (
            "RoleRef can only reference a ClusterRole in the global namespace. If the RoleRef cannot be resolved, the \
             Authorizer must return an error. This field is immutable.",
            "Users in the clusterRoleBinding",
            "Groups in the clusterRoleBinding",
            "ServiceAccounts in the clusterRoleBinding",
        ),
    };
    Table {
        columns: vec![
            name,
            Column::string("Role", role),
            Column::string("Age", ""),
            wide("Users", users),
            wide("Groups", groups),
            wide("ServiceAccounts", accounts),
        ],
        cells: binding_cells,
    }
}

fn binding_cells(binding: &Value) -> Vec<Cell> {
    let subjects = |kind: &str| -> Vec<String> {
        let of_kind = binding.items_at(&["subjects"]).iter().filter(|subject| subject.str_at(&["kind"]) == kind);
        let names = of_kind.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", subject.str_at(&["namespace"]), subject.str_at(&["name"])),
            _ => subject.str_at(&["name"]).to_owned(),
        });
        names.collect()
    };
    let role = format!("{}/{}", binding.str_at(&["roleRef", "kind"]), binding.str_at(&["roleRef", "name"]));
    let names = ["User", "Group", "ServiceAccount"].map(|kind| Cell::text(&subjects(kind).join(", ")));
    let mut cells = Cell::named(binding, vec![Cell::text(&role)]);
    cells.extend(names);
    cells
}
