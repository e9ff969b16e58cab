//! What documents and definitions are called.

use crate::crd::ServedVersion;
use crate::kinds::{self, Kind};
use crate::schema::openapi;
use crate::types;

/// The package of definitions that all groups share.
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// `apis/GROUP/VERSION`, or `api/VERSION` for the core group.
pub fn document_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Groups whose kinds come with the server; their definitions have names of their own.
pub(super) fn is_built_in(group: &str) -> bool {
    !group.contains('.') || types::knows_group(group)
}

pub(super) fn definition_name(group: &str, version: &str, kind: &str) -> String {
    match group.split('.').next().unwrap_or_default() {
        _ if !is_built_in(group) => openapi::definition_name(group, version, kind),
        "apiextensions" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        "apiregistration" => format!("io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}.{kind}"),
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        name => {
            let package = types::package_of_group(group).unwrap_or(name);
            format!("io.k8s.api.{package}.{version}.{kind}")
        }
    }
}

/// The built-in kind that a version is, if it is one.
pub(super) fn built_in(version: &ServedVersion) -> Option<&'static Kind> {
    kinds::of_all_minors().find(|kind| kind.is_form(version))
}
