//! Encodes JSON as the bytes of a message, as Go encodes the struct that the JSON fills: fields in the order of their
//! numbers, maps in the order of their keys.

use std::borrow::Cow;

use crate::meta::{duration, time};
use crate::types::{Codec, FIELDS_MAX, Field, FieldKind, Message, Shape};
use crate::value::json::{Tape, TextTree};
use crate::value::{Value, base64, json, yaml};

use super::tree::{ObjectTree, ValueTree};
use super::wire::{FIXED64, LENGTH_DELIMITED, VARINT, WireWriter};

/// Encodes a message. `value` is an object of its kind; fields that the message does not describe are left out, and
/// values with another type than described count as absent.
pub fn encode(message: &'static Message, value: &Value) -> Vec<u8> {
    let mut writer = WireWriter::default();
    write_value(message, value, &mut writer);
    writer.finish()
}

/// As [`encode`], for a value that is JSON, mostly without a tree of it.
pub fn encode_json(message: &'static Message, text: &[u8]) -> Vec<u8> {
    let (mut tape, mut writer) = (Tape::default(), WireWriter::with_capacity(text.len()));
    match tape.read(text) {
        Some(tree) => write_text(message, tree, &mut writer),
        None => write_value(message, &json::decode(text).unwrap_or_default(), &mut writer),
    }
    writer.finish()
}

/// Writes a message before the contents of `writer`.
pub(super) fn write_value(message: &'static Message, value: &Value, writer: &mut WireWriter) {
    Encoder { tree: ValueTree::default(), writer }.message(message, Some(value).filter(|value| !value.is_null()));
}

/// As [`write_value`], for a value that is a text.
pub(super) fn write_text(message: &'static Message, tree: TextTree<'_>, writer: &mut WireWriter) {
    let root = Some(TextTree::ROOT).filter(|root| !tree.is_null(*root));
    Encoder { tree, writer }.message(message, root);
}

/// Writes a field of a message that `object` has.
pub(super) fn write_member(field: &'static Field, object: &Value, writer: &mut WireWriter) {
    let tree = ValueTree::default();
    Encoder { tree, writer }.field(field, FieldNode::of(&tree, object.get(field.json)));
}

/// The value of a field: one of the tree, or one that was made for the field.
enum FieldNode<'t, N> {
    /// It is absent or null.
    Absent,
    Node(N),
    Bool(bool),
    Int(i64),
    Text(Cow<'t, str>),
}

impl<N: Copy> FieldNode<'_, N> {
    fn of<T: ObjectTree<Node = N>>(tree: &T, node: Option<N>) -> Self {
        match node {
            Some(node) if !tree.is_null(node) => FieldNode::Node(node),
            _ => FieldNode::Absent,
        }
    }

    const fn node(&self) -> Option<N> {
        match self {
            FieldNode::Node(node) => Some(*node),
            _ => None,
        }
    }
}

/// The value of the field at `index` of a message with this codec, which is not an object; `node` is not null.
fn part<T: ObjectTree>(tree: &T, codec: Codec, index: usize, node: Option<T::Node>) -> FieldNode<'_, T::Node> {
    let only_if = |is_it: bool| FieldNode::of(tree, node.filter(|_| is_it));
    let is_text = || node.is_some_and(|node| tree.as_str(node).is_some());
    let is_list = || node.is_some_and(|node| tree.is_array(node));
    match (codec, index) {
        (Codec::IntOrString, 0) => FieldNode::Int(i64::from(is_text())),
        (Codec::IntOrString, _) => only_if(is_text() == (index == 2)),
        (Codec::Duration, _) => {
            let nanoseconds = node.and_then(|node| duration::parse_go(&tree.as_str(node)?).ok());
            nanoseconds.map_or(FieldNode::Absent, FieldNode::Int)
        }
        (Codec::Any, _) => FieldNode::Text(Cow::Owned(yaml::encode(&value(tree, node)))),
        (Codec::Choice(choose), _) => only_if(choose(&value(tree, node)) == index),
        (Codec::Json | Codec::FieldsV1, _) => node.map_or(FieldNode::Absent, |node| FieldNode::Text(tree.text(node))),
        (Codec::SchemaOrBool, 0) => FieldNode::Bool(node.is_some_and(|node| tree.as_bool(node) != Some(false))),
        (Codec::SchemaOrBool, _) => only_if(node.is_some_and(|node| tree.is_object(node))),
        (Codec::SchemaOrArray | Codec::SchemaOrStringArray, 0) => only_if(!is_list()),
        (Codec::SchemaOrArray | Codec::SchemaOrStringArray, _) => only_if(is_list()),
        (Codec::Time | Codec::MicroTime, _) => match (node.and_then(|node| moment(&tree.as_str(node)?)), codec) {
            (None, _) => FieldNode::Absent,
            (Some((seconds, _)), _) if index == 0 => FieldNode::Int(seconds),
            (Some((_, nanos)), Codec::MicroTime) => FieldNode::Int(i64::from(nanos / 1000 * 1000)),
            (Some(_), _) => FieldNode::Int(0),
        },
        (Codec::Object | Codec::List | Codec::Members | Codec::OneOrMore | Codec::Quantity, _) => only_if(true),
    }
}

fn value<T: ObjectTree>(tree: &T, node: Option<T::Node>) -> Cow<'_, Value> {
    node.map_or(Cow::Owned(Value::Null), |node| tree.value(node))
}

