//! Status, what an error looks like.

use super::Type;
use crate::types::metadata::LIST_META;
use crate::types::{Message, int32, message, string};

pub(super) static TYPES: &[Type] = &[("v1", "Status", &STATUS)];

static STATUS: Message = Message::new(
    "Status",
    &[
        message(1, "metadata", &LIST_META).go("ListMeta"),
        string(2, "status"),
        string(3, "message"),
        string(4, "reason"),
        message(5, "details", &DETAILS).pointer(),
        int32(6, "code"),
    ],
);

static DETAILS: Message = Message::new(
    "StatusDetails",
    &[
        string(1, "name"),
        string(2, "group"),
        string(3, "kind"),
        message(4, "causes", &CAUSE).list(),
        int32(5, "retryAfterSeconds"),
        string(6, "uid").go("UID"),
    ],
);

static CAUSE: Message =
    Message::new("StatusCause", &[string(1, "reason").go("Type"), string(2, "message"), string(3, "field")]);
