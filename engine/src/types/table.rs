//! The description of a type.
//!
//! It follows the Go type, which determines JSON and protobuf: its tags give the field's number and its JSON name, a
//! value that is not a pointer is always on the wire, and `omitempty` leaves its zero out of the JSON.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::OnceLock;

use crate::meta::minor::Minor;
use crate::value::{Value, place_of};
use crate::work;

/// A struct in Go, a message in protobuf.
pub struct Message {
    /// The name of its Go type, without its package, for errors.
    pub name: &'static str,
    /// The last element of its Go package (`v1`), for errors.
    pub package: &'static str,
    /// In the order of the Go type, which is that of the JSON.
    pub fields: &'static [Field],
    /// How it is encoded, if not field by field.
    pub codec: Codec,
    /// Whether it is an object: its JSON has `kind` and `apiVersion`, which its protobuf does not have.
    pub is_object: bool,
    /// Whether it is owned as a whole: `+structType=atomic`.
    pub is_atomic: bool,
    /// The indices of the fields in the order of their numbers; entries after the last field are unused.
    pub(super) by_number: [u8; FIELDS_MAX],
    /// Its members by their names, indexed on first use.
    by_name: OnceLock<Box<[MessageMember]>>,
    /// The indices of the fields that JSON names, by the beginnings of their names: indexed on first use.
    by_beginning: OnceLock<Box<[(u64, u8)]>>,
}

/// A field as a member of the JSON.
pub struct MessageMember {
    /// The field.
    pub field: &'static Field,
    /// Its position among the members, in the order of the Go type.
    pub place: usize,
    /// The Go names of the embedded structs on the path to it; empty for a field of the type itself.
    pub way: Vec<&'static str>,
}

/// More than any type has.
pub(crate) const FIELDS_MAX: usize = 64;

/// A Go package of published types.
pub(super) struct Package {
    pub name: &'static str,
    pub group: Option<&'static str>,
    pub text: &'static str,
    pub types: OnceLock<HashMap<&'static str, Named>>,
}

/// A published type by its name.
pub struct Named {
    pub(super) package: &'static Package,
    pub(super) name: &'static str,
    /// What follows its name in its first line.
    pub(super) head: &'static str,
    /// The lines of its fields.
    pub(super) fields: &'static str,
    /// The function that reads them: it is passed in so that this file does not import its own reader.
    pub(super) read: fn(&'static Named) -> Message,
    pub(super) message: OnceLock<Message>,
}

impl Named {
    /// The type, if it is a struct or has its own message. It is read on first use.
    pub fn message(&'static self) -> &'static Message {
        self.message.get_or_init(|| (self.read)(self))
    }
}

/// A message that a field holds: one defined in Rust, or one of the published types, which is read on first use.
#[derive(Clone, Copy)]
pub enum Ref {
    /// A message defined in Rust.
    Made(&'static Message),
    /// A message of the type data.
    Named(&'static Named),
}

impl Ref {
    /// The message.
    pub fn get(self) -> &'static Message {
        match self {
            Ref::Made(message) => message,
            Ref::Named(named) => named.message(),
        }
    }
}

impl Deref for Ref {
    type Target = Message;

