//! The envelope of a message: the type of the object in it, and the frames of a watch.
//!
//! A body starts with four bytes, `k8s` and a zero. Then comes a message with the object's type and its bytes. An event
//! of a watch is a message, too, without those four bytes but after its length.

use crate::types::{FieldKind, Message};
use crate::value::Value;
use crate::value::json::{self, Tape, TextTree};

use super::ProtobufError;
use super::encode::{write_member, write_text, write_value};
use super::messages::UNKNOWN;
use super::node::{WireMessage, WireValue};
use super::wire::WireWriter;

/// The bytes at the start of a body.
pub const PREFIX: &[u8; 4] = b"k8s\0";

/// An object with its type, not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'b> {
    /// The API version of the object; it and the kind may be empty.
    pub api_version: String,
    /// The kind of the object.
    pub kind: String,
    /// The bytes of its message.
    pub raw: &'b [u8],
}

/// Splits a body into the object's type and its bytes.
///
/// # Errors
///
/// The bytes are not such a body.
pub fn open(body: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    if body.is_empty() {
        return Err(ProtobufError::Empty);
    }
    let unknown = body.strip_prefix(PREFIX).ok_or(ProtobufError::NoEnvelope)?;
    if unknown.is_empty() {
        return Err(ProtobufError::EmptyBody);
    }
    let node = WireMessage::read(&UNKNOWN, unknown)?;
    let text = |index| match node.part(0) {
        Some(WireValue::Node(type_meta)) => match type_meta.part(index) {
            Some(WireValue::Bytes(text)) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    let raw = match node.part(1) {
        Some(WireValue::Bytes(raw)) => raw,
        _ => &[][..],
    };
    Ok(Envelope { api_version: text(0), kind: text(1), raw })
}

/// Encodes an object as a body, with the type that it names.
pub fn seal(message: &'static Message, object: &Value) -> Vec<u8> {
    let of_type = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    in_envelope(of_type, WireWriter::default(), |writer| write_value(message, object, writer))
}

/// As [`seal`], for an object that is a text, with the API version and the kind given.
pub fn seal_text(message: &'static Message, of_type: (&str, &str), object: TextTree<'_>) -> Vec<u8> {
    let writer = WireWriter::with_capacity(object.text(TextTree::ROOT).len());
    in_envelope(of_type, writer, |writer| write_text(message, object, writer))
}

/// The texts that become the items of a list.
pub struct ItemTexts<W> {
    /// How many there are.
    pub count: usize,
    /// How many bytes they have together, about.
    pub size_bytes: usize,
    /// Appends the text of the item at an index.
    pub write: W,
}

/// Encodes a list as a body, as [`seal`] does; its items are texts, and the other fields are those of `list`. `None` if
/// the message is not that of a list.
pub fn seal_list<W: FnMut(usize, &mut Vec<u8>)>(
    message: &'static Message,
    list: &Value,
    mut items: ItemTexts<W>,
) -> Option<Vec<u8>> {
    const ITEMS: &str = "items";
    let FieldKind::Message(item) = message.field(ITEMS)?.kind else { return None };
    let of_type = (list.str_at(&["apiVersion"]), list.str_at(&["kind"]));
    let (mut tape, mut text) = (Tape::default(), Vec::new());
    Some(in_envelope(of_type, WireWriter::with_capacity(items.size_bytes), |writer| {
        for (_, field) in message.by_number().rev() {
            if field.json != ITEMS {
                write_member(field, list, writer);
                continue;
            }
            for at in (0..items.count).rev() {
                text.clear();
                (items.write)(at, &mut text);
                let end = writer.len();
                match tape.read(&text) {
                    Some(tree) => write_text(item.get(), tree, writer),
                    None => write_value(item.get(), &json::decode(&text).unwrap_or_default(), writer),
                }
                writer.close(field.number, end);
            }
        }
    }))
}

/// A body with an object of this type, which is written before the contents of a writer.
fn in_envelope(
    (api_version, kind): (&str, &str),
    mut writer: WireWriter,
    write_object: impl FnOnce(&mut WireWriter),
) -> Vec<u8> {
    // Written from the end: content type and content encoding, both empty, then the object and its type.
    writer.close(4, 0);
    let end = writer.len();
    writer.close(3, end);
    let end = writer.len();
    write_object(&mut writer);
    writer.close(2, end);
    let (type_end, mut end) = (writer.len(), writer.len());
    for (number, text) in [(2, kind), (1, api_version)] {
        writer.bytes(text.as_bytes());
        writer.close(number, end);
        end = writer.len();
    }
    writer.close(1, type_end);
    writer.bytes(PREFIX);
    writer.finish()
}

/// Appends an event of a watch, after its length in four bytes, to `out`. `object` is a body as [`seal`] returns it.
pub fn write_event(event: &str, object: &[u8], out: &mut Vec<u8>) {
    const AROUND_BYTES: usize = 32;
    let mut writer = WireWriter::with_capacity(object.len() + AROUND_BYTES);
    writer.bytes(object);
    writer.close(1, 0);
    writer.close(2, 0);
    let end = writer.len();
    writer.bytes(event.as_bytes());
    writer.close(1, end);
    let frame = writer.finish();
    out.extend((frame.len() as u32).to_be_bytes());
    out.extend(frame);
}
