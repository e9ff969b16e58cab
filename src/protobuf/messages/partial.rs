//! Objects that are nothing but metadata.

use crate::types::metadata::{LIST_META, LIST_METADATA, METADATA, items};
use crate::types::{Message, message};

use super::Type;

pub(super) static TYPES: &[Type] = &[
    ("meta.k8s.io/v1", "PartialObjectMetadata", &PARTIAL_OBJECT_METADATA),
    ("meta.k8s.io/v1", "PartialObjectMetadataList", &PARTIAL_OBJECT_METADATA_LIST),
    ("meta.k8s.io/v1beta1", "PartialObjectMetadata", &PARTIAL_OBJECT_METADATA),
    ("meta.k8s.io/v1beta1", "PartialObjectMetadataList", &PARTIAL_OBJECT_METADATA_LIST_BETA),
];

static PARTIAL_OBJECT_METADATA: Message = Message::object("PartialObjectMetadata", &[METADATA]);

static PARTIAL_OBJECT_METADATA_LIST: Message =
    Message::object("PartialObjectMetadataList", &[LIST_METADATA, items(&PARTIAL_OBJECT_METADATA)]);

/// The beta version has the same fields under other numbers.
static PARTIAL_OBJECT_METADATA_LIST_BETA: Message = Message::object(
    "PartialObjectMetadataList",
    &[message(1, "items", &PARTIAL_OBJECT_METADATA).list().always(), message(2, "metadata", &LIST_META).go("ListMeta")],
);
