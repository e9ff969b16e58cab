//! Declarative validation: the rules that the markers of a type (`+k8s:required`, `+k8s:immutable`, …) set for an
//! object.
//!
//! Input: a part of an object, the same part before a change, and its type. Output: errors, with the paths, texts and
//! order of the reference, which generates code from the same markers. Unchanged values are not checked again.
//!
//! Kinds that are validated this way do not repeat the rules of the markers. Kinds older than the markers have rules
//! written by hand, which give the same errors in the recorded words.
//!
//! Source: `pkg/api/validate` of apimachinery and `validation-gen` of code-generator, release 1.37.

mod custom;
mod format;
mod marker;

use std::collections::{HashMap, HashSet};

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::types::{Field, FieldKind, Message, Shape};
use crate::value::Value;
use crate::work;

pub use self::format::identifier_faults;
use super::semantic;
use marker::{Marker, RefusedChange, Rule};

/// The errors of a new value of a type.
pub fn validate(message: &'static Message, value: &FieldRef<'_>, minor: Minor) -> ErrorList {
    Validation { minor, is_update: false }.message(message, value, None)
}

/// The errors of the value `new` of a type, which replaces `old`.
pub fn validate_update(message: &'static Message, new: &FieldRef<'_>, old: &FieldRef<'_>, minor: Minor) -> ErrorList {
    Validation { minor, is_update: true }.message(message, new, Some(old))
}

/// The errors of one field of a struct of type `message` at `parent`, which was `old` before an update: for kinds whose
/// other fields have rules written by hand.
pub fn validate_field(
    message: &'static Message,
    name: &str,
    parent: &FieldRef<'_>,
    old: Option<&FieldRef<'_>>,
    minor: Minor,
) -> ErrorList {
    let Some(field) = message.member(name) else { return ErrorList::new() };
    let (new, before) = (parent.field(field.json), old.map(|old| old.field(field.json)));
    if !new.is_set() && before.is_none_or(|before| !before.is_set()) {
        return ErrorList::new();
    }
    let markers = Marker::all(field.markers);
    let member = Member { of: message, field, markers: &markers, new: &new, old: before.as_ref() };
    Validation { minor, is_update: old.is_some() }.member(member)
}

/// The context for all parts of an object.
#[derive(Clone, Copy)]
struct Validation {
    minor: Minor,
    is_update: bool,
}

/// A field of a struct, with its new and its old value. `old` is `None` in a struct whose state before the change is
/// unknown.
#[derive(Clone, Copy)]
struct Member<'a> {
    of: &'static Message,
    field: &'static Field,
    markers: &'a [Marker],
    new: &'a FieldRef<'a>,
    old: Option<&'a FieldRef<'a>>,
}

