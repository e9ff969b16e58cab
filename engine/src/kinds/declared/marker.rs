//! A marker of declarative validation, as types have it: `+k8s:ifEnabled("Gate")=+k8s:minimum=1`.

use crate::meta::gate::Gate;
use crate::meta::minor::Minor;

/// The rule that a marker sets for a field, and its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    /// The name of a gate, and whether it is to be open.
    condition: Option<(&'static str, bool)>,
    pub(super) rule: Rule,
}

/// A rule for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// It is set.
    Required,
    /// If it is not set, no other rules apply.
    Optional,
    /// It is not set.
    Forbidden,
    /// It stays as it was made.
    Immutable,
    /// It changes in fewer ways.
    Update(RefusedChange),
    /// A list has so many items at most.
    MaxItems(i64),
    /// A text has so many characters at most.
    MaxLength(i64),
    /// A text has so many bytes at most.
    MaxBytes(i64),
    /// A number is not less.
    Minimum(i64),
    /// A number is not more.
    Maximum(i64),
    /// A number does not go down.
    Monotonic,
    /// A text has a form, by its name.
    Format(&'static str),
    /// Each text of a list has a form.
    EachFormat(&'static str),
    /// The list has no duplicate items.
    Unique,
    /// It is a member of a union, of which one field must be set.
    UnionMember,
    /// Where it is set, so is the named field of the same struct.
    DependentRequired(&'static str),
    /// A rule with its own function.
    Custom,
}

/// A change that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RefusedChange {
    Set,
    Unset,
    Modify,
    AddItem,
    RemoveItem,
}

impl Marker {
    /// The enforced rules of a field, in the order in which the reference checks them: by name. Markers in alpha are
    /// never enforced; those in beta are covered by rules written by hand.
    pub(super) fn all(markers: &'static str) -> Vec<Marker> {
        let mut found: Vec<(&str, Marker)> = markers
            .split(' ')
            .filter_map(|word| Some((word.split(['=', '(']).next()?, Marker::parse(word)?)))
            .collect();
        found.sort_by_key(|(name, marker)| (*name, marker.change()));
        found.into_iter().map(|(_, marker)| marker).collect()
    }

    /// `None` for markers about the merging of lists, and for those that are not enforced.
    fn parse(word: &'static str) -> Option<Marker> {
        let word = word.strip_prefix("+k8s:")?;
        for (prefix, is_open) in [("ifEnabled(", true), ("ifDisabled(", false)] {
            let Some((gate, rest)) = word.strip_prefix(prefix).and_then(|rest| rest.split_once(")=")) else { continue };
            return Some(Marker { condition: Some((gate.trim_matches('"'), is_open)), ..Marker::parse(rest)? });
        }
        Some(Marker { condition: None, rule: Rule::parse(word)? })
    }

    fn change(&self) -> Option<RefusedChange> {
        match self.rule {
            Rule::Update(change) => Some(change),
            _ => None,
        }
    }

    /// Whether it applies on a server of that minor, with its gates.
    pub(super) fn applies(&self, minor: Minor) -> bool {
        let opens = |name| Gate::all().find(|gate| gate.name() == name).is_some_and(|gate| minor.opens(gate));
        self.condition.is_none_or(|(name, is_open)| opens(name) == is_open)
    }
}

impl Rule {
    fn parse(word: &'static str) -> Option<Rule> {
        // A comment may follow.
        let word = word.split("%20#").next().unwrap_or(word);
        if let Some(name) = word.strip_prefix("dependentRequired(\"") {
            return Some(Rule::DependentRequired(name.trim_end_matches("\")")));
        }
        if let Some(form) = word.strip_prefix("eachVal=+k8s:format=") {
            return Some(Rule::EachFormat(form.trim_matches('"')));
        }
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse().ok();
        Some(match name {
            "required" => Rule::Required,
            "optional" => Rule::Optional,
            "forbidden" => Rule::Forbidden,
            "immutable" => Rule::Immutable,
            "update" => Rule::Update(RefusedChange::parse(value)?),
            "maxItems" => Rule::MaxItems(number()?),
            "maxLength" => Rule::MaxLength(number()?),
            "maxBytes" => Rule::MaxBytes(number()?),
            "minimum" => Rule::Minimum(number()?),
            "maximum" => Rule::Maximum(number()?),
            "monotonic" => Rule::Monotonic,
            "format" => Rule::Format(value.trim_matches('"')),
            "listType" | "unique" if value == "set" => Rule::Unique,
            "unionMember" => Rule::UnionMember,
            "customValidation" => Rule::Custom,
            _ => return None,
        })
    }
}

impl RefusedChange {
    fn parse(word: &str) -> Option<RefusedChange> {
        Some(match word {
            "NoSet" => RefusedChange::Set,
            "NoUnset" => RefusedChange::Unset,
            "NoModify" => RefusedChange::Modify,
            "NoAddItem" => RefusedChange::AddItem,
            "NoRemoveItem" => RefusedChange::RemoveItem,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read_in_the_order_of_their_names() {
        let markers = "+k8s:optional +k8s:update=NoUnset +k8s:update=NoSet +k8s:maximum=9%20#%20most \
                       +k8s:alpha(since:%20\"1.37\")=+k8s:required +k8s:ifDisabled(\"CompositePodGroup\")=+k8s:forbidden";
        let rules: Vec<Rule> = Marker::all(markers).iter().map(|marker| marker.rule).collect();
        let updates = [RefusedChange::Set, RefusedChange::Unset].map(Rule::Update);
        assert_eq!(rules, [Rule::Forbidden, Rule::Maximum(9), Rule::Optional, updates[0], updates[1]]);
    }

    #[test]
    fn conditions_follow_the_gate() {
        let [marker] = Marker::all("+k8s:ifDisabled(CompositePodGroup)=+k8s:forbidden")[..] else {
            panic!("there is one")
        };
        assert!(marker.applies(Minor::NEWEST), "the gate is shut by default");
        let [marker] = Marker::all("+k8s:ifEnabled(CompositePodGroup)=+k8s:optional")[..] else {
            panic!("there is one")
        };
        assert!(!marker.applies(Minor::NEWEST));
    }
}
