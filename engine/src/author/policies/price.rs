//! What the expressions of a policy may cost, by the estimate, for the largest objects of the kinds that it matches.
//!
//! A server estimates nothing for policies: it counts while they run, and what costs too much fails. An estimate above the
//! limit says that there are objects for which that may happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::read::{ExpressionGroup, expressions, served, variables_in};
use crate::author::Catalog;
use crate::cel::ast::{Expr, ExprKind};
use crate::cel::checker::CheckedExpr;
use crate::cel::cost::estimate_with;
use crate::cel::cost::model::CALL_LIMIT;
use crate::cel::declared::{DeclField, DeclType, ObjectType};
use crate::cel::env::Env;
use crate::crd::ServedVersion;
use crate::crd::bounds::{Bound, loosest, unbounded_on, with_bounds};
use crate::crd::validate::expressions::SchemaStep;
use crate::meta::minor::Minor;
use crate::policy::environment::{self, Declarations};
use crate::policy::evaluation::{BUDGET, CONDITIONS_BUDGET};
use crate::policy::type_check;
use crate::schema::of_type::Quantities;
use crate::value::Value;

/// The prices of a policy.
#[derive(Debug)]
pub struct Prices {
    /// Those of the policy, in the order of its fields.
    pub expressions: Vec<Priced>,
    /// What is evaluated together, with what it costs and may cost.
    pub groups: Vec<(ExpressionGroup, u64, u64)>,
    /// The kinds whose sizes are known, as `apps/v1 Deployment`; none where rules name none.
    pub kinds: Vec<String>,
}

/// An expression with its price.
#[derive(Debug)]
pub struct Priced {
    /// `spec.validations[0].expression`.
    pub field: String,
    /// The expression.
    pub text: String,
    /// The most for any of the kinds, with the variables that it reads; `None` where sizes are not known.
    pub cost: Option<u64>,
}

/// What one expression may cost.
pub const LIMIT: u64 = CALL_LIMIT;

impl ExpressionGroup {
    /// What it may cost.
    pub fn budget(self) -> u64 {
        if self == ExpressionGroup::Conditions { CONDITIONS_BUDGET } else { BUDGET }
    }

    /// As reports name it.
    pub fn shown(self) -> String {
        match self {
            ExpressionGroup::Conditions => "match conditions".to_owned(),
            ExpressionGroup::Validations => "validations with their messages".to_owned(),
            ExpressionGroup::Annotations => "audit annotations".to_owned(),
            ExpressionGroup::Mutation(at) => format!("mutation {at}"),
        }
    }
}

/// What a policy may cost.
pub fn price(policy: &Value, catalog: &Catalog) -> Prices {
    let served = served(catalog);
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let kinds = type_check::matched(spec, &served);
    let params = param_type(spec, &served);
    let scopes: Vec<ExpressionScope> =
        kinds.values().map(|kind| ExpressionScope::new(catalog.minor(), spec, kind, params.as_ref())).collect();
    let mut priced = Vec::new();
    let mut groups: BTreeMap<ExpressionGroup, u64> = BTreeMap::new();
    for written in expressions(policy) {
        let costs = scopes.iter().filter_map(|scope| scope.cost(written.text));
        let cost = costs.max();
        let sum = groups.entry(written.group).or_default();
        *sum = sum.saturating_add(cost.unwrap_or_default());
        priced.push(Priced { field: written.field, text: written.text.to_owned(), cost });
    }
    let is_known = priced.iter().any(|priced| priced.cost.is_some());
    let groups = groups.into_iter().filter(|_| is_known).map(|(group, sum)| (group, sum, group.budget())).collect();
    let kinds = kinds.keys().map(|(group, version, kind)| {
        let separator = if group.is_empty() { "" } else { "/" };
        format!("{group}{separator}{version} {kind}")
    });
    Prices { expressions: priced, groups, kinds: kinds.collect() }
}

/// Limits of what a policy reads of a kind, at the ends of `ways`, that make the policy cheap enough for every object of that kind;
/// none where it is that already, or whatever the limits.
pub fn remedy(policy: &Value, catalog: &Catalog, kind: &ServedVersion, ways: &[Vec<SchemaStep>]) -> Vec<Bound> {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let params = param_type(spec, &served(catalog));
    let fits = |bounds: &[Bound]| {
        let structural = Arc::new(with_bounds(&kind.structural, bounds)).into();
        let scope =
            ExpressionScope::new(catalog.minor(), spec, &ServedVersion { structural, ..kind.clone() }, params.as_ref());
        let mut groups: BTreeMap<ExpressionGroup, u64> = BTreeMap::new();
        let is_cheap = expressions(policy).iter().all(|written| {
            let cost = scope.cost(written.text).unwrap_or_default();
            let sum = groups.entry(written.group).or_default();
            *sum = sum.saturating_add(cost);
            cost <= LIMIT
        });
        is_cheap && groups.iter().all(|(group, sum)| *sum <= group.budget())
    };
    if fits(&[]) {
        return Vec::new();
    }
    loosest(&unbounded_on(&kind.structural, ways), fits).unwrap_or_default()
}

