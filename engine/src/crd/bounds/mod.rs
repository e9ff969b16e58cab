//! The limits that a rule's schema lacks: which lists, maps and texts without a limit make the rule expensive, and
//! which limits would make it cheap enough, either to be accepted at all or to take only half of the allowed cost.

mod fields;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;

use crate::cel::cost::{self, model::EXPRESSION_ESTIMATE_MAX};
use crate::cel::declared::{DeclField, DeclShape, DeclType};
use crate::cel::escape::escape;
use crate::crd::validate::expressions::{RuleCosts, SchemaStep};
use crate::schema::declare::declare;
use crate::schema::rules::compile::{CompiledExpression, cardinality_max};
use crate::schema::structural::Structural;

use self::fields::{child, collect, collect_among, descend_mut, keyword, limit, limit_mut};

pub use self::fields::{Keyword, SizedField, descend};

/// The lowest limit that is tried.
const LIMIT_MIN: i64 = 1;
/// A larger limit makes no difference: a request has fewer bytes.
const LIMIT_MAX: i64 = 4 * 1024 * 1024;

/// Advice for a rule that is too expensive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// The fields without a limit that matter.
    pub unbounded: Vec<SizedField>,
    /// Sets of limits; each of them makes a rule over the allowed cost fit, or brings a rule above half of it down to
    /// half. Empty if no limits are enough.
    pub remedies: Vec<Vec<Bound>>,
}

/// A limit, and where it would stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Where the bound belongs.
    pub place: SizedField,
    /// The largest limit that is enough.
    pub limit: i64,
}

impl fmt::Display for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {} on {}", self.place.keyword, self.limit, self.place)
    }
}

/// Why `rule`, a rule of the schema `root`, is expensive, and what helps if it takes more than half of the allowed
/// cost. Empty for a faulty rule.
pub fn advise(root: &Structural, rule: &RuleCosts) -> Advice {
    let Some(mut trial) = Trial::new(root, rule) else { return Advice::default() };
    let cost = trial.cost(&[]);
    trial.goal = if cost > EXPRESSION_ESTIMATE_MAX { EXPRESSION_ESTIMATE_MAX } else { EXPRESSION_ESTIMATE_MAX / 2 };
    let all = trial.places();
    let (unbounded, bounded): (Vec<SizedField>, Vec<SizedField>) =
        all.into_iter().partition(|place| trial.is_unbounded(place));
    let unbounded = trial.relevant(unbounded, cost);
    if cost <= trial.goal {
        return Advice { unbounded, remedies: Vec::new() };
    }
    let mut remedies = trial.remedies(&unbounded);
    if remedies.is_empty() {
        // Existing limits must be lowered, too.
        let bounded = trial.relevant(bounded, cost);
        remedies = trial.remedies(&unbounded.iter().cloned().chain(bounded).collect::<Vec<_>>());
    }
    Advice { unbounded, remedies }
}

/// The fields without a limit that matter for the cost of `rule`, among these nodes, given by their paths from `root`.
/// Faster than [`advise`] for a rule that sees much and reads little.
pub fn unbounded_among(root: &Structural, rule: &RuleCosts, nodes: &[Vec<SchemaStep>]) -> Vec<SizedField> {
    let Some(trial) = Trial::new(root, rule) else { return Vec::new() };
    let mut places = trial.places_above();
    let below: Vec<&[SchemaStep]> = nodes.iter().filter_map(|steps| steps.strip_prefix(&*rule.steps)).collect();
    collect_among(trial.node, &below, &mut rule.steps.clone(), &mut places);
    places.retain(|place| trial.is_unbounded(place));
    if places.is_empty() {
        return places;
    }
    let cost = trial.cost(&[]);
    trial.relevant(places, cost)
}

/// The fields without a limit among the nodes of `ways`, and above them.
pub fn unbounded_on(root: &Structural, ways: &[Vec<SchemaStep>]) -> Vec<SizedField> {
    let mut places: Vec<SizedField> = Vec::new();
    for way in ways {
        for depth in 0..=way.len() {
            let Some(node) = descend(root, &way[..depth]) else { break };
            let keyword = keyword(node).filter(|keyword| limit(node, *keyword).is_none());
            let place = keyword.map(|keyword| SizedField { steps: way[..depth].to_vec(), keyword });
            places.extend(place.filter(|place| !places.contains(place)));
        }
    }
    places
}

