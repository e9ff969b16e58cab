//! What Go's schemes say of objects that are of another kind than the one that is wanted.
//!
//! A scheme is the set of kinds that a program of Kubernetes knows; its name is the line of source that makes it, which
//! clients see.
//!
//! Source: `k8s.io/apimachinery/pkg/runtime/{error,scheme}.go`, release 1.37.

use thiserror::Error;

use crate::value::go_quote;

/// Why an object is not of the kind that is wanted.
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
        /// What the object says that it is.
        kind: String,
        /// The group and version that it names.
        api_version: String,
        /// The name of the scheme.
        scheme: &'static str,
    },
    /// The scheme does not have the kind in the version that Go's programs work with, which is meant where none is named.
    #[error(
        "no kind {} is registered for the internal version of group {} in scheme {}",
        go_quote(kind),
        go_quote(group),
        go_quote(scheme)
    )]
    NotRegisteredInternally {
        /// What the object says that it is.
        kind: String,
        /// The group of the kind that is wanted.
        group: String,
        /// The name of the scheme.
        scheme: &'static str,
    },
    /// The scheme has the kind, and can't make of it what is wanted.
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

    /// As it is told of an object that names no version, where one of `group` is wanted.
    #[must_use]
    pub fn without_version(self, group: &str) -> Self {
        match self {
            SchemeError::NotRegistered { kind, scheme, .. } => {
                SchemeError::NotRegisteredInternally { kind, group: group.to_owned(), scheme }
            }
            other => other,
        }
    }

    /// The kind is not convertible. `found` and `wanted` are a version, or a package of Go, and a kind.
    pub fn not_convertible(found: (&str, &str), wanted: (&str, &str)) -> Self {
        let shown = |(version, kind)| format!("{version}.{kind}");
        SchemeError::NotConvertible { found: shown(found), wanted: shown(wanted) }
    }
}
