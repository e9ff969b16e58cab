//! Options that come as a body.

use super::super::table::{Kind::*, Message, field, message};

pub static DELETE_OPTIONS: Message = Message::new(
    "DeleteOptions",
    &[
        field(1, "gracePeriodSeconds", Int64).pointer(),
        message(2, "preconditions", &PRECONDITIONS).pointer(),
        field(3, "orphanDependents", Bool).pointer(),
        field(4, "propagationPolicy", String).pointer(),
        field(5, "dryRun", String).list(),
        field(6, "ignoreStoreReadErrorWithClusterBreakingPotential", Bool).pointer(),
    ],
);

static PRECONDITIONS: Message = Message::new(
    "Preconditions",
    &[field(1, "uid", String).pointer().go("UID"), field(2, "resourceVersion", String).pointer()],
);
