//! Masks what must not get into a record: the contents of Secrets, and tokens.
//!
//! Input: the path of a request, and its body or that of its answer. Output: the body with its sensitive
//! parts masked. Only the API's own places for secrets are known: config maps and custom resources
//! are recorded as they are.

use crate::http::path::{self, Target};
use crate::kinds;
use crate::protobuf;
use crate::value::{Value, json, yaml};

/// Replaces a sensitive text.
const MASK: &str = "masked";
/// The same in base64, for the data of a Secret.
const MASK_BASE64: &str = "bWFza2Vk";
/// The annotation repeats the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What is sensitive in the bodies of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitive {
    /// `data` and `stringData`.
    Secrets,
    /// `status.token` of an issued token, `spec.token` of a token review.
    Tokens,
}

impl Sensitive {
    /// What is sensitive in requests for `path`, if anything.
    pub fn of(path: &str) -> Option<Self> {
        let Ok(Target::Resource(of)) = path::parse(path) else { return None };
        match (&*of.group, &*of.resource, &*of.subresource) {
            ("", "secrets", _) => Some(Sensitive::Secrets),
            ("", "serviceaccounts", "token") | ("authentication.k8s.io", "tokenreviews", _) => Some(Sensitive::Tokens),
            _ => None,
        }
    }

    /// Masks the sensitive parts of `body` and keeps its format: JSON, or an object in protobuf;
    /// YAML is converted to JSON. `None` if the format is unknown.
    pub fn masked_body(self, body: &[u8]) -> Option<Vec<u8>> {
        if body.is_empty() {
            return Some(Vec::new());
        }
        if let Ok(envelope) = protobuf::open(body) {
            let message = kinds::message_of(&envelope.api_version, &envelope.kind)?;
            let mut object = protobuf::decode(message, envelope.raw).ok()?;
            let fields = object.make_object();
            fields.insert("apiVersion", Value::from(envelope.api_version.as_str()));
            fields.insert("kind", Value::from(envelope.kind.as_str()));
            self.mask(&mut object);
            return kinds::seal(&object);
        }
        let mut value = json::decode(body).ok().or_else(|| yaml::decode(body).ok())?;
        if !matches!(value, Value::Object(_) | Value::Array(_)) {
            return None;
        }
        self.mask(&mut value);
        Some(json::encode(&value))
    }

    /// Masks an object, a list, a table, an event of a watch or a JSON patch.
    fn mask(self, value: &mut Value) {
        match value {
            Value::Array(operations) => operations.iter_mut().filter_map(|it| it.get_mut("value")).for_each(mask_all),
            Value::Object(_) => {
                for name in ["items", "rows"] {
                    let list = value.get_mut(name).and_then(Value::as_array_mut);
                    list.into_iter().flatten().for_each(|item| self.mask(item));
                }
                if let Some(object @ Value::Object(_)) = value.get_mut("object") {
                    self.mask(object);
                }
                self.mask_object(value);
            }
            _ => {}
        }
    }

    fn mask_object(self, object: &mut Value) {
        if let Some(applied) = object.at_mut(&["metadata", "annotations", LAST_APPLIED]) {
            *applied = Value::from(MASK);
        }
        match self {
            Sensitive::Secrets => {
                // A name in another case, or a value that is not a map, is sent by mistake, and is secret all the same.
                for (name, value) in object.as_object_mut().into_iter().flat_map(|fields| fields.iter_mut()) {
                    if name.eq_ignore_ascii_case("data") {
                        mask_each(value, MASK_BASE64);
                    } else if name.eq_ignore_ascii_case("stringData") {
                        mask_each(value, MASK);
                    }
                }
            }
            Sensitive::Tokens => {
                for path in [["status", "token"], ["spec", "token"]] {
                    if let Some(token @ Value::String(_)) = object.at_mut(&path) {
                        *token = Value::from(MASK);
                    }
                }
            }
        }
    }
}

