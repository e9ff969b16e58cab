//! The users and field managers that controllers write as.

use crate::auth::UserInfo;

/// The user that the controllers are to the registry.
const USER: &str = "system:apiserver";
/// The manager of the fields that they set.
pub(super) const MANAGER: &str = "kube-apiserver";
/// The manager of the fields that the controllers of Kubernetes' controller manager set.
pub(super) const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// The user that controllers of the API server write as.
pub(super) fn user() -> UserInfo {
    UserInfo::authenticated(USER, vec![UserInfo::MASTERS.to_owned()])
}

/// The user that a controller of Kubernetes' controller manager is to webhooks.
pub(super) fn service_account(name: &str) -> UserInfo {
    const NAMESPACE: &str = "kube-system";
    UserInfo::authenticated(UserInfo::account_name(NAMESPACE, name), UserInfo::account_groups(NAMESPACE))
}
