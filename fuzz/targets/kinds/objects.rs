//! Objects that are made of bytes: a kind's example, or all of its fields, and changes of these.

use kubeskiff::kinds::Kind;
use kubeskiff::types::{self, Codec, Field, Message, Shape};
use kubeskiff::value::{Value, yaml};

/// About how long an object may get.
const OBJECT_BYTES_MAX: usize = 96 << 10;
const CHANGES_MAX: usize = 24;
const DEPTH_MAX: usize = 14;
const MEMBERS_MAX: usize = 3_000;

/// What texts are made of: names, words that rules look for, what is long, empty, or of several bytes a character.
const TEXTS: [&str; 84] = [
    "autoscaling.alpha.kubernetes.io/metrics",
    "autoscaling.alpha.kubernetes.io/conditions",
    "autoscaling.alpha.kubernetes.io/behavior",
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "[{}]",
    r#"[{"type":"é","a":[1e99]}]"#,
    r#"{"scaleUp":{"policies":[null]}}"#,
    "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n",
    "object.spec.x[0] == '日'",
    "0x",
    "seccomp.security.alpha.kubernetes.io/pod",
    "container.apparmor.security.beta.kubernetes.io/é",
    "a",
    "",
    "b",
    "x.io/a",
    "example.com",
    "-",
    ".",
    "/",
    "//",
    ":",
    "a/b/c",
    "é",
    "日本語",
    "a日",
    "\u{1F600}",
    "\u{0}",
    "\n",
    " ",
    "A",
    "0",
    "-1",
    "1",
    "99999999999999999999",
    "1Ki",
    "-5m",
    "9223372036854775807",
    "1e18",
    "100%",
    "101%",
    "-1%",
    "%",
    "é%",
    "10.0.0.1",
    "::1",
    "::ffff:1.2.3.4",
    "10.0.0.0/8",
    "fd00::/64",
    "10.0.0.0/99",
    "2026-01-02T03:04:05Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "1h",
    "-1s",
    "kubernetes.io/x",
    "node.kubernetes.io/é",
    "*",
    "*.a",
    "In",
    "Exists",
    "NotIn",
    "Gt",
    "TCP",
    "UDP",
    "Always",
    "Never",
    "$(A)",
    "$(",
    "$$(A)",
    "repo/a:b@sha256:é",
    "../é",
    "/é/..",
    "\\é",
    "0 0 * * *",
    "TZ=é 0 0 * * *",
    "*/0 1-é * * *",
    "59-1/99999999999 * * * *",
    "0-4294967295",
    "1,2,3-",
    "cpu",
    "memory",
    "count/é",
    "requests.é",
];

const NUMBERS: [i64; 18] = [
    0,
    1,
    -1,
    2,
    65_535,
    65_536,
    -65_536,
    2_147_483_647,
    -2_147_483_648,
    4_294_967_296,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    i64::MIN + 1,
    1_000_000_000,
    86_400,
    100,
    101,
];

/// The input, as choices; behind its end, the first of each.
pub struct Source<'a> {
    rest: &'a [u8],
}

impl<'a> Source<'a> {
    pub fn new(rest: &'a [u8]) -> Self {
        Source { rest }
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    pub fn below(&mut self, bound: usize) -> usize {
        let byte = usize::from(self.byte());
        byte % bound.max(1)
    }

    fn text(&mut self) -> String {
        match self.byte() {
            0..240 => TEXTS[self.below(TEXTS.len())].to_owned(),
            240..246 => ["a", "é", "日", "a.", "1"][self.below(5)].repeat(1 + self.below(256) * 5),
            _ => TEXTS[self.below(TEXTS.len())].to_owned() + TEXTS[self.below(TEXTS.len())],
        }
    }

    fn number(&mut self) -> Value {
        Value::Int(NUMBERS[self.below(NUMBERS.len())])
    }

    /// A value of any type.
    fn any(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => Value::Bool(true),
            2 => self.number(),
            3 => Value::Float([0.5, -0.0, 1e300, -1e300][self.below(4)]),
            4 => Value::from(self.text()),
            5 => Value::Array(vec![]),
            6 => Value::Object(Default::default()),
            _ => Value::Array(vec![Value::Object(Default::default()), Value::Null]),
        }
    }
}

/// What the changes begin with: the kind's example, or an object with all of its fields.
pub fn first(kind: &'static Kind, source: &mut Source<'_>) -> Value {
    let mut object = match source.below(3) {
        0 => yaml::decode(kind.example.as_bytes()).unwrap_or_default(),
        1 => with_all_fields(kind.message(), &mut Source::new(&[])),
        _ => with_all_fields(kind.message(), source),
    };
    let fields = object.make_object();
    fields.insert("apiVersion", Value::from(kind.api_version()));
    fields.insert("kind", Value::from(kind.kind));
    object
}

fn with_all_fields(message: &'static Message, source: &mut Source<'_>) -> Value {
    let mut left = MEMBERS_MAX;
    value_of_message(message, source, DEPTH_MAX, &mut left)
}

fn value_of_message(message: &'static Message, source: &mut Source<'_>, depth: usize, left: &mut usize) -> Value {
    match message.codec {
        Codec::Object => {
            let mut object = Value::Object(Default::default());
            for field in message.members().filter(|field| !field.json.is_empty()) {
                if depth == 0 || *left == 0 {
                    break;
                }
                *left -= 1;
                // Now and then a field is missing: unions have one member, not all.
                if source.byte() < 224 {
                    object.make_object().insert(field.json, value_of_field(field, source, depth - 1, left));
                }
            }
            object
        }
        Codec::Time => Value::from("2026-01-02T03:04:05Z"),
        Codec::MicroTime => Value::from("2026-01-02T03:04:05.000006Z"),
        Codec::Quantity => Value::from(
            ["1", "100m", "-5", "0", "9223372036854775807", "1Ei", "1e-9", "99999999999999999999E"][source.below(8)],
        ),
        Codec::IntOrString if source.byte().is_multiple_of(2) => source.number(),
        Codec::IntOrString => Value::from(source.text()),
        Codec::Duration => Value::from(["1m30s", "-1h", "0s", "2540400h"][source.below(4)]),
        Codec::FieldsV1 | Codec::Json | Codec::Any => Value::Object(Default::default()),
        _ => source.any(),
    }
}

