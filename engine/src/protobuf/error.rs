//! Why bytes are not a message, with the messages of Go's generated decoders.

use std::fmt;

/// A fault in protobuf bytes, or in their contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtobufError {
    /// There are no bytes at all.
    Empty,
    /// The bytes do not start with an envelope.
    NoEnvelope,
    /// Nothing follows the envelope's prefix.
    EmptyBody,
    /// The bytes end within a field.
    UnexpectedEnd,
    /// A number has more than 64 bits.
    IntegerOverflow,
    /// A length is negative.
    NegativeLength,
    /// A group ends that has not started.
    UnexpectedEndGroup,
    /// There is no such wire type.
    IllegalWireType(u8),
    /// A field's number is not allowed.
    IllegalTag {
        /// The Go name of the message.
        message: &'static str,
        /// The field's number.
        number: i32,
        /// The tag as it was read.
        tag: u64,
    },
    /// A group ends within a message.
    EndGroup {
        /// The Go name of the message.
        message: &'static str,
    },
    /// A field has a different wire type than its message declares.
    WrongWireType {
        /// The wire type that was read.
        wire_type: u8,
        /// The Go name of the field.
        field: String,
    },
    /// The nesting is deeper than JSON's may be.
    // DIFFERS: Go accepts it, and cannot read what it then stores.
    TooDeep,
    /// A time that JSON cannot represent.
    // DIFFERS: Go stores it, and prints years of five digits.
    YearOutOfRange,
    /// A number that JSON cannot represent.
    UnsupportedNumber(&'static str),
    /// Bytes that should be JSON and are not, with the parser's message.
    NotJson(String),
}

impl std::error::Error for ProtobufError {}

impl fmt::Display for ProtobufError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtobufError::Empty => out.write_str("empty data"),
            ProtobufError::NoEnvelope => {
                out.write_str("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
            }
            ProtobufError::EmptyBody => out.write_str("empty body"),
            ProtobufError::UnexpectedEnd => out.write_str("unexpected EOF"),
            ProtobufError::IntegerOverflow => out.write_str("proto: integer overflow"),
            ProtobufError::NegativeLength => out.write_str("proto: negative length found during unmarshaling"),
            ProtobufError::UnexpectedEndGroup => out.write_str("proto: unexpected end of group"),
            ProtobufError::IllegalWireType(wire_type) => write!(out, "proto: illegal wireType {wire_type}"),
            ProtobufError::IllegalTag { message, number, tag } => {
                write!(out, "proto: {message}: illegal tag {number} (wire type {tag})")
            }
            ProtobufError::EndGroup { message } => write!(out, "proto: {message}: wiretype end group for non-group"),
            ProtobufError::WrongWireType { wire_type, field } => {
                write!(out, "proto: wrong wireType = {wire_type} for field {field}")
            }
            ProtobufError::TooDeep => out.write_str("exceeded max depth"),
            ProtobufError::YearOutOfRange => out.write_str("Time.MarshalJSON: year outside of range [0,9999]"),
            ProtobufError::UnsupportedNumber(number) => write!(out, "json: unsupported value: {number}"),
            ProtobufError::NotJson(why) => out.write_str(why),
        }
    }
}
