//! The expressions of rules: their variables, how often they may run, and what they may cost.
//!
//! Source: apiextensions-apiserver 1.37, answers recorded from it.

use std::cell::OnceCell;

use super::go_struct;
use super::options::ValidationOptions;
use crate::cel::cost::model::{EXPRESSION_ESTIMATE_MAX, SCHEMA_ESTIMATE_MAX};
use crate::cel::declared::DeclType;
use crate::cel::error::Issues;
use crate::cel::escape::escape;
use crate::meta::field::{Error, ErrorList, ErrorSubject, Path};
use crate::meta::minor::Minor;
use crate::schema::declare::declare_in;
use crate::schema::json_schema::{JsonSchema, ValidationRule};
use crate::schema::rules::compile::{CompiledRule, ExpressionOrigin, cardinality_max, compile_for};
use crate::schema::structural::{Structural, StructuralOrBool};

/// The most rules that are named if the total cost is too high.
const NAMED_RULES_MAX: usize = 4;

/// What the rules of a schema cost.
#[derive(Clone, Debug)]
pub struct SchemaCosts {
    /// Of the schema: `spec.validation.openAPIV3Schema`.
    pub path: String,
    /// The compiled rules, if the schema has no other fault and they are asked for.
    pub rules: Vec<RuleCosts>,
    /// The total cost: all rules, each as often as it may be evaluated, and each message once.
    pub total: u64,
    /// Paths and costs of the most expensive rules and messages, the most expensive first.
    dearest: Vec<(String, u64)>,
}

/// A step from a node of a schema to a child.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SchemaStep {
    /// A property, by its name.
    Property(String),
    /// The items of a list.
    Items,
    /// `additionalProperties`.
    Values,
}

/// The path of a node of a schema as it is in objects: `spec.ports[*]`.
pub fn in_objects(steps: &[SchemaStep]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            SchemaStep::Property(name) if path.is_empty() => path.push_str(name),
            SchemaStep::Property(name) => path.extend([".", name]),
            SchemaStep::Items | SchemaStep::Values => path.push_str("[*]"),
        }
    }
    path
}

/// What a rule costs.
#[derive(Clone, Debug)]
pub struct RuleCosts {
    /// `….x-kubernetes-validations[0]`.
    pub path: String,
    /// The path from the root of the schema to the node of the rule.
    pub steps: Vec<SchemaStep>,
    /// The rule as it stands in the schema.
    pub rule: ValidationRule,
    /// The rule, compiled, with its cost.
    pub compiled: CompiledRule,
    /// How often a value of the node's type can occur in a request.
    pub request_cardinality: u64,
    /// How often the schema allows its node in an object; `None` if nothing bounds that.
    pub schema_cardinality: Option<u64>,
    /// The cost of one evaluation times the cardinality.
    pub cost: u64,
}

impl RuleCosts {
    /// How often the rule may be evaluated for an object.
    pub fn cardinality(&self) -> u64 {
        self.schema_cardinality.unwrap_or(self.request_cardinality)
    }
}

impl SchemaCosts {
    /// The costs of the schema at `path`, without any rules yet.
    pub fn new(path: &Path<'_>) -> Self {
        SchemaCosts { path: path.to_string(), rules: Vec::new(), total: 0, dearest: Vec::new() }
    }

    fn note(&mut self, path: &Path<'_>, cost: u64) {
        self.total = self.total.saturating_add(cost);
        // A cost of at least 1% of the limit is worth mentioning.
        if cost >= SCHEMA_ESTIMATE_MAX / 100 {
            self.dearest.push((path.to_string(), cost));
            self.dearest.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.dearest.truncate(NAMED_RULES_MAX);
        }
    }

    /// The error that the total cost is too high, naming the most expensive rules.
    pub fn check_total(&self) -> ErrorList {
        if self.total <= SCHEMA_ESTIMATE_MAX {
            return ErrorList::new();
        }
        let contributed = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let at =
            |path: &str, detail: String| Error::forbidden(&Path::new(path), detail).about(ErrorSubject::EstimatedCost);
        let mut errors: ErrorList = self.dearest.iter().map(|(path, _)| at(path, contributed.to_owned())).collect();
        errors.push(at(&self.path, exceeds(name, self.total, SCHEMA_ESTIMATE_MAX)));
        errors
    }
}

