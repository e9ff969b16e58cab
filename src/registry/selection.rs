//! The selectors of a list or a watch, bound to the version that it asks for.
//!
//! Input: what an object shows to selectors: its labels, its key, its selectable fields. Output: whether it is selected.
//! [`Selection::see`] reads all selectable fields of the version, whichever are asked for: all watches of the version
//! share them.

use crate::kinds::strategy::Strategy;
use crate::meta::json_path::JsonPath;
use crate::meta::selector::{FieldSelector, LabelSelector, Labels};
use crate::store::{Selectable, SelectableText};
use crate::value::{Value, go_print};
use crate::work;

use super::{Conversion, Resource, Target};

/// The fields that a key tells.
const KEY_FIELDS: [&str; 2] = ["metadata.namespace", "metadata.name"];

/// Selectors of one version's objects.
pub(super) struct Selection {
    labels: LabelSelector,
    /// The terms over namespaces and names; other objects need not be read.
    by_key: Box<[BoundTerm]>,
    /// The terms over `fields`.
    by_field: Box<[BoundTerm]>,
    /// Empty if no object is read.
    fields: Box<[SelectablePath]>,
    strategy: &'static dyn Strategy,
}

/// A term of a field selector.
#[derive(PartialEq)]
struct BoundTerm {
    /// The place of the field among those that are compared.
    place: usize,
    value: SelectableText,
    equal: bool,
}

/// A selectable field of a version.
struct SelectablePath {
    /// As definitions have it: `.spec.a`.
    text: String,
    path: Option<JsonPath>,
}

impl Selection {
    /// Binds selectors to the version of `target`. A field that can't be selected there is an empty text.
    pub fn bind(labels: &LabelSelector, fields: &FieldSelector, target: &Target) -> Self {
        let (mut by_key, mut by_field) = (Vec::new(), Vec::new());
        let selectable = &target.version.selectable_fields;
        for (field, value, equal) in fields.terms() {
            work::step();
            let value = SelectableText::of(value);
            match KEY_FIELDS.iter().position(|known| *known == field) {
                Some(place) => by_key.push(BoundTerm { place, value, equal }),
                None => {
                    let place = selectable.iter().position(|path| name_of(path) == field).unwrap_or(usize::MAX);
                    by_field.push(BoundTerm { place, value, equal });
                }
            }
        }
        // The terms of a text are sorted: equal ones stand together.
        by_key.dedup();
        by_field.dedup();
        let strategy = target.resource.strategy;
        let (by_key, by_field) = (by_key.into(), by_field.into());
        let mut selection = Selection { labels: labels.clone(), by_key, by_field, fields: Box::default(), strategy };
        if selection.reads_some(&target.resource) {
            selection.fields = selectable.iter().map(|path| SelectablePath::parse(path)).collect();
        }
        selection
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.by_key.is_empty() && self.by_field.is_empty()
    }

    /// Whether it can be asked about objects in the version of `target`: not if they have other selectable fields than
    /// those of the version that it is bound to.
    pub fn is_bound_to(&self, target: &Target) -> bool {
        let is_same = || self.fields.iter().map(|field| &field.text).eq(&target.version.selectable_fields);
        !self.reads_some(&target.resource) || is_same()
    }

    /// Whether some objects of `resource` have to be read.
    fn reads_some(&self, resource: &Resource) -> bool {
        self.reads(resource.conversion != Conversion::None)
    }

    /// Whether an object has to be read: the labels of one that a webhook converts are known only then.
    pub fn reads(&self, is_converted: bool) -> bool {
        !self.by_field.is_empty() || is_converted && !self.labels.is_empty()
    }

    /// Whether it selects an object with these labels.
    pub fn selects_labels(&self, labels: &(impl Labels + ?Sized)) -> bool {
        self.labels.matches(labels)
    }

    /// Whether it selects objects with this namespace and name.
    pub fn selects_key(&self, (namespace, name): (&str, &str)) -> bool {
        hold(&self.by_key, |term| term.value.is([namespace, name][term.place]))
    }

    /// Whether it selects an object that shows these fields.
    pub fn selects_fields(&self, seen: &Selectable) -> bool {
        hold(&self.by_field, |term| match seen.fields.get(term.place) {
            Some(text) => *text == term.value,
            None => term.value.is(""),
        })
    }

    /// What `object` shows to selectors.
    pub fn see(&self, object: &Value, is_converted: bool) -> Selectable {
        let labels = object.at(&["metadata", "labels"]).filter(|_| is_converted).cloned().unwrap_or_default();
        let text = |field: &SelectablePath| {
            let special = self.strategy.select(object, name_of(&field.text));
            SelectableText::of(&special.unwrap_or_else(|| field.find(object)))
        };
        Selectable { labels, fields: self.fields.iter().map(text).collect() }
    }
}

impl SelectablePath {
    fn parse(text: &str) -> Self {
        SelectablePath { text: text.to_owned(), path: JsonPath::parse(text).ok() }
    }

    /// The text of the field; a missing one is empty.
    fn find(&self, object: &Value) -> String {
        let found = self.path.as_ref().and_then(|path| path.find(object).ok()).unwrap_or_default();
        found.first().map(|value| go_print(value)).unwrap_or_default()
    }
}

/// The name that selectors have for the selectable field at `path`.
fn name_of(path: &str) -> &str {
    path.strip_prefix('.').unwrap_or(path)
}

/// Whether all terms hold; `has` is whether the field of a term has its value.
fn hold(terms: &[BoundTerm], has: impl Fn(&BoundTerm) -> bool) -> bool {
    work::steps(terms.len());
    terms.iter().all(|term| has(term) == term.equal)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{registry, target};
    use super::*;
    use crate::object;

    /// Whether `fields` selects a running pod `team/a` on the node `n`.
    async fn selects(fields: &str) -> bool {
        let pods = target(&*registry().await, "", "pods").await;
        let fields = FieldSelector::parse(fields).expect("it is one");
        let selection = Selection::bind(&LabelSelector::default(), &fields, &pods);
        let pod = object! {
            "spec" => object! { "nodeName" => "n" },
            "status" => object! { "phase" => "Running" },
        };
        selection.selects_key(("team", "a")) && selection.selects_fields(&selection.see(&pod, false))
    }

    #[tokio::test]
    async fn every_term_has_to_hold() {
        for (fields, expected) in [
            ("", true),
            ("metadata.name=a", true),
            ("metadata.name=b", false),
            ("metadata.namespace=team,metadata.name!=b", true),
            ("metadata.namespace!=team", false),
            ("status.phase=Running", true),
            ("status.phase=Running,status.phase!=Running", false),
            ("status.phase!=Failed,status.phase!=Succeeded,spec.nodeName=n", true),
            ("metadata.name=a,status.phase=Failed", false),
            // A missing field is empty; these are not at their own paths.
            ("status.podIP=,spec.hostNetwork=false,spec.host=n", true),
            ("spec.schedulerName!=", false),
            ("spec.unknown=", true),
            ("spec.unknown=x", false),
        ] {
            assert_eq!(selects(fields).await, expected, "{fields}");
        }
    }

    #[tokio::test]
    async fn terms_that_repeat_are_kept_once() {
        let pods = target(&*registry().await, "", "pods").await;
        let fields = FieldSelector::parse(&["status.phase!=x", "metadata.name!=b"].repeat(100).join(","));
        let selection = Selection::bind(&LabelSelector::default(), &fields.expect("it is one"), &pods);
        assert_eq!((selection.by_key.len(), selection.by_field.len()), (1, 1));
    }
}
