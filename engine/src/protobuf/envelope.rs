//! What stands around a message: the type of the object in it, and the frames of a watch.
//!
//! Four bytes, `k8s` and a zero, come before a message that names the object's type and holds its bytes. An event of a
//! watch is a message, too, without those four bytes but behind its length.

use crate::types::Message;
use crate::value::Value;

use super::ProtobufError;
use super::encode::write_message;
use super::messages::UNKNOWN;
use super::node::{WireMessage, WireValue};
use super::wire::WireWriter;

/// What a body begins with.
pub const PREFIX: &[u8; 4] = b"k8s\0";

/// An object with its type, not yet read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'b> {
    /// Both may be empty.
    pub api_version: String,
    /// The kind of the object inside.
    pub kind: String,
    /// The bytes of its message.
    pub raw: &'b [u8],
}

/// Takes a body apart.
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

/// The body that an object goes out in, with its type as it stands in the object.
pub fn seal(message: &'static Message, object: &Value) -> Vec<u8> {
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let mut writer = WireWriter::default();
    // From the end: content type and content encoding, both empty, then the object and its type.
    writer.close(4, 0);
    let end = writer.len();
    writer.close(3, end);
    let end = writer.len();
    write_message(message, object, &mut writer);
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

/// Appends an event of a watch behind its length in four bytes. `object` is a body as [`seal`] makes it.
pub fn write_event(event: &str, object: &[u8], out: &mut Vec<u8>) {
    let mut writer = WireWriter::default();
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