/// The text of a part; empty if it is none.
fn text<'p, T: ObjectTree>(tree: &'p T, part: &'p FieldNode<'_, T::Node>) -> Cow<'p, str> {
    match part {
        FieldNode::Text(text) => Cow::Borrowed(text),
        part => part.node().and_then(|node| tree.as_str(node)).unwrap_or_default(),
    }
}

/// The seconds of a time since 1970, rounded down, and its nanoseconds.
fn moment(text: &str) -> Option<(i64, i32)> {
    if let Some(seconds) = time::normal_seconds(text) {
        return Some((seconds, 0));
    }
    let moment = time::parse(text).ok()?;
    Some((moment.unix_seconds, moment.nanos.try_into().ok()?))
}

struct Encoder<'w, T> {
    tree: T,
    writer: &'w mut WireWriter,
}

impl<T: ObjectTree> Encoder<'_, T> {
    /// Writes a message that is made of `node`; `None` for null.
    fn message(&mut self, message: &'static Message, node: Option<T::Node>) {
        let tree = self.tree;
        match (message.codec, message.fields) {
            (Codec::Object, _) => self.object(message, node),
            (Codec::OneOrMore, [field]) if !node.is_some_and(|node| tree.is_array(node)) => {
                self.one(field.kind, field.number, FieldNode::of(&tree, node));
            }
            (codec, _) => {
                for (index, field) in message.by_number().rev() {
                    self.field(field, part(&tree, codec, index, node));
                }
            }
        }
    }

    fn object(&mut self, message: &'static Message, node: Option<T::Node>) {
        let tree = self.tree;
        let mut parts = [None; FIELDS_MAX];
        if let Some(fields) = node.and_then(|node| tree.fields_back(node)) {
            for (name, part) in fields {
                if let Some(index) = message.field_index(&name) {
                    parts[index] = Some(part);
                }
            }
        }
        for (index, field) in message.by_number().rev() {
            let part = match field.shape {
                Shape::Inline | Shape::Extensions => node,
                _ => parts[index],
            };
            self.field(field, FieldNode::of(&tree, part));
        }
    }

    fn field(&mut self, field: &'static Field, part: FieldNode<'_, T::Node>) {
        match (field.shape, part) {
            (Shape::Value, FieldNode::Absent) if matches!(field.kind, FieldKind::Bytes) => {}
            (Shape::Value | Shape::Inline, part) => self.one(field.kind, field.number, part),
            (_, FieldNode::Absent) => {}
            (Shape::Pointer, part) => self.one(field.kind, field.number, part),
            (Shape::List, part) => self.items(field, part.node()),
            (Shape::Map | Shape::Extensions, part) => self.entries(field, part.node()),
        }
    }

    fn items(&mut self, field: &'static Field, node: Option<T::Node>) {
        let tree = self.tree;
        let Some(items) = node.and_then(|node| tree.items_back(node)) else { return };
        for item in items {
            self.one(field.kind, field.number, FieldNode::of(&tree, Some(item)));
        }
    }

    fn entries(&mut self, field: &'static Field, node: Option<T::Node>) {
        let tree = self.tree;
        let Some(fields) = node.and_then(|node| tree.fields_back(node)) else { return };
        for (name, value) in fields {
            if field.shape == Shape::Extensions && !name.starts_with(field.json) {
                continue;
            }
            let end = self.writer.len();
            let value = FieldNode::of(&tree, Some(value));
            if !matches!((&value, field.kind), (FieldNode::Absent, FieldKind::Bytes)) {
                self.one(field.kind, 2, value);
            }
            self.bytes(1, name.as_bytes());
            self.writer.close(field.number, end);
        }
    }

    fn one(&mut self, kind: FieldKind, number: u32, part: FieldNode<'_, T::Node>) {
        let (tree, node) = (self.tree, part.node());
        match kind {
            FieldKind::Bool => {
                let truth = match part {
                    FieldNode::Bool(truth) => Some(truth),
                    _ => node.and_then(|node| tree.as_bool(node)),
                };
                self.writer.varint(u64::from(truth.unwrap_or_default()));
                self.writer.tag(number, VARINT);
            }
            FieldKind::Int32 | FieldKind::Int64 => {
                let integer = match part {
                    FieldNode::Int(integer) => Some(integer),
                    _ => node.and_then(|node| tree.as_i64(node)),
                };
                self.writer.varint(integer.unwrap_or_default() as u64);
                self.writer.tag(number, VARINT);
            }
            FieldKind::Double => {
                self.writer.fixed64(node.and_then(|node| tree.as_f64(node)).unwrap_or_default());
                self.writer.tag(number, FIXED64);
            }
            FieldKind::String => self.bytes(number, text(&tree, &part).as_bytes()),
            FieldKind::Bytes => self.bytes(number, &base64::decode(&text(&tree, &part)).unwrap_or_default()),
            FieldKind::Message(message) => {
                let end = self.writer.len();
                // The zero time has no fields, not even those that are always written.
                if node.is_some() || !matches!(message.codec, Codec::Time | Codec::MicroTime) {
                    self.message(message.get(), node);
                }
                self.writer.close(number, end);
            }
        }
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.writer.bytes(bytes);
        self.writer.varint(bytes.len() as u64);
        self.writer.tag(number, LENGTH_DELIMITED);
    }
}
