//! Metadata of objects and lists, and objects that are nothing but metadata.

use super::super::table::{Codec, Kind::*, Message, field, message};
use super::Type;

pub(super) static TYPES: &[Type] = &[
    ("meta.k8s.io/v1", "PartialObjectMetadata", &PARTIAL_OBJECT_METADATA),
    ("meta.k8s.io/v1", "PartialObjectMetadataList", &PARTIAL_OBJECT_METADATA_LIST),
    ("meta.k8s.io/v1beta1", "PartialObjectMetadata", &PARTIAL_OBJECT_METADATA),
    ("meta.k8s.io/v1beta1", "PartialObjectMetadataList", &PARTIAL_OBJECT_METADATA_LIST_BETA),
];

static PARTIAL_OBJECT_METADATA: Message =
    Message::new("PartialObjectMetadata", &[message(1, "metadata", &OBJECT_META).go("ObjectMeta")]);

static PARTIAL_OBJECT_METADATA_LIST: Message = Message::new(
    "PartialObjectMetadataList",
    &[message(1, "metadata", &LIST_META).go("ListMeta"), message(2, "items", &PARTIAL_OBJECT_METADATA).list().always()],
);

/// The beta version has the same fields under other numbers.
static PARTIAL_OBJECT_METADATA_LIST_BETA: Message = Message::new(
    "PartialObjectMetadataList",
    &[message(1, "items", &PARTIAL_OBJECT_METADATA).list().always(), message(2, "metadata", &LIST_META).go("ListMeta")],
);

pub static LIST_META: Message = Message::new(
    "ListMeta",
    &[
        field(1, "selfLink", String),
        field(2, "resourceVersion", String),
        field(3, "continue", String),
        field(4, "remainingItemCount", Int64).pointer(),
        message(5, "shardInfo", &SHARD_INFO).pointer(),
    ],
);

static SHARD_INFO: Message = Message::new("ShardInfo", &[field(1, "selector", String).always()]);

pub static OBJECT_META: Message = Message::new(
    "ObjectMeta",
    &[
        field(1, "name", String),
        field(2, "generateName", String),
        field(3, "namespace", String),
        field(4, "selfLink", String),
        field(5, "uid", String).go("UID"),
        field(6, "resourceVersion", String),
        field(7, "generation", Int64),
        message(8, "creationTimestamp", &TIME).omit_zero(),
        message(9, "deletionTimestamp", &TIME).pointer(),
        field(10, "deletionGracePeriodSeconds", Int64).pointer(),
        field(11, "labels", String).map(),
        field(12, "annotations", String).map(),
        message(13, "ownerReferences", &OWNER_REFERENCE).list(),
        field(14, "finalizers", String).list(),
        message(17, "managedFields", &MANAGED_FIELDS_ENTRY).list(),
    ],
);

static OWNER_REFERENCE: Message = Message::new(
    "OwnerReference",
    &[
        field(1, "kind", String).always(),
        field(3, "name", String).always(),
        field(4, "uid", String).always().go("UID"),
        field(5, "apiVersion", String).always().go("APIVersion"),
        field(6, "controller", Bool).pointer(),
        field(7, "blockOwnerDeletion", Bool).pointer(),
    ],
);

static MANAGED_FIELDS_ENTRY: Message = Message::new(
    "ManagedFieldsEntry",
    &[
        field(1, "manager", String),
        field(2, "operation", String),
        field(3, "apiVersion", String).go("APIVersion"),
        message(4, "time", &TIME).pointer(),
        field(6, "fieldsType", String),
        message(7, "fieldsV1", &FIELDS_V1).pointer(),
        field(8, "subresource", String),
    ],
);

static FIELDS_V1: Message =
    Message::new("FieldsV1", &[field(1, "", String).pointer().go("Raw")]).codec(Codec::FieldsV1);

pub static TIME: Message =
    Message::new("Timestamp", &[field(1, "seconds", Int64), field(2, "nanos", Int32)]).codec(Codec::Time);

pub static MICRO_TIME: Message =
    Message::new("Timestamp", &[field(1, "seconds", Int64), field(2, "nanos", Int32)]).codec(Codec::MicroTime);
