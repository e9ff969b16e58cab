//! Secret, core/v1.

use super::super::table::{Kind::*, Message, field, message};
use super::Type;
use super::metadata::{LIST_META, OBJECT_META};

pub(super) static TYPES: &[Type] = &[("v1", "Secret", &SECRET), ("v1", "SecretList", &LIST)];

static LIST: Message = Message::new(
    "SecretList",
    &[message(1, "metadata", &LIST_META).go("ListMeta"), message(2, "items", &SECRET).list().always()],
);

static SECRET: Message = Message::new(
    "Secret",
    &[
        message(1, "metadata", &OBJECT_META).go("ObjectMeta"),
        field(2, "data", Bytes).map(),
        field(3, "type", String),
        field(4, "stringData", String).map(),
        field(5, "immutable", Bool).pointer(),
    ],
);
