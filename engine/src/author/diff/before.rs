//! The objects that an old schema accepted, as a new one sees them.
//!
//! Input: both schemas. Output: a schema with the nodes of the new one and the values of the old one, and the fields
//! that can't be there, as the old schema did not have them. A rule that holds for all of these does not break stored
//! objects.

use std::collections::HashSet;

use super::beyond::is_meta_field;
use crate::crd::validate::expressions::SchemaStep;
use crate::schema::structural::{Structural, StructuralOrBool};

/// The values that may have been there before.
pub struct Before {
    pub schema: Structural,
    /// Where no value can be.
    pub never: HashSet<Vec<SchemaStep>>,
}

impl Before {
    pub fn new(old: &Structural, new: &Structural) -> Self {
        let mut walk = BeforeWalk { steps: Vec::new(), never: HashSet::new() };
        let schema = walk.node(old, new);
        Before { schema, never: walk.never }
    }
}

struct BeforeWalk {
    /// From the root to the node.
    steps: Vec<SchemaStep>,
    never: HashSet<Vec<SchemaStep>>,
}

impl BeforeWalk {
    fn node(&mut self, old: &Structural, new: &Structural) -> Structural {
        let is_int_or_string = |schema: &Structural| schema.extensions.int_or_string;
        if old.generic.type_ != new.generic.type_ || is_int_or_string(old) != is_int_or_string(new) {
            // Nothing is known of a value whose type is another.
            return Structural::default();
        }
        if new.generic.default.is_some() && old.generic.default != new.generic.default {
            // It is the new default, which the old schema may have had no place for, or what was there.
            return of_any_value(new);
        }
        let mut seen = Structural {
            generic: new.generic.clone(),
            extensions: new.extensions.clone(),
            value_validation: old.value_validation.clone(),
            ..Structural::default()
        };
        seen.generic.nullable |= old.generic.nullable;
        let keeps_others = old.extensions.preserve_unknown_fields || old.additional_properties.is_some();
        let is_resource = self.steps.is_empty() || old.extensions.embedded_resource;
        let is_metadata = self.steps.last() == Some(&SchemaStep::Property("metadata".to_owned()));
        // The server keeps and checks these by itself.
        let is_kept = |name: &str| is_metadata || (is_resource && is_meta_field(name));
        for (name, after) in new.properties.iter() {
            self.steps.push(SchemaStep::Property(name.to_owned()));
            let below = match old.properties.get(name) {
                Some(before) => self.node(before, after),
                None if keeps_others || is_kept(name) => of_any_value(after),
                None => {
                    if after.generic.default.is_none() {
                        self.never.insert(self.steps.clone());
                    }
                    after.clone()
                }
            };
            seen.properties.insert(name, below);
            self.steps.pop();
        }
        seen.items =
            new.items.as_deref().map(|after| Box::new(self.below(SchemaStep::Items, old.items.as_deref(), after)));
        let before = old.additional_properties.as_ref().and_then(StructuralOrBool::structural);
        seen.additional_properties = new.additional_properties.as_ref().map(|after| match after {
            StructuralOrBool::Structural(after) => {
                StructuralOrBool::Structural(Box::new(self.below(SchemaStep::Values, before, after)))
            }
            StructuralOrBool::Bool(may) => StructuralOrBool::Bool(*may),
        });
        seen
    }

    fn below(&mut self, step: SchemaStep, old: Option<&Structural>, new: &Structural) -> Structural {
        self.steps.push(step);
        let seen = old.map_or_else(|| of_any_value(new), |old| self.node(old, new));
        self.steps.pop();
        seen
    }
}

/// A node of which only the presence is known.
fn of_any_value(schema: &Structural) -> Structural {
    let mut any = Structural { generic: schema.generic.clone(), ..Structural::default() };
    any.generic.type_.clear();
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::author::lint::decide_without;
    use crate::schema::convert::to_structural;
    use crate::schema::json_schema::{self, ValidationRule};
    use crate::schema::rules::trace;
    use crate::value::yaml;

    fn schema(text: &str) -> Structural {
        let schema = yaml::decode(text.as_bytes()).expect("the test is YAML");
        to_structural(&json_schema::decode(&schema).expect("and a schema").0).expect("a structural one")
    }

    /// Whether `rule` holds for all that passed before.
    #[track_caller]
    fn check(old: &str, new: &str, rule: &str, expected: bool) {
        let object = |properties: &str| schema(&format!("type: object\nproperties: {properties}"));
        let (old, new) = (object(old), object(new));
        let rule = ValidationRule { rule: rule.to_owned(), ..ValidationRule::default() };
        let (checked, _) = trace::check(&rule, &new, false).expect("the rule compiles");
        let before = Before::new(&old, &new);
        let decision = decide_without(&checked.ast.expr, &before.schema, false, &[], &before.never);
        assert_eq!(!decision.may_fail && !decision.may_break, expected, "{}", rule.rule);
    }

    const OLD: &str = "{a: {type: string, enum: [x, q]}}";

    #[test]
    fn values_and_fields_that_were_not_there_can_not_be() {
        let new = "{a: {type: string, enum: [x, q, z]}, b: {type: integer}, l: {type: array, items: {type: string}}}";
        check(OLD, new, "!has(self.a) || self.a != 'z' || self.b == 1", true);
        check(OLD, new, "!has(self.b)", true);
        check(OLD, new, "has(self.b) == false || self.b > 3", true);
        check(OLD, new, "!has(self.l) || self.l.all(i, i == 'q')", true);
        check(OLD, new, "!has(self.a) || self.a != 'q'", false);
        check(OLD, new, "has(self.b)", false);
    }

    #[test]
    fn a_new_default_may_be_there() {
        let defaulted = "{a: {type: string, enum: [x, q, z], default: z}, b: {type: integer, default: 1}}";
        check(OLD, defaulted, "self.a != 'z'", false);
        check(OLD, defaulted, "has(self.a) && has(self.b)", true);
        check("{a: {type: string}}", "{a: {type: string, enum: [x], default: x}}", "self.a == 'x'", false);
    }

    #[test]
    fn what_was_kept_without_being_specified_may_be_anything() {
        let old = "{s: {type: object, x-kubernetes-preserve-unknown-fields: true}}";
        let new = "{s: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string, enum: [x]}}}}";
        check(old, new, "!has(self.s) || !has(self.s.a)", false);
        check(old, new, "!has(self.s) || !has(self.s.a) || self.s.a == 'x'", false);
    }

    #[test]
    fn another_type_tells_nothing() {
        check("{a: {type: string, enum: [x]}}", "{a: {type: integer}}", "!has(self.a) || self.a < 3", false);
    }
}
