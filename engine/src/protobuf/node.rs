//! Decodes bytes to the parts of a message, as Go's decoders fill a struct: a repeated part replaces the earlier one
//! or, if it is a message, is merged into it.
//!
//! Nothing is copied and nothing is converted here. Fields that a message does not describe are skipped.

use std::cell::Cell;

use crate::types::{Codec, Field, FieldKind, Message, Shape};

use super::ProtobufError;
use super::wire::{END_GROUP, FIXED64, LENGTH_DELIMITED, VARINT, WireReader};

/// The maximum nesting of messages, which is that of JSON.
pub const DEPTH_MAX: usize = crate::value::json::DEPTH_MAX;

/// The number of bytes, in a whole body, by which the entries of maps may exceed their declared lengths: these bytes
/// are read again, possibly once per entry. The reference has no such limit.
// DIFFERS: Go accepts it.
const OVERLAPPED_BYTES_MAX: usize = 64 << 10;

/// The depth of a reader, and the number of bytes it has read twice.
#[derive(Clone, Copy)]
struct ReadDepth<'c> {
    depth: usize,
    overlapped_bytes: &'c Cell<usize>,
}

impl ReadDepth<'_> {
    fn deeper(self) -> Self {
        ReadDepth { depth: self.depth + 1, ..self }
    }

    fn count_overlap(self, bytes: usize) -> Result<(), ProtobufError> {
        self.overlapped_bytes.set(self.overlapped_bytes.get() + bytes);
        if self.overlapped_bytes.get() > OVERLAPPED_BYTES_MAX { Err(ProtobufError::UnexpectedEnd) } else { Ok(()) }
    }
}

/// The parts of a message that were on the wire.
#[derive(Debug, Default)]
pub struct WireMessage<'b> {
    /// The parts with the index of their field in the message, in the order of their first occurrence.
    parts: Vec<(usize, WireValue<'b>)>,
}

/// The value of a field on the wire.
#[derive(Debug)]
pub enum WireValue<'b> {
    Varint(u64),
    Double(f64),
    /// A string, bytes, or a message whose repeated parts are not merged.
    Bytes(&'b [u8]),
    Node(WireMessage<'b>),
    List(Vec<WireValue<'b>>),
    /// The entries in the order of the wire; of a repeated key the last one counts.
    Map(Vec<(&'b [u8], WireValue<'b>)>),
}

impl<'b> WireMessage<'b> {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// The bytes are not a message.
    pub fn read(message: &'static Message, bytes: &'b [u8]) -> Result<Self, ProtobufError> {
        let mut node = WireMessage::default();
        let overlapped_bytes = Cell::new(0);
        node.add(message, bytes, ReadDepth { depth: 0, overlapped_bytes: &overlapped_bytes })?;
        Ok(node)
    }

    /// The part of the field at `index` of the message.
    pub fn part(&self, index: usize) -> Option<&WireValue<'b>> {
        self.parts.iter().find(|(at, _)| *at == index).map(|(_, part)| part)
    }

    /// Reads further parts into the message.
    fn add(&mut self, message: &'static Message, bytes: &'b [u8], level: ReadDepth<'_>) -> Result<(), ProtobufError> {
        if level.depth > DEPTH_MAX {
            return Err(ProtobufError::TooDeep);
        }
        let mut reader = WireReader::new(bytes);
        while !reader.is_at_end() {
            let start = reader.clone();
            let tag = reader.varint()?;
            let (number, wire_type) = ((tag >> 3) as i32, (tag & 7) as u8);
            if wire_type == END_GROUP {
                return Err(ProtobufError::EndGroup { message: message.name });
            }
            if number <= 0 {
                return Err(ProtobufError::IllegalTag { message: message.name, number, tag });
            }
            let Some(index) = message.fields.iter().position(|field| i64::from(field.number) == i64::from(number))
            else {
                reader = start;
                reader.skip()?;
                continue;
            };
            let field = &message.fields[index];
            if wire_type != field.wire_type() {
                return Err(ProtobufError::WrongWireType { wire_type, field: field.go_name() });
            }
            self.read_part(index, field, &mut reader, level)?;
        }
        Ok(())
    }

    fn read_part(
        &mut self,
        index: usize,
        field: &Field,
        reader: &mut WireReader<'b>,
        level: ReadDepth<'_>,
    ) -> Result<(), ProtobufError> {
        match field.shape {
            Shape::Value | Shape::Pointer | Shape::Inline => match (field.kind, self.part_mut(index)) {
                (FieldKind::Message(message), Some(WireValue::Node(node))) => {
                    node.add(message.get(), reader.length_delimited()?, level.deeper())?;
                }
                (kind, Some(part)) => *part = read_one(kind, reader, level)?,
                (kind, None) => self.parts.push((index, read_one(kind, reader, level)?)),
            },
            Shape::List => {
                let item = read_one(field.kind, reader, level.deeper())?;
                match self.part_mut(index) {
                    Some(WireValue::List(items)) => items.push(item),
                    _ => self.parts.push((index, WireValue::List(vec![item]))),
                }
            }
            Shape::Map | Shape::Extensions => {
                let entry = read_entry(field.kind, reader, level.deeper())?;
                match self.part_mut(index) {
                    Some(WireValue::Map(entries)) => entries.push(entry),
                    _ => self.parts.push((index, WireValue::Map(vec![entry]))),
                }
            }
        }
        Ok(())
    }

    fn part_mut(&mut self, index: usize) -> Option<&mut WireValue<'b>> {
        self.parts.iter_mut().find(|(at, _)| *at == index).map(|(_, part)| part)
    }
}

