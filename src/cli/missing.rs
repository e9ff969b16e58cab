//! Kinds that nothing here defines: which may go unchecked, and what may have been meant.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::definitions::is_definition;
use crate::crd::write::split_api_version;
use crate::kinds::{self, runtime_config::RuntimeConfig};
use crate::value::Value;

/// Of the letters of a kind, one in so many may be wrong.
const LETTERS_PER_MISTAKE: usize = 4;

/// The kinds that are known, and in which group and version.
pub struct Known {
    names: Vec<Name>,
    /// The guesses that were made, by version and kind.
    guesses: Mutex<HashMap<(String, String), Option<String>>>,
}

#[derive(PartialEq, Eq, Hash)]
struct Name {
    api_version: String,
    kind: String,
}

impl Known {
    /// The built-in kinds, and those of `definitions`: documents that are none are left out.
    pub fn new<'v>(definitions: impl Iterator<Item = &'v Value>) -> Self {
        let config = RuntimeConfig::default();
        let built_in = kinds::all().filter(|kind| config.serves(kind));
        let built_in = built_in.map(|kind| Name { api_version: kind.api_version(), kind: kind.kind.to_owned() });
        let defined = definitions.filter(|document| is_definition(document)).filter_map(Name::of_definition);
        Known { names: built_in.chain(defined).collect(), guesses: Mutex::default() }
    }

    /// Why `object` was not checked: its kind is not among these. With a guess where one is near.
    pub fn why_unchecked(&self, object: &Value) -> String {
        let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        if kind.is_empty() {
            return "not checked: it has no kind".to_owned();
        }
        let shown = if api_version.is_empty() { "no group" } else { api_version };
        let asked = (api_version.to_owned(), kind.to_owned());
        let mut guesses = self.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        let guess = guesses.entry(asked).or_insert_with(|| self.near(api_version, kind));
        let guess = guess.as_ref().map_or(String::new(), |near| format!("; did you mean {near}?"));
        format!("not checked: there is no definition of {kind} in {shown}{guess}")
    }

    fn near(&self, api_version: &str, kind: &str) -> Option<String> {
        let group = group_of(api_version);
        let mistakes_max = (kind.len() / LETTERS_PER_MISTAKE).max(1);
        let lower = kind.to_lowercase();
        let mistakes = |name: &Name| strsim::damerau_levenshtein(&name.kind.to_lowercase(), &lower);
        let near =
            self.names.iter().map(|name| (mistakes(name), name)).filter(|(mistakes, _)| *mistakes <= mistakes_max);
        let distance = |name: &Name| strsim::damerau_levenshtein(group_of(&name.api_version), group);
        let (_, name) = near.min_by_key(|(mistakes, name)| (*mistakes, distance(name)))?;
        Some(match (name.kind == kind, name.api_version == api_version) {
            (true, _) => name.api_version.clone(),
            (false, true) => name.kind.clone(),
            (false, false) => format!("{} in {}", name.kind, name.api_version),
        })
    }
}

impl Name {
    fn of_definition(definition: &Value) -> Option<Self> {
        let versions = definition.items_at(&["spec", "versions"]).iter();
        let is = |version: &Value, name| version.get(name).and_then(Value::as_bool) == Some(true);
        let version = versions.filter(|version| is(version, "served")).max_by_key(|version| is(version, "storage"))?;
        let api_version = format!("{}/{}", definition.str_at(&["spec", "group"]), version.str_at(&["name"]));
        Some(Name { api_version, kind: definition.str_at(&["spec", "names", "kind"]).to_owned() })
    }
}

fn group_of(api_version: &str) -> &str {
    split_api_version(api_version).unwrap_or_default().0
}

/// The kinds that may go unchecked: all, or those named, as `KIND` or `KIND.GROUP`.
pub struct Allowed<'a>(pub Option<&'a [String]>);

impl Allowed<'_> {
    /// Whether `object` may go unchecked.
    pub fn has(&self, object: &Value) -> bool {
        let kind = object.str_at(&["kind"]);
        let full = format!("{kind}.{}", group_of(object.str_at(&["apiVersion"])));
        match self.0 {
            None => false,
            Some([]) => true,
            Some(names) => !kind.is_empty() && names.iter().any(|name| name == kind || *name == full),
        }
    }

    /// Whether there may be nothing at all.
    pub fn has_all(&self) -> bool {
        self.0.is_some_and(<[String]>::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[track_caller]
    fn check(api_version: &str, kind: &str, near: Option<&str>) {
        let names = object! { "kind" => "Ferry" };
        let versions = vec![
            object! { "name" => "v1", "served" => true, "storage" => false },
            object! { "name" => "v2", "served" => true, "storage" => true },
        ];
        let spec = object! { "group" => "harbour.example.com", "names" => names, "versions" => versions };
        let api_version_of_definitions = "apiextensions.k8s.io/v1";
        let definition = object! {
            "apiVersion" => api_version_of_definitions, "kind" => "CustomResourceDefinition", "spec" => spec,
        };
        assert_eq!(Known::new([&definition].into_iter()).near(api_version, kind).as_deref(), near, "{kind}");
    }

    #[test]
    fn what_is_near_is_told() {
        check("harbour.example.com/v2", "Fery", Some("Ferry"));
        check("harbour.example.com/v1", "ferry", Some("Ferry in harbour.example.com/v2"));
        check("harbor.example.com/v1", "Ferry", Some("harbour.example.com/v2"));
        check("apps/v1beta1", "Deployment", Some("apps/v1"));
        check("extensions/v1beta1", "Ingress", Some("networking.k8s.io/v1"));
        check("apps/v1", "Deploymnet", Some("Deployment"));
        check("v1", "Crane", None);
    }

    #[test]
    fn kinds_are_allowed_by_name_with_or_without_their_group() {
        let crane = object! { "apiVersion" => "harbour.example.org/v1", "kind" => "Crane" };
        let has = |names: Option<&[&str]>, object: &Value| {
            let names: Option<Vec<String>> = names.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            Allowed(names.as_deref()).has(object)
        };
        assert_eq!([has(None, &crane), has(Some(&[]), &crane)], [false, true]);
        assert_eq!([has(Some(&["Crane"]), &crane), has(Some(&["Crane.harbour.example.org"]), &crane)], [true, true]);
        assert_eq!([has(Some(&["Crane.example.org"]), &crane), has(Some(&["Boat"]), &crane)], [false, false]);
        assert_eq!([has(Some(&[""]), &object! {}), has(Some(&[]), &object! {})], [false, true]);
    }
}
