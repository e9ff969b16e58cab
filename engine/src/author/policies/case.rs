//! What a case of a suite says of a request, and what it expects of policies.

use super::admit::Admitted;
use crate::object;
use crate::policy::Operation;
use crate::value::Value;

/// The user of cases that name none: one who may do everything.
const ADMINISTRATOR: &str = "kubernetes-admin";
const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";

/// What a case says of its request beside the objects.
#[derive(Clone, Default)]
pub struct Setting {
    /// `None` for what follows from the objects.
    pub operation: Option<Operation>,
    /// A UserInfo of `authentication.k8s.io/v1`.
    pub user: Value,
    /// Empty for that of the object.
    pub namespace: String,
    /// Parameters, and the namespace if more than its name is said.
    pub beside: Vec<Value>,
}

impl Setting {
    /// Reads a case, or a row of its table, whose fields go before those of the case.
    pub fn decode(case: &Value, row: Option<&Value>) -> Self {
        let field = |name: &str| row.and_then(|row| row.get(name)).or_else(|| case.get(name));
        let namespace = field("namespace").cloned().unwrap_or_default();
        let mut beside: Vec<Value> = field("params").and_then(Value::as_array).unwrap_or_default().to_vec();
        let name = namespace.str_at(&["name"]).to_owned();
        let says_more = ["labels", "annotations"].iter().any(|field| namespace.get(field).is_some());
        if says_more {
            let mut metadata = namespace;
            let labels = metadata.make_object().entry("labels").make_object();
            labels.insert("kubernetes.io/metadata.name", Value::from(name.as_str()));
            beside.push(object! { "apiVersion" => "v1", "kind" => "Namespace", "metadata" => metadata });
        }
        let operation = match field("operation").and_then(Value::as_str) {
            Some("CREATE") => Some(Operation::Create),
            Some("UPDATE") => Some(Operation::Update),
            Some("DELETE") => Some(Operation::Delete),
            Some("CONNECT") => Some(Operation::Connect),
            _ => None,
        };
        Setting { operation, user: user_info(field("user")), namespace: name, beside }
    }
}

/// A UserInfo of what a case says of the user: `{name, uid, groups, extra}`.
pub fn user_info(user: Option<&Value>) -> Value {
    let Some(user) = user else { return administrator() };
    let mut info = object! { "username" => user.str_at(&["name"]) };
    let mut groups = user.items_at(&["groups"]).to_vec();
    if !groups.iter().any(|group| group.as_str() == Some(AUTHENTICATED)) {
        groups.push(Value::from(AUTHENTICATED));
    }
    info.make_object().insert("groups", Value::Array(groups));
    for name in ["uid", "extra"] {
        if let Some(value) = user.get(name) {
            info.make_object().insert(name, value.clone());
        }
    }
    info
}

/// A UserInfo of somebody who may do everything.
pub fn administrator() -> Value {
    object! { "username" => ADMINISTRATOR, "groups" => vec![Value::from(MASTERS), Value::from(AUTHENTICATED)] }
}

/// What of policies is not as `expect` says: whether they admit the request, their words, what they annotate.
pub fn compare(admitted: &Admitted, expect: &Value) -> Vec<String> {
    let mut failures = Vec::new();
    let message = expect.get("message").and_then(Value::as_str);
    let is_admitted = expect.get("admitted").and_then(Value::as_bool).unwrap_or(message.is_none());
    match (&admitted.denial, is_admitted) {
        (Some(denial), true) => failures.push(format!("not expected: {}", denial.message)),
        (None, false) => failures.push("expected to be denied, but policies admit it".to_owned()),
        (Some(denial), false) => {
            if let Some(part) = message.filter(|part| !denial.message.contains(part)) {
                failures.push(format!("expected in the message, but not found: {part}; it is: {}", denial.message));
            }
            let reason = expect.get("reason").and_then(Value::as_str);
            if let Some(reason) = reason.filter(|reason| *reason != denial.reason) {
                failures.push(format!("the reason is {}, not {reason}", denial.reason));
            }
        }
        (None, true) => {}
    }
    let annotations = expect.get("auditAnnotations").and_then(Value::as_object);
    for (name, wanted) in annotations.into_iter().flat_map(|annotations| annotations.iter()) {
        let found = admitted.annotations.get(name).map(String::as_str);
        match (found, wanted.as_str()) {
            (None, Some(_)) => failures.push(format!("expected the audit annotation {name}, but there is none")),
            (Some(found), Some(wanted)) if found != wanted => {
                failures.push(format!("the audit annotation {name} is {found}, not {wanted}"));
            }
            _ => {}
        }
    }
    failures
}

/// What a snapshot holds of policies; `None` where they said nothing.
pub fn snapshot(admitted: &Admitted) -> Option<Value> {
    let mut taken = object! {};
    if let Some(denial) = &admitted.denial {
        taken.make_object().insert("denied", Value::from(denial.message.as_str()));
        taken.make_object().insert("reason", Value::from(denial.reason.as_str()));
    }
    if !admitted.annotations.is_empty() {
        let annotations = admitted.annotations.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        taken.make_object().insert("auditAnnotations", Value::Object(annotations.collect()));
    }
    Some(taken).filter(|taken| *taken != object! {})
}
