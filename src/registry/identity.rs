//! The identity of the server in its own writes: its user, and the managers of the fields that it sets.

use crate::auth::UserInfo;

/// The manager of the fields that the server itself sets.
pub(super) const OWN_MANAGER: &str = "skiff";
/// The manager of the objects that a cluster's API server creates itself.
pub(super) const API_SERVER_MANAGER: &str = "kube-apiserver";

/// The user of the server's own writes.
pub(super) fn own_user() -> UserInfo {
    UserInfo::authenticated(UserInfo::API_SERVER, vec![UserInfo::MASTERS.to_owned()])
}
