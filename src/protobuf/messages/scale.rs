//! Scale, autoscaling/v1: a subresource of custom resources.

use crate::types::metadata::METADATA;
use crate::types::{Message, int32, message, string};

use super::Type;

pub(super) static TYPES: &[Type] = &[("autoscaling/v1", "Scale", &SCALE)];

pub static SCALE: Message = Message::object(
    "Scale",
    &[
        METADATA,
        message(2, "spec", &SPEC).describe("How many there shall be."),
        message(3, "status", &STATUS).describe("How many there are."),
    ],
)
.describe("Scale stands for how many there are of what another object describes.");

static SPEC: Message = Message::new("ScaleSpec", &[int32(1, "replicas").describe("The number that is wanted.")]);

static STATUS: Message = Message::new(
    "ScaleStatus",
    &[
        int32(1, "replicas").always().describe("The number that was observed."),
        string(2, "selector").describe("What selects those that are counted."),
    ],
);