/// A node of a schema as rules see it, and its path.
pub struct ExpressionContext<'c> {
    schema: &'c JsonSchema,
    structural: &'c Structural,
    /// The parent and the step from there.
    above: Option<(&'c ExpressionContext<'c>, StepFrom<'c>)>,
    /// Whether there are rules here or above: types are named from the outermost node with rules.
    is_within_rules: bool,
    /// How often the parents allow this node in an object; `None` if nothing bounds that.
    cardinality: Option<u64>,
    /// The version of Kubernetes to emulate.
    minor: Minor,
    declared: OnceCell<Declared>,
}

#[derive(Clone, Copy)]
enum StepFrom<'c> {
    Property(&'c str),
    Items,
    Values,
}

/// The type of a schema in expressions.
#[derive(Clone)]
enum Declared {
    Type(DeclType),
    /// The parent's type has no such part.
    NoPart,
    /// A type that expressions don't see.
    Unseen,
}

impl<'c> ExpressionContext<'c> {
    /// The root of a version's schema.
    pub fn root(minor: Minor, schema: &'c JsonSchema, structural: &'c Structural) -> Self {
        let is_within_rules = !schema.validations.is_empty();
        let declared = OnceCell::new();
        ExpressionContext { schema, structural, above: None, is_within_rules, cardinality: Some(1), minor, declared }
    }

    /// The context of a property; `None` if the structural schema has no such property.
    pub fn property(&'c self, name: &'c str, schema: &'c JsonSchema) -> Option<ExpressionContext<'c>> {
        Some(self.child(schema, self.structural.properties.get(name)?, StepFrom::Property(name)))
    }

    /// The context of the items; `None` if the structural schema has none.
    pub fn items(&'c self, schema: &'c JsonSchema) -> Option<ExpressionContext<'c>> {
        Some(self.child(schema, self.structural.items.as_deref()?, StepFrom::Items))
    }

    /// The node of `additionalProperties`.
    pub fn values(&'c self, schema: &'c JsonSchema) -> Option<ExpressionContext<'c>> {
        let values = self.structural.additional_properties.as_ref().and_then(StructuralOrBool::structural)?;
        Some(self.child(schema, values, StepFrom::Values))
    }

    fn child(
        &'c self,
        schema: &'c JsonSchema,
        structural: &'c Structural,
        step: StepFrom<'c>,
    ) -> ExpressionContext<'c> {
        ExpressionContext {
            schema,
            structural,
            above: Some((self, step)),
            is_within_rules: self.is_within_rules || !schema.validations.is_empty(),
            cardinality: self.cardinality.zip(elements_max(self.schema)).map(|(own, more)| own.saturating_mul(more)),
            minor: self.minor,
            declared: OnceCell::new(),
        }
    }

    /// The structural schema of the node.
    pub fn structural(&self) -> &'c Structural {
        self.structural
    }

    fn steps(&self) -> Vec<SchemaStep> {
        let Some((above, step)) = self.above else { return Vec::new() };
        let mut steps = above.steps();
        steps.push(match step {
            StepFrom::Property(name) => SchemaStep::Property(name.to_owned()),
            StepFrom::Items => SchemaStep::Items,
            StepFrom::Values => SchemaStep::Values,
        });
        steps
    }

    fn declared(&self) -> &Declared {
        self.declared.get_or_init(|| {
            if let Some((above, step)) = self.above.filter(|(above, _)| above.is_within_rules)
                && let Some(declared) = self.part_of(above, step)
            {
                return declared;
            }
            let is_resource = self.above.is_none() || self.schema.embedded_resource;
            declare_in(self.minor, self.structural, is_resource).map_or(Declared::Unseen, Declared::Type)
        })
    }

    /// `None` for a property that the parent's type leaves out.
    fn part_of(&self, above: &ExpressionContext<'_>, step: StepFrom<'_>) -> Option<Declared> {
        let decl = match above.declared() {
            Declared::Type(decl) => decl,
            other => return Some(other.clone()),
        };
        match step {
            StepFrom::Property(name) => decl.field(&escape(name)?).cloned().map(Declared::Type),
            StepFrom::Items | StepFrom::Values => {
                Some(decl.element().cloned().map_or(Declared::NoPart, Declared::Type))
            }
        }
    }

    /// The errors in the expressions of the rules of this node, which are at `path`. Their costs go to `costs`.
    ///
    /// `uncorrelatable` is the parent, if any, whose parts can't be correlated on updates.
    pub fn check(
        &self,
        options: &ValidationOptions,
        uncorrelatable: Option<&Path<'_>>,
        costs: &mut SchemaCosts,
        path: &Path<'_>,
    ) -> ErrorList {
        let decl = match self.declared() {
            Declared::Type(decl) => decl,
            Declared::NoPart => {
                return Error::internal(path, "failed to convert to declType for CEL validation rules").into();
            }
            Declared::Unseen => {
                let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                              unable to convert structural schema to CEL declarations";
                return Error::internal(path, detail).into();
            }
        };
        let rules = &self.schema.validations;
        let origin = ExpressionOrigin::Written(&options.preexisting_expressions);
        let mut errors = ErrorList::new();
        for (index, compiled) in
            compile_for(options.minor, rules, self.structural, decl, origin).into_iter().enumerate()
        {
            let path = path.index(index);
            let request_cardinality = cardinality_max(decl);
            let cost = compiled.cost_max().saturating_mul(self.cardinality.unwrap_or(request_cardinality));
            // In deeply nested schemas, the path of the rule takes more memory than the rule.
            let rule = RuleCosts {
                path: if options.keeps_costs { path.to_string() } else { String::new() },
                steps: if options.keeps_costs { self.steps() } else { Vec::new() },
                rule: rules[index].clone(),
                compiled,
                request_cardinality,
                schema_cardinality: self.cardinality,
                cost,
            };
            errors.extend(check_rule(&rule, options, uncorrelatable, costs, &path));
            if options.keeps_costs {
                costs.rules.push(rule);
            }
        }
        errors
    }
}

