//! Metadata of objects and lists, and what times and quantities look like.

use super::{Codec, Field, Message, boolean, int32, int64, message, string};

/// The metadata of an object, which every kind begins with.
pub const METADATA: Field = message(1, "metadata", &OBJECT_META).go("ObjectMeta");

/// The metadata of a list, which every list begins with.
pub const LIST_METADATA: Field = message(1, "metadata", &LIST_META).go("ListMeta");

/// The items of a list.
pub const fn items(kind: &'static Message) -> Field {
    message(2, "items", kind).list().always()
}

pub static LIST_META: Message = Message::new(
    "ListMeta",
    &[
        string(1, "selfLink"),
        string(2, "resourceVersion"),
        string(3, "continue"),
        int64(4, "remainingItemCount").pointer(),
        message(5, "shardInfo", &SHARD_INFO).pointer(),
    ],
);

static SHARD_INFO: Message = Message::new("ShardInfo", &[string(1, "selector").always()]);

pub static OBJECT_META: Message = Message::new(
    "ObjectMeta",
    &[
        string(1, "name"),
        string(2, "generateName"),
        string(3, "namespace"),
        string(4, "selfLink"),
        string(5, "uid").go("UID"),
        string(6, "resourceVersion"),
        int64(7, "generation"),
        message(8, "creationTimestamp", &TIME).omit_zero(),
        message(9, "deletionTimestamp", &TIME).pointer(),
        int64(10, "deletionGracePeriodSeconds").pointer(),
        string(11, "labels").map(),
        string(12, "annotations").map(),
        message(13, "ownerReferences", &OWNER_REFERENCE).list(),
        string(14, "finalizers").list(),
        message(17, "managedFields", &MANAGED_FIELDS_ENTRY).list(),
    ],
);

static OWNER_REFERENCE: Message = Message::new(
    "OwnerReference",
    &[
        string(5, "apiVersion").always().go("APIVersion"),
        string(1, "kind").always(),
        string(3, "name").always(),
        string(4, "uid").always().go("UID"),
        boolean(6, "controller").pointer(),
        boolean(7, "blockOwnerDeletion").pointer(),
    ],
);

static MANAGED_FIELDS_ENTRY: Message = Message::new(
    "ManagedFieldsEntry",
    &[
        string(1, "manager"),
        string(2, "operation"),
        string(3, "apiVersion").go("APIVersion"),
        message(4, "time", &TIME).pointer(),
        string(6, "fieldsType"),
        message(7, "fieldsV1", &FIELDS_V1).pointer(),
        string(8, "subresource"),
    ],
);

static FIELDS_V1: Message = Message::new("FieldsV1", &[string(1, "").pointer().go("Raw")]).codec(Codec::FieldsV1);

pub static TIME: Message = Message::new("Timestamp", &[int64(1, "seconds"), int32(2, "nanos")]).codec(Codec::Time);

pub static MICRO_TIME: Message =
    Message::new("Timestamp", &[int64(1, "seconds"), int32(2, "nanos")]).codec(Codec::MicroTime);

pub static QUANTITY: Message = Message::new("Quantity", &[string(1, "string")]).codec(Codec::Quantity);
