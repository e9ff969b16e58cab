//! Scale, autoscaling/v1: a subresource of custom resources.

use super::super::table::{Kind::*, Message, field, message};
use super::Type;
use super::metadata::OBJECT_META;

pub(super) static TYPES: &[Type] = &[("autoscaling/v1", "Scale", &SCALE)];

static SCALE: Message = Message::new(
    "Scale",
    &[message(1, "metadata", &OBJECT_META).go("ObjectMeta"), message(2, "spec", &SPEC), message(3, "status", &STATUS)],
);

static SPEC: Message = Message::new("ScaleSpec", &[field(1, "replicas", Int32)]);

static STATUS: Message =
    Message::new("ScaleStatus", &[field(1, "replicas", Int32).always(), field(2, "selector", String)]);
