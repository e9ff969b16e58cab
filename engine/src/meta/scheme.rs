//! The errors of Go's schemes for objects of an unexpected kind.
//!
//! A scheme is the set of kinds that a Kubernetes program knows; its name is the source line that creates it, which
//! clients see.
//!
//! Source: `k8s.io/apimachinery/pkg/runtime/{error,scheme}.go`, release 1.37.

use thiserror::Error;

use crate::value::go_quote;

/// Why an object is not of the expected kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemeError {
    /// The scheme does not have the kind.
    #[error(
        "no kind {} is registered for version {} in scheme {}",
        go_quote(kind),
        go_quote(api_version),
        go_quote(scheme)
    )]
    NotRegistered {
        /// The kind that the object declares.
        kind: String,
        /// The group and version that it names.
        api_version: String,
        /// The name of the scheme.
        scheme: &'static str,
    },
    /// The scheme does not have the kind in the internal version that Go's programs work with, which is assumed if none
    /// is named.
    #[error(
        "no kind {} is registered for the internal version of group {} in scheme {}",
        go_quote(kind),
        go_quote(group),
        go_quote(scheme)
    )]
    NotRegisteredInternally {
        /// The kind that the object declares.
        kind: String,
        /// The group of the expected kind.
        group: String,
        /// The name of the scheme.
        scheme: &'static str,
    },
    /// The scheme has the kind, but can't convert it to the expected one.
    #[error("converting ({found}) to ({wanted}): unknown conversion")]
    NotConvertible {
        /// `v1.Secret`
        found: String,
        /// `core.ConfigMap`
        wanted: String,
    },
}

impl SchemeError {
    /// The kind is not in the scheme.
    pub fn not_registered(kind: &str, api_version: &str, scheme: &'static str) -> Self {
        SchemeError::NotRegistered { kind: kind.to_owned(), api_version: api_version.to_owned(), scheme }
    }

    /// The error for an object that names no version, if one of `group` is expected.
    #[must_use]
    pub fn without_version(self, group: &str) -> Self {
        match self {
            SchemeError::NotRegistered { kind, scheme, .. } => {
                SchemeError::NotRegisteredInternally { kind, group: group.to_owned(), scheme }
            }
            other => other,
        }
    }

    /// The error that the kind is not convertible. `found` and `wanted` are each a version, or a Go package, and a
    /// kind.
    pub fn not_convertible(found: (&str, &str), wanted: (&str, &str)) -> Self {
        let shown = |(version, kind)| format!("{version}.{kind}");
        SchemeError::NotConvertible { found: shown(found), wanted: shown(wanted) }
    }
}
