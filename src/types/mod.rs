//! Types of Kubernetes' own kinds, as Go declares them: one table says how a type is read, written, patched and published.
//!
//! A [`Message`] is a Go struct: its fields in the order of their declaration, each with its JSON name, its number in
//! protobuf, and what Go does with a zero value. From it follow the JSON that Go writes and its words for what does not
//! fit ([`json`]), the order of the fields in that text ([`layout`]), the structural schema that the engine of custom kinds
//! works on ([`structural`]), and the bytes ([`crate::protobuf`]). Types that several kinds share live here, once.
//!
//! Source: the Go types and `generated.proto` files of `k8s.io/api` and `k8s.io/apimachinery`, release 1.37.

mod table;
pub mod json;
pub mod layout;
pub mod structural;
pub mod metadata;
pub mod reference;
pub mod selector;
pub mod user;

pub use table::{
    Codec, Field, Items, Kind, Message, Shape, boolean, bytes, double, inline, int32, int64, message, string,
};
