//! Who the server is where it writes itself: its user, and the managers of the fields that it sets.

use crate::auth::UserInfo;

/// The manager of the fields that the server itself sets.
pub(super) const OWN_MANAGER: &str = "skiff";
/// The manager of what the server of a cluster makes itself.
pub(super) const API_SERVER_MANAGER: &str = "kube-apiserver";

/// The user that the server's own writes are made by.
pub(super) fn own_user() -> UserInfo {
    UserInfo::authenticated("system:apiserver", vec![UserInfo::MASTERS.to_owned()])
}
