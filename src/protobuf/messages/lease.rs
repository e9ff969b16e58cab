//! Lease, coordination.k8s.io/v1.

use super::super::table::{Kind::*, Message, field, message};
use super::Type;
use super::metadata::{LIST_META, MICRO_TIME, OBJECT_META};

pub(super) static TYPES: &[Type] =
    &[("coordination.k8s.io/v1", "Lease", &LEASE), ("coordination.k8s.io/v1", "LeaseList", &LIST)];

static LIST: Message = Message::new(
    "LeaseList",
    &[message(1, "metadata", &LIST_META).go("ListMeta"), message(2, "items", &LEASE).list().always()],
);

static LEASE: Message =
    Message::new("Lease", &[message(1, "metadata", &OBJECT_META).go("ObjectMeta"), message(2, "spec", &SPEC)]);

static SPEC: Message = Message::new(
    "LeaseSpec",
    &[
        field(1, "holderIdentity", String).pointer(),
        field(2, "leaseDurationSeconds", Int32).pointer(),
        message(3, "acquireTime", &MICRO_TIME).pointer(),
        message(4, "renewTime", &MICRO_TIME).pointer(),
        field(5, "leaseTransitions", Int32).pointer(),
        field(6, "strategy", String).pointer(),
        field(7, "preferredHolder", String).pointer(),
    ],
);
