//! Where the value stands that Go's decoder can't read.
//!
//! In: an object, and what the decoder says: the type that it found, and the fields on the way, without keys and indices. Out:
//! the path of the first value with that type behind those fields.

use crate::value::{Value, json_type};

/// How many values are looked at: whatever is left out is only pointed at less exactly.
const LOOKED_AT_MAX: usize = 100_000;

/// The field of `object` that `error` is about; `json: cannot unmarshal number into Go struct field ConfigMap.data of type
/// string` is about `data.a`.
pub fn misread_field(object: &Value, error: &str) -> Option<String> {
    let (_, said) = error.split_once("cannot unmarshal ")?;
    let (found, said) = said.split_once(" into Go struct field ")?;
    let (field, _) = said.split_once(" of type ")?;
    let fields: Vec<&str> = field.split('.').skip(1).collect();
    let mut search = Search { found, left: LOOKED_AT_MAX };
    search.behind(object, &fields, "").or_else(|| search.anywhere(object, &fields, ""))
}

struct Search<'s> {
    /// `number`, `number 1.5`.
    found: &'s str,
    left: usize,
}

impl Search<'_> {
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
    use crate::value::json;

    #[track_caller]
    fn check(object: &str, said: &str, expected: Option<&str>) {
        let object = json::decode(object.as_bytes()).expect("the test is JSON");
        let error = format!("json: cannot unmarshal {said}");
        assert_eq!(misread_field(&object, &error).as_deref(), expected);
    }

    #[test]
    fn fields_are_followed_through_lists_and_maps() {
        check(
            r#"{"data":{"b":"x","a":1}}"#,
            "number into Go struct field ConfigMap.data of type string",
            Some("data.a"),
        );
        check(r#"{"data":{"b.c":1}}"#, "number into Go struct field ConfigMap.data of type string", Some("data[b.c]"));
        check(
            r#"{"spec":{"ports":[{"port":1},{"port":"x"}]}}"#,
            "string into Go struct field ServicePort.spec.ports.port of type int32",
            Some("spec.ports[1].port"),
        );
        check(
            r#"{"spec":{"replicas":1.5}}"#,
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            Some("spec.replicas"),
        );
    }

    #[test]
    fn what_reads_itself_is_found_anywhere() {
        check(
            r#"{"metadata":{"labels":{"a":true}}}"#,
            "bool into Go struct field ObjectMeta.labels of type string",
            Some("metadata.labels.a"),
        );
        check("{}", "bool into Go struct field ObjectMeta.labels of type string", None);
        check("{}", "bool into Go value of type string", None);
    }
}
