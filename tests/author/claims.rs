//! What lints claim of rules is true: whatever a rule does to an object that its schema lets in was told before. Held over
//! the objects of the corpus, and over made-up ones of the examples.

use kubeskiff::author::lint::{RuleDecision, decisions};
use kubeskiff::author::suite::fits;
use kubeskiff::author::{self, CheckOptions, Checked, DefinedKind};
use kubeskiff::schema::structural::{Structural, StructuralOrBool, ValueValidation};
use kubeskiff::value::{Map, Value, yaml};

use super::corpus;

/// A definition whose rules are decided by their schema, mostly.
const DECIDED: &str = "
metadata: {name: claims.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: claims, kind: Claim, singular: claim, listKind: ClaimList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size, mode, tags]
            properties:
              size: {type: integer, minimum: -3, maximum: 4}
              extra: {type: integer, minimum: 0, maximum: 3}
              crew: {type: integer, default: 2, maximum: 5}
              ratio: {type: number, minimum: 0.5}
              mode: {type: string, enum: [A, B]}
              name: {type: string, minLength: 1, maxLength: 3}
              free: {type: integer, nullable: true, minimum: 1}
              flag: {type: boolean, enum: [true]}
              tags: {type: array, minItems: 1, maxItems: 3, items: {type: string, enum: [p, q]}}
              owner: {type: object, properties: {name: {type: string, maxLength: 2}}}
            x-kubernetes-validations:
            - rule: self.size < 5 && self.size * self.size <= 16
            - rule: self.size + 4 > 0 || self.mode == 'C'
            - rule: self.extra > 1 || !has(self.extra)
            - rule: self.extra + self.size < 7
            - rule: self.crew <= 5
            - rule: has(self.crew) && has(self.mode)
            - rule: '!has(self.ratio) || self.ratio >= 0.5'
            - rule: self.mode in ['A', 'B', 'C'] && self.mode != 'D'
            - rule: 'self.mode == ''A'' ? self.size < 3 : self.size > -9'
            - rule: '!has(self.name) || (self.name.size() > 0 && size(self.name) < 4)'
            - rule: '!has(self.free) || self.free > 0'
            - rule: has(self.flag) && self.flag
            - rule: '!has(self.flag) || self.flag'
            - rule: self.tags.all(t, t in ['p', 'q']) && size(self.tags) <= 3
            - rule: self.tags.exists(t, t == 'z') || self.tags.exists_one(t, t == 'p')
            - rule: self.tags[0] != 'z'
            - rule: self.owner.name == 'me'
            - rule: has(self.owner) && has(self.owner.name) && self.owner.name.size() <= 2
            - rule: self.?owner.?name.orValue('') != 'too long'
            - rule: -self.size <= 3 && 7 / self.size > -8
";

/// Holds what the rules did to an object against what was told of them.
fn compare(told: &[(String, String, String, RuleDecision)], version: &str, checked: &Checked) -> usize {
    let is_let_in = checked.ratcheted.is_empty() && checked.errors.iter().all(|rejected| rejected.rule.is_some());
    if !is_let_in {
        return 0;
    }
    let mut compared = 0;
    for run in checked.runs.iter().filter(|run| !run.is_message) {
        let is_meant = |(of, path, rule): (&str, &str, &str)| {
            let path = if path.is_empty() { "<nil>" } else { path };
            of == version && rule == run.rule && fits(path, &run.path)
        };
        for (of, path, rule, decision) in told {
            if is_meant((of, path, rule)) {
                let was_told = match run.truth {
                    Some(true) => decision.may_hold,
                    Some(false) => decision.may_fail,
                    None => decision.may_break,
                };
                assert!(was_told, "{rule} at {} came to {:?}, and told was {decision:?}", run.path, run.truth);
                compared += 1;
            }
        }
    }
    compared
}

fn version_of(object: &Value) -> &str {
    object.str_at(&["apiVersion"]).rsplit('/').next().unwrap_or_default()
}

