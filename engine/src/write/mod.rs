//! A write, without I/O: how an object changes before it is stored, and its errors.
//!
//! Input: the strategy and the version of a kind, the new object as [`Strategy::decode`] returns it (pruned, with its
//! defaults), and the old object if there is one. Output: the object as it would be stored, with every error and
//! warning. The registry adds admission, preconditions and the store; the author's tools use it directly. It never
//! reads a clock or a database, and generates no names: its caller sets what a server adds (the name, the uid, the
//! time) by [`metadata`] and [`Strategy::set_times`].
//!
//! Source: `BeforeCreate` and `BeforeUpdate` of `k8s.io/apiserver/pkg/registry/rest`, release 1.37.

pub mod metadata;
pub mod scale;

use crate::crd::ServedVersion;
use crate::kinds;
use crate::kinds::strategy::{Strategy, Subresource};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::{names, object_meta};
use crate::schema::rules::RuleEvaluation;
use crate::value::{Value, written};

const METADATA: Path<'static> = Path::new("metadata");

/// Receives each evaluation of a rule.
pub type Observe<'o> = &'o mut dyn FnMut(RuleEvaluation<'_, '_>);

/// The kind of the object that is written, and its writer.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// The strategy of the kind.
    pub strategy: &'a dyn Strategy,
    /// The version that is written.
    pub version: &'a ServedVersion,
    /// The part of the object that is written.
    pub subresource: Subresource,
    /// `None` if the writer is unknown, as in the author's tools: fields that record the writer stay as they are.
    pub by: Option<Writer<'a>>,
    /// The raw texts of the field that the kind keeps as it was written.
    pub texts: RawFieldTexts<'a>,
}

/// The texts of the items of [`Strategy::raw_field`], if they differ from the encoding of the value.
#[derive(Clone, Copy, Default)]
pub struct RawFieldTexts<'a> {
    /// The texts in the new object, item by item.
    pub new: &'a [Option<String>],
    /// The texts in the old object.
    pub old: &'a [Option<String>],
}

/// The writer and the time.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    /// Returns the UserInfo of `authentication.k8s.io/v1`.
    pub user: &'a dyn Fn() -> Value,
    /// The time, in RFC 3339.
    pub now: &'a str,
    /// Whether the labels of a new object and of its template are the same map: [`Strategy::shares_labels`].
    pub shares_labels: bool,
}

/// The result of a write.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The object as it would be stored, except for the revision and the conversion to the storage version.
    pub object: Value,
    /// The errors of the object.
    pub errors: ErrorList,
    /// Warnings about a new object as it was sent; reported even if the object is refused.
    pub early_warnings: Vec<String>,
    /// Failures of rules that are ignored because the update did not change the value; reported even if the object is
    /// refused.
    pub ratcheted: Vec<Error>,
    /// Warnings that are reported if the object is valid.
    pub warnings: Vec<String>,
}

impl Write<'_> {
    /// Prepares and validates `object`, which is to be created. Its metadata must have a name and the fields that the
    /// server sets.
    pub fn create(&self, mut object: Value, observe: Observe<'_>) -> Outcome {
        let Write { strategy, version, .. } = *self;
        let early_warnings = strategy.early_warnings(&object);
        match self.by {
            Some(by) => {
                strategy.prepare_create_by(version, &mut object, by.user);
                if by.shares_labels {
                    strategy.share_labels(&mut object);
                }
            }
            None => strategy.prepare_create(version, &mut object),
        }
        kinds::forget_newer(version, &mut object);
        let mut errors = strategy.validate_create_observed(version, &object, &mut |run| observe(run));
        if errors.is_empty() {
            errors = validate_metadata(version, &object);
        }
        let warnings = strategy.warnings(version, Subresource::Main, &object, None);
        Outcome { object, errors, early_warnings, ratcheted: Vec::new(), warnings }
    }

    /// Prepares and validates `new`, which is to replace `old`. Both are in this version and have the same resource
    /// version.
    pub fn update(&self, mut new: Value, old: &Value, observe: Observe<'_>) -> Outcome {
        let Write { strategy, version, subresource, by, .. } = *self;
        metadata::keep_generation(&mut new, old);
        match by {
            Some(by) => strategy.prepare_update_at(version, subresource, &mut new, old, by.now),
            None => strategy.prepare_update(version, subresource, &mut new, old),
        }
        kinds::forget_newer(version, &mut new);
        metadata::keep_system_fields(&mut new, old);
        let mut errors = validate_metadata(version, &new);
        errors.extend(object_meta::validate_update(metadata_of(&new), metadata_of(old), &METADATA));
        let mut ratcheted = Vec::new();
        let observe = &mut |run: RuleEvaluation<'_, '_>| observe(run);
        errors.extend(strategy.validate_update_observed((version, subresource), &new, old, &mut ratcheted, observe));
        // If the value has also changed, the kind has already reported it.
        let rewritten = self.rewritten(&new, old);
        errors.extend(rewritten.filter(|error| !is_told(error, &errors)));
        let warnings = strategy.warnings(version, subresource, &new, Some(old));
        Outcome { object: new, errors, early_warnings: Vec::new(), ratcheted, warnings }
    }

    /// The error if the value or the text of the kind's raw field has changed.
    ///
    /// A text without whitespace between its tokens is equivalent to its value, although Go compares its bytes, too.
    fn rewritten(&self, new: &Value, old: &Value) -> Option<Error> {
        let path = self.strategy.raw_field();
        let RawFieldTexts { new: new_texts, old: old_texts } = self.texts;
        let is_rewritten =
            (0..new_texts.len().max(old_texts.len())).any(|at| spaced(new_texts, at) != spaced(old_texts, at));
        let has_changed = matches!(path, [name] if new.get(name) != old.get(name));
        if !is_rewritten && !has_changed {
            return None;
        }
        let error = self.strategy.rewritten(new)?;
        Some(match (path, new_texts) {
            ([_], [Some(text)]) => error.shown_as(written::compact(text)),
            _ => error,
        })
    }
}

