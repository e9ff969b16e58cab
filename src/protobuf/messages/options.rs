//! Options that come as a body.

use crate::types::{Message, boolean, int64, message, string};

pub static DELETE_OPTIONS: Message = Message::new(
    "DeleteOptions",
    &[
        int64(1, "gracePeriodSeconds").pointer(),
        message(2, "preconditions", &PRECONDITIONS).pointer(),
        boolean(3, "orphanDependents").pointer(),
        string(4, "propagationPolicy").pointer(),
        string(5, "dryRun").list(),
        boolean(6, "ignoreStoreReadErrorWithClusterBreakingPotential").pointer(),
    ],
);

static PRECONDITIONS: Message =
    Message::new("Preconditions", &[string(1, "uid").pointer().go("UID"), string(2, "resourceVersion").pointer()]);
