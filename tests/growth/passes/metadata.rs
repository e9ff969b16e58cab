//! Metadata, names, selectors, and the small languages in texts.

use kubeskiff::meta::field::Path;
use kubeskiff::meta::json_path::JsonPath;
use kubeskiff::meta::selector::{FieldSelector, LabelSelector};
use kubeskiff::meta::{Status, address, duration, names, object_meta, pattern, quantity, semver, time, url};
use kubeskiff::object;
use kubeskiff::value::Value;

use crate::inputs::{METADATA, Shape, fields, items, list, value, widget};
use crate::pass::{Pass, pass};

const SIZE: usize = 30;

pub fn passes() -> Vec<Pass> {
    let mut passes = Vec::new();
    for (shape, text) in METADATA {
        let metadata = move |size| {
            let object = value(&widget(&text(size), "{}"));
            object.get("metadata").cloned().unwrap_or_default()
        };
        let changed = move |size| {
            let (new, mut old) = (metadata(size), metadata(size));
            old.make_object().insert("deletionTimestamp", "2026-01-01T00:00:00Z".into());
            (new, old)
        };
        let added = move |size| {
            let old = object! { "name" => "a", "deletionTimestamp" => "2026-01-01T00:00:00Z" };
            (metadata(size), old)
        };
        passes.extend([
            pass("metadata decode", shape, SIZE, metadata, object_meta::decode),
            pass("metadata decode leniently", shape, SIZE, metadata, object_meta::decode_leniently),
            pass("metadata validate", shape, SIZE, metadata, validate),
            pass("metadata validate an update", shape, SIZE, changed, validate_update),
            pass("metadata validate an addition", shape, SIZE, added, validate_update),
            pass(
                "metadata refused",
                shape,
                SIZE,
                move |size| validate(&metadata(size)),
                |errors| Status::invalid("example.com", "Widget", "a", errors),
            ),
        ]);
    }
    passes.extend(selectors());
    passes.extend(texts());
    passes
}

fn validate(metadata: &Value) -> kubeskiff::meta::field::ErrorList {
    object_meta::validate(metadata, true, names::name_is_dns1123_subdomain, &Path::new("metadata"))
}

fn validate_update((new, old): &(Value, Value)) -> kubeskiff::meta::field::ErrorList {
    object_meta::validate_update(new, old, &Path::new("metadata"))
}