fn value_of_field(field: &'static Field, source: &mut Source<'_>, depth: usize, left: &mut usize) -> Value {
    match field.shape {
        Shape::List => {
            let count = 1 + source.below(4) / 2;
            Value::Array((0..count).map(|_| one(field, source, depth, left)).collect())
        }
        Shape::Map => {
            let mut object = Value::Object(Default::default());
            for _ in 0..=source.below(3) {
                let (name, value) = (source.text(), one(field, source, depth, left));
                object.make_object().insert(name, value);
            }
            object
        }
        _ => one(field, source, depth, left),
    }
}

fn one(field: &'static Field, source: &mut Source<'_>, depth: usize, left: &mut usize) -> Value {
    match field.kind {
        types::FieldKind::Bool => Value::Bool(source.byte().is_multiple_of(2)),
        types::FieldKind::Int32 | types::FieldKind::Int64 => {
            let is_small = matches!(field.kind, types::FieldKind::Int32);
            let number = NUMBERS[source.below(NUMBERS.len())];
            Value::Int(if is_small { i32::try_from(number).map_or(1, i64::from) } else { number })
        }
        types::FieldKind::Double => Value::Float(0.5),
        types::FieldKind::String if !field.enums.is_empty() && source.byte() < 200 => {
            let words: Vec<&str> = field.enums.split(',').collect();
            Value::from(words[source.below(words.len())])
        }
        types::FieldKind::String => Value::from(source.text()),
        types::FieldKind::Bytes => Value::from(["", "YQ==", "LS0tLS0=", "/w=="][source.below(4)]),
        types::FieldKind::Message(inner) => value_of_message(inner.get(), source, depth, left),
    }
}

/// Some changes, as the source says.
pub fn change(object: &mut Value, source: &mut Source<'_>) {
    for _ in 0..source.below(CHANGES_MAX) {
        let room = OBJECT_BYTES_MAX.saturating_sub(object.size_bytes());
        change_below(object, source, room);
    }
}

/// Goes down to some value and changes that.
fn change_below(value: &mut Value, source: &mut Source<'_>, room: usize) {
    let is_here = source.byte() < 24;
    match value {
        Value::Object(fields) if !is_here && !fields.is_empty() => {
            let at = source.below(fields.len());
            if let Some((_, inner)) = fields.iter_mut().nth(at) {
                change_below(inner, source, room);
            }
        }
        Value::Array(items) if !is_here && !items.is_empty() => {
            let at = source.below(items.len());
            change_below(&mut items[at], source, room);
        }
        _ => change_here(value, source, room),
    }
}

fn change_here(value: &mut Value, source: &mut Source<'_>, room: usize) {
    let size = value.size_bytes();
    match (source.byte(), value) {
        (0..8, value) => *value = source.any(),
        (8..16, value) => *value = Value::Null,
        (_, Value::Bool(truth)) => *truth = !*truth,
        (_, value @ (Value::Int(_) | Value::Float(_))) => *value = source.number(),
        (_, value @ Value::Null) => *value = source.any(),
        (_, Value::String(text)) => change_text(text, source, room),
        (_, Value::Array(items)) => change_items(items, source, room, size),
        (_, value @ Value::Object(_)) => change_fields(value, source, room, size),
    }
}

fn change_text(text: &mut String, source: &mut Source<'_>, room: usize) {
    match source.below(4) {
        0 if room > 4 * text.len() => *text = text.repeat(4),
        1 => text.push_str(TEXTS[source.below(TEXTS.len())]),
        2 => {
            let count = text.chars().count();
            *text = text.chars().take(source.below(count + 1)).collect();
        }
        _ => *text = source.text(),
    }
}

fn change_items(items: &mut Vec<Value>, source: &mut Source<'_>, room: usize, size: usize) {
    let at = source.below(items.len());
    match source.below(6) {
        0 => items.clear(),
        1 if at < items.len() => drop(items.remove(at)),
        2 if at < items.len() => items.swap(0, at),
        3 => items.push(source.any()),
        4 if size < room => items.extend_from_within(..),
        _ if at < items.len() => {
            let count = source.below(64).min(room / (1 + items[at].size_bytes()));
            let item = items[at].clone();
            items.extend(std::iter::repeat_n(item, count));
        }
        _ => {}
    }
}

fn change_fields(value: &mut Value, source: &mut Source<'_>, room: usize, size: usize) {
    let Some(fields) = value.as_object_mut() else { return };
    let names: Vec<String> = fields.keys().map(str::to_owned).collect();
    let name = |source: &mut Source<'_>| names.get(source.below(names.len())).cloned().unwrap_or_default();
    let (from, to) = (name(source), name(source));
    match source.below(4) {
        0 => drop(fields.remove(&from)),
        1 => {
            let (first, second) = (fields.remove(&from), fields.remove(&to));
            let pairs = [(to, first), (from, second)];
            pairs.into_iter().for_each(|(name, value)| drop(value.map(|value| fields.insert(name, value))));
        }
        2 if size < room => {
            let copy = fields.get(&from).cloned().unwrap_or_default();
            fields.insert(source.text(), copy);
        }
        _ => drop(fields.insert(source.text(), source.any())),
    }
}
