//! Protobuf, as Kubernetes speaks it for its own kinds: `application/vnd.kubernetes.protobuf`.
//!
//! In: bytes. Out: the same [`Value`](crate::value::Value) that the object's JSON gives, and back. A table of
//! [`crate::types`] drives both directions. No bytes are trusted: lengths, depth and numbers are checked, and an [`ProtobufError`] says
//! what Go's decoders say. Custom objects have no messages; nothing here knows a schema.
//!
//! Source: the `generated.proto` files and Go types of `k8s.io/api`, `apimachinery` and `apiextensions-apiserver`, release
//! 1.37; `serializer/protobuf` of apimachinery for what stands around a message.

mod error;
mod wire;
mod node;
mod decode;
mod encode;
mod envelope;
mod json_texts;
pub mod messages;

pub use decode::decode;
pub use encode::encode;
pub use envelope::{Envelope, PREFIX, open, seal, write_event};
pub use error::ProtobufError;
pub use json_texts::json_texts_at;

#[cfg(test)]
mod tests;
