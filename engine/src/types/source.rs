//! The types of the published Go modules, as `schemas/types` holds them.
//!
//! A file is a package; `schemas/generate/README.md` describes its format. A package is indexed when one of its types
//! is first asked for, and a type is read on first use: a server that never sees a Pod never reads its type. What is
//! read stays for the life of the process, so a type is a `&'static` like those that are written in Rust.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use super::table::{Field, FieldKind, Message, Named, Package, Ref, Shape, field};
use super::{Codec, own};
use crate::meta::minor::Minor;

include!(concat!(env!("OUT_DIR"), "/types.rs"));

/// The packages by their names: `core.v1`.
static PACKAGES: LazyLock<HashMap<&str, Package>> = LazyLock::new(|| {
    files().map(|&(name, group, text)| (name, Package { name, group, text, types: OnceLock::new() })).collect()
});

/// The first parts of the packages' names by the API groups.
static GROUPS: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| files().filter_map(|&(name, group, _)| Some((group?, name.split_once('.')?.0))).collect());

/// Each package with the API group of its kinds and its text.
fn files() -> impl Iterator<Item = &'static (&'static str, Option<&'static str>, &'static str)> {
    FILES.iter().chain(&MADE_UP)
}

/// Fields that the oldest minor does not know, by type: `core.v1.PodSpec`.
static SINCE: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    include_str!(concat!(env!("SCHEMAS"), "/since.txt")).lines().filter_map(|line| line.split_once(' ')).collect()
});

/// The minor that added a field to its type, unless that is the oldest.
pub(super) fn since(package: &str, name: &str, field: &str) -> Option<Minor> {
    let fields = SINCE.get(format!("{package}.{name}").as_str())?;
    let found = fields.split(' ').filter_map(|word| word.split_once("=1.")).find(|(name, _)| *name == field);
    found.and_then(|(_, minor)| minor.parse().ok()).map(Minor::of)
}

/// Whether a minor knows a field of a type in the data.
pub fn is_field_in(minor: Minor, package: &str, name: &str, field: &str) -> bool {
    since(package, name, field).is_none_or(|since| since <= minor)
}

/// Fields that the oldest minor does not know, with the names of their types (`core.v1.PodSpec`) and the minors that
/// added them, for all types in the data.
pub fn newer_fields() -> impl Iterator<Item = (&'static str, &'static str, Minor)> {
    let is_here = |of: &str| of.rsplit_once('.').is_some_and(|(package, name)| find(package, name).is_some());
    let lines = SINCE.iter().filter(move |(of, _)| is_here(of));
    lines
        .flat_map(|(of, fields)| {
            let word = |word: &'static str| word.split_once("=1.").map(|(field, minor)| (*of, field, minor));
            fields.split(' ').filter_map(word)
        })
        .filter_map(|(of, field, minor)| Some((of, field, Minor::of(minor.parse().ok()?))))
}

/// The struct `name` of a package.
pub fn find(package: &str, name: &str) -> Option<&'static Named> {
    PACKAGES.get(package)?.types().get(name)
}

/// The names of all packages.
pub fn packages() -> impl Iterator<Item = &'static str> {
    files().map(|(name, ..)| *name)
}

/// The first part of the names of the packages of a group: `core` for the group without a name.
pub fn package_of_group(group: &str) -> Option<&'static str> {
    GROUPS.get(group).copied()
}

/// The structs of a package that are objects, unordered.
pub fn objects(package: &str) -> impl Iterator<Item = &'static Named> {
    let package = PACKAGES.get(package);
    let types = package.into_iter().flat_map(|package| package.types().values());
    types.filter(|named| named.words().any(|word| word == "object"))
}

/// All structs of a package, unordered.
pub fn structs(package: &str) -> impl Iterator<Item = &'static Named> {
    let package = PACKAGES.get(package);
    package.into_iter().flat_map(|package| package.types().values()).filter(|named| !named.fields.is_empty())
}