fn read_one<'b>(
    kind: FieldKind,
    reader: &mut WireReader<'b>,
    level: ReadDepth<'_>,
) -> Result<WireValue<'b>, ProtobufError> {
    Ok(match kind {
        FieldKind::Bool | FieldKind::Int32 | FieldKind::Int64 => WireValue::Varint(reader.varint()?),
        FieldKind::Double => WireValue::Double(reader.fixed64()?),
        FieldKind::String | FieldKind::Bytes => WireValue::Bytes(reader.length_delimited()?),
        FieldKind::Message(message) => {
            let bytes = reader.length_delimited()?;
            let mut node = WireMessage::default();
            node.add(message.get(), bytes, level.deeper())?;
            match message.codec {
                // In Go a repeated time replaces the earlier one, and an empty one differs from a message without
                // parts.
                Codec::Time | Codec::MicroTime => WireValue::Bytes(bytes),
                _ => WireValue::Node(node),
            }
        }
    })
}

/// Reads an entry of a map. Go does not check wire types here, and lets a part be longer than its entry.
fn read_entry<'b>(
    kind: FieldKind,
    reader: &mut WireReader<'b>,
    level: ReadDepth<'_>,
) -> Result<(&'b [u8], WireValue<'b>), ProtobufError> {
    let length = reader.length_delimited()?.len();
    let end = reader.at;
    let mut entry = WireReader { bytes: reader.bytes, at: end - length };
    let mut name: &[u8] = &[];
    let mut value = match kind {
        FieldKind::Bool | FieldKind::Int32 | FieldKind::Int64 => WireValue::Varint(0),
        FieldKind::Double => WireValue::Double(0.0),
        FieldKind::String | FieldKind::Bytes => WireValue::Bytes(&[]),
        FieldKind::Message(_) => WireValue::Node(WireMessage::default()),
    };
    while entry.at < end {
        let start = entry.clone();
        match (entry.varint()? >> 3) as i32 {
            1 => name = entry.length_delimited()?,
            2 => value = read_one(kind, &mut entry, level)?,
            _ => {
                entry = start;
                entry.skip()?;
                if entry.at > end {
                    return Err(ProtobufError::UnexpectedEnd);
                }
            }
        }
    }
    level.count_overlap(entry.at.saturating_sub(end))?;
    Ok((name, value))
}

impl Field {
    /// The wire type of the field.
    pub fn wire_type(&self) -> u8 {
        match (self.shape, self.kind) {
            (Shape::Map | Shape::Extensions, _) | (_, FieldKind::String | FieldKind::Bytes | FieldKind::Message(_)) => {
                LENGTH_DELIMITED
            }
            (_, FieldKind::Bool | FieldKind::Int32 | FieldKind::Int64) => VARINT,
            (_, FieldKind::Double) => FIXED64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::{decode, encode};
    use crate::types::{Message, bytes, message, string};
    use crate::value::Value;
    use crate::{object, work};

    static ITEM: Message = Message::new("Item", &[string(1, "name"), bytes(2, "raw")]);
    static ALL: Message = Message::new("All", &[string(1, "texts").map(), message(2, "items", &ITEM).list()]);

    #[test]
    fn entries_that_overlap_are_not_read_over_and_over() {
        // Each entry declares four bytes, and its value all that follow.
        let entries = 20_000;
        let mut body = Vec::new();
        for at in 0..entries {
            let rest = (entries - at - 1) * 7;
            body.extend([
                0x0a,
                4,
                0x12,
                (rest & 0x7f) as u8 | 0x80,
                (rest >> 7 & 0x7f) as u8 | 0x80,
                (rest >> 14) as u8,
                0,
            ]);
        }
        // Nothing is read after the value, because the entry has ended.
        assert!(WireMessage::read(&ALL, &body).is_err());
    }

    #[test]
    fn ten_times_the_message_takes_ten_times_the_steps() {
        let made = |count: usize| {
            let texts = (0..count).map(|at| (format!("k{at}"), Value::from("text")));
            let item = object! { "name" => "a", "raw" => "aGk=" };
            object! { "texts" => Value::Object(texts.collect()), "items" => vec![item; count] }
        };
        let steps = |count: usize| {
            let value = made(count);
            let (bytes, written) = work::counted(|| encode(&ALL, &value));
            let (read, steps) = work::counted(|| decode(&ALL, &bytes));
            assert_eq!(read, Ok(value));
            (written, steps)
        };
        let (few, many) = (steps(1000), steps(10_000));
        assert!(many.0 < 11 * few.0 && many.1 < 13 * few.1, "{few:?} steps, then {many:?}");
    }
}
