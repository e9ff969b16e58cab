//! The context for checking the containers of a pod.

use std::collections::BTreeSet;

use super::PodValidationOptions;
use super::volumes::Volumes;

/// The facts about the pod whose containers are checked.
pub struct ContainerContext<'a> {
    pub options: &'a PodValidationOptions,
    pub volumes: &'a Volumes<'a>,
    /// The names of the pod's claims.
    pub claims: &'a BTreeSet<&'a str>,
    pub grace_seconds: Option<i64>,
    /// The name of the operating system, if the pod has one.
    pub os: Option<&'a str>,
    pub restart_policy: &'a str,
    /// Whether users in the pod are those of its host.
    pub host_users: bool,
}