impl Package {
    fn types(&'static self) -> &'static HashMap<&'static str, Named> {
        self.types.get_or_init(|| {
            let types = self.text.split("\ntype ").skip(1);
            types.map(|text| self.named(text)).map(|named| (named.name, named)).collect()
        })
    }

    fn named(&'static self, text: &'static str) -> Named {
        let (head, fields) = text.split_once('\n').unwrap_or((text, ""));
        let (name, head) = head.split_once(' ').unwrap_or((head, ""));
        Named { package: self, name, head, fields, read: Named::read, message: OnceLock::new() }
    }

    /// The package's name in Go's errors: the last element of its path.
    fn go_name(&self) -> &'static str {
        match self.name.rsplit_once('.') {
            Some((_, version)) => version,
            None if self.name == "quantity" => "resource",
            None => self.name,
        }
    }

    /// The type that a text in this package names: `PodSpec`, `meta.v1.Time`.
    fn resolve(&'static self, name: &str) -> Option<&'static Named> {
        match name.rsplit_once('.') {
            Some((package, name)) => find(package, name),
            None => self.types().get(name),
        }
    }
}

impl Named {
    /// The package of the type: `core.v1`.
    pub(super) const fn package(&self) -> &'static str {
        self.package.name
    }

    /// The API group and the version of its package, if it has them.
    pub(super) fn group_version(&self) -> Option<(&'static str, &'static str)> {
        let (_, version) = self.package.name.split_once('.')?;
        Some((self.package.group?, version))
    }

    /// Whether the minor `now` of Kubernetes serves the type: it was introduced by then, and not removed.
    pub fn is_in(&self, now: u32) -> bool {
        self.minor("introduced").is_none_or(|minor| minor <= now) && self.removed().is_none_or(|minor| now < minor)
    }

    /// The minor since which the type is deprecated.
    ///
    /// Source: `prerelease-lifecycle-gen`: alpha and beta versions live for six minors, the last three of them deprecated.
    fn deprecated(&self) -> Option<u32> {
        self.minor("deprecated").or_else(|| self.later(self.minor("introduced")))
    }

    /// The minor since which it is removed.
    pub fn removed(&self) -> Option<u32> {
        self.minor("removed").or_else(|| self.later(self.deprecated()))
    }

    /// The end of the grace period of an alpha or beta version that begins at `from`.
    fn later(&self, from: Option<u32>) -> Option<u32> {
        const GRACE_MINORS: u32 = 3;
        let (_, version) = self.group_version()?;
        let is_stable = !version.contains("alpha") && !version.contains("beta");
        from.filter(|_| !is_stable).map(|from| from + GRACE_MINORS)
    }

    /// A minor among the words of the type: 9 for `introduced=1.9`.
    fn minor(&self, name: &str) -> Option<u32> {
        let word = self.words().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        word?.strip_prefix("1.")?.parse().ok()
    }

    /// The warning for every use of the type in the minor `now` of Kubernetes; `None` while it is not deprecated.
    pub fn deprecation(&self, now: u32) -> Option<String> {
        let (group, version) = self.group_version()?;
        let word =
            |name: &str| self.words().find_map(|word| word.strip_prefix(name).and_then(|word| word.strip_prefix('=')));
        let deprecated = self.deprecated().filter(|minor| *minor <= now)?;
        let removed = self.removed();
        let api_version = |group: &str, version: &str| match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let mut text = format!("{} {} is deprecated in v1.{deprecated}+", api_version(group, version), self.name);
        if let Some(removed) = removed {
            text += &format!(", unavailable in v1.{removed}+");
        }
        let mut instead = word("replacement").unwrap_or_default().split(',');
        if let (Some(group), Some(version), Some(kind)) = (instead.next(), instead.next(), instead.next()) {
            text += &format!("; use {} {kind}", api_version(group, version));
        }
        Some(text)
    }

    /// The name of the type, without its package.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The words of its first line.
    fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.head.split(' ').filter(|word| !word.is_empty())
    }

    /// The underlying Go type, if it is not a struct: `string`, `[]string`, `map[ResourceName]quantity.Quantity`.
    fn underlying(&self) -> Option<&'static str> {
        let first = self.words().next()?;
        let is_word = matches!(first, "object" | "message" | "cluster" | "own" | "union") || first.contains('=');
        (!is_word && !first.starts_with('+')).then_some(first)
    }

    fn go_type(&self) -> &'static str {
        leak(format!("{}.{}", self.package.go_name(), self.name))
    }

    fn read(&'static self) -> Message {
        let package = self.package.go_name();
        let own = own::find(self.package.name, self.name);
        if let Some(own::OwnType { codec, fields: Some(fields) }) = own {
            return Message::new(self.name, fields).package(package).codec(codec);
        }
        let has = |wanted: &str| self.words().any(|word| word == wanted);
        if let Some(items) = self.underlying().filter(|_| own.is_none()) {
            let items = self.package.type_of(items);
            let list = Field { shape: Shape::List, go_type: items.go_type, ..field(1, "", items.kind) };
            let fields = leak_fields(vec![Field { always: false, ..list.go("Items") }]);
            return Message::new(self.name, fields).package(package).codec(Codec::List);
        }
        let lines = self.fields.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let fields = leak_fields(lines.map(|line| self.field(line)).collect());
        let mut message = Message::new(self.name, fields).package(package);
        message.codec = own.map_or(Codec::Object, |own| own.codec);
        message.is_object = has("object");
        message.is_atomic = has("struct=atomic");
        message
    }

    /// Parses the line of a field: its name, its type, its number and its attributes.
    fn field(&'static self, line: &'static str) -> Field {
        let mut words = line.trim_start().split(' ');
        let mut next = || words.next().unwrap_or_default();
        let (name, go_type, number) = (next(), next(), next());
        let json = if name == "-" { "" } else { name };
        let found = self.package.type_of(go_type);
        let mut made = Field {
            shape: found.shape,
            always: true,
            go_type: found.go_type,
            container_type: found.container_type,
            enums: found.enums,
            values: found.values,
            markers: markers(line),
            owner: Some(self),
            since: since(self.package.name, self.name, json),
            ..field(number.parse().unwrap_or_default(), json, found.kind)
        };
        let is_struct = found.shape == Shape::Value && matches!(found.kind, FieldKind::Message(_));
        let mut is_optional = false;
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("omitempty", _) => (made.always, is_optional) = (is_struct, true),
                ("omitzero", _) => (made.always, is_optional) = (false, true),
                ("optional", _) => is_optional = true,
                ("inline", _) => made.shape = Shape::Inline,
                ("go", name) => made = made.go(name),
                ("patch", strategy) => made.items.strategy = Some(strategy),
                ("key", key) => made.items.merge_key = Some(key),
                ("list", text) => (made.items.list_type, made.items.map_keys) = list_type(text),
                ("map" | "struct", type_) => made.items.map_type = Some(type_),
                ("default", json) => made.default = Some(json),
                _ => {}
            }
        }
        let has = |wanted: &str| line.split(' ').any(|word| word == wanted);
        made.is_required = has("required") || (!is_optional && made.shape != Shape::Inline);
        made
    }
}