    fn deref(&self) -> &Message {
        self.get()
    }
}

/// How a message looks in JSON.
#[derive(Clone, Copy)]
pub enum Codec {
    /// An object with a member for each field.
    Object,
    /// `2026-01-02T03:04:05Z`, or null. Its fields are seconds and nanoseconds; the latter are not read.
    Time,
    /// `2026-01-02T03:04:05.000006Z`, or null.
    MicroTime,
    /// `1500m`; its one field holds the text.
    Quantity,
    /// A number or a text. Fields: which of them, the number, the text.
    IntOrString,
    /// `1m30s`; its one field holds nanoseconds.
    Duration,
    /// Any JSON; its one field holds the text.
    Json,
    /// As [`Codec::Json`], but text that is not JSON is reported later, by the code that knows `fieldsV1`.
    FieldsV1,
    /// An array; its one field holds the items.
    List,
    /// Fields: a boolean, a schema. JSON: one or the other.
    SchemaOrBool,
    /// Fields: a schema, several. JSON: one or the other.
    SchemaOrArray,
    /// Fields: a schema, several texts. JSON: one or the other.
    SchemaOrStringArray,
    /// An object with any names; its one field is a map.
    Members,
    /// An array, or its only item without the array; its one field is a list.
    OneOrMore,
    /// Any JSON; its one field holds it as YAML.
    Any,
    /// One of the fields; the function chooses it by the JSON.
    Choice(fn(&Value) -> usize),
}

/// A field of a message.
#[derive(Clone, Copy)]
pub struct Field {
    /// The number in protobuf.
    pub number: u32,
    /// Its name in JSON; empty in messages that are not objects there.
    pub json: &'static str,
    pub(super) go: Option<&'static str>,
    /// The type of its values.
    pub kind: FieldKind,
    /// Whether it has one value or several.
    pub shape: Shape,
    /// Whether JSON has the field when it is zero.
    pub always: bool,
    /// The published type that has it; `None` for a field defined in Rust.
    pub(super) owner: Option<&'static Named>,
    /// Go's name of a string type (`v1.SecretType`), of the items of a list, or of the values of a map.
    pub go_type: Option<&'static str>,
    /// Go's name of a list or map type that has one (`v1.ResourceList`).
    pub container_type: Option<&'static str>,
    /// Whether the published schema requires the field. Nothing enforces it but clients.
    pub is_required: bool,
    /// The values of a text that the published schema names, with commas between them.
    pub enums: &'static str,
    /// The values that declarative validation allows for a text, with commas between them; empty if any text is
    /// allowed.
    pub values: &'static str,
    /// The markers of declarative validation as the type has them, with spaces between them: `+k8s:required +k8s:minimum=1`.
    pub markers: &'static str,
    /// The default that the published schema names, as JSON.
    pub default: Option<&'static str>,
    /// How its items are merged by apply and by strategic merge patches.
    pub items: Items,
    /// The minor of Kubernetes that added it to its type; `None` for one that is as old as the oldest minor here.
    pub since: Option<Minor>,
}

/// How the items of a list, or the parts of a struct, are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Items {
    /// For server-side apply, of a map or a struct: `atomic` or `granular`.
    pub map_type: Option<&'static str>,
    /// For server-side apply: `atomic`, `set` or `map`.
    pub list_type: Option<&'static str>,
    /// The fields that identify the items of a `map`.
    pub map_keys: &'static [&'static str],
    /// For a strategic merge patch: the field that identifies items.
    pub merge_key: Option<&'static str>,
    /// For a strategic merge patch: `merge`, `retainKeys`, or both with a comma between them.
    pub strategy: Option<&'static str>,
}

impl Items {
    pub(super) const NONE: Items =
        Items { map_type: None, list_type: None, map_keys: &[], merge_key: None, strategy: None };
}

/// What a field holds.
#[derive(Clone, Copy)]
pub enum FieldKind {
    /// `bool`
    Bool,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `double`
    Double,
    /// `string`
    String,
    /// Base64 in JSON.
    Bytes,
    /// A message.
    Message(Ref),
}

/// How often a field occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Once: a value that is not on the wire is zero, and a zero is on the wire.
    Value,
    /// Once or never.
    Pointer,
    /// A list of values.
    List,
    /// By a name.
    Map,
    /// By names that begin with the field's own name; in JSON these are members of the object itself.
    Extensions,
    /// Once; in JSON its members are members of the object itself. In Go the struct is embedded.
    Inline,
}