fn param_type(spec: &Value, served: &[Arc<ServedVersion>]) -> Option<DeclType> {
    let (api_version, kind) = (spec.str_at(&["paramKind", "apiVersion"]), spec.str_at(&["paramKind", "kind"]));
    let is_it = |known: &&Arc<ServedVersion>| known.names.kind == kind && known.api_version() == api_version;
    served.iter().find(is_it).and_then(|known| type_check::declared(known, Quantities::Shown))
}

/// What expressions see of one kind.
struct ExpressionScope {
    env: Env,
    /// By the names of variables.
    roots: BTreeMap<&'static str, DeclType>,
    variables: BTreeMap<String, PricedVariable>,
}

struct PricedVariable {
    cost: u64,
    reads: BTreeSet<String>,
}

impl ExpressionScope {
    fn new(minor: Minor, spec: &Value, kind: &ServedVersion, params: Option<&DeclType>) -> Self {
        let mut roots = BTreeMap::from([("request", environment::REQUEST.clone())]);
        if let Some(object) = type_check::declared(kind, Quantities::Shown) {
            roots.insert("oldObject", object.clone());
            roots.insert("object", object);
        }
        if let Some(params) = params {
            roots.insert("params", params.clone());
        }
        let type_of = |name: &str| roots.get(name).map(|decl| decl.ty.clone()).unwrap_or(crate::cel::types::Type::Dyn);
        let mut declared = Declarations {
            object: type_of("object"),
            params: spec.get("paramKind").filter(|kind| !kind.is_null()).map(|_| type_of("params")),
            variables: Some(environment::no_variables()),
            minor,
            ..Declarations::default()
        };
        let mut scope = ExpressionScope { env: Env::standard(), roots, variables: BTreeMap::new() };
        for variable in spec.items_at(&["variables"]) {
            let (name, text) = (variable.str_at(&["name"]), variable.str_at(&["expression"]));
            let checked = declared.checking_environment().compile(text).ok();
            declared.add_variable(name, checked.as_ref().map(CheckedExpr::result_type));
            if let Some(checked) = checked {
                scope.add(name, &checked);
            }
        }
        scope.env = declared.checking_environment().with_mutations();
        scope
    }

    fn add(&mut self, name: &str, checked: &CheckedExpr) {
        let expr = &checked.ast.expr;
        let variable = PricedVariable { cost: self.own_cost(checked), reads: variables_in(expr) };
        self.variables.insert(name.to_owned(), variable);
        // What a variable stands for has a size where it is a field of something that has one.
        if let Some(decl) = self.declared(expr).cloned() {
            let known = self.roots.remove("variables");
            let mut fields = match known.map(|decl| decl.shape) {
                Some(crate::cel::declared::DeclShape::Object(object)) => object.fields.clone(),
                _ => BTreeMap::new(),
            };
            fields.insert(name.to_owned(), DeclField { decl, required: true });
            let object = ObjectType { name: ObjectType::VARIABLES.to_owned(), fields };
            self.roots.insert("variables", DeclType::object(object, 0));
        }
    }

    /// What declares the value of a field of a field of a variable.
    fn declared(&self, expr: &Expr) -> Option<&DeclType> {
        match &expr.kind {
            ExprKind::Ident(name) => self.roots.get(name.as_str()),
            ExprKind::Select(select) if !select.test_only => self.declared(&select.operand)?.field(&select.field),
            _ => None,
        }
    }

    fn own_cost(&self, checked: &CheckedExpr) -> u64 {
        estimate_with(checked, &|name: &str| self.roots.get(name)).max
    }

    /// The cost of an expression with all variables that it reads, each once; `None` for one that does not fit the kind.
    fn cost(&self, text: &str) -> Option<u64> {
        let checked = self.env.compile(text).ok()?;
        let mut cost = self.own_cost(&checked);
        let mut waiting: Vec<String> = variables_in(&checked.ast.expr).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            let Some(variable) = self.variables.get(&name).filter(|_| seen.insert(name.clone())) else { continue };
            cost = cost.saturating_add(variable.cost);
            waiting.extend(variable.reads.iter().cloned());
        }
        Some(cost)
    }
}
