//! Patches of all kinds, and field ownership.

use std::sync::LazyLock;

use kubeskiff::apply::{
    ConvertError, FieldManager, FieldSet, ResetFields, TypeSchema, Versions, validate_managed_fields,
};
use kubeskiff::kinds;
use kubeskiff::meta::minor::Minor;
use kubeskiff::patch::{json_patch, merge_patch, strategic_merge};
use kubeskiff::types::Message;
use kubeskiff::value::Value;
use kubeskiff::value::json::Layout;

use crate::inputs::{METADATA, Make, SPECS, fields, list, structural, value, widget};
use crate::pass::{Pass, pass};

const SIZE: usize = 20;
const VERSION: &str = "example.com/v1";
const NOW: &str = "2026-01-01T00:00:00Z";

pub fn passes() -> Vec<Pass> {
    let mut passes = json_patches();
    passes.extend(merge_patches());
    passes.extend(strategic_merges());
    passes.extend(applies());
    passes
}

/// Patches of many operations, each with the object that it is for.
type Patched = fn(usize) -> (String, Value);

fn json_patches() -> Vec<Pass> {
    let numbers = |size: usize| value(&format!(r#"{{"a":{}}}"#, list(size, |at| at.to_string())));
    fn operations(size: usize, operation: &str) -> String {
        list(size, |at| operation.replace('#', &at.to_string()))
    }
    let shapes: [(&str, &'static str, bool); 10] = [
        ("inserts at the front", r#"{"op":"add","path":"/a/0","value":1}"#, true),
        ("appends", r#"{"op":"add","path":"/a/-","value":1}"#, true),
        ("removals at the front", r#"{"op":"remove","path":"/a/0"}"#, true),
        ("replacements of an item", r#"{"op":"replace","path":"/a/0","value":2}"#, true),
        ("tests of a list", r#"{"op":"test","path":"/b","value":[1,2,3]}"#, true),
        ("new fields", r#"{"op":"add","path":"/k#","value":1}"#, true),
        ("copies of a list", r#"{"op":"copy","from":"/b","path":"/k#"}"#, false),
        ("moves to and fro", r#"{"op":"move","from":"/a","path":"/a"}"#, true),
        ("unknown fields", r#"{"op":"add","path":"/k","value":1,"unknown#":1}"#, true),
        ("a field given twice", r#"{"op":"add","path":"/k","value":1,"op":"add"}"#, true),
    ];
    let mut passes = Vec::new();
    for (shape, operation, wide) in shapes {
        let input = move |size| {
            let mut object = numbers(if wide { size + 1 } else { 3 });
            object.make_object().insert("b", value("[1,2,3]"));
            (operations(size, operation), object)
        };

        passes.push(pass("JSON patch", shape, SIZE, input, |(patch, object)| {
            let (patch, _) = json_patch::Patch::decode(patch.as_bytes(), true).ok()?;
            patch.apply(object, Layout::Sorted).ok()
        }));
    }
    let long =
        |size: usize| (format!(r#"[{{"op":"add","path":"{}","value":1}}]"#, "/a".repeat(size)), Value::default());
    passes.push(pass("JSON patch", "a long path", SIZE, long, |(patch, object)| {
        json_patch::Patch::decode(patch.as_bytes(), true)
            .ok()
            .and_then(|(patch, _)| patch.apply(object, Layout::Sorted).ok())
    }));
    passes
}

fn merge_patches() -> Vec<Pass> {
    let shapes: [(&str, Patched); 5] = [
        ("new fields", |size| (fields(size, |at| format!(r#""k{at}":1"#)), Value::default())),
        ("changed fields", |size| {
            let text = fields(size, |at| format!(r#""k{at}":{at}"#));
            (text.clone(), value(&text))
        }),
        ("removed fields", |size| {
            let text = |to| fields(size, |at| format!(r#""k{at}":{to}"#));
            (text("null"), value(&text("1")))
        }),
        ("one field many times", |size| (fields(size, |at| format!(r#""k":{at}"#)), Value::default())),
        ("nested objects", |size| (format!("{}1{}", r#"{"k":"#.repeat(size), "}".repeat(size)), Value::default())),
    ];
    let make = |(shape, input): (&'static str, Patched)| {
        pass("merge patch", shape, SIZE, input, |(patch, object)| {
            merge_patch::MergePatch::decode(patch.as_bytes(), true)
                .ok()
                .map(|(patch, _)| patch.apply(object, Layout::Sorted))
        })
    };
    shapes.into_iter().map(make).collect()
}

fn service_account() -> &'static Message {
    kinds::type_of("v1", "ServiceAccount").expect("the kind is built in")
}

fn strategic_merges() -> Vec<Pass> {
    fn secrets(size: usize, item: impl Fn(usize) -> String) -> String {
        format!(r#"{{"secrets":{}}}"#, list(size, item))
    }
    fn finalizers(size: usize, from: usize) -> String {
        format!(r#"{{"metadata":{{"finalizers":{}}}}}"#, list(size, |at| format!(r#""example.com/f{}""#, at + from)))
    }
    let named = |at: usize| format!(r#"{{"name":"n{at}"}}"#);
    let shapes: [(&str, Make<(String, Value)>); 10] = [
        ("new items", Box::new(move |size| (secrets(size, named), value("{}")))),
        ("the same items", Box::new(move |size| (secrets(size, named), value(&secrets(size, named))))),
        (
            "items in reverse order",
            Box::new(move |size| (secrets(size, move |at| named(size - at)), value(&secrets(size, named)))),
        ),
        ("one item many times", Box::new(move |size| (secrets(size, move |_| named(0)), value(&secrets(size, named))))),
        (
            "deleted items",
            Box::new(move |size| {
                (secrets(size, |at| format!(r#"{{"$patch":"delete","name":"n{at}"}}"#)), value(&secrets(size, named)))
            }),
        ),
        (
            "an order of items",
            Box::new(move |size| {
                let order = list(size, |at| named(size - at));
                (format!(r#"{{"$setElementOrder/secrets":{order}}}"#), value(&secrets(size, named)))
            }),
        ),
        (
            "an order and items",
            Box::new(move |size| {
                let order = list(size, |at| named(size - at));
                let items = list(size, named);
                (format!(r#"{{"$setElementOrder/secrets":{order},"secrets":{items}}}"#), value(&secrets(size, named)))
            }),
        ),
        ("more of a set", Box::new(move |size| (finalizers(size, size / 2), value(&finalizers(size, 0))))),
        (
            "less of a set",
            Box::new(move |size| {
                let gone = finalizers(size, 0).replace("finalizers", "$deleteFromPrimitiveList/finalizers");
                (gone, value(&finalizers(size, 0)))
            }),
        ),
        (
            "labels",
            Box::new(move |size| {
                let text = format!(r#"{{"metadata":{{"labels":{}}}}}"#, fields(size, |at| format!(r#""k{at}":"v""#)));
                (text.clone(), value(&text))
            }),
        ),
    ];
    let make = |(shape, input): (&'static str, Make<(String, Value)>)| {
        pass("strategic merge patch", shape, SIZE, input, |(patch, object)| {
            let (patch, _) = strategic_merge::StrategicMergePatch::decode(patch.as_bytes(), true).ok()?;
            patch.apply(object, service_account()).ok()
        })
    };
    shapes.into_iter().map(make).collect()
}

struct OneVersion;

static TYPES: LazyLock<TypeSchema> = LazyLock::new(|| TypeSchema::of_custom_resource(&structural(), false));

impl Versions for OneVersion {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        (api_version == VERSION).then_some(&*TYPES)
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

fn with_manager<T>(run: impl FnOnce(&FieldManager<'_>) -> T) -> T {
    let reset_fields = ResetFields::default();
    run(&FieldManager {
        minor: Minor::NEWEST,
        versions: &OneVersion,
        version: VERSION,
        kind: "Widget",
        subresource: "",
        reset_fields: &reset_fields,
    })
}

/// An object that one manager has applied, and what another one makes of it.
fn applied(new: &Value) -> Value {
    let applied = with_manager(|manager| manager.apply(None, new, "ann", false, NOW));
    applied.map_or_else(|_| new.clone(), |applied| applied.object)
}

fn applies() -> Vec<Pass> {
    let mut passes = Vec::new();
    let specs = SPECS
        .into_iter()
        .map(|(shape, spec)| -> (_, Make<Value>) { (shape, Box::new(move |size| value(&widget("", &spec(size))))) });
    let metadata = METADATA.into_iter().filter(|(shape, _)| !shape.contains("wrong")).map(|(shape, text)| {
        let object = move |size| value(&widget(&text(size), "{}"));
        (shape, Box::new(object) as Make<Value>)
    });
    for (shape, object) in specs.chain(metadata) {
        let object = std::sync::Arc::new(object);
        let input = |make: fn(Value) -> (Value, Value)| {
            let object = std::sync::Arc::clone(&object);
            move |size| make(object(size))
        };
        let emptied = |object: Value| {
            let mut empty = value(&widget("", "{}"));
            empty.make_object().insert("kind", "Widget".into());
            (applied(&object), empty)
        };
        let both = |object: Value| (applied(&object), object);
        passes.extend([
            pass("apply a new object", shape, SIZE, input(|object| (Value::Null, object)), |(_, new)| {
                with_manager(|manager| manager.apply(None, new, "ann", false, NOW).is_ok())
            }),
            pass("own a new object", shape, SIZE, input(|object| (Value::Null, object)), |(_, new)| {
                with_manager(|manager| manager.update(None, new.clone(), "ann", NOW))
            }),
            pass("apply again", shape, SIZE, input(both), |(live, new)| {
                with_manager(|manager| manager.apply(Some(live), new, "ann", false, NOW).is_ok())
            }),
            pass("apply as another manager", shape, SIZE, input(both), |(live, new)| {
                with_manager(|manager| manager.apply(Some(live), new, "bob", false, NOW).is_ok())
            }),
            pass("apply nothing", shape, SIZE, input(emptied), |(live, new)| {
                with_manager(|manager| manager.apply(Some(live), new, "ann", true, NOW).is_ok())
            }),
            pass("update the owners", shape, SIZE, input(emptied), |(live, new)| {
                with_manager(|manager| manager.update(Some(live), new.clone(), "bob", NOW))
            }),
        ]);
    }
    let conflicting = |size: usize| {
        let spec = |to: &'static str| move |at| format!(r#""k{at}":{to}"#);
        let [old, new] = ["1", "2"].map(|to| value(&widget("", &format!(r#"{{"map":{}}}"#, fields(size, spec(to))))));
        (applied(&old), new)
    };
    passes.push(pass("apply with conflicts", "a map", SIZE, conflicting, |(live, new)| {
        with_manager(|manager| {
            manager.apply(Some(live), new, "bob", false, NOW).map_err(|error| error.to_string()).is_ok()
        })
    }));
    passes.push(pass("apply by force", "a map", SIZE, conflicting, |(live, new)| {
        with_manager(|manager| manager.apply(Some(live), new, "bob", true, NOW).is_ok())
    }));
    let set =
        |size: usize| value(&fields(size, |at| format!(r#""f:k{}":{{".":{{}},"k:{{\"a\":{at}}}":{{}}}}"#, size - at)));
    passes.push(pass("field set", "many fields", SIZE, set, |fields| {
        let set = FieldSet::decode(fields).ok()?;
        Some((set.union(&set), set.intersection(&set), set.difference(&set), set.is_subset(&set), set.encode()))
    }));
    passes.push(pass("managedFields", "many entries", SIZE, |size| {
        let entry = |at| format!(r#"{{"manager":"m{}","operation":"Update","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{{"f:k{at}":{{}}}}}}"#, at % 3);
        value(&widget(&format!(r#""managedFields":{}"#, list(size, entry)), "{}"))
    }, validate_managed_fields));
    passes
}
