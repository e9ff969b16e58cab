//! The users and field managers that controllers write as.

use crate::auth::UserInfo;

/// The controllers' user in the registry.
const USER: &str = "system:apiserver";
/// The manager of the fields that they set.
pub(super) const MANAGER: &str = "kube-apiserver";
/// The manager of the fields that the controllers of Kubernetes' controller manager set.
pub(super) const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// The user that controllers of the API server write as.
pub(super) fn user() -> UserInfo {
    UserInfo::authenticated(USER, vec![UserInfo::MASTERS.to_owned()])
}

/// The user that webhooks see for a controller of Kubernetes' controller manager.
pub(super) fn service_account(name: &str) -> UserInfo {
    const NAMESPACE: &str = "kube-system";
    UserInfo::authenticated(UserInfo::account_name(NAMESPACE, name), UserInfo::account_groups(NAMESPACE))
}
