//! ConfigMap, core/v1.

use super::super::table::{Kind::*, Message, field, message};
use super::Type;
use super::metadata::{LIST_META, OBJECT_META};

pub(super) static TYPES: &[Type] = &[("v1", "ConfigMap", &CONFIG_MAP), ("v1", "ConfigMapList", &LIST)];

static LIST: Message = Message::new(
    "ConfigMapList",
    &[message(1, "metadata", &LIST_META).go("ListMeta"), message(2, "items", &CONFIG_MAP).list().always()],
);

static CONFIG_MAP: Message = Message::new(
    "ConfigMap",
    &[
        message(1, "metadata", &OBJECT_META).go("ObjectMeta"),
        field(2, "data", String).map(),
        field(3, "binaryData", Bytes).map(),
        field(4, "immutable", Bool).pointer(),
    ],
);