fn selectors() -> Vec<Pass> {
    const LABELS: [Shape; 6] = [
        ("many requirements", |size| items(size, |at| format!("k{at}=v"))),
        ("one key many times", |size| items(size, |at| format!("k=v{at}"))),
        ("a set of many", |size| format!("k in ({})", items(size, |at| format!("v{at}")))),
        ("a set of one value", |size| format!("k notin ({})", items(size, |_| "v".to_owned()))),
        ("a long word", |size| "x".repeat(size)),
        ("blanks", |size| format!("k{}=v", " ".repeat(size))),
    ];
    let mut passes = Vec::new();
    for (shape, text) in LABELS {
        passes.push(pass("label selector parse", shape, SIZE, text, |text| LabelSelector::parse(text)));
        passes.push(pass("field selector parse", shape, SIZE, text, |text| FieldSelector::parse(text)));
    }
    // As many labels as requirements, as the shorter of the two counts.
    let labelled = |size| {
        let selector = LabelSelector::parse(&items(size, |at| format!("k{at:05}!=x"))).expect("it is a selector");
        (selector, (0..size).map(|at| (format!("k{at:05}"), "v")).collect::<Vec<_>>())
    };
    passes.push(pass("label selector match", "many of each", SIZE, labelled, |(selector, labels)| {
        selector.matches(&labels[..])
    }));
    let expression = |at| format!(r#"{{"key":"k{at}","operator":"In","values":["v{at}","!"]}}"#);
    let structured = move |size| {
        let labels = fields(size, |at| format!(r#""l{at}":"v""#));
        value(&format!(r#"{{"matchLabels":{labels},"matchExpressions":{}}}"#, list(size, expression)))
    };
    passes.push(pass("label selector decode", "many", SIZE, structured, LabelSelector::decode));
    passes.push(pass("label selector validate", "many", SIZE, structured, |selector| {
        LabelSelector::validate(selector, true, &Path::ROOT)
    }));
    passes
}

fn texts() -> Vec<Pass> {
    let of = |text: &'static str| move |size: usize| text.repeat(size);
    let parse_path = |text: &String| JsonPath::parse(text);
    let mut passes = vec![
        pass("names", "a long name", SIZE, of("a.b-"), |text| {
            (names::is_dns1123_subdomain(text), names::is_qualified_name(text), names::is_valid_label_value(text))
        }),
        pass("quantity parse", "digits", SIZE, of("9"), |text| quantity::Quantity::parse(text)),
        pass(
            "quantity parse",
            "zeros",
            SIZE,
            |size| format!("0.{}1", "0".repeat(size)),
            |text| quantity::Quantity::parse(text),
        ),
        pass(
            "semver parse",
            "many parts",
            SIZE,
            |size| format!("1.2.3-a{}", ".b".repeat(size)),
            |text| semver::Semver::parse(text),
        ),
        pass(
            "url parse",
            "a long query",
            SIZE,
            |size| format!("http://h/?{}", "a=%41&".repeat(size)),
            |text| url::parse(text).map(|url| url.query_parameters()),
        ),
        pass("address parse", "colons", SIZE, of("1:"), |text| {
            address::parse(text).map_err(|error| error.to_string()).is_ok()
        }),
        pass("duration parse", "many parts", SIZE, of("1h"), |text| duration::parse(text)),
        pass(
            "time parse",
            "digits",
            SIZE,
            |size| format!("2026-01-01T00:00:00.{}Z", "1".repeat(size)),
            |text| time::normalize(text),
        ),
    ];
    for (shape, path) in
        [("fields", ".a"), ("wildcards", "[*]"), ("descents", "..a"), ("unions", "['a','b']"), ("indices", "[0]")]
    {
        passes.push(pass("JSON path parse", shape, SIZE, of(path), parse_path));
    }
    for (shape, path) in [
        ("wildcard", ".items[*].name"),
        ("descent", "..name"),
        ("filter", ".items[?(@.name==\"n1\")].name"),
        ("two descents", "..items..name"),
        ("union", ".items[0,1,2].name"),
        ("slice", ".items[:].name"),
    ] {
        let input = move |size| {
            let found = value(&format!(r#"{{"items":{}}}"#, list(size, |at| format!(r#"{{"name":"n{at}"}}"#))));
            (JsonPath::parse(path).expect("it is a path"), found)
        };
        passes.push(pass("JSON path find", shape, SIZE, input, |(path, value)| {
            path.find(value).map(|found| found.len())
        }));
    }
    for (shape, source) in PATTERNS {
        let input = move |size| (pattern::Pattern::new(source).expect("it is a pattern"), "xy".repeat(size));
        passes.push(pass("pattern match", shape, SIZE, input, |(pattern, text)| pattern.is_match(text)));
    }
    passes.push(pass(
        "pattern compile",
        "many alternatives",
        SIZE,
        |size| format!("({})", items(size, |at| format!("a{at}")).replace(',', "|")),
        |text| pattern::Pattern::new(text).is_ok(),
    ));
    passes.push(pass(
        "pattern compile",
        "nested groups",
        30,
        |size| format!("{}a{}", "(".repeat(size), ")*".repeat(size)),
        |text| pattern::Pattern::new(text).is_ok(),
    ));
    passes.push(pass(
        "pattern compile",
        "repetitions",
        10,
        |size| format!("(\\pL|x){{{size}}}"),
        |text| pattern::Pattern::new(text).is_ok(),
    ));
    passes
}

const PATTERNS: [(&str, &str); 4] = [
    ("a star in a star", "^(x*y*)*!$"),
    ("alternatives that begin alike", "(xyxy|xyxz|xy)*!"),
    ("letters", "^(\\pL|x)*!"),
    ("counted repetitions", "(\\pL|x){4}(\\pL|y){4}!"),
];