/// What a field holds.
struct FieldContent {
    kind: FieldKind,
    shape: Shape,
    go_type: Option<&'static str>,
    container_type: Option<&'static str>,
    enums: &'static str,
    values: &'static str,
}

impl FieldContent {
    const fn of(kind: FieldKind) -> Self {
        FieldContent { kind, shape: Shape::Value, go_type: None, container_type: None, enums: "", values: "" }
    }
}

impl Package {
    /// Parses a Go type as written in this package: `*int32`, `[]Container`, `map[string]meta.v1.Time`.
    fn type_of(&'static self, text: &'static str) -> FieldContent {
        if let Some(inner) = text.strip_prefix('*') {
            let found = self.type_of(inner);
            let shape = if found.shape == Shape::Value { Shape::Pointer } else { found.shape };
            return FieldContent { shape, ..found };
        }
        if text == "[]byte" {
            return FieldContent::of(FieldKind::Bytes);
        }
        if let Some(items) = text.strip_prefix("[]") {
            return FieldContent { shape: Shape::List, ..self.type_of(items) };
        }
        if let Some((keys, values)) = text.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
            let found = self.type_of(values);
            // Some maps have lists as their values.
            if found.shape == Shape::List {
                return list_by_name(found);
            }
            let keys = self.resolve(keys).map(Named::go_type);
            let container_type = keys.map(|keys| leak(format!("map[{keys}]{}", found.kind.go_type(found.go_type))));
            return FieldContent { shape: Shape::Map, container_type, ..found };
        }
        match text {
            "string" => FieldContent::of(FieldKind::String),
            "bool" => FieldContent::of(FieldKind::Bool),
            "int32" => FieldContent::of(FieldKind::Int32),
            "int" | "int64" => FieldContent::of(FieldKind::Int64),
            "float64" => FieldContent::of(FieldKind::Double),
            name => self.resolve(name).map_or_else(|| unknown(name), Named::found),
        }
    }
}

