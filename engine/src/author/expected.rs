//! What a case of a suite says that expects just what comes of it now.

use super::policies::admit::Admitted;
use crate::meta::field::ErrorSubject;
use crate::object;
use crate::value::Value;

/// What `expect` says of a verdict in full: errors, the refusal of policies, warnings, what an update is forgiven.
pub fn expected(admitted: &Admitted, ratcheted: &[String]) -> Value {
    let checked = &admitted.checked;
    let unknown = checked.unknown.iter().map(|path| {
        object! { "field" => path.as_str(), "message" => format!("unknown field \"{path}\"") }
    });
    let errors = checked.errors.iter().map(|rejected| &rejected.error);
    let errors = errors.filter(|error| error.subject != ErrorSubject::SkippedRules).map(|error| {
        object! { "field" => error.field.as_str(), "type" => error.kind.reason(), "message" => error.detail.as_str() }
    });
    let errors: Vec<Value> = unknown.chain(errors).collect();
    let mut expected = object! { "valid" => errors.is_empty() };
    let fields = expected.make_object();
    if !errors.is_empty() {
        fields.insert("errors", Value::Array(errors));
    }
    if let Some(denial) = &admitted.denial {
        fields.insert("message", Value::from(denial.message.as_str()));
        fields.insert("reason", Value::from(denial.reason.as_str()));
    }
    for (name, texts) in [("warnings", checked.warnings.as_slice()), ("ratcheted", ratcheted)] {
        if !texts.is_empty() {
            let texts = texts.iter().map(|text| Value::from(text.as_str())).collect();
            fields.insert(name, Value::Array(texts));
        }
    }
    expected
}

/// The same, and of what `stated` asks beside that, what came of it: its snapshot, the cost, the object's fields.
pub fn expected_like(stated: &Value, admitted: &Admitted, ratcheted: &[String]) -> Value {
    let mut expected = expected(admitted, ratcheted);
    let fields = expected.make_object();
    if let Some(snapshot) = stated.get("snapshot") {
        fields.insert("snapshot", snapshot.clone());
    }
    if let Some(limit) = stated.get("costAtMost").and_then(Value::as_i64) {
        let cost = i64::try_from(admitted.checked.cost()).unwrap_or(i64::MAX);
        fields.insert("costAtMost", Value::Int(limit.max(cost)));
    }
    if let Some(object) = stated.get("object") {
        fields.insert("object", as_found(object, &admitted.checked.object));
    }
    if stated.get("auditAnnotations").is_some() {
        let found = admitted.annotations.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str())));
        fields.insert("auditAnnotations", Value::Object(found.collect()));
    }
    expected
}

/// The fields that `stated` names, as they are in `found`.
fn as_found(stated: &Value, found: &Value) -> Value {
    match (stated, found) {
        (Value::Object(fields), Value::Object(_)) => {
            let value = |name: &str, stated: &Value| as_found(stated, found.get(name).unwrap_or(&Value::Null));
            Value::Object(fields.iter().map(|(name, stated)| (name, value(name, stated))).collect())
        }
        _ => found.clone(),
    }
}
