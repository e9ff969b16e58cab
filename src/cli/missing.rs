//! Kinds without a definition: which of them may be left unchecked, and which known kind may have
//! been meant.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::definitions::is_definition;
use crate::author::near::{KnownNames, NamedKind};
use crate::meta::api_version::group_of;
use crate::meta::minor::Minor;
use crate::value::Value;

/// The known kinds with their groups and versions.
pub struct KnownKinds {
    names: KnownNames,
    /// The messages so far, by version and kind.
    said: Mutex<HashMap<(String, String), String>>,
}

impl KnownKinds {
    /// The built-in kinds of a minor version, and those of `definitions`; other documents are
    /// ignored.
    pub fn new<'v>(minor: Minor, definitions: impl Iterator<Item = &'v Value>) -> Self {
        let defined = definitions.filter(|document| is_definition(document)).filter_map(defined_name);
        KnownKinds { names: KnownNames::with(minor, defined), said: Mutex::default() }
    }

    /// Why `object` was not checked: its kind is unknown. A similar kind is suggested if there is
    /// one.
    pub fn why_unchecked(&self, object: &Value) -> String {
        let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = (api_version.to_owned(), kind.to_owned());
        said.entry(asked).or_insert_with(|| self.names.why_unchecked(api_version, kind)).clone()
    }
}

/// The kind of a definition, in the storage version if that is served.
fn defined_name(definition: &Value) -> Option<NamedKind> {
    let versions = definition.items_at(&["spec", "versions"]).iter();
    let is = |version: &Value, name| version.get(name).and_then(Value::as_bool) == Some(true);
    let version = versions.filter(|version| is(version, "served")).max_by_key(|version| is(version, "storage"))?;
    let api_version = format!("{}/{}", definition.str_at(&["spec", "group"]), version.str_at(&["name"]));
    Some(NamedKind { api_version, kind: definition.str_at(&["spec", "names", "kind"]).to_owned() })
}

/// The kinds that may be left unchecked: all of them, or those named, as `KIND` or `KIND.GROUP`.
pub struct AllowedMissing<'a>(pub Option<&'a [String]>);

impl AllowedMissing<'_> {
    /// Whether `object` may be left unchecked.
    pub fn has(&self, object: &Value) -> bool {
        let kind = object.str_at(&["kind"]);
        let full = format!("{kind}.{}", group_of(object.str_at(&["apiVersion"])));
        match self.0 {
            None => false,
            Some([]) => true,
            Some(names) => !kind.is_empty() && names.iter().any(|name| name == kind || *name == full),
        }
    }

    /// Whether all kinds may be left unchecked.
    pub fn has_all(&self) -> bool {
        self.0.is_some_and(<[String]>::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn a_kind_is_near_in_the_version_that_is_stored() {
        let names = object! { "kind" => "Ferry" };
        let versions = vec![
            object! { "name" => "v1", "served" => true, "storage" => false },
            object! { "name" => "v2", "served" => true, "storage" => true },
        ];
        let spec = object! { "group" => "harbour.example.com", "names" => names, "versions" => versions };
        let api_version = "apiextensions.k8s.io/v1";
        let definition = object! { "apiVersion" => api_version, "kind" => "CustomResourceDefinition", "spec" => spec };
        let fery = object! { "apiVersion" => "harbour.example.com/v1", "kind" => "Fery" };
        let said = KnownKinds::new(Minor::NEWEST, [&definition].into_iter()).why_unchecked(&fery);
        assert!(said.ends_with("; did you mean Ferry in harbour.example.com/v2?"), "{said}");
    }

    #[test]
    fn kinds_are_allowed_by_name_with_or_without_their_group() {
        let crane = object! { "apiVersion" => "harbour.example.org/v1", "kind" => "Crane" };
        let has = |names: Option<&[&str]>, object: &Value| {
            let names: Option<Vec<String>> = names.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            AllowedMissing(names.as_deref()).has(object)
        };
        assert_eq!([has(None, &crane), has(Some(&[]), &crane)], [false, true]);
        assert_eq!([has(Some(&["Crane"]), &crane), has(Some(&["Crane.harbour.example.org"]), &crane)], [true, true]);
        assert_eq!([has(Some(&["Crane.example.org"]), &crane), has(Some(&["Boat"]), &crane)], [false, false]);
        assert_eq!([has(Some(&[""]), &object! {}), has(Some(&[]), &object! {})], [false, true]);
    }
}