/// A schema with these limits.
pub fn with_bounds(root: &Structural, bounds: &[Bound]) -> Structural {
    let mut root = root.clone();
    for bound in bounds {
        if let Some(node) = descend_mut(&mut root, &bound.place.steps) {
            *limit_mut(node.value_validation.get_or_insert_default(), bound.place.keyword) = Some(bound.limit);
        }
    }
    root
}

/// The loosest limit that `fits` when set on all of `places`; `None` if there is none.
pub fn loosest(places: &[SizedField], fits: impl Fn(&[Bound]) -> bool) -> Option<Vec<Bound>> {
    if places.is_empty() || !fits(&all(places, LIMIT_MIN)) {
        return None;
    }
    let (mut enough, mut too_much) = (LIMIT_MIN, LIMIT_MAX);
    while too_much - enough > 1 {
        let middle = enough + (too_much - enough) / 2;
        if fits(&all(places, middle)) { enough = middle } else { too_much = middle }
    }
    Some(all(places, enough))
}

/// A rule whose cost is estimated with other limits than those of its schema.
struct Trial<'t> {
    rule: &'t RuleCosts,
    expression: &'t CompiledExpression,
    /// The nodes from the root down to that of the rule, exclusive.
    above: Vec<&'t Structural>,
    node: &'t Structural,
    /// The type that the rule sees, with the limits of its schema.
    declared: OnceCell<Option<DeclType>>,
    /// What is cheap enough.
    goal: u64,
}

impl<'t> Trial<'t> {
    fn new(root: &'t Structural, rule: &'t RuleCosts) -> Option<Self> {
        let mut above = Vec::new();
        let mut node = root;
        for step in &rule.steps {
            above.push(node);
            node = child(node, step)?;
        }
        let expression = rule.compiled.expression.as_ref()?;
        Some(Trial { rule, expression, above, node, declared: OnceCell::new(), goal: EXPRESSION_ESTIMATE_MAX })
    }

    /// The cost of all evaluations with these limits.
    fn cost(&self, bounds: &[Bound]) -> u64 {
        let mut cardinality = Some(1u64);
        for (depth, node) in self.above.iter().enumerate() {
            let elements = match keyword(node) {
                Some(Keyword::MaxLength) | None => Some(1),
                Some(keyword) => {
                    let replaced = bounds.iter().find(|bound| bound.place.steps.len() == depth);
                    let limit = replaced.map(|bound| bound.limit).or_else(|| limit(node, keyword));
                    limit.map(|limit| u64::try_from(limit).unwrap_or(0))
                }
            };
            cardinality = cardinality.zip(elements).map(|(own, more)| own.saturating_mul(more));
        }
        let depth = self.above.len();
        let bounds: Vec<(&[SchemaStep], &Bound)> =
            bounds.iter().filter_map(|bound| Some((bound.place.steps.get(depth..)?, bound))).collect();
        let Some(decl) = self.limited(&bounds) else { return 0 };
        let cost = cost::estimate(&self.expression.checked, &decl).max;
        cost.saturating_mul(cardinality.unwrap_or_else(|| cardinality_max(&decl)))
    }