impl Validation {
    fn message(self, message: &'static Message, new: &FieldRef<'_>, old: Option<&FieldRef<'_>>) -> ErrorList {
        let fields: Vec<(&'static Field, Vec<Marker>)> =
            message.members().map(|field| (field, Marker::all(field.markers))).collect();
        let mut errors: ErrorList = self.union(&fields, new, old).into_iter().collect();
        errors.extend(self.dependents(message, &fields, new, old));
        for (field, markers) in &fields {
            work::step();
            let before = old.map(|old| old.field(field.json));
            let member = Member { of: message, field, markers, new: &new.field(field.json), old: before.as_ref() };
            errors.extend(self.member(member));
        }
        errors
    }

    /// One of the members of a union is set, no more and no less, unless that was so before.
    fn union(
        self,
        fields: &[(&'static Field, Vec<Marker>)],
        new: &FieldRef<'_>,
        old: Option<&FieldRef<'_>>,
    ) -> Option<Error> {
        let is_member = |markers: &[Marker]| markers.iter().any(|marker| marker.rule == Rule::UnionMember);
        let members = fields.iter().filter(|(_, markers)| is_member(markers)).map(|(field, _)| *field);
        let members: Vec<&'static Field> = members.collect();
        let set = |of: &FieldRef<'_>| -> Vec<&str> {
            members.iter().filter(|field| is_set(field, &of.field(field.json))).map(|field| field.json).collect()
        };
        let names = set(new);
        let is_as_before = self.is_update && old.is_some_and(|old| set(old) == names);
        if members.is_empty() || names.len() == 1 || is_as_before {
            return None;
        }
        let all: Vec<String> = members.iter().map(|field| format!("`{}`", field.json)).collect();
        let all = all.join(", ");
        if names.is_empty() {
            return Some(Error::invalid(new.path(), "", format!("must specify one of: {all}")));
        }
        let shown = format!("{{{}}}", names.join(", "));
        Some(Error::invalid(new.path(), shown, format!("must specify exactly one of: {all}")))
    }

    /// Fields that have to be set because others are.
    fn dependents(
        self,
        message: &'static Message,
        fields: &[(&'static Field, Vec<Marker>)],
        new: &FieldRef<'_>,
        old: Option<&FieldRef<'_>>,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        for (field, markers) in fields {
            for marker in markers.iter().filter(|marker| marker.applies(self.minor)) {
                let Rule::DependentRequired(name) = marker.rule else { continue };
                let Some(dependent) = message.member(name) else { continue };
                let state = |of: &FieldRef<'_>| [field, dependent].map(|field| is_set(field, &of.field(field.json)));
                if state(new) == [true, false] && old.is_none_or(|old| state(old) != state(new)) {
                    let detail = format!("must be set when {} is set", field.json);
                    errors.push(Error::required(&new.path().child(name), detail));
                }
            }
        }
        errors
    }

    fn member(self, member: Member<'_>) -> ErrorList {
        let Member { field, markers, new, old, .. } = member;
        if self.is_update && old.is_some_and(|old| semantic::is_same_field(field, new, old)) {
            return ErrorList::new();
        }
        let markers: Vec<&Marker> = markers.iter().filter(|marker| marker.applies(self.minor)).collect();
        let mut errors = ErrorList::new();
        let mut ends = false;
        for marker in &markers {
            let found = self.first_look(member, marker.rule);
            ends |= !found.is_empty() || (marker.rule == Rule::Optional && !is_set(field, new));
            errors.extend(found);
        }
        if ends {
            return errors;
        }
        for marker in &markers {
            errors.extend(self.closer_look(member, marker.rule));
        }
        errors.extend(self.content(member));
        errors
    }

    /// Rules that end the validation of a field if they fail.
    fn first_look(self, member: Member<'_>, rule: Rule) -> ErrorList {
        let Member { field, new, .. } = member;
        let found = match rule {
            Rule::Required => (!is_set(field, new)).then(|| new.required("")),
            Rule::Forbidden => is_set(field, new).then(|| new.forbidden("")),
            Rule::Immutable => self.is_update.then(|| fixed(new, "field is immutable")),
            Rule::MaxItems(max) => (count(new) > max).then(|| new.too_many(max)),
            Rule::Update(change) if self.is_update => return refused(member, change),
            _ => None,
        };
        found.into_iter().collect()
    }

    /// The other rules for a value that may be set.
    fn closer_look(self, member: Member<'_>, rule: Rule) -> ErrorList {
        let Member { of, field, new, old, .. } = member;
        let has_value = field.shape != Shape::Pointer || new.is_set();
        let found = match rule {
            Rule::Minimum(min) => {
                (has_value && new.int() < min).then(|| new.invalid(format!("must be greater than or equal to {min}")))
            }
            Rule::Maximum(max) => {
                (has_value && new.int() > max).then(|| new.invalid(format!("must be less than or equal to {max}")))
            }
            Rule::Monotonic => old
                .filter(|old| self.is_update && old.is_set() && new.int() < old.int())
                .map(|old| new.invalid(format!("may not be decreased from {}", old.int()))),
            Rule::MaxBytes(max) => {
                (i64::try_from(new.text().len()).unwrap_or(i64::MAX) > max).then(|| new.too_long(max))
            }
            Rule::MaxLength(max) => is_longer(new.text(), max).then(|| new.too_long_in_characters(max)),
            Rule::Unique => return repeated(new),
            Rule::EachFormat(format) => return malformed(new, format),
            Rule::Custom => return custom::rule_of(of, field).map(|rule| rule(new)).unwrap_or_default(),
            Rule::Format(format) if has_value => return format::faults(format, new),
            _ => None,
        };
        found.into_iter().collect()
    }

    /// Validates the content of the field by its type: its value, or each of its items.
    fn content(self, member: Member<'_>) -> ErrorList {
        let Member { field, new, old, .. } = member;
        match (field.kind, field.shape) {
            (FieldKind::String, Shape::Value | Shape::Pointer) if !field.values.is_empty() && new.is_set() => {
                let values = values_of(field);
                let is_known = values.contains(&new.text());
                (!is_known).then(|| new.not_supported(&values)).into_iter().collect()
            }
            (FieldKind::Message(message), Shape::Value | Shape::Pointer)
                if field.shape == Shape::Value || new.is_set() =>
            {
                self.message(message.get(), new, old.filter(|old| field.shape == Shape::Value || old.is_set()))
            }
            (FieldKind::String, Shape::List) if !field.values.is_empty() => unknown_items(field, new),
            (FieldKind::Message(message), Shape::List) => self.items(field, message.get(), new, old),
            (FieldKind::Message(message), Shape::Map) => self.entries(message.get(), new, old),
            _ => ErrorList::new(),
        }
    }

    /// Each value of a map is compared with the one of its key.
    fn entries(self, message: &'static Message, new: &FieldRef<'_>, old: Option<&FieldRef<'_>>) -> ErrorList {
        let before: HashMap<&str, FieldRef<'_>> = old.into_iter().flat_map(FieldRef::entries).collect();
        let mut errors = ErrorList::new();
        for (key, entry) in new.entries() {
            let old = before.get(key);
            if self.is_update && old.is_some_and(|old| semantic::is_same_struct(message, &entry, old)) {
                continue;
            }
            errors.extend(self.message(message, &entry, old));
        }
        errors
    }

    fn items(
        self,
        field: &'static Field,
        message: &'static Message,
        new: &FieldRef<'_>,
        old: Option<&FieldRef<'_>>,
    ) -> ErrorList {
        let keys = keys_of(field);
        let old: Vec<FieldRef<'_>> = old.into_iter().flat_map(FieldRef::items).collect();
        let before: HashMap<Vec<&str>, &FieldRef<'_>> =
            old.iter().rev().filter(|_| !keys.is_empty()).map(|item| (key_of(item, &keys), item)).collect();
        let mut errors = ErrorList::new();
        let mut seen = HashSet::new();
        errors.extend(
            new.items()
                .filter(|item| !keys.is_empty() && !seen.insert(key_of(item, &keys)))
                .map(|item| item.duplicate()),
        );
        for item in new.items() {
            let old = before.get(&key_of(&item, &keys)).copied();
            if self.is_update && old.is_some_and(|old| semantic::is_same_struct(message, &item, old)) {
                continue;
            }
            errors.extend(self.message(message, &item, old));
        }
        errors
    }
}

/// The fields that identify the items of a list, if declarative validation knows them.
fn keys_of(field: &Field) -> Vec<&'static str> {
    let words = || field.markers.split(' ');
    let is_map = words().any(|word| matches!(word, "+k8s:listType=map" | "+k8s:unique=map"));
    words().filter(|_| is_map).filter_map(|word| word.strip_prefix("+k8s:listMapKey=")).collect()
}

/// The key of an item within its list.
fn key_of<'a>(item: &FieldRef<'a>, keys: &[&str]) -> Vec<&'a str> {
    keys.iter().map(|key| item.value().map_or("", |value| value.str_at(&[key]))).collect()
}

