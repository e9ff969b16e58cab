//! Namespace, core/v1.

use super::super::table::{Kind::*, Message, field, message};
use super::Type;
use super::metadata::{LIST_META, OBJECT_META, TIME};

pub(super) static TYPES: &[Type] = &[("v1", "Namespace", &NAMESPACE), ("v1", "NamespaceList", &LIST)];

static LIST: Message = Message::new(
    "NamespaceList",
    &[message(1, "metadata", &LIST_META).go("ListMeta"), message(2, "items", &NAMESPACE).list().always()],
);

static NAMESPACE: Message = Message::new(
    "Namespace",
    &[message(1, "metadata", &OBJECT_META).go("ObjectMeta"), message(2, "spec", &SPEC), message(3, "status", &STATUS)],
);

static SPEC: Message = Message::new("NamespaceSpec", &[field(1, "finalizers", String).list()]);

static STATUS: Message =
    Message::new("NamespaceStatus", &[field(1, "phase", String), message(2, "conditions", &CONDITION).list()]);

static CONDITION: Message = Message::new(
    "NamespaceCondition",
    &[
        field(1, "type", String).always(),
        field(2, "status", String).always(),
        message(4, "lastTransitionTime", &TIME),
        field(5, "reason", String),
        field(6, "message", String),
    ],
);
