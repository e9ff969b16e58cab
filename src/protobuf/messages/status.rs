//! Status, what an error looks like.

use super::super::table::{Kind::*, Message, field, message};
use super::Type;
use super::metadata::LIST_META;

pub(super) static TYPES: &[Type] = &[("v1", "Status", &STATUS)];

static STATUS: Message = Message::new(
    "Status",
    &[
        message(1, "metadata", &LIST_META).go("ListMeta"),
        field(2, "status", String),
        field(3, "message", String),
        field(4, "reason", String),
        message(5, "details", &DETAILS).pointer(),
        field(6, "code", Int32),
    ],
);

static DETAILS: Message = Message::new(
    "StatusDetails",
    &[
        field(1, "name", String),
        field(2, "group", String),
        field(3, "kind", String),
        message(4, "causes", &CAUSE).list(),
        field(5, "retryAfterSeconds", Int32),
        field(6, "uid", String).go("UID"),
    ],
);

static CAUSE: Message = Message::new(
    "StatusCause",
    &[field(1, "reason", String).go("Type"), field(2, "message", String), field(3, "field", String)],
);
