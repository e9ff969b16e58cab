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

    /// The kind is not convertible. `found` and `wanted` are a version, or a package of Go, and a kind.
    pub fn not_convertible(found: (&str, &str), wanted: (&str, &str)) -> Self {
        let shown = |(version, kind)| format!("{version}.{kind}");
        SchemeError::NotConvertible { found: shown(found), wanted: shown(wanted) }
    }
}
