//! References from one object to another, core/v1.

use super::{Message, string};

pub static OBJECT_REFERENCE: Message = Message::new(
    "ObjectReference",
    &[
        string(1, "kind"),
        string(2, "namespace"),
        string(3, "name"),
        string(4, "uid").go("UID").go_type("types.UID"),
        string(5, "apiVersion").go("APIVersion"),
        string(6, "resourceVersion"),
        string(7, "fieldPath"),
    ],
)
.atomic();

pub static LOCAL_OBJECT_REFERENCE: Message = Message::new("LocalObjectReference", &[string(1, "name")]).atomic();