    /// The type that the rule sees with these limits; each comes with its path from the rule's node.
    fn limited(&self, bounds: &[(&[SchemaStep], &Bound)]) -> Option<Cow<'_, DeclType>> {
        let is_resource = self.above.is_empty() || self.node.extensions.embedded_resource;
        let mut declared = Cow::Borrowed(self.declared.get_or_init(|| declare(self.node, is_resource)).as_ref()?);
        for (steps, bound) in bounds {
            // A limit does not change the surrounding nodes: their sizes are minimum sizes.
            match limited(&declared, self.node, steps, bound) {
                Some(changed) => declared = Cow::Owned(changed),
                None => return self.limited_anew(bounds, is_resource).map(Cow::Owned),
            }
        }
        Some(declared)
    }

    /// The same, declared anew from the schema, as resources have fields that the schema may not name.
    fn limited_anew(&self, bounds: &[(&[SchemaStep], &Bound)], is_resource: bool) -> Option<DeclType> {
        let within = |(steps, bound): &(&[SchemaStep], &Bound)| Bound {
            place: SizedField { steps: steps.to_vec(), keyword: bound.place.keyword },
            limit: bound.limit,
        };
        let bounds: Vec<Bound> = bounds.iter().map(within).collect();
        declare(&with_bounds(self.node, &bounds), is_resource)
    }

    /// Lists and maps above the rule; lists, maps and texts at its node and below.
    fn places(&self) -> Vec<SizedField> {
        let mut places = self.places_above();
        collect(self.node, &mut self.rule.steps.clone(), &mut places);
        places
    }

    fn places_above(&self) -> Vec<SizedField> {
        let mut places = Vec::new();
        for (depth, node) in self.above.iter().enumerate() {
            if let Some(keyword) = keyword(node).filter(|keyword| *keyword != Keyword::MaxLength) {
                places.push(SizedField { steps: self.rule.steps[..depth].to_vec(), keyword });
            }
        }
        places
    }

    fn is_unbounded(&self, place: &SizedField) -> bool {
        let (start, steps) = match self.above.get(place.steps.len()) {
            Some(above) => (*above, &[][..]),
            None => (self.node, &place.steps[self.above.len()..]),
        };
        let node = steps.iter().try_fold(start, child);
        node.is_some_and(|node| limit(node, place.keyword).is_none())
    }

    /// Whether the place is above the rule, so that it affects how often the rule is evaluated.
    fn is_above(&self, place: &SizedField) -> bool {
        place.steps.len() < self.rule.steps.len()
    }

    /// The places whose limit affects the cost.
    fn relevant(&self, places: Vec<SizedField>, cost: u64) -> Vec<SizedField> {
        // Cardinality is bounded only if all lists and maps above are.
        let above: Vec<Bound> =
            places.iter().filter(|place| self.is_above(place)).map(|place| bound(place, LIMIT_MIN)).collect();
        let above_matters = !above.is_empty() && self.cost(&above) < cost;
        let least = self.cost(&all(&places, LIMIT_MIN));
        let matters = |place: &SizedField| {
            if self.is_above(place) {
                above_matters
            } else {
                // Once the other places are limited, a text may begin to matter.
                let others = places.iter().filter(|other| *other != place);
                let others: Vec<Bound> = others.map(|other| bound(other, LIMIT_MIN)).collect();
                self.cost(&[bound(place, LIMIT_MIN)]) < cost || self.cost(&others) > least
            }
        };
        places.iter().filter(|place| matters(place)).cloned().collect()
    }

    /// The same limit for all places, and each place whose limit alone is enough.
    fn remedies(&self, places: &[SizedField]) -> Vec<Vec<Bound>> {
        let joint = self.joint_remedy(places.to_vec());
        let single = places.iter().filter_map(|place| self.loosest(std::slice::from_ref(place)));
        let mut remedies: Vec<Vec<Bound>> = joint.into_iter().collect();
        for remedy in single {
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
        remedies
    }

    /// The same limit for all places that need one.
    fn joint_remedy(&self, mut places: Vec<SizedField>) -> Option<Vec<Bound>> {
        let mut remedy = self.loosest(&places)?;
        for index in (0..places.len()).rev() {
            let mut fewer = places.clone();
            fewer.remove(index);
            if let Some(loosest) = self.loosest(&fewer).filter(|loosest| loosest[0].limit >= remedy[0].limit) {
                (places, remedy) = (fewer, loosest);
            }
        }
        Some(remedy)
    }

    /// The loosest limit that is enough when set on all of `places`.
    fn loosest(&self, places: &[SizedField]) -> Option<Vec<Bound>> {
        loosest(places, |bounds| self.cost(bounds) <= self.goal)
    }
}

fn bound(place: &SizedField, limit: i64) -> Bound {
    Bound { place: place.clone(), limit }
}

fn all(places: &[SizedField], limit: i64) -> Vec<Bound> {
    places.iter().map(|place| bound(place, limit)).collect()
}

