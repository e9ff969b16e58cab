//! Which of its requested names a definition gets.
//!
//! Source: the naming and establishing controllers of apiextensions-apiserver 1.37.

use std::collections::BTreeSet;

use super::Names;
use super::definition::{Condition, Definition};
use super::validate::ca_bundle;
use crate::value::{base64, go_quote};

/// The definition with its names decided, given the names that the definitions of its group have (which may include its
/// own); `None` if nothing changes.
///
/// `now` is RFC 3339.
pub fn accept<'d>(
    definition: &Definition,
    in_group: impl IntoIterator<Item = &'d Names>,
    now: &str,
) -> Option<Definition> {
    let (asked, accepted) = (&definition.spec.names, &definition.status.accepted_names);
    if asked == accepted {
        return None;
    }
    let taken = Taken::by(in_group);
    let mut names = accepted.clone();
    let mut fault = None;
    let mut decide = |wanted: &str, had: &str, used: &BTreeSet<String>, reason: &'static str, name: &mut String| {
        if wanted != had && used.contains(wanted) {
            fault = Some((reason, in_use(wanted)))
        } else {
            *name = wanted.to_owned()
        }
    };
    decide(&asked.plural, &accepted.plural, &taken.resources, "PluralConflict", &mut names.plural);
    decide(&asked.singular, &accepted.singular, &taken.resources, "SingularConflict", &mut names.singular);
    if asked.short_names != accepted.short_names {
        let own: BTreeSet<&String> = accepted.short_names.iter().collect();
        let foreign = asked.short_names.iter().filter(|name| !own.contains(name));
        // A name that is asked for twice is told once.
        let mut told = BTreeSet::new();
        let conflicts = foreign.filter(|name| taken.resources.contains(*name) && told.insert(*name));
        let conflicts: Vec<String> = conflicts.map(|name| in_use(name)).collect();
        match conflicts.as_slice() {
            [] => names.short_names = asked.short_names.clone(),
            [one] => fault = Some(("ShortNamesConflict", one.clone())),
            several => fault = Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
        }
    }
    let mut decide = |wanted: &str, had: &str, reason: &'static str, name: &mut String| {
        if wanted != had && taken.kinds.contains(wanted) {
            fault = Some((reason, in_use(wanted)))
        } else {
            *name = wanted.to_owned()
        }
    };
    decide(&asked.kind, &accepted.kind, "KindConflict", &mut names.kind);
    decide(&asked.list_kind, &accepted.list_kind, "ListKindConflict", &mut names.list_kind);
    names.categories = asked.categories.clone();
    let condition = match fault {
        None => condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => condition("NamesAccepted", "False", reason, &message),
    };
    decided(definition, names, condition, now)
}

fn decided(definition: &Definition, names: Names, accepted: Condition, now: &str) -> Option<Definition> {
    let known = definition.condition("NamesAccepted");
    let same = known.is_some_and(|known| known.says_same(&accepted));
    if same && names == definition.status.accepted_names {
        return None;
    }
    let is_accepted = accepted.status == "True";
    let mut established = definition
        .condition("Established")
        .cloned()
        .unwrap_or_else(|| condition("Established", "False", "NotAccepted", "not all names are accepted"));
    if established.status != "True" && is_accepted {
        established = condition("Established", "False", "Installing", "the initial names have been accepted");
    }
    let mut decided = definition.clone();
    decided.status.accepted_names = names;
    decided.set_condition(accepted, now);
    decided.set_condition(established, now);
    Some(decided)
}

/// The definition as established, or with a condition why it can't be; `None` if nothing changes, or its names are not
/// accepted.
pub fn establish(definition: &Definition, now: &str) -> Option<Definition> {
    if !definition.is_true("NamesAccepted") || definition.is_true("Established") {
        return None;
    }
    let established = if has_bad_bundle(definition) {
        condition("Established", "False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
    } else {
        let message = "the initial names have been accepted";
        condition("Established", "True", "InitialNamesAccepted", message)
    };
    definition.with_condition(established, now)
}

/// Whether the conversion webhook has a bundle of certificates that can't be used.
fn has_bad_bundle(definition: &Definition) -> bool {
    let webhook = definition.spec.conversion.as_ref().and_then(|conversion| conversion.webhook.as_ref());
    let bundle = webhook.and_then(|webhook| webhook.client_config.as_ref()?.ca_bundle.as_deref());
    bundle.is_some_and(|bundle| base64::decode(bundle).map_or(true, |bytes| ca_bundle::fault(&bytes).is_some()))
}

/// A condition without a time yet.
pub fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    }
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", go_quote(name))
}