fn check_rule(
    costs: &RuleCosts,
    options: &ValidationOptions,
    uncorrelatable: Option<&Path<'_>>,
    total: &mut SchemaCosts,
    path: &Path<'_>,
) -> ErrorList {
    let RuleCosts { rule, compiled, cost, .. } = costs;
    let (rule_path, message_path) = (path.child("rule"), path.child("messageExpression"));
    let mut errors = ErrorList::new();
    let mut price = |name: &str, cost: u64, path: &Path<'_>, errors: &mut ErrorList| {
        if !options.allow_dear_expressions && cost > EXPRESSION_ESTIMATE_MAX {
            let detail = exceeds(name, cost, EXPRESSION_ESTIMATE_MAX);
            errors.push(Error::forbidden(path, detail).about(ErrorSubject::EstimatedCost));
        }
        total.note(path, cost);
    };
    let faulty = |path: &Path<'_>, detail: String, issues: Option<&Issues>| {
        let subject = issues.map_or(ErrorSubject::Value, |issues| ErrorSubject::Expression(issues.faults()));
        let error = go_struct::invalid(path, go_struct::show_rule(rule), &detail).about(subject);
        error.shown_as(go_struct::show_rule_in(options.minor, rule))
    };
    price("estimated rule cost", *cost, &rule_path, &mut errors);
    if let Some(error) = &compiled.error {
        errors.push(faulty(&rule_path, error.to_string(), error.issues()));
    }
    match &compiled.message {
        Some(Ok(message)) => {
            price("estimated messageExpression cost", message.cost_max, &message_path, &mut errors);
        }
        Some(Err(error)) => errors.push(faulty(&message_path, error.to_string(), error.issues())),
        None => {}
    }
    if compiled.uses_old_self {
        if let Some(node) = uncorrelatable {
            let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {node}");
            errors.push(Error::invalid(&rule_path, rule.rule.as_str(), detail));
        }
    } else if let Some(is_optional) = rule.optional_old_self {
        let detail = "may not be set if oldSelf is not used in rule";
        errors.push(Error::invalid(&path.child("optionalOldSelf"), is_optional, detail));
    }
    errors
}

/// The maximum number of elements of a list or a map; `None` if nothing bounds that, 1 for any other type.
fn elements_max(schema: &JsonSchema) -> Option<u64> {
    let limit = |limit: Option<i64>| limit.map(|limit| u64::try_from(limit).unwrap_or(0));
    match schema.type_.as_str() {
        "object" if schema.additional_properties.is_some() => limit(schema.bounds.max_properties),
        "array" => limit(schema.bounds.max_items),
        _ => Some(1),
    }
}

fn exceeds(name: &str, cost: u64, limit: u64) -> String {
    let excess = cost as f64 / limit as f64;
    let factor = if excess > 100.0 {
        // For an unbounded cost, the exact factor is of no use.
        "more than 100x".to_owned()
    } else if excess < 1.5 {
        format!("{excess:.6}x")
    } else {
        format!("{excess:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