#[test]
fn rules_do_to_the_corpus_what_was_told() {
    let Some(corpus) = corpus::open() else { return };
    let told: std::collections::BTreeMap<&str, _> =
        corpus.kinds.iter().map(|(name, kind)| (name.as_str(), decisions(kind))).collect();
    let mut compared = 0;
    for case in &corpus.cases {
        let Some(kind) = case["crd"].as_str().and_then(|name| corpus.kinds.get(name)) else { continue };
        let told = &told[case["crd"].as_str().unwrap_or_default()];
        if told.is_empty() {
            continue;
        }
        let object = corpus::converted(&case["object"]);
        let checked = match case["method"].as_str() {
            Some("PUT") => author::update(kind, &object, &corpus::converted(&case["old"]), CheckOptions::default()),
            _ => author::create(kind, &object, CheckOptions::default()),
        };
        compared += compare(told, version_of(&object), &checked);
    }
    assert!(compared > 1000, "only {compared} evaluations");
}

#[test]
fn rules_do_to_made_up_objects_what_was_told() {
    let kind =
        DefinedKind::new(&yaml::decode(DECIDED.as_bytes()).expect("the test is YAML")).expect("and a definition");
    assert!(kind.errors.is_empty(), "{:?}", kind.errors);
    let told = decisions(&kind);
    let never_fails = told.iter().filter(|(_, _, _, decision)| !decision.may_fail && !decision.may_break).count();
    assert_eq!((told.len(), never_fails), (20, 9));
    let mut random = Random(7);
    let mut compared = 0;
    for _ in 0..2000 {
        let mut object = random.value(&kind.versions[0].structural);
        let fields = object.make_object();
        fields.insert("apiVersion", Value::from("example.com/v1"));
        fields.insert("kind", Value::from("Claim"));
        fields.insert("metadata", Value::Object([("name".to_owned(), Value::from("a"))].into_iter().collect::<Map>()));
        compared += compare(&told, "v1", &author::create(&kind, &object, CheckOptions::default()));
    }
    assert!(compared > 20_000, "only {compared} evaluations");
}

/// Numbers that come out the same on every run.
struct Random(u64);

impl Random {
    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    /// A value that `schema` lets in.
    fn value(&mut self, schema: &Structural) -> Value {
        let none = ValueValidation::default();
        let values = schema.value_validation.as_deref().unwrap_or(&none);
        if schema.generic.nullable && self.below(4) == 0 {
            return Value::Null;
        }
        if !values.enum_.is_empty() {
            return values.enum_[self.below(values.enum_.len() as u64) as usize].clone();
        }
        let mut count = |min: Option<i64>, max: Option<i64>| {
            let min = min.unwrap_or(0);
            min + self.below((max.unwrap_or(min + 5) - min + 1) as u64) as i64
        };
        match schema.generic.type_.as_str() {
            "integer" => {
                let bound = |bound: Option<f64>| bound.map(|bound| bound as i64);
                Value::Int(count(bound(values.bounds.minimum).or(Some(-9)), bound(values.bounds.maximum)))
            }
            "number" => Value::Float(values.bounds.minimum.unwrap_or(-1.0) + count(None, None) as f64 / 2.0),
            "boolean" => Value::Bool(count(None, Some(1)) == 1),
            "string" => {
                Value::from("abcdefgh"[..count(values.bounds.min_length, values.bounds.max_length) as usize].to_owned())
            }
            "array" => {
                let items = schema.items.as_deref();
                let length = count(values.bounds.min_items, values.bounds.max_items);
                (0..length).filter_map(|_| Some(self.value(items?))).collect::<Vec<_>>().into()
            }
            _ => {
                let mut fields = Map::default();
                for (name, property) in schema.properties.iter() {
                    if values.required.iter().any(|required| required == name) || self.below(2) == 0 {
                        fields.insert(name, self.value(property));
                    }
                }
                if let Some(StructuralOrBool::Structural(entries)) = &schema.additional_properties {
                    fields.insert("entry", self.value(entries));
                }
                Value::Object(fields)
            }
        }
    }
}