/// The names that are accepted in a group.
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    fn by<'d>(in_group: impl IntoIterator<Item = &'d Names>) -> Self {
        let mut taken = Taken { resources: BTreeSet::new(), kinds: BTreeSet::new() };
        for names in in_group {
            taken.resources.extend([names.plural.clone(), names.singular.clone()]);
            taken.resources.extend(names.short_names.iter().cloned());
            taken.kinds.extend([names.kind.clone(), names.list_kind.clone()]);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(plural: &str, kind: &str, short_names: &[&str]) -> Definition {
        let mut definition = Definition::default();
        definition.spec.names = Names {
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            short_names: short_names.iter().map(|name| (*name).to_owned()).collect(),
            categories: Vec::new(),
        };
        definition
    }

    /// Decides the names of `second` after `first` has its names, and checks its conditions.
    fn check(first: &Definition, second: &Definition, expected: [&str; 3]) -> Definition {
        let first = accept(first, [&first.status.accepted_names], "1").expect("the first of a group gets its names");
        assert!(first.is_true("NamesAccepted"));
        let in_group = [&first, second].map(|definition| &definition.status.accepted_names);
        let second = accept(second, in_group, "2").expect("names are decided");
        let told = second.condition("NamesAccepted").expect("the condition was set");
        assert_eq!([told.status.as_str(), told.reason.as_str(), told.message.as_str()], expected);
        second
    }

    #[test]
    fn names_that_nobody_has_are_accepted_and_then_established() {
        let told = ["True", "NoConflicts", "no conflicts found"];
        let accepted = check(&definition("foos", "Foo", &["f"]), &definition("bars", "Bar", &["b"]), told);
        assert_eq!(accepted.status.accepted_names, accepted.spec.names);
        assert_eq!(accepted.condition("Established").map(|known| known.reason.as_str()), Some("Installing"));
        let established = establish(&accepted, "3").expect("accepted names are established");
        assert!(established.is_true("Established"));
        assert_eq!(accept(&established, [&established.status.accepted_names], "4"), None);
        assert_eq!(establish(&established, "4"), None);
    }

    #[test]
    fn of_several_conflicts_the_last_is_told_and_the_rest_is_accepted() {
        let told = ["False", "ListKindConflict", "\"FooList\" is already in use"];
        let second = check(&definition("foos", "Foo", &[]), &definition("quxes", "Foo", &[]), told);
        let names = &second.status.accepted_names;
        assert_eq!((names.plural.as_str(), names.kind.as_str(), names.singular.as_str()), ("quxes", "", ""));
        assert_eq!(second.condition("Established").map(|known| known.reason.as_str()), Some("NotAccepted"));
    }

    #[test]
    fn a_taken_short_name_keeps_all_of_them_back() {
        let told = ["False", "ShortNamesConflict", "\"f\" is already in use"];
        let second = check(&definition("foos", "Foo", &["f"]), &definition("bars", "Bar", &["b", "f"]), told);
        assert!(second.status.accepted_names.short_names.is_empty());
    }

    #[test]
    fn a_short_name_that_is_asked_for_twice_is_told_once() {
        let told = ["False", "ShortNamesConflict", "\"f\" is already in use"];
        check(&definition("foos", "Foo", &["f"]), &definition("bars", "Bar", &["f", "f"]), told);
        let told = ["False", "ShortNamesConflict", "[\"g\" is already in use, \"f\" is already in use]"];
        check(&definition("foos", "Foo", &["f", "g"]), &definition("bars", "Bar", &["g", "f", "g"]), told);
    }
}
