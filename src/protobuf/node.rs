//! From bytes to the parts of a message, as Go's decoders fill a struct: a part that comes again replaces the one before,
//! or, being a message, adds to it.
//!
//! Nothing is copied and nothing is converted here. What a message does not describe is skipped.

use crate::types::{Codec, Field, Kind, Message, Shape};

use super::Error;
use super::wire::{END_GROUP, FIXED64, LENGTH_DELIMITED, Reader, VARINT};

/// Messages are nested no deeper than JSON is.
pub const DEPTH_MAX: usize = crate::value::json::DEPTH_MAX;

/// The parts of a message that were on the wire.
#[derive(Debug, Default)]
pub struct Node<'b> {
    /// With the index of their field in the message; in the order of their first appearance.
    parts: Vec<(usize, Part<'b>)>,
}

/// What was on the wire for a field.
#[derive(Debug)]
pub enum Part<'b> {
    Varint(u64),
    Double(f64),
    /// A string, bytes, or a message whose parts don't add up.
    Bytes(&'b [u8]),
    Node(Node<'b>),
    List(Vec<Part<'b>>),
    /// In the order of the wire; of a repeated name the last counts.
    Map(Vec<(&'b [u8], Part<'b>)>),
}

impl<'b> Node<'b> {
    /// Reads a message.
    pub fn read(message: &'static Message, bytes: &'b [u8]) -> Result<Self, Error> {
        let mut node = Node::default();
        node.add(message, bytes, 0)?;
        Ok(node)
    }

    /// The part of the field at `index` of the message.
    pub fn part(&self, index: usize) -> Option<&Part<'b>> {
        self.parts.iter().find(|(at, _)| *at == index).map(|(_, part)| part)
    }

    /// Reads more of the message.
    fn add(&mut self, message: &'static Message, bytes: &'b [u8], depth: usize) -> Result<(), Error> {
        if depth > DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        let mut reader = Reader::new(bytes);
        while !reader.is_at_end() {
            let start = reader.clone();
            let tag = reader.varint()?;
            let (number, wire_type) = ((tag >> 3) as i32, (tag & 7) as u8);
            if wire_type == END_GROUP {
                return Err(Error::EndGroup { message: message.name });
            }
            if number <= 0 {
                return Err(Error::IllegalTag { message: message.name, number, tag });
            }
            let Some(index) = message.fields.iter().position(|field| i64::from(field.number) == i64::from(number))
            else {
                reader = start;
                reader.skip()?;
                continue;
            };
            let field = &message.fields[index];
            if wire_type != field.wire_type() {
                return Err(Error::WrongWireType { wire_type, field: field.go_name() });
            }
            self.read_part(index, field, &mut reader, depth)?;
        }
        Ok(())
    }

    fn read_part(&mut self, index: usize, field: &Field, reader: &mut Reader<'b>, depth: usize) -> Result<(), Error> {
        match field.shape {
            Shape::Value | Shape::Pointer | Shape::Inline => match (field.kind, self.part_mut(index)) {
                (Kind::Message(message), Some(Part::Node(node))) => {
                    node.add(message, reader.length_delimited()?, depth + 1)?;
                }
                (kind, Some(part)) => *part = read_one(kind, reader, depth)?,
                (kind, None) => self.parts.push((index, read_one(kind, reader, depth)?)),
            },
            Shape::List => {
                let item = read_one(field.kind, reader, depth + 1)?;
                match self.part_mut(index) {
                    Some(Part::List(items)) => items.push(item),
                    _ => self.parts.push((index, Part::List(vec![item]))),
                }
            }
            Shape::Map | Shape::Extensions => {
                let entry = read_entry(field.kind, reader, depth + 1)?;
                match self.part_mut(index) {
                    Some(Part::Map(entries)) => entries.push(entry),
                    _ => self.parts.push((index, Part::Map(vec![entry]))),
                }
            }
        }
        Ok(())
    }

    fn part_mut(&mut self, index: usize) -> Option<&mut Part<'b>> {
        self.parts.iter_mut().find(|(at, _)| *at == index).map(|(_, part)| part)
    }
}

fn read_one<'b>(kind: Kind, reader: &mut Reader<'b>, depth: usize) -> Result<Part<'b>, Error> {
    Ok(match kind {
        Kind::Bool | Kind::Int32 | Kind::Int64 => Part::Varint(reader.varint()?),
        Kind::Double => Part::Double(reader.fixed64()?),
        Kind::String | Kind::Bytes => Part::Bytes(reader.length_delimited()?),
        Kind::Message(message) => {
            let bytes = reader.length_delimited()?;
            let mut node = Node::default();
            node.add(message, bytes, depth + 1)?;
            match message.codec {
                // Go reads a time anew each time, and no bytes are not the time of a message without parts.
                Codec::Time | Codec::MicroTime => Part::Bytes(bytes),
                _ => Part::Node(node),
            }
        }
    })
}

/// Reads an entry of a map. Go looks at no wire type here, and lets a part be longer than its entry.
fn read_entry<'b>(kind: Kind, reader: &mut Reader<'b>, depth: usize) -> Result<(&'b [u8], Part<'b>), Error> {
    let length = reader.length_delimited()?.len();
    let end = reader.at;
    let mut entry = Reader { bytes: reader.bytes, at: end - length };
    let mut name: &[u8] = &[];
    let mut value = match kind {
        Kind::Bool | Kind::Int32 | Kind::Int64 => Part::Varint(0),
        Kind::Double => Part::Double(0.0),
        Kind::String | Kind::Bytes => Part::Bytes(&[]),
        Kind::Message(_) => Part::Node(Node::default()),
    };
    while entry.at < end {
        let start = entry.clone();
        match (entry.varint()? >> 3) as i32 {
            1 => name = entry.length_delimited()?,
            2 => value = read_one(kind, &mut entry, depth)?,
            _ => {
                entry = start;
                entry.skip()?;
                if entry.at > end {
                    return Err(Error::UnexpectedEnd);
                }
            }
        }
    }
    Ok((name, value))
}

impl Field {
    /// How the field's bytes are laid out.
    pub fn wire_type(&self) -> u8 {
        match (self.shape, self.kind) {
            (Shape::Map | Shape::Extensions, _) | (_, Kind::String | Kind::Bytes | Kind::Message(_)) => {
                LENGTH_DELIMITED
            }
            (_, Kind::Bool | Kind::Int32 | Kind::Int64) => VARINT,
            (_, Kind::Double) => FIXED64,
        }
    }
}
