//! The message that contains any object: `runtime.Unknown`.

use crate::types::{Message, message, string};

static TYPE_META: Message = Message::new("TypeMeta", &[string(1, "apiVersion"), string(2, "kind")]);

/// The fields are an object's type, its bytes, and how those are encoded.
pub static UNKNOWN: Message = Message::new(
    "Unknown",
    &[
        message(1, "", &TYPE_META).go("TypeMeta"),
        string(2, "").go("Raw"),
        string(3, "").go("ContentEncoding"),
        string(4, "").go("ContentType"),
    ],
);
