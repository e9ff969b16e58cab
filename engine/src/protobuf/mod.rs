//! Protobuf, as Kubernetes uses it for its own kinds: `application/vnd.kubernetes.protobuf`.
//!
//! Input: bytes. Output: the same [`Value`](crate::value::Value) that the object's JSON gives, and vice versa. The
//! tables of [`crate::types`] drive both directions. Text that the server encoded itself is written as bytes without a
//! value in between; so is each item of a list. Bytes are not trusted: lengths, depth and numbers are checked, and
//! a [`ProtobufError`] has the message of Go's decoders. Custom objects have no messages; nothing here knows about
//! schemas.
//!
//! Source: the `generated.proto` files and Go types of `k8s.io/api`, `apimachinery` and `apiextensions-apiserver`,
//! release 1.37; `serializer/protobuf` of apimachinery for the envelope.

mod error;
mod wire;
mod node;
mod decode;
mod tree;
mod encode;
mod envelope;
mod json_texts;
pub mod messages;

pub use decode::decode;
pub use encode::{encode, encode_json};
pub use envelope::{Envelope, ItemTexts, PREFIX, open, seal, seal_list, seal_text, write_event};
pub use error::ProtobufError;
pub use json_texts::json_texts_at;

#[cfg(test)]
mod tests;