/// Masks the values of a map, except for those that a patch removes; or all of another value.
fn mask_each(fields: &mut Value, mask: &str) {
    match fields {
        Value::Object(fields) => {
            let values = fields.iter_mut().map(|(_, value)| value).filter(|value| !value.is_null());
            values.for_each(|value| *value = Value::from(mask));
        }
        other => mask_all(other),
    }
}

/// Masks every text in a value.
fn mask_all(value: &mut Value) {
    match value {
        Value::String(_) => *value = Value::from(MASK),
        Value::Array(items) => items.iter_mut().for_each(mask_all),
        Value::Object(fields) => fields.iter_mut().for_each(|(_, value)| mask_all(value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "/api/v1/namespaces/a/secrets/b";

    fn check(path: &str, body: &str, expected: &str) {
        let masked = Sensitive::of(path).expect(path).masked_body(body.as_bytes()).expect(body);
        assert_eq!(String::from_utf8_lossy(&masked), expected);
    }

    #[test]
    fn what_secrets_hold_is_masked_wherever_they_stand() {
        let secret = r#"{"data":{"a":"eA=="},"kind":"Secret","stringData":{"b":"y"}}"#;
        let masked = r#"{"data":{"a":"bWFza2Vk"},"kind":"Secret","stringData":{"b":"masked"}}"#;
        check(SECRET, secret, masked);
        check(SECRET, &format!(r#"{{"items":[{secret}]}}"#), &format!(r#"{{"items":[{masked}]}}"#));
        check(
            SECRET,
            &format!(r#"{{"rows":[{{"object":{secret}}}]}}"#),
            &format!(r#"{{"rows":[{{"object":{masked}}}]}}"#),
        );
        check(
            SECRET,
            &format!(r#"{{"object":{secret},"type":"ADDED"}}"#),
            &format!(r#"{{"object":{masked},"type":"ADDED"}}"#),
        );
        check(SECRET, r#"{"DATA":{"a":"eA=="},"data":"eA=="}"#, r#"{"DATA":{"a":"bWFza2Vk"},"data":"masked"}"#);
        check(SECRET, "data: {a: eA==, b: null}\n", r#"{"data":{"a":"bWFza2Vk","b":null}}"#);
        let applied = format!(r#"{{"metadata":{{"annotations":{{"{LAST_APPLIED}":"{{}}"}}}}}}"#);
        check(SECRET, &applied, &applied.replace("\"{}\"", "\"masked\""));
        let patch = r#"[{"op":"add","path":"/data","value":{"a":"eA=="}}]"#;
        check(SECRET, patch, r#"[{"op":"add","path":"/data","value":{"a":"masked"}}]"#);
    }

    #[test]
    fn tokens_are_masked() {
        let issued = "/api/v1/namespaces/a/serviceaccounts/b/token";
        check(issued, r#"{"status":{"token":"x"}}"#, r#"{"status":{"token":"masked"}}"#);
        let reviewed = "/apis/authentication.k8s.io/v1/tokenreviews";
        check(reviewed, r#"{"spec":{"token":"x"}}"#, r#"{"spec":{"token":"masked"}}"#);
        assert_eq!(Sensitive::of("/api/v1/namespaces/a/configmaps/b"), None);
        assert_eq!(Sensitive::Secrets.masked_body(b"\x00\x01"), None);
    }

    #[test]
    fn a_secret_in_protobuf_is_masked_as_well() {
        let secret = br#"{"apiVersion":"v1","data":{"a":"eA=="},"kind":"Secret","metadata":{"name":"b"}}"#;
        let sealed = kinds::seal(&json::decode(secret).expect("it is JSON")).expect("it has a message");
        let masked = Sensitive::Secrets.masked_body(&sealed).expect("it is known");
        assert!(protobuf::open(&masked).is_ok() && masked.windows(6).any(|window| window == b"masked"));
    }
}