impl Message {
    /// A message that is an object in JSON.
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        Message {
            name,
            package: "v1",
            fields,
            codec: Codec::Object,
            is_object: false,
            is_atomic: false,
            by_number: sort_by_number(fields),
            by_name: OnceLock::new(),
            by_beginning: OnceLock::new(),
        }
    }

    /// The message in a Go package whose path ends in `package`.
    pub(super) const fn package(mut self, package: &'static str) -> Self {
        self.package = package;
        self
    }

    /// The same fields, with another encoding.
    pub const fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// The members of its JSON, in the order of the Go type.
    pub fn members(&self) -> impl Iterator<Item = &'static Field> + use<> {
        static TYPE_META: [Field; 2] = [string(0, "kind"), string(0, "apiVersion")];
        let type_meta: &'static [Field] = if self.is_object { &TYPE_META } else { &[] };
        // An embedded type embeds at most one type in turn.
        type_meta.iter().chain(self.fields.iter().flat_map(Field::embedded).flat_map(Field::embedded))
    }

    /// The name of the type in Go's errors: `v1.PodSpec`.
    pub fn go_type(&self) -> String {
        format!("{}.{}", self.package, self.name)
    }

    /// The field that JSON calls `name`.
    pub fn member(&self, name: &str) -> Option<&'static Field> {
        self.member_of_name(name).map(|member| member.field)
    }

    /// Visits the fields of `object`, which is of this type, that the type knows.
    pub(super) fn for_each_member(&self, object: &mut Value, mut visit: impl FnMut(&'static Field, &mut Value)) {
        let Value::Object(fields) = object else { return };
        for (name, value) in fields.iter_mut() {
            work::step();
            if let Some(field) = self.member(name) {
                visit(field, value);
            }
        }
    }

    /// What JSON calls `name`.
    pub(super) fn member_of_name(&self, name: &str) -> Option<&MessageMember> {
        let members = self.members_by_name();
        place_of(members, name, |member| member.field.json).map(|at| &members[at])
    }

    /// The members of its JSON, sorted by name.
    pub(super) fn members_by_name(&self) -> &[MessageMember] {
        self.by_name.get_or_init(|| {
            let members = self.members().enumerate();
            let mut members: Vec<MessageMember> =
                members.map(|(place, field)| MessageMember { field, place, way: self.way_to(field) }).collect();
            // A field of the type itself shadows an embedded one.
            members.sort_by_key(|member| (member.field.json, member.way.len()));
            members.dedup_by_key(|member| member.field.json);
            members.into_boxed_slice()
        })
    }

    /// The index of the field of the type itself that JSON calls `name`.
    pub fn field_index(&self, name: &str) -> Option<usize> {
        let wanted = beginning(name);
        let known = self.by_beginning.get_or_init(|| {
            let named = self.fields.iter().zip(0..).filter(|(field, _)| !field.is_spread());
            let mut known: Vec<(u64, u8)> = named.map(|(field, index)| (beginning(field.json), index)).collect();
            known.sort_unstable();
            known.into_boxed_slice()
        });
        let start = known.partition_point(|(beginning, _)| *beginning < wanted);
        let alike = known[start..].iter().take_while(|(beginning, _)| *beginning == wanted);
        // Of a short name, the beginning is all there is.
        let is_it = |known: &str| known.len() == name.len() && (name.len() <= size_of::<u64>() || known == name);
        alike.map(|(_, index)| usize::from(*index)).find(|index| is_it(self.fields[*index].json))
    }

    /// The field of the type itself that JSON calls `name`.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.field_index(name).map(|index| &self.fields[index])
    }

    /// The Go names of the embedded structs on the path to a member; empty for a field of the type itself.
    fn way_to(&self, member: &'static Field) -> Vec<&'static str> {
        let is_it = |field: &Field| std::ptr::eq(field, member);
        for field in self.fields {
            let (Shape::Inline, FieldKind::Message(outer)) = (field.shape, field.kind) else { continue };
            for inner in outer.get().fields {
                if is_it(inner) {
                    return vec![outer.get().name];
                }
                if let (Shape::Inline, FieldKind::Message(within)) = (inner.shape, inner.kind)
                    && within.get().fields.iter().any(is_it)
                {
                    return vec![outer.get().name, within.get().name];
                }
            }
        }
        Vec::new()
    }

    /// The fields with their indices, in the order of their numbers.
    pub fn by_number(&self) -> impl DoubleEndedIterator<Item = (usize, &'static Field)> + use<> {
        let (fields, by_number) = (self.fields, self.by_number);
        (0..fields.len()).map(move |at| (usize::from(by_number[at]), &fields[usize::from(by_number[at])]))
    }
}

