//! What the questions of `authorization.k8s.io` share: what somebody wants to do, and whether they may.
//!
//! Source: the types of `k8s.io/api/authorization/v1`, release 1.37.

use crate::types::selector::{FIELD_SELECTOR_REQUIREMENT, LABEL_SELECTOR_REQUIREMENT};
use crate::types::user::EXTRA_VALUE;
use crate::types::{Message, boolean, message, string};

pub const GROUP: &str = "authorization.k8s.io";

pub static SPEC: Message = Message::new(
    "SubjectAccessReviewSpec",
    &[
        message(1, "resourceAttributes", &RESOURCE_ATTRIBUTES).pointer().describe("What is wanted of a resource."),
        message(2, "nonResourceAttributes", &NON_RESOURCE_ATTRIBUTES)
            .pointer()
            .describe("What is wanted of a path that is no resource."),
        string(3, "user").describe("Who wants it."),
        string(4, "groups").list().atomic().describe("The groups that the user is in."),
        message(5, "extra", &EXTRA_VALUE)
            .map()
            .go_type("v1.ExtraValue")
            .describe("What else who authenticated the user said of it."),
        string(6, "uid").go("UID").describe("What tells the user from others who had the name at other times."),
    ],
);

pub static SELF_SPEC: Message = Message::new(
    "SelfSubjectAccessReviewSpec",
    &[
        message(1, "resourceAttributes", &RESOURCE_ATTRIBUTES).pointer().describe("What is wanted of a resource."),
        message(2, "nonResourceAttributes", &NON_RESOURCE_ATTRIBUTES)
            .pointer()
            .describe("What is wanted of a path that is no resource."),
    ],
);

static RESOURCE_ATTRIBUTES: Message = Message::new(
    "ResourceAttributes",
    &[
        string(1, "namespace").describe("The namespace; for a cluster resource none, else none means all."),
        string(2, "verb").describe("get, list, watch, create, update, patch, delete, deletecollection; `*` is all."),
        string(3, "group").describe("The group of the resource; `*` is all."),
        string(4, "version").describe("The version of the resource; `*` is all."),
        string(5, "resource").describe("The resource; `*` is all."),
        string(6, "subresource").describe("The part of the resource."),
        string(7, "name").describe("The object; none means all."),
        message(8, "fieldSelector", &FIELD_SELECTOR_ATTRIBUTES).pointer().describe("The objects, by their fields."),
        message(9, "labelSelector", &LABEL_SELECTOR_ATTRIBUTES).pointer().describe("The objects, by their labels."),
    ],
);

static FIELD_SELECTOR_ATTRIBUTES: Message = Message::new(
    "FieldSelectorAttributes",
    &[string(1, "rawSelector"), message(2, "requirements", &FIELD_SELECTOR_REQUIREMENT).list().atomic()],
);

static LABEL_SELECTOR_ATTRIBUTES: Message = Message::new(
    "LabelSelectorAttributes",
    &[string(1, "rawSelector"), message(2, "requirements", &LABEL_SELECTOR_REQUIREMENT).list().atomic()],
);

static NON_RESOURCE_ATTRIBUTES: Message = Message::new(
    "NonResourceAttributes",
    &[string(1, "path").describe("The path."), string(2, "verb").describe("The method in lower case.")],
);

pub static STATUS: Message = Message::new(
    "SubjectAccessReviewStatus",
    &[
        boolean(1, "allowed").always().required().describe("Whether it is allowed."),
        boolean(4, "denied").describe("Whether it is forbidden, whatever others would say."),
        string(2, "reason").describe("Why."),
        string(3, "evaluationError").describe("What went wrong while it was decided."),
    ],
);