/// The text of a raw field's item, if it has whitespace between its tokens.
fn spaced(texts: &[Option<String>], index: usize) -> Option<&str> {
    texts.get(index)?.as_deref().filter(|text| written::is_spaced(text))
}

/// Whether the list has an error with the same text.
fn is_told(error: &Error, errors: &ErrorList) -> bool {
    let mut alike = errors.iter().filter(|known| known.field == error.field && known.kind == error.kind).peekable();
    let text = alike.peek().map(|_| error.to_string());
    alike.any(|known| text.as_ref() == Some(&known.to_string()))
}

/// The errors that the metadata of any object may have.
fn validate_metadata(version: &ServedVersion, object: &Value) -> ErrorList {
    object_meta::validate(metadata_of(object), version.is_namespaced(), names::is_path_segment, &METADATA)
}

fn metadata_of(object: &Value) -> &Value {
    object.get("metadata").unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::crd::{self, defaults, definition};
    use crate::kinds::Form;
    use crate::kinds::strategy::Custom;
    use crate::meta::minor::Minor;
    use crate::object;
    use crate::value::yaml;

    const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: "self.size < 3", message: too large}]
            properties: {size: {type: integer, default: 1}}
          status:
            type: object
            properties: {ready: {type: boolean}}
"#;

    #[test]
    fn no_field_is_set_that_came_later() {
        for kind in kinds::all().filter(|kind| kind.form == Form::Typed) {
            for minor in (33..37).map(Minor::of) {
                let version = Arc::new(kind.served_version_in(minor));
                let check = |object: &Value| {
                    let mut known = object.clone();
                    kind.message().forget_newer(minor, &mut known);
                    assert_eq!(known, *object, "{} {minor:?}", kind.kind);
                };
                check(&kind.strategy.zero(&version));
                let object = object! {
                    "apiVersion" => kind.api_version(), "kind" => kind.kind, "metadata" => object! { "name" => "a" },
                };
                let decoded = kinds::decode(kind.strategy, &version, object, std::slice::from_ref(&version));
                let decoded = decoded.expect("it is of its type").object;
                check(&decoded);
                let write = Write {
                    strategy: kind.strategy,
                    version: &version,
                    subresource: Subresource::Main,
                    by: None,
                    texts: RawFieldTexts::default(),
                };
                check(&write.create(decoded, &mut |_| {}).object);
            }
        }
    }

    fn value(yaml: &str) -> Value {
        yaml::decode(yaml.as_bytes()).expect("the test is YAML")
    }

    fn widget(rest: &str) -> Value {
        value(&format!("apiVersion: example.com/v1\nkind: Widget\n{rest}"))
    }

    /// Creates `new`, or updates `old` to it: returns the object, its errors, and the number of rules evaluated.
    fn check(subresource: Subresource, new: &str, old: Option<&str>) -> (Value, Vec<String>, usize) {
        let (mut definition, _) = definition::decode(&value(DEFINITION)).expect("it is a definition");
        defaults::set_defaults(&mut definition);
        definition.status.accepted_names = definition.spec.names.clone();
        let versions: Vec<_> = crd::compile(&definition).into_iter().map(Arc::new).collect();
        let decode = |object| Custom.decode(object, &versions).expect("it is an object").object;
        let write =
            Write { strategy: &Custom, version: &versions[0], subresource, by: None, texts: RawFieldTexts::default() };
        let (mut runs, new) = (0, decode(widget(new)));
        let outcome = match old {
            None => write.create(new, &mut |_| runs += 1),
            Some(old) => write.update(new, &decode(widget(old)), &mut |_| runs += 1),
        };
        (outcome.object, outcome.errors.iter().map(ToString::to_string).collect(), runs)
    }

    #[test]
    fn a_new_object_has_defaults_its_first_generation_and_no_status() {
        let (object, errors, runs) =
            check(Subresource::Main, "metadata: {name: a, namespace: b}\nspec: {}\nstatus: {ready: true}", None);
        assert_eq!((errors, runs), (Vec::new(), 1));
        assert_eq!(object, widget("metadata: {name: a, namespace: b, generation: 1}\nspec: {size: 1}"));
    }

    #[test]
    fn an_update_keeps_what_the_server_has_set() {
        let old = "metadata: {name: a, namespace: b, uid: c, resourceVersion: '1', generation: 4, \
                   creationTimestamp: '2026-01-02T03:04:05Z'}\nspec: {size: 1}\nstatus: {ready: true}";
        let new = "metadata: {name: a, namespace: b, resourceVersion: '1', generation: 9}\nspec: {size: 2}";
        let (object, errors, _) = check(Subresource::Main, new, Some(old));
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(object, widget(&old.replace("generation: 4", "generation: 5").replace("size: 1", "size: 2")));
    }

    #[test]
    fn a_write_to_the_status_takes_nothing_else() {
        let old = "metadata: {name: a, namespace: b, resourceVersion: '1', generation: 4}\nspec: {size: 1}";
        let new = "metadata: {name: a, namespace: b, resourceVersion: '1'}\nspec: {size: 9}\nstatus: {ready: true}";
        let (object, errors, _) = check(Subresource::Status, new, Some(old));
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(object, widget(&format!("{old}\nstatus: {{ready: true}}")));
    }

    #[test]
    fn a_raw_field_has_changed_where_its_text_has() {
        let strategy = kinds::find("apps", "controllerrevisions").expect("the kind is there");
        let version = strategy.served_version();
        let revision = |data: &str| {
            let text = format!(
                "apiVersion: apps/v1\nkind: ControllerRevision\nmetadata: {{name: a, namespace: b, resourceVersion: '1'}}\nrevision: 1\ndata: {data}"
            );
            value(&text)
        };
        let check = |new: (&str, Option<&str>), old: (&str, Option<&str>), expect: &[&str]| {
            let [new_texts, old_texts] = [new.1, old.1].map(|text| [text.map(str::to_owned)]);
            let texts = RawFieldTexts { new: &new_texts, old: &old_texts };
            let (strategy, subresource) = (strategy.strategy, Subresource::Main);
            let write = Write { strategy, version: &version, subresource, by: None, texts };
            let errors = write.update(revision(new.0), &revision(old.0), &mut |_| {}).errors;
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
        };
        let (data, spaced) = (r#"{"b":1,"a":2}"#, r#"{"b": 1, "a": 2}"#);
        check((data, Some(spaced)), (data, Some(spaced)), &[]);
        check((data, Some(data)), (data, None), &[]);
        check((data, None), (data, None), &[]);
        let shown = r#"data: Invalid value: {"b":1,"a":2}: field is immutable"#;
        check((data, Some(data)), (data, Some(spaced)), &[shown]);
        check((data, Some(spaced)), ("{}", None), &[shown]);
        let sorted = r#"data: Invalid value: {"a":2,"b":1}: field is immutable"#;
        check((data, None), (data, Some(spaced)), &[sorted]);
        check((data, None), ("{}", None), &[sorted]);
        check(("null", None), (data, None), &["data: Invalid value: null: field is immutable"]);
    }

    #[test]
    fn what_rules_and_metadata_have_against_an_update_is_told_together() {
        let old = "metadata: {name: a, namespace: b, uid: c, resourceVersion: '1'}\nspec: {size: 1}";
        let (_, errors, runs) =
            check(Subresource::Main, &old.replace("size: 1", "size: 3").replace("uid: c", "uid: d"), Some(old));
        assert_eq!(runs, 1, "the rule; its message is a constant");
        let immutable = r#"metadata.uid: Invalid value: "d": field is immutable"#;
        assert_eq!(errors.first().map(String::as_str), Some(immutable));
        assert!(errors.iter().any(|error| error.ends_with("too large")), "{errors:?}");
    }
}
