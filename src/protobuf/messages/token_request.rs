//! TokenRequest, authentication.k8s.io/v1: a subresource of service accounts.

use crate::types::metadata::{METADATA, TIME};
use crate::types::{Codec, Message, int64, message, string};

use super::Type;

pub(super) static TYPES: &[Type] = &[("authentication.k8s.io/v1", "TokenRequest", &TOKEN_REQUEST)];

pub static TOKEN_REQUEST: Message = Message::object(
    "TokenRequest",
    &[
        METADATA,
        message(2, "spec", &SPEC).required().describe("What the token is to be for."),
        message(3, "status", &STATUS).describe("The token."),
    ],
)
.describe("TokenRequest asks for a token of a service account.");

static SPEC: Message = Message::new(
    "TokenRequestSpec",
    &[
        string(1, "audiences").list().always().required().atomic().describe("Whom the token is for."),
        int64(4, "expirationSeconds").pointer().describe("How long the token is to be valid."),
        message(3, "boundObjectRef", &BOUND_OBJECT_REFERENCE)
            .pointer()
            .always()
            .describe("The object without which the token is not valid any more."),
        message(5, "attestations", &ATTESTATION_VALUE)
            .map()
            .go_type("v1.AttestationValue")
            .describe("What is vouched for beside the identity."),
    ],
);

static ATTESTATION_VALUE: Message = Message::new("AttestationValue", &[string(1, "").list()]).codec(Codec::List);

static BOUND_OBJECT_REFERENCE: Message = Message::new(
    "BoundObjectReference",
    &[
        string(1, "kind").describe("Pod, Secret or Node."),
        string(2, "apiVersion").go("APIVersion").describe("The version of the kind."),
        string(3, "name").describe("The object."),
        string(4, "uid").go("UID").go_type("types.UID").describe("The object's uid."),
    ],
);

static STATUS: Message = Message::new(
    "TokenRequestStatus",
    &[
        string(1, "token").always().required().describe("The token."),
        message(2, "expirationTimestamp", &TIME).required().describe("Until when the token is valid."),
    ],
);