impl Named {
    fn found(&'static self) -> FieldContent {
        let is_message =
            self.words().any(|word| word == "message") || own::find(self.package.name, self.name).is_some();
        let Some(underlying) = self.underlying().filter(|_| !is_message) else {
            let go_type = self.underlying().map(|_| self.go_type());
            return FieldContent { go_type, ..FieldContent::of(FieldKind::Message(Ref::Named(self))) };
        };
        let found = self.package.type_of(underlying);
        match found.shape {
            // The type is an alias: Go only knows the aliased type.
            _ if self.words().any(|word| word == "alias") => found,
            Shape::List | Shape::Map => FieldContent { container_type: Some(self.go_type()), ..found },
            _ => {
                let word = |name: &str| self.words().find_map(|word| word.strip_prefix(name));
                let enums = word("enum=").unwrap_or_default();
                let is_checked = self.words().any(|word| word == "+k8s:enum");
                let values = if is_checked { word("values=").unwrap_or(enums) } else { "" };
                FieldContent { go_type: Some(self.go_type()), enums, values, ..found }
            }
        }
    }
}

/// The markers of declarative validation, at the end of a field's line.
fn markers(line: &'static str) -> &'static str {
    line.find(" +k8s:").map_or("", |at| &line[at + 1..])
}

/// A map of lists, in the form of a map of messages that are lists.
fn list_by_name(items: FieldContent) -> FieldContent {
    let list = Field { shape: Shape::List, go_type: items.go_type, always: false, ..field(1, "", items.kind) };
    let message = Message::new("", leak_fields(vec![list])).codec(Codec::List);
    FieldContent { shape: Shape::Map, ..FieldContent::of(FieldKind::Message(Ref::Made(Box::leak(Box::new(message))))) }
}

/// A string type of a package that is not in the data: `types.UID`.
fn unknown(name: &str) -> FieldContent {
    FieldContent { go_type: Some(leak(name.to_owned())), ..FieldContent::of(FieldKind::String) }
}

/// `set`, `map(a,b)`: the type of a list, and its keys.
pub(super) fn list_type(text: &'static str) -> (Option<&'static str>, &'static [&'static str]) {
    match text.split_once('(') {
        Some((type_, keys)) => {
            let keys: Vec<&str> = keys.trim_end_matches(')').split(',').collect();
            (Some(type_), Box::leak(keys.into_boxed_slice()))
        }
        None => (Some(text), &[]),
    }
}

pub(super) fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn leak_fields(fields: Vec<Field>) -> &'static [Field] {
    Box::leak(fields.into_boxed_slice())
}
