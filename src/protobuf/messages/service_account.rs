//! ServiceAccount, core/v1.

use super::super::table::{Kind::*, Message, field, message};
use super::Type;
use super::metadata::{LIST_META, OBJECT_META};
use super::object_reference::{LOCAL_OBJECT_REFERENCE, OBJECT_REFERENCE};

pub(super) static TYPES: &[Type] = &[("v1", "ServiceAccount", &SERVICE_ACCOUNT), ("v1", "ServiceAccountList", &LIST)];

static LIST: Message = Message::new(
    "ServiceAccountList",
    &[message(1, "metadata", &LIST_META).go("ListMeta"), message(2, "items", &SERVICE_ACCOUNT).list().always()],
);

static SERVICE_ACCOUNT: Message = Message::new(
    "ServiceAccount",
    &[
        message(1, "metadata", &OBJECT_META).go("ObjectMeta"),
        message(2, "secrets", &OBJECT_REFERENCE).list(),
        message(3, "imagePullSecrets", &LOCAL_OBJECT_REFERENCE).list(),
        field(4, "automountServiceAccountToken", Bool).pointer(),
    ],
);