/// The first eight bytes of a name, as a number that sorts as they do.
fn beginning(name: &str) -> u64 {
    let name = name.as_bytes();
    let first = name.first_chunk().copied().unwrap_or_else(|| {
        let mut first = [0; size_of::<u64>()];
        first[..name.len()].copy_from_slice(name);
        first
    });
    u64::from_be_bytes(first)
}

/// Insertion sort, as it works in constants.
const fn sort_by_number(fields: &[Field]) -> [u8; FIELDS_MAX] {
    let mut order = [0; FIELDS_MAX];
    let mut count = 0;
    while count < fields.len() {
        let mut at = count;
        while at > 0 && fields[order[at - 1] as usize].number > fields[count].number {
            order[at] = order[at - 1];
            at -= 1;
        }
        order[at] = count as u8;
        count += 1;
    }
    order
}

/// A field that holds a text.
pub const fn string(number: u32, json: &'static str) -> Field {
    field(number, json, FieldKind::String)
}

/// A field of type `bool`.
pub const fn boolean(number: u32, json: &'static str) -> Field {
    field(number, json, FieldKind::Bool)
}

/// A field of type `int32`.
pub const fn int32(number: u32, json: &'static str) -> Field {
    field(number, json, FieldKind::Int32)
}

/// A field of type `int64`.
pub const fn int64(number: u32, json: &'static str) -> Field {
    field(number, json, FieldKind::Int64)
}

/// A field of type `double`.
pub const fn double(number: u32, json: &'static str) -> Field {
    field(number, json, FieldKind::Double)
}

/// A field that holds bytes, in JSON as base64.
pub const fn bytes(number: u32, json: &'static str) -> Field {
    field(number, json, FieldKind::Bytes)
}

/// A field that is a value in Go, and is omitted from JSON when it is zero. A struct is never zero.
pub(super) const fn field(number: u32, json: &'static str, kind: FieldKind) -> Field {
    let always = matches!(kind, FieldKind::Message(_));
    Field {
        number,
        json,
        go: None,
        kind,
        shape: Shape::Value,
        always,
        owner: None,
        go_type: None,
        container_type: None,
        is_required: false,
        enums: "",
        values: "",
        markers: "",
        default: None,
        items: Items::NONE,
        since: None,
    }
}

/// A field that is a struct.
pub const fn message(number: u32, json: &'static str, message: &'static Message) -> Field {
    field(number, json, FieldKind::Message(Ref::Made(message)))
}

impl Field {
    /// Whether its members are members of the object that has it.
    const fn is_spread(&self) -> bool {
        matches!(self.shape, Shape::Inline | Shape::Extensions)
    }

    /// The members of JSON for this field: those of an embedded type, or itself.
    fn embedded(&'static self) -> std::slice::Iter<'static, Field> {
        match (self.shape, self.kind) {
            (Shape::Inline, FieldKind::Message(embedded)) => embedded.get().fields.iter(),
            _ => std::slice::from_ref(self).iter(),
        }
    }

    /// Sets the name in Go if it is not the JSON name with a capital letter.
    pub const fn go(self, name: &'static str) -> Self {
        Field { go: Some(name), ..self }
    }

    /// In JSON even if it is zero: no `omitempty`.
    pub const fn always(self) -> Self {
        Field { always: true, ..self }
    }

    /// The field as a pointer, absent if nil.
    pub const fn pointer(self) -> Self {
        Field { shape: Shape::Pointer, always: false, ..self }
    }

    /// The field, as a list.
    pub const fn list(self) -> Self {
        Field { shape: Shape::List, always: false, ..self }
    }

    /// The field, as a map.
    pub const fn map(self) -> Self {
        Field { shape: Shape::Map, always: false, ..self }
    }

    /// The field, as extensions of OpenAPI: `x-…` beside the others.
    pub const fn extensions(self) -> Self {
        Field { shape: Shape::Extensions, always: false, ..self }
    }

    /// The field's name in Go.
    pub fn go_name(&self) -> String {
        if let Some(name) = self.go {
            return name.to_owned();
        }
        let mut name = self.json.to_owned();
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        name
    }
}
