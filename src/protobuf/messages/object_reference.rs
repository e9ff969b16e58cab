//! References from one object to another, core/v1.

use super::super::table::{Kind::*, Message, field};

pub static OBJECT_REFERENCE: Message = Message::new(
    "ObjectReference",
    &[
        field(1, "kind", String),
        field(2, "namespace", String),
        field(3, "name", String),
        field(4, "uid", String).go("UID"),
        field(5, "apiVersion", String).go("APIVersion"),
        field(6, "resourceVersion", String),
        field(7, "fieldPath", String),
    ],
);

pub static LOCAL_OBJECT_REFERENCE: Message = Message::new("LocalObjectReference", &[field(1, "name", String)]);