/// Whether Go considers a field set: a pointer that is not nil, a list or a map with items, any other value that is not
/// zero. A struct always is.
fn is_set(field: &Field, value: &FieldRef<'_>) -> bool {
    match (field.shape, field.kind) {
        (Shape::Pointer, _) => value.is_set(),
        (Shape::Value, FieldKind::Message(_)) => true,
        (Shape::Value, _) => match value.value() {
            Some(Value::Int(number)) => *number != 0,
            Some(Value::Bool(is_true)) => *is_true,
            _ => !value.is_empty(),
        },
        _ => !value.is_empty(),
    }
}

/// The format errors of the texts of a list.
fn malformed(list: &FieldRef<'_>, format: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    for item in list.items() {
        errors.extend(format::faults(format, &item));
    }
    errors
}

/// The texts that a field may have.
fn values_of(field: &Field) -> Vec<&'static str> {
    let mut values: Vec<&str> = field.values.split(',').collect();
    values.sort_unstable();
    values
}

/// The items of a list that are not among the allowed texts.
fn unknown_items(field: &Field, list: &FieldRef<'_>) -> ErrorList {
    let values = values_of(field);
    let mut errors = ErrorList::new();
    for item in list.items().filter(|item| !values.contains(&item.text())) {
        errors.push(item.not_supported(&values));
    }
    errors
}