/// The declared type of `node` with one more limit, at the end of `steps`. `None` if the declaration has no such part,
/// or has it independently of the schema.
fn limited(declared: &DeclType, node: &Structural, steps: &[SchemaStep], bound: &Bound) -> Option<DeclType> {
    let Some((step, rest)) = steps.split_first() else {
        // A limit does not affect the parts below, which need not be declared again.
        let elements = u64::try_from(bound.limit).unwrap_or(0);
        return match &declared.shape {
            DeclShape::List(_) | DeclShape::Map { .. } => Some(DeclType { max_elements: elements, ..declared.clone() }),
            DeclShape::Scalar => {
                let mut node = node.clone();
                *limit_mut(node.value_validation.get_or_insert_default(), bound.place.keyword) = Some(bound.limit);
                declare(&node, false)
            }
            DeclShape::Object(_) => None,
        };
    };
    let below = child(node, step)?;
    let size_min = declared.min_serialized_size;
    Some(match (&declared.shape, step) {
        (DeclShape::List(items), SchemaStep::Items) => {
            let items = limited(items, below, rest, bound)?;
            DeclType { min_serialized_size: size_min, ..DeclType::list(items, declared.max_elements) }
        }
        (DeclShape::Map { key, value }, SchemaStep::Values) => {
            let value = limited(value, below, rest, bound)?;
            let map = DeclType::map((**key).clone(), value, declared.max_elements);
            DeclType { min_serialized_size: size_min, ..map }
        }
        (DeclShape::Object(object), SchemaStep::Property(name)) if name != "metadata" => {
            let mut object = (**object).clone();
            let DeclField { decl, .. } = object.fields.get_mut(&*escape(name)?)?;
            *decl = limited(decl, below, rest, bound)?;
            DeclType::object(object, size_min)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::validate::create_with_costs;
    use crate::crd::{defaults, definition, strategy};
    use crate::object;
    use crate::schema::convert::to_structural;
    use crate::value::json;

    /// The advice about the only rule of a schema.
    #[track_caller]
    fn check(schema: &str, unbounded: &[&str], remedies: &[&str]) {
        let schema = json::decode(schema.as_bytes()).expect("the test is JSON");
        let version = object! {
            "name" => "v1", "served" => true, "storage" => true, "schema" => object! { "openAPIV3Schema" => schema },
        };
        let value = object! {
            "metadata" => object! { "name" => "foos.example.com" },
            "spec" => object! {
                "group" => "example.com",
                "scope" => "Namespaced",
                "names" => object! { "plural" => "foos", "kind" => "Foo" },
                "versions" => vec![version],
            },
        };
        let mut definition = definition::decode(&value).expect("the test is a definition").0;
        defaults::set_defaults(&mut definition);
        strategy::prepare_create(&mut definition);
        let costs = create_with_costs(&definition).1;
        let schema = definition.spec.versions[0].schema.as_ref().and_then(Option::as_ref).expect("there is a schema");
        let advice = advise(&to_structural(schema).expect("it is structural"), &costs[0].rules[0]);
        let shown: Vec<String> = advice.unbounded.iter().map(|place| format!("{place} {}", place.keyword)).collect();
        assert_eq!(shown, unbounded);
        let show = |bounds: &Vec<Bound>| bounds.iter().map(Bound::to_string).collect::<Vec<_>>().join(", ");
        assert_eq!(advice.remedies.iter().map(show).collect::<Vec<_>>(), remedies);
    }

    #[test]
    fn nothing_helps_a_rule_that_is_cheap() {
        check(
            r#"{"type":"object","properties":{"a":{"type":"string",
            "x-kubernetes-validations":[{"rule":"self == 'a'"}]}}}"#,
            &[],
            &[],
        );
    }

    #[test]
    fn a_list_above_the_rule_counts() {
        check(
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","maxLength":100,
                "x-kubernetes-validations":[{"rule":"self.contains(self)"}]}}}}"#,
            &["a maxItems"],
            &["maxItems: 6242 on a"],
        );
    }

    #[test]
    fn one_limit_or_a_common_one_may_do() {
        check(
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}},
                "x-kubernetes-validations":[{"rule":"self.a.all(x, self.a.all(y, x == y))"}]}"#,
            &["a maxItems", "a[*] maxLength"],
            &["maxItems: 287 on a, maxLength: 287 on a[*]", "maxItems: 5 on a"],
        );
    }

    #[test]
    fn a_rule_above_half_of_the_limit_is_brought_down_to_half() {
        check(
            r#"{"type":"object","properties":{"a":{"type":"array","maxItems":1300,"items":{"type":"integer"}}},
                "x-kubernetes-validations":[{"rule":"self.a.all(x, self.a.all(y, x == y))"}]}"#,
            &[],
            &["maxItems: 999 on a"],
        );
    }

    #[test]
    fn limits_that_are_too_high_are_lowered() {
        check(
            r#"{"type":"object","properties":{"a":{"type":"array","maxItems":100000,"items":{"type":"integer"}}},
                "x-kubernetes-validations":[{"rule":"self.a.all(x, self.a.all(y, x == y))"}]}"#,
            &[],
            &["maxItems: 1413 on a"],
        );
    }
}
