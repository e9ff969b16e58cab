//! `ObjectMeta`: how Go's decoder reads it, and how it is validated.
//!
//! Metadata is typed in every kind: what a client sends is decoded into the type and encoded again, so unknown fields
//! are dropped, nulls become the empty values of their types, and times are in whole seconds. Here it stays a [`Value`]
//! in the resulting form.
//!
//! Source: `metav1.ObjectMeta` and `apimachinery/pkg/api/validation`, release 1.37; answers recorded from it.

mod decode;
mod validate;

use crate::value::Value;

pub use decode::{decode, decode_leniently, is_decoded, time_field};
pub use validate::{
    ANNOTATIONS_BYTES_MAX, MANAGER_BYTES_MAX, added_finalizers, validate, validate_annotations, validate_labels,
    validate_manager, validate_update,
};

/// Marks an object as being deleted: the first time raises its generation. `now` is RFC 3339.
pub fn mark_deleted(object: &mut Value, now: &str) {
    let metadata = object.make_object().entry("metadata").make_object();
    if !metadata.contains_key("deletionTimestamp") {
        if let Some(Value::Int(generation @ 1..)) = metadata.get_mut("generation") {
            *generation = generation.saturating_add(1);
        }
        metadata.insert("deletionTimestamp", Value::from(now));
    }
    metadata.insert("deletionGracePeriodSeconds", Value::Int(0));
}

#[cfg(test)]
mod tests {
    use super::super::field::Path;
    use super::super::names;
    use super::*;
    use crate::meta::field::ERRORS_BYTES_MAX;
    use crate::object;
    use crate::value::{Map, json};
    use crate::work;

    #[track_caller]
    fn check(metadata: &str, expect: Result<(&str, &[&str]), &str>) {
        let metadata = json::decode(metadata.as_bytes()).expect("the test is JSON");
        let decoded = decode(&metadata);
        let decoded = decoded.as_ref().map(|(value, unknown)| {
            (json::encode_to_string(value), unknown.iter().map(String::as_str).collect::<Vec<_>>())
        });
        match (decoded, expect) {
            (Ok((value, unknown)), Ok((expected, fields))) => {
                assert_eq!((value.as_str(), unknown.as_slice()), (expected, fields))
            }
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            (decoded, expect) => panic!("{decoded:?} is not {expect:?}"),
        }
    }

    #[test]
    fn metadata_goes_through_its_type() {
        check(r#"{"name":"a","labels":{"x":null},"foo":1}"#, Ok((r#"{"labels":{"x":""},"name":"a"}"#, &["foo"])));
        check(r#"{"annotations":{},"creationTimestamp":null,"name":""}"#, Ok(("{}", &[])));
        check(
            r#"{"creationTimestamp":"2026-01-02T03:04:05.678+01:00"}"#,
            Ok((r#"{"creationTimestamp":"2026-01-02T02:04:05Z"}"#, &[])),
        );
    }

    /// `count` items of a list in metadata.
    fn metadata(list: &str, count: usize, item: impl Fn(usize) -> Value) -> Value {
        object! { "name" => "a", "resourceVersion" => "1", list => (0..count).map(item).collect::<Vec<_>>() }
    }

    /// Decodes and validates, tenfold.
    #[track_caller]
    fn check_growth(made: impl Fn(usize) -> Value) {
        let steps = |count| {
            let sent = made(count);
            let before = object! { "deletionTimestamp" => "2026-01-02T03:04:05Z" };
            let (bytes, steps) = work::counted(|| {
                let (decoded, _) = decode(&sent).expect("the test is metadata");
                let mut errors = validate(&decoded, false, names::name_is_dns1123_subdomain, &Path::ROOT);
                errors.extend(validate_update(&decoded, &before, &Path::ROOT));
                errors.aggregate().len()
            });
            assert!(bytes < 2 * ERRORS_BYTES_MAX, "{bytes} bytes");
            steps
        };
        let (few, many) = (steps(1000), steps(10_000));
        assert!(many < 13 * few, "{few} steps, then {many}");
    }

    #[test]
    fn ten_times_the_metadata_takes_ten_times_the_steps() {
        let reference =
            |at: usize| object! { "uid" => format!("u{at}"), "controller" => true, "kind" => "A", "name" => "b" };
        check_growth(|count| metadata("ownerReferences", count, reference));
        check_growth(|count| metadata("finalizers", count, |at| Value::from(format!("f{at}"))));
        let entry =
            |at: usize| object! { "manager" => format!("m{at}"), "operation" => "Apply", "fieldsV1" => object! {} };
        check_growth(|count| metadata("managedFields", count, entry));
        let texts =
            |count: usize| (0..count).map(|at| (format!("-{}", at * 7 % count), Value::from("-"))).collect::<Map>();
        check_growth(|count| object! { "labels" => texts(count), "annotations" => texts(count) });
        check_growth(|count| metadata("managedFields", 1, |_| object! { "manager" => "\u{1}".repeat(count) }));
    }

    #[test]
    fn a_wrong_type_is_told_in_gos_words() {
        check(
            r#"{"labels":{"x":1}}"#,
            Err("json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        );
        check(r#""x""#, Err("json: cannot unmarshal string into Go value of type v1.ObjectMeta"));
        check(
            r#"{"creationTimestamp":"bad"}"#,
            Err(r#"parsing time "bad" as "2006-01-02T15:04:05Z07:00": cannot parse "bad" as "2006""#),
        );
    }
}