/// The items of a list that stood in it before.
fn repeated(list: &FieldRef<'_>) -> ErrorList {
    let mut seen = HashSet::new();
    list.items().filter(|item| !seen.insert(item.text().to_owned())).map(|item| item.duplicate()).collect()
}

fn count(list: &FieldRef<'_>) -> i64 {
    i64::try_from(list.len()).unwrap_or(i64::MAX)
}

/// The error for a change that is not allowed, which omits the value.
fn fixed(field: &FieldRef<'_>, detail: &str) -> Error {
    Error::invalid(field.path(), Value::Null, detail)
}

/// Whether a change is one that `change` refuses.
fn refused(member: Member<'_>, change: RefusedChange) -> ErrorList {
    let Member { field, new, old, .. } = member;
    let is_value = field.shape == Shape::Value;
    if is_value && (old.is_none() || matches!(field.kind, FieldKind::Message(_))) {
        return ErrorList::new();
    }
    let (was, is) = (old.is_some_and(|old| is_set(field, old)), is_set(field, new));
    let found = match change {
        RefusedChange::Set => (!was && is).then(|| fixed(new, "field cannot be set once created")),
        RefusedChange::Unset => (was && !is).then(|| fixed(new, "field cannot be cleared once set")),
        RefusedChange::Modify => (was && is).then(|| fixed(new, "field cannot be modified once set")),
        RefusedChange::AddItem => {
            return strangers(field, new, old).map(|item| item.forbidden("item may not be added")).collect();
        }
        RefusedChange::RemoveItem => {
            let gone = old.into_iter().flat_map(|old| strangers(field, old, Some(new)));
            return gone.map(|_| new.forbidden("item may not be removed")).collect();
        }
    };
    found.into_iter().collect()
}

/// The items of a list that `others` does not have.
fn strangers<'a>(
    field: &'static Field,
    list: &'a FieldRef<'a>,
    others: Option<&FieldRef<'_>>,
) -> impl Iterator<Item = FieldRef<'a>> {
    let keys = keys_of(field);
    let owned =
        move |item: &FieldRef<'_>| -> Vec<String> { key_of(item, &keys).into_iter().map(str::to_owned).collect() };
    let known: HashSet<Vec<String>> = others.into_iter().flat_map(FieldRef::items).map(|item| owned(&item)).collect();
    list.items().filter(move |item| !known.contains(&owned(item)))
}

fn is_longer(text: &str, characters_max: i64) -> bool {
    work::bytes(text.len());
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX) > characters_max
}

#[cfg(test)]
mod tests;
