//! The part of the page on what is checked that is made from the code: which fields of each kind are held to more than
//! their types.
//!
//! Each field of a kind is set in the kind's example, alone, to values that its type holds, and the object is created and
//! updated as by a server. Where that makes a difference to what is told, the field is checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kubeskiff_engine::author::{BuiltIn, Checked};
use kubeskiff_engine::kinds::{self, Form, Kind};
use kubeskiff_engine::object;
use kubeskiff_engine::types::{Codec, Field, FieldKind, Message, Shape};
use kubeskiff_engine::value::{Value, yaml};

/// What stands before the part that is made.
const HERE: &str = "<!-- made from the code; a test holds it -->\n";

/// Types that are told of once: a field of one of these is one field.
const WHOLE: [&str; 5] = ["PodTemplateSpec", "ObjectMeta", "LabelSelector", "NodeSelector", "JSONSchemaProps"];

/// An object that has everything is asked of kinds with so many fields at most: of others it takes long.
const FIELDS_MAX: usize = 100;

/// A field, and the fields that it stands within.
type Way = Vec<&'static Field>;

/// What an update and a creation say to a field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Held {
    /// Some values are refused.
    Checked,
    /// No value is refused, but it stays as it is.
    Fixed,
    /// All that the type holds is taken.
    Free,
    /// What is written there is dropped: its feature is off.
    Off,
}

/// All fields that clients write, but for metadata and status.
fn fields(message: &'static Message, way: &Way, found: &mut Vec<Way>) {
    for field in message.members() {
        let is_left_out = way.is_empty() && matches!(field.json, "apiVersion" | "kind" | "metadata" | "status");
        if is_left_out || field.json.is_empty() {
            continue;
        }
        let mut way = way.clone();
        way.push(field);
        match struct_of(field) {
            Some(inner) => fields(inner, &way, found),
            None => found.push(way),
        }
    }
}

