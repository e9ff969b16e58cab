//! What holds any object: `runtime.Unknown`.

use super::super::table::{Kind::String, Message, field, message};

static TYPE_META: Message = Message::new("TypeMeta", &[field(1, "apiVersion", String), field(2, "kind", String)]);

/// The fields are an object's type, its bytes, and how those are encoded.
pub static UNKNOWN: Message = Message::new(
    "Unknown",
    &[
        message(1, "", &TYPE_META).go("TypeMeta"),
        field(2, "", String).go("Raw"),
        field(3, "", String).go("ContentEncoding"),
        field(4, "", String).go("ContentType"),
    ],
);
