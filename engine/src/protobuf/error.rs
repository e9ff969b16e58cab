//! Why bytes are not a message, in the words of Go's generated decoders.

use std::fmt;

/// A fault in protobuf bytes, or in what they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// There are no bytes at all.
    Empty,
    /// The bytes don't begin as an envelope.
    NoEnvelope,
    /// Nothing follows the beginning of an envelope.
    EmptyBody,
    /// The bytes end within a field.
    UnexpectedEnd,
    /// A number has more than 64 bits.
    IntegerOverflow,
    /// A length is negative.
    NegativeLength,
    /// A group ends that did not begin.
    UnexpectedEndGroup,
    /// A wire type that does not exist.
    IllegalWireType(u8),
    /// A field's number is not allowed.
    IllegalTag {
        /// The Go name of the message.
        message: &'static str,
        /// The number.
        number: i32,
        /// The tag as it was read.
        tag: u64,
    },
    /// A group ends in a message.
    EndGroup {
        /// The Go name of the message.
        message: &'static str,
    },
    /// A field has another wire type than its message says.
    WrongWireType {
        /// The wire type that was read.
        wire_type: u8,
        /// The Go name of the field.
        field: String,
    },
    /// Nested deeper than JSON may be.
    // DIFFERS: Go reads on, and can't read what it then stores.
    TooDeep,
    /// A time that JSON has no form for.
    // DIFFERS: Go stores it, and prints years of five digits.
    YearOutOfRange,
    /// A number that JSON has no form for.
    UnsupportedNumber(&'static str),
    /// Bytes that should be JSON and are not, with the reader's words.
    NotJson(String),
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty => out.write_str("empty data"),
            Error::NoEnvelope => {
                out.write_str("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
            }
            Error::EmptyBody => out.write_str("empty body"),
            Error::UnexpectedEnd => out.write_str("unexpected EOF"),
            Error::IntegerOverflow => out.write_str("proto: integer overflow"),
            Error::NegativeLength => out.write_str("proto: negative length found during unmarshaling"),
            Error::UnexpectedEndGroup => out.write_str("proto: unexpected end of group"),
            Error::IllegalWireType(wire_type) => write!(out, "proto: illegal wireType {wire_type}"),
            Error::IllegalTag { message, number, tag } => {
                write!(out, "proto: {message}: illegal tag {number} (wire type {tag})")
            }
            Error::EndGroup { message } => write!(out, "proto: {message}: wiretype end group for non-group"),
            Error::WrongWireType { wire_type, field } => {
                write!(out, "proto: wrong wireType = {wire_type} for field {field}")
            }
            Error::TooDeep => out.write_str("exceeded max depth"),
            Error::YearOutOfRange => out.write_str("Time.MarshalJSON: year outside of range [0,9999]"),
            Error::UnsupportedNumber(number) => write!(out, "json: unsupported value: {number}"),
            Error::NotJson(why) => out.write_str(why),
        }
    }
}