/// The struct whose fields are told of one by one.
fn struct_of(field: &'static Field) -> Option<&'static Message> {
    let FieldKind::Message(inner) = field.kind else { return None };
    let inner = inner.get();
    (matches!(inner.codec, Codec::Object) && !inner.fields.is_empty() && !WHOLE.contains(&inner.name)).then_some(inner)
}

/// Values of the type of a field, the plain ones first.
fn values(field: &'static Field) -> Vec<Value> {
    let texts = || {
        let texts = [
            "a",
            "",
            "Not_Valid!",
            "a/b/c",
            "1",
            "1Mi",
            "-1",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.000000Z",
            "10.0.0.1",
            "example.com/a",
        ];
        texts.into_iter().map(Value::from).chain([Value::from("a".repeat(300))])
    };
    let numbers = || [1, 0, -1, 70_000, i64::from(i32::MAX)].into_iter().map(Value::Int);
    let enums = field.enums.split(',').filter(|text| !text.is_empty()).map(Value::from);
    let plain: Vec<Value> = match field.kind {
        FieldKind::Bool => vec![Value::Bool(true), Value::Bool(false)],
        FieldKind::Int32 | FieldKind::Int64 => numbers().collect(),
        FieldKind::Double => vec![Value::Float(1.5), Value::Float(-1.5)],
        FieldKind::String => enums.chain(texts()).collect(),
        FieldKind::Bytes => ["YQ==", "Yg=="].into_iter().map(Value::from).collect(),
        FieldKind::Message(inner) if matches!(inner.get().codec, Codec::Object) => {
            let selector = object! { "matchLabels" => object! { "Not Valid!" => "a" } };
            vec![object! {}, object! { "metadata" => object! { "labels" => object! { "a" => "b" } } }, selector]
        }
        FieldKind::Message(_) => {
            let texts_in_a_list = Value::Array(vec![Value::from("a")]);
            texts().chain(numbers()).chain([object! {}, texts_in_a_list]).collect()
        }
    };
    let list = |items: &[Value]| Value::Array(items.to_vec());
    match field.shape {
        Shape::List => {
            let one = plain.iter().map(|value| list(std::slice::from_ref(value)));
            let twice = plain.iter().take(1).map(|value| list(&[value.clone(), value.clone()]));
            one.chain(twice).chain([list(&[])]).collect()
        }
        Shape::Map | Shape::Extensions => {
            let by_name = |name: &'static str, value: &Value| object! { name => value.clone() };
            let odd = plain.iter().take(1).map(|value| by_name("Not Valid!", value));
            plain.iter().map(|value| by_name("a", value)).chain(odd).collect()
        }
        Shape::Value | Shape::Pointer | Shape::Inline => plain,
    }
}

/// The place of a field in an object; what is missing on the way there is made.
fn place<'v>(object: &'v mut Value, way: &[&'static Field]) -> &'v mut Value {
    let Some((last, outer)) = way.split_last() else { return object };
    let mut at = object;
    for field in outer {
        at = at.make_object().entry(field.json);
        match field.shape {
            Shape::List => {
                if at.as_array().is_none_or(<[Value]>::is_empty) {
                    *at = Value::Array(vec![object! {}]);
                }
                at = &mut at.as_array_mut().expect("it is a list")[0];
            }
            Shape::Map => {
                let known = at.as_object().and_then(|map| map.keys().next().map(str::to_owned));
                at = at.make_object().entry(known.as_deref().unwrap_or("a"));
            }
            Shape::Value | Shape::Pointer | Shape::Inline | Shape::Extensions => {}
        }
    }
    at.make_object().entry(last.json)
}

/// What is told of an object, without the values that it has.
fn told(checked: &Checked) -> BTreeSet<(String, String)> {
    checked.errors.iter().map(|it| (it.error.field.clone(), it.error.detail.clone())).collect()
}

/// Whether an object has something at a field.
fn has(object: &Value, way: &[&'static Field]) -> bool {
    let mut at = Some(object);
    for field in way {
        at = at.and_then(|at| at.get(field.json));
        at = match field.shape {
            Shape::List if struct_of(field).is_some() => at.and_then(Value::as_array).and_then(<[Value]>::first),
            Shape::Map if struct_of(field).is_some() => {
                at.and_then(Value::as_object).and_then(|map| map.iter().next()).map(|(_, value)| value)
            }
            _ => at,
        };
    }
    at.is_some_and(|value| !value.is_null())
}

/// Sets those of the fields that are not set to the first value of their types.
fn fill<'w>(object: &mut Value, ways: impl Iterator<Item = &'w Way>) {
    for way in ways {
        let field = way.last().expect("a way leads somewhere");
        let at = place(object, way);
        if let (true, Some(value)) = (at.is_null(), values(field).into_iter().next()) {
            *at = value;
        }
    }
}

/// The objects that a field is set in: the example; the example with the struct that the field is of in place of what stands
/// beside it, as of several structs one is chosen; an object that has everything.
fn contexts(example: &Value, way: &Way, ways: &[Way]) -> Vec<Value> {
    let mut contexts = vec![example.clone()];
    if ways.len() <= FIELDS_MAX {
        let mut everything = example.clone();
        fill(&mut everything, ways.iter());
        contexts.push(everything);
    }
    if let Some(depth) = (1..way.len()).find(|depth| !has(example, &way[..*depth])) {
        let chosen = &way[..depth];
        let mut alone = example.clone();
        if depth > 1 {
            let beside = place(&mut alone, &chosen[..depth - 1]);
            let beside = match beside {
                Value::Array(items) => items.first_mut(),
                other => Some(other),
            };
            if let Some(beside) = beside {
                *beside = object! {};
            }
        }
        let is_within =
            |other: &&Way| other.len() > depth && other.iter().zip(chosen).all(|(a, b)| std::ptr::eq(*a, *b));
        fill(&mut alone, ways.iter().filter(is_within));
        contexts.push(alone);
    }
    contexts
}

/// What the rules of a kind say to one of its fields.
fn held(built_in: &BuiltIn, example: &Value, way: &Way, ways: &[Way]) -> Held {
    let mut found = None;
    for context in contexts(example, way, ways) {
        found = found.into_iter().chain(held_in(built_in, &context, way)).min();
        if found == Some(Held::Checked) {
            break;
        }
    }
    assert!(found.is_some(), "no value is known that `{}` can have", shown(way));
    found.unwrap_or(Held::Off)
}

/// What they say to it in one object; `None` where none of the values can be decoded there.
fn held_in(built_in: &BuiltIn, context: &Value, way: &Way) -> Option<Held> {
    let with = |value: Option<&Value>| {
        let mut object = context.clone();
        *place(&mut object, way) = value.cloned().unwrap_or_default();
        object
    };
    let field = way.last().expect("a way leads somewhere");
    let unset = built_in.write(&with(None), None).map(|checked| told(&checked)).unwrap_or_default();
    let (mut taken, mut is_kept) = (Vec::new(), false);
    let own = Some(place(&mut context.clone(), way).clone()).filter(|value| !value.is_null());
    for value in own.into_iter().chain(values(field)) {
        let object = with(Some(&value));
        let Ok(checked) = built_in.write(&object, None) else { continue };
        if told(&checked) != unset {
            return Some(Held::Checked);
        }
        let mut prepared = checked.prepared;
        is_kept |= !place(&mut prepared, way).is_null();
        taken.push(object);
    }
    let stays = |pair: &[Value]| {
        let updated = built_in.write(&pair[1], Some(&pair[0]));
        updated.is_ok_and(|checked| told(&checked).len() > unset.len())
    };
    if taken.windows(2).any(stays) {
        return Some(Held::Fixed);
    }
    (!taken.is_empty()).then_some(if is_kept { Held::Free } else { Held::Off })
}

/// `spec.containers[]`.
fn shown(way: &[&'static Field]) -> String {
    let step = |field: &&'static Field| match field.shape {
        Shape::List if struct_of(field).is_some() => format!("{}[]", field.json),
        Shape::Map if struct_of(field).is_some() => format!("{}{{}}", field.json),
        _ => field.json.to_owned(),
    };
    way.iter().map(step).collect::<Vec<_>>().join(".")
}

/// Fields by what they stand in: `spec`: a, b; `spec.c`: d.
fn listed(ways: &[&Way]) -> String {
    let mut by_parent: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for way in ways {
        let (last, outer) = way.split_last().expect("a way leads somewhere");
        by_parent.entry(shown(outer)).or_default().push(format!("`{}`", last.json));
    }
    let within = |(parent, names): (&String, &Vec<String>)| match parent.as_str() {
        "" => names.join(", "),
        parent => format!("in `{parent}` {}", names.join(", ")),
    };
    by_parent.iter().map(within).collect::<Vec<_>>().join("; ")
}

/// What the page says of a kind.
fn paragraph(kind: &'static Kind) -> Option<String> {
    let built_in = BuiltIn::of(&kind.api_version(), kind.kind)?;
    let mut example = yaml::decode(kind.example.as_bytes()).expect("the example is YAML");
    let head = example.make_object();
    head.insert("apiVersion", Value::from(kind.api_version()));
    head.insert("kind", Value::from(kind.kind));
    let mut ways = Vec::new();
    fields(kind.message(), &Vec::new(), &mut ways);
    let by_held: Vec<(Held, &Way)> = ways.iter().map(|way| (held(&built_in, &example, way, &ways), way)).collect();
    let of = |wanted: Held| by_held.iter().filter(|(held, _)| *held == wanted).map(|(_, way)| *way).collect::<Vec<_>>();
    let (checked, fixed, off, free) = (of(Held::Checked), of(Held::Fixed), of(Held::Off), of(Held::Free));
    let mut text = format!("**{}** ({}): checked {} of {}.", kind.kind, kind.api_version(), checked.len(), ways.len());
    for (what, ways) in [("Fixed once written", fixed), ("Dropped", off), ("Nothing was refused of", free)] {
        if !ways.is_empty() {
            text += &format!(" {what}: {}.", listed(&ways));
        }
    }
    Some(text + "\n")
}

#[test]
fn the_page_tells_which_fields_are_checked() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/what-is-checked.md");
    let page = std::fs::read_to_string(&file).expect("the page is there");
    let (head, _) = page.split_once(HERE).expect("the page says where this part begins");
    let is_told =
        |kind: &&Kind| kind.is_stored() && kind.can("create") && !kind.is_question() && kind.form == Form::Typed;
    let mut told: Vec<&'static Kind> = kinds::all().filter(is_told).collect();
    told.sort_by_key(|kind| (kind.group, kind.kind));
    let paragraphs: Vec<String> = std::thread::scope(|scope| {
        let work: Vec<_> = told.iter().map(|kind| scope.spawn(|| paragraph(kind))).collect();
        work.into_iter().filter_map(|one| one.join().expect("no check panics")).collect()
    });
    let made = format!("{head}{HERE}\n{}", paragraphs.join("\n"));
    if std::env::var_os("SKIFF_UPDATE").is_some() {
        std::fs::write(&file, &made).expect("the page is writable");
    }
    assert!(page == made, "docs/what-is-checked.md is out of date: SKIFF_UPDATE=1 writes it anew");
}
