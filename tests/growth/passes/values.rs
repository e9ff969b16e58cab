//! JSON and YAML, in and out.

use kubeskiff::value::{Value, go_display, go_quote, json, yaml};

use crate::inputs::{SHAPES, Shape, lines, list, value};
use crate::pass::{Pass, pass};

const SIZE: usize = 40;
/// The scanner of YAML looks ahead for up to 1,024 characters: such inputs are larger than that.
const YAML_SIZE: usize = 200;

pub fn passes() -> Vec<Pass> {
    let mut passes = Vec::new();
    for (shape, text) in SHAPES {
        let value = move |size| value(&text(size));
        let yaml_size = if ["many items", "nested lists"].contains(&shape) { YAML_SIZE } else { SIZE };
        passes.extend([
            pass("json decode", shape, SIZE, text, |text| json::decode(text.as_bytes())),
            pass("json decode strictly", shape, SIZE, text, |text| json::decode_strict(text.as_bytes())),
            pass("json encode", shape, SIZE, value, json::encode),
            pass("json indent", shape, SIZE, text, |text| json::indent(text.as_bytes())),
            pass("yaml decode JSON", shape, yaml_size, text, |text| yaml::decode(text.as_bytes())),
            pass("yaml encode", shape, SIZE, value, |value: &Value| yaml::encode(value)),
            pass("value shown as Go does", shape, SIZE, value, go_display),
            pass("value compared and copied", shape, SIZE, value, |value| value.clone() == *value),
        ]);
    }
    passes.push(pass("yaml encode", "nested maps with numbers", 40, numbers_far_inside, |value: &Value| {
        yaml::encode(value)
    }));
    passes.push(pass("json encode", "escapes", SIZE, |size| Value::from("\u{1}\"".repeat(size)), json::encode));
    passes.push(pass("text quoted as Go does", "escapes", SIZE, |size| "\u{1}\"é".repeat(size), |text| go_quote(text)));
    for (shape, text) in YAML_SHAPES {
        passes.extend([
            pass("yaml decode", shape, SIZE, text, |text| yaml::decode(text.as_bytes())),
            pass("yaml decode strictly", shape, SIZE, text, |text| yaml::decode_strict(text.as_bytes())),
            pass("yaml decode all", shape, SIZE, text, |text| yaml::decode_all(text.as_bytes())),
            pass("yaml decode with places", shape, SIZE, text, |text| yaml::decode_all_located(text.as_bytes())),
        ]);
    }
    for (shape, text, path) in PLACES {
        passes.push(pass(
            "places of fields",
            shape,
            SIZE,
            move |size| (yaml::decode_all_located(text(size).as_bytes()), (0..size).map(path).collect::<Vec<_>>()),
            |(read, paths)| {
                let located = &read.as_ref().ok()?[0];
                Some(paths.iter().map(|path| (located.place(path), located.key_place(path))).collect::<Vec<_>>())
            },
        ));
    }
    passes.push(pass(
        "yaml decode each",
        "broken documents",
        SIZE,
        |size| lines(size, |at| format!("---\na: {}", if at % 2 == 0 { "[" } else { "1" })),
        |text| yaml::decode_each_located(text.as_bytes()),
    ));
    passes
}

/// What a shape is called, its text, and the path that is looked for in it.
type Looked = (&'static str, fn(usize) -> String, fn(usize) -> String);

/// Texts, and the paths of the fields in them that are looked for.
const PLACES: [Looked; 3] = [
    ("many keys", |size| format!("data:\n{}", lines(size, |at| format!("  k{at}: {at}"))), |at| format!("data.k{at}")),
    ("many keys with dots", |size| lines(size, |at| format!("k.{at}/x: {at}")), |at| format!("[k.{at}/x]")),
    ("many items", |size| lines(size, |at| format!("- name: n{at}")), |at| format!("[{at}].name")),
];

/// As deep as wide: what a level is indented by is written on each of its lines.
fn numbers_far_inside(size: usize) -> Value {
    let mut value = value(&list(size, |at| at.to_string()));
    for _ in 0..size {
        value = kubeskiff::object! { "k" => value };
    }
    value
}

const YAML_SHAPES: [Shape; 17] = [
    ("many keys", |size| lines(size, |at| format!("k{at}: {at}"))),
    ("keys in reverse order", |size| lines(size, |at| format!("k{:09}: 1", size - at))),
    ("one key many times", |size| lines(size, |at| format!("k: {at}"))),
    ("many items", |size| lines(size, |at| format!("- {at}"))),
    ("many objects", |size| lines(size, |at| format!("- name: n{at}\n  value:\n  - {at}"))),
    ("nested items on a line", |size| format!("{}1", "- ".repeat(size))),
    ("a long plain scalar", |size| format!("k: {}", "word ".repeat(size))),
    ("a long plain scalar on many lines", |size| format!("k:\n{}", lines(size, |_| " word".to_owned()))),
    ("a long quoted scalar", |size| format!("k: \"{}\"", "\\t\\u00e9 ".repeat(size))),
    ("a long block scalar", |size| format!("k: |\n{}", lines(size, |_| "  word".to_owned()))),
    ("a folded scalar with empty lines", |size| format!("k: >\n{}", lines(size, |_| "  word\n\n".to_owned()))),
    ("comments", |size| lines(size, |_| "# nothing".to_owned())),
    ("many documents", |size| lines(size, |at| format!("---\nk: {at}"))),
    ("many anchors", |size| lines(size, |at| format!("k{at}: &a{at} 1"))),
    ("many aliases", |size| format!("a: &a x\n{}", lines(size, |at| format!("k{at}: *a")))),
    ("merged keys", |size| format!("a: &a {{x: 1}}\nb:\n{}", lines(size, |at| format!("  - <<: *a\n    k{at}: 1")))),
    ("flow keys with a colon far away", |size| format!("[{}]", "a b ".repeat(size))),
];
