//! The order in which Go prints the fields of Kubernetes' own kinds.
//!
//! A custom object is a map in Go, so its fields are sorted. Kinds that are structs there have their fields in the
//! order they are declared in, `kind` first. The order only shows in text; it has no meaning. Built-in kinds get it
//! from their message; the layouts of all other JSON answers are here.
//!
//! Source: the types of `k8s.io/api`, `apimachinery` and `apiextensions-apiserver`, release 1.37.

use crate::types;
use crate::value::Value;
use crate::value::json;
use crate::value::json::Layout::{self, Sorted, Struct};
use crate::value::json::{Tape, TextTree};

/// The layout of an object, by its `apiVersion` and `kind`.
pub fn of(object: &Value) -> Layout {
    of_type(object.str_at(&["apiVersion"]), object.str_at(&["kind"]))
}

fn of_text(object: &TextTree<'_>) -> Layout {
    let text = |name: &str| {
        let field = object.field(TextTree::ROOT, name).and_then(|field| object.as_str(field));
        field.unwrap_or_default()
    };
    of_type(&text("apiVersion"), &text("kind"))
}

fn of_type(api_version: &str, kind: &str) -> Layout {
    match (api_version, kind) {
        ("meta.k8s.io/v1" | "meta.k8s.io/v1beta1", "Table") => TABLE,
        ("v1", "List") => Sorted,
        _ => types::of_api_version(api_version, kind).map_or(Sorted, |named| named.message().layout()),
    }
}

/// The sorted JSON of an object in its layout; custom objects cost a look at their first bytes.
pub fn lay_out(sorted: Vec<u8>) -> Vec<u8> {
    let rest = sorted.strip_prefix(b"{\"apiVersion\":\"").unwrap_or_default();
    let api_version = rest.split(|byte| *byte == b'"').next().unwrap_or_default();
    let is_known = std::str::from_utf8(api_version).is_ok_and(types::knows_api_version);
    if !is_known {
        return sorted;
    }
    let mut out = Vec::new();
    if arrange_into(&sorted, &[], &mut out) { out } else { sorted }
}

/// Appends an object in its layout, without the fields `left_out`. Nothing is appended if it is not JSON; text that was
/// encoded here is not decoded.
pub fn arrange_into(object: &[u8], left_out: &[&str], out: &mut Vec<u8>) -> bool {
    if let Some(tree) = Tape::default().read(object) {
        json::arrange_into(&tree, of_text(&tree), left_out, out);
        return true;
    }
    let Ok(mut object) = json::decode(object) else { return false };
    let layout = of(&object);
    if let Value::Object(fields) = &mut object {
        left_out.iter().for_each(|name| _ = fields.remove(name));
    }
    out.append(&mut json::encode_as(&object, layout));
    true
}

/// The answer of `/version`.
pub static VERSION: Layout = Struct(&[
    ("major", &Sorted),
    ("minor", &Sorted),
    ("emulationMajor", &Sorted),
    ("emulationMinor", &Sorted),
    ("minCompatibilityMajor", &Sorted),
    ("minCompatibilityMinor", &Sorted),
    ("gitVersion", &Sorted),
    ("gitCommit", &Sorted),
    ("gitTreeState", &Sorted),
    ("buildDate", &Sorted),
    ("goVersion", &Sorted),
    ("compiler", &Sorted),
    ("platform", &Sorted),
]);

static TABLE: Layout = Struct(&[
    ("kind", &Sorted),
    ("apiVersion", &Sorted),
    ("metadata", &Sorted),
    ("columnDefinitions", &TABLE_COLUMN),
    ("rows", &TABLE_ROW),
]);

static TABLE_COLUMN: Layout = Struct(&[
    ("name", &Sorted),
    ("type", &Sorted),
    ("format", &Sorted),
    ("description", &Sorted),
    ("priority", &Sorted),
]);

/// The object of a row may be of any kind.
static TABLE_ROW: Layout = Struct(&[("cells", &Sorted), ("conditions", &Sorted), ("object", &Layout::Choose(of))]);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sorted: &str, expect: &str) {
        assert_eq!(String::from_utf8_lossy(&lay_out(sorted.as_bytes().to_vec())), expect);
    }

    #[test]
    fn structs_have_their_own_order() {
        check(
            r#"{"apiVersion":"v1","code":404,"details":{"kind":"w","name":"a"},"kind":"Status","metadata":{},"reason":"NotFound"}"#,
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"reason":"NotFound","details":{"name":"a","kind":"w"},"code":404}"#,
        );
    }

    #[test]
    fn rows_hold_objects_of_any_kind() {
        check(
            r#"{"apiVersion":"meta.k8s.io/v1","kind":"Table","rows":[{"cells":[1],"object":{"apiVersion":"a/v1","kind":"A"}},{"object":{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata"}}]}"#,
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":[1],"object":{"apiVersion":"a/v1","kind":"A"}},{"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"}}]}"#,
        );
    }

    #[test]
    fn schemas_within_schemas_are_ordered_too() {
        check(
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"b":{"items":{"minimum":1,"type":"integer"},"type":"array"},"a":{"x-unknown":1,"type":"string"}},"type":"object"}}}]}}"#,
            r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string","x-unknown":1},"b":{"type":"array","items":{"type":"integer","minimum":1}}}}}}]}}"#,
        );
    }

    #[test]
    fn a_table_has_the_fields_that_are_published() {
        for (layout, name) in [(&TABLE, "Table"), (&TABLE_COLUMN, "TableColumnDefinition"), (&TABLE_ROW, "TableRow")] {
            let Struct(fields) = layout else { panic!("{name} is a struct") };
            let shown: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
            let published = types::message_named("meta.v1", name).members();
            assert_eq!(shown, published.map(|field| field.json).collect::<Vec<_>>(), "{name}");
        }
    }
}
