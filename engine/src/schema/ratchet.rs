//! Ratcheting: an update may keep invalid values that it does not change, as when the schema has become stricter.
//!
//! Input: a correlated value whose validation found errors. Output: whether these are forgiven. They are if the value
//! is unchanged; errors of values without an old counterpart and errors under a junctor are not. Source: Kubernetes
//! documentation, "Validation ratcheting"; answers recorded from apiextensions-apiserver 1.37.

use super::correlate::Correlated;

/// The field `name` of `parent`, if its errors may be forgiven. `apiVersion` and `kind` of the root may not: both
/// objects were converted to the same version, so a change does not show.
pub fn field<'c>(parent: Option<&'c Correlated<'_>>, name: &str, at_root: bool) -> Option<Correlated<'c>> {
    if at_root && matches!(name, "apiVersion" | "kind") {
        return None;
    }
    parent?.field(name)
}

/// The item at `index` of `parent`, if its errors may be forgiven.
pub fn item<'c>(parent: Option<&'c Correlated<'_>>, index: usize) -> Option<Correlated<'c>> {
    parent?.item(index)
}

/// Whether the errors found in `value` are forgiven.
pub fn forgives(value: Option<&Correlated<'_>>) -> bool {
    value.is_some_and(Correlated::is_unchanged)
}
