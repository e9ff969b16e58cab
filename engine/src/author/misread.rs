//! The position of a value that Go's decoder can't read.
//!
//! Input: an object, and what the decoder says: the type that it found, and the fields on the way, without keys and indices. Out:
//! the path of the first value with that type behind those fields.

use crate::meta::unmarshal::TypeMismatch;
use crate::value::{Value, json_type};

/// How many values are looked at: whatever is left out is only pointed at less exactly.
const LOOKED_AT_MAX: usize = 100_000;

/// The field of `object` that `mismatch` is about; `json: cannot unmarshal number into Go struct field ConfigMap.data of type
/// string` is about `data.a`.
pub fn misread_field(object: &Value, mismatch: &TypeMismatch) -> Option<String> {
    let position = mismatch.position.as_ref()?;
    let fields: Vec<&str> = position.fields.split('.').collect();
    let mut search = MisreadSearch { found: &mismatch.found, left: LOOKED_AT_MAX };
    search.behind(object, &fields, "").or_else(|| search.anywhere(object, &fields, ""))
}

struct MisreadSearch<'s> {
    /// `number`, `number 1.5`.
    found: &'s str,
    left: usize,
}

impl MisreadSearch<'_> {
    /// Behind `fields`, which begin at this value or within a list or map that it is.
    fn behind(&mut self, value: &Value, fields: &[&str], path: &str) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        if fields.is_empty() && self.is_it(value) {
            return Some(path.to_owned());
        }
        if let Some((first, rest)) = fields.split_first()
            && let Some(below) = value.get(first)
            && let Some(found) = self.behind(below, rest, &join(path, first))
        {
            return Some(found);
        }
        below(value, path).find_map(|(path, value)| self.behind(value, fields, &path))
    }

    /// The same, where a type that reads itself has lost the fields above.
    fn anywhere(&mut self, value: &Value, fields: &[&str], path: &str) -> Option<String> {
        below(value, path)
            .find_map(|(path, value)| self.behind(value, fields, &path).or_else(|| self.anywhere(value, fields, &path)))
    }

    fn is_it(&self, value: &Value) -> bool {
        self.found.split(' ').next() == Some(json_type(value))
    }
}

/// The items of a list and the fields of an object, with their paths.
fn below<'v>(value: &'v Value, path: &str) -> Box<dyn Iterator<Item = (String, &'v Value)> + 'v> {
    let path = path.to_owned();
    match value {
        Value::Array(items) => {
            Box::new(items.iter().enumerate().map(move |(index, item)| (format!("{path}[{index}]"), item)))
        }
        Value::Object(fields) => Box::new(fields.iter().map(move |(name, value)| (join(&path, name), value))),
        _ => Box::new(std::iter::empty()),
    }
}

fn join(path: &str, name: &str) -> String {
    match (path.is_empty(), name.contains(['.', '[', ']'])) {
        (true, false) => name.to_owned(),
        (false, false) => format!("{path}.{name}"),
        (_, true) => format!("{path}[{name}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::unmarshal::Position;
    use crate::value::json;

    /// `position` is the innermost struct and the fields on the way.
    #[track_caller]
    fn check(object: &str, found: &str, position: Option<(&str, &str)>, expected: Option<&str>) {
        let object = json::decode(object.as_bytes()).expect("the test is JSON");
        let position =
            position.map(|(structure, fields)| Position { structure: structure.into(), fields: fields.into() });
        let mismatch = TypeMismatch { found: found.to_owned(), position, go_type: "string".to_owned() };
        assert_eq!(misread_field(&object, &mismatch).as_deref(), expected);
    }

    #[test]
    fn fields_are_followed_through_lists_and_maps() {
        let data = Some(("ConfigMap", "data"));
        check(r#"{"data":{"b":"x","a":1}}"#, "number", data, Some("data.a"));
        check(r#"{"data":{"b.c":1}}"#, "number", data, Some("data[b.c]"));
        let port = Some(("ServicePort", "spec.ports.port"));
        check(r#"{"spec":{"ports":[{"port":1},{"port":"x"}]}}"#, "string", port, Some("spec.ports[1].port"));
        let replicas = Some(("DeploymentSpec", "spec.replicas"));
        check(r#"{"spec":{"replicas":1.5}}"#, "number 1.5", replicas, Some("spec.replicas"));
    }

    #[test]
    fn what_reads_itself_is_found_anywhere() {
        let labels = Some(("ObjectMeta", "labels"));
        check(r#"{"metadata":{"labels":{"a":true}}}"#, "bool", labels, Some("metadata.labels.a"));
        check("{}", "bool", labels, None);
        check("{}", "bool", None, None);
    }
}
