//! Tests of rules that are always or never true.

use super::*;
use crate::schema::convert::to_structural;
use crate::schema::json_schema::{self, ValidationRule};
use crate::schema::rules::trace;
use crate::value::yaml;

const SCHEMA: &[u8] = b"
type: object
required: [length, name, tags]
properties:
  length: {type: integer, minimum: 1, maximum: 10}
  crew: {type: integer, default: 2}
  ratio: {type: number, maximum: 0.5}
  name: {type: string, minLength: 1, maxLength: 8}
  rig: {type: string, enum: [A, B]}
  tags: {type: array, minItems: 1, items: {type: string, enum: [p, q]}}
  owner: {type: object, properties: {name: {type: string}, 'first-name': {type: string}}}
  free: {type: integer, nullable: true, minimum: 1}
";

/// Checks which of `holds`, `fails` and `breaks` are possible, and the fields that are read without a test.
#[track_caller]
fn check(rule: &str, expected: &str) {
    let schema = json_schema::decode(&yaml::decode(SCHEMA).expect("the test is YAML")).expect("and a schema").0;
    let schema = to_structural(&schema).expect("a structural one");
    let rule = ValidationRule { rule: rule.to_owned(), ..ValidationRule::default() };
    let (checked, _) = trace::check(&rule, &schema, false).expect("the rule compiles");
    let decision = decide(&checked.ast.expr, &schema, false, &[]);
    let mut found = Vec::new();
    for (may, word) in [(decision.may_hold, "holds"), (decision.may_fail, "fails"), (decision.may_break, "breaks")] {
        found.extend(may.then(|| word.to_owned()));
    }
    found.extend(decision.absent);
    assert_eq!(found.join(" "), expected, "{}", rule.rule);
}

#[test]
fn bounds_decide_comparisons() {
    check("self.length > 0", "holds");
    check("self.length > 10", "fails");
    check("self.length + 1 <= 11 && -self.length < 0", "holds");
    check("self.length * 2 > 19", "holds fails");
    check("self.length != 11", "holds");
    check("size(self.name) < 9 && self.name.size() > 0", "holds");
    check("self.name == ''", "fails");
    check("has(self.ratio) && self.ratio > 0.6", "fails");
    check("self.crew + 1 > self.crew", "holds fails breaks");
}

#[test]
fn enums_decide_equality_and_membership() {
    check("!has(self.rig) || self.rig in ['A', 'B', 'C']", "holds");
    check("has(self.rig) && self.rig == 'C'", "fails");
    check("!has(self.rig) || self.rig == 'A'", "holds fails");
    check("self.tags.all(tag, tag in ['p', 'q'])", "holds");
    check("self.tags.exists(tag, tag == 'z')", "fails");
    check("self.tags.filter(tag, tag == 'z').size() <= 1", "holds");
    check("self.tags.exists_one(tag, tag == 'z')", "fails");
    check("self.tags.filter(tag, tag == 'p').size() <= 1", "holds fails breaks");
}

#[test]
fn what_is_required_or_has_a_default_is_there() {
    check("has(self.length) && has(self.crew)", "holds");
    check("has(self.rig)", "holds fails");
    check("size(self.tags) > 0 && self.tags[0] == 'p'", "holds fails breaks");
}

#[test]
fn optional_fields_are_absent_unless_asked_for() {
    check("self.rig == 'A'", "holds fails breaks self.rig");
    check("self.rig == 'A' || !has(self.rig)", "holds fails");
    check("has(self.rig) == false || self.rig == 'A'", "holds fails");
    check("has(self.rig) ? self.rig == 'A' : true", "holds fails");
    check("has(self.rig) == has(self.ratio) && (!has(self.ratio) || self.rig == 'A')", "holds fails");
    check("has(self.rig) == has(oldSelf.rig) && (!has(oldSelf.rig) || self.rig == 'A')", "holds fails breaks");
    check("has(self.rig) != has(self.ratio) && (!has(self.ratio) || self.rig == 'A')", "holds fails breaks self.rig");
    check("!has(self.owner) || self.owner.name == ''", "holds fails breaks self.owner.name");
    check("has(self.owner.name) && self.owner.name == ''", "holds fails breaks self.owner");
    check("has(self.owner) && has(self.owner.first__dash__name) && self.owner.first__dash__name != 'x'", "holds fails");
    check("self.?rig.hasValue() && self.rig == 'A'", "holds fails breaks");
    check("self.?rig.orValue('A') == 'A'", "holds fails breaks");
    check("self.?owner.optMap(o, has(o.name) && o.name == 'x').orValue(true)", "holds fails breaks");
}

#[test]
fn what_may_be_null_is_not_known() {
    check("!has(self.free) || self.free != 0", "holds fails");
    check("!has(self.free) || self.free > 0", "holds fails breaks");
}
