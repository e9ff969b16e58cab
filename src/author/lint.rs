//! What the API conventions advise against, and rules that can't do what they seem to.
//!
//! In: a kind. Out: findings, each with an id, the reason and a remedy. A finding is a fact about the definition, never a
//! guess about objects. Source: "API Conventions" of the Kubernetes community, by heading.

use super::Kind;
use crate::cel::ast::{Expr, ExprKind};
use crate::cel::cost::model::{CALL_LIMIT, EXPRESSION_ESTIMATE_MAX};
use crate::cel::eval::{Program, Value as Cel};
use crate::crd::bounds::{Bound, advise};
use crate::crd::validate;
use crate::crd::validate::expressions::RuleCosts;
use crate::schema::json_schema::ValidationRule;
use crate::schema::rules::compile::{OLD_SELF, SELF};
use crate::schema::rules::trace;
use crate::schema::structural::{Structural, StructuralOrBool, ValueValidation};

/// The annotation that turns findings off: ids, or `id:path`, with commas between.
pub const IGNORE: &str = "skiff.kubeskiff.dev/lint-ignore";

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub version: String,
    /// `spec.ports[*]`.
    pub path: String,
    /// The place within the definition.
    pub at: String,
    pub id: &'static str,
    pub message: String,
    pub reason: &'static str,
    pub fix: String,
}

/// A kind of finding.
struct Lint {
    id: &'static str,
    reason: &'static str,
}

const RULE_COST: Lint = Lint { id: "rule-cost", reason: "a definition with a rule over the limit is refused" };
const UNBOUNDED: Lint =
    Lint { id: "unbounded-under-rule", reason: "what has no bound is priced as if it filled the largest request" };
const LIST_TYPE: Lint = Lint {
    id: "list-type-missing",
    reason: "API conventions, \"Lists\": server-side apply replaces a list as a whole unless it has a type",
};
const NEVER_FAILS: Lint = Lint { id: "rule-never-fails", reason: "the rule checks nothing" };
const NEVER_HOLDS: Lint = Lint { id: "rule-never-holds", reason: "no object passes the rule" };
const WITHOUT_HAS: Lint =
    Lint { id: "optional-without-has", reason: "reading a field that is absent ends the rule with an error" };
const INT64: Lint = Lint {
    id: "int64-precision",
    reason: "API conventions, \"Primitive types\": JavaScript and others lose precision beyond 2^53",
};
const FLOAT: Lint = Lint {
    id: "float-in-spec",
    reason: "API conventions, \"Primitive types\": floats don't round-trip, and must not stand in a spec",
};
const BOOLEAN: Lint = Lint {
    id: "boolean",
    reason: "API conventions, \"Primitive types\": many ideas start as boolean and trend towards a small set of states",
};
const UNIT: Lint =
    Lint { id: "unit-suffix", reason: "API conventions, \"Units\": units must be explicit in the field name" };
const REFERENCE: Lint = Lint {
    id: "reference-name",
    reason: "API conventions, \"Naming of the reference field\": a reference is called `{field}Ref`",
};
const ENUM_CASE: Lint =
    Lint { id: "enum-camel-case", reason: "API conventions, \"Constants\": enum values are CamelCase" };
const MAP: Lint =
    Lint { id: "map-of-objects", reason: "API conventions, \"Lists of named subobjects preferred over maps\"" };
const CONDITIONS: Lint = Lint {
    id: "conditions",
    reason: "API conventions, \"Typical status properties\": conditions are a list map by type, of standard fields",
};
const PHASE: Lint = Lint {
    id: "phase",
    reason: "API conventions, \"Typical status properties\": phases are deprecated for conditions",
};
const RESERVED: Lint = Lint {
    id: "reserved-group",
    reason: "API conventions: groups under k8s.io and kubernetes.io are reserved for Kubernetes",
};
const CROSS_NAMESPACE: Lint = Lint {
    id: "cross-namespace-reference",
    reason: "API conventions, \"Object references\": references into other namespaces cross a security boundary",
};
const NAME_CASE: Lint =
    Lint { id: "field-name-case", reason: "API conventions, \"Naming conventions\": field names are lowerCamelCase" };
const UNKNOWN_FIELDS: Lint =
    Lint { id: "unknown-fields-kept", reason: "what is not specified is neither checked nor pruned" };

/// Everything found in a kind, but for what its annotation turns off.
pub fn lint(kind: &Kind) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (_, costs) = validate::create_with_costs(&kind.definition);
    for (index, version) in kind.versions.iter().enumerate() {
        let own = format!("spec.versions[{index}].schema.openAPIV3Schema");
        let mut walk = Walk { version: &version.version, findings: &mut findings };
        if index == 0 && is_reserved(&version.group) {
            let message = format!("the group `{}` is reserved", version.group);
            walk.tell(
                &Node { path: "", at: "spec.group" },
                &RESERVED,
                message,
                "choose a group under a domain of your own",
            );
        }
        let shared = costs.iter().find(|costs| costs.path == own || costs.path == "spec.validation.openAPIV3Schema");
        for rule in shared.iter().flat_map(|costs| &costs.rules) {
            walk.cost(&version.structural, rule, &own);
        }
        walk.node(&Node { path: "", at: &own }, &version.structural, &Above::default());
    }
    let ignored =
        kind.definition.metadata.at(&["annotations", IGNORE]).and_then(|list| list.as_str()).unwrap_or_default();
    findings.retain(|finding| {
        !ignored.split(',').map(str::trim).any(|entry| match entry.split_once(':') {
            None => entry == finding.id,
            Some((id, path)) => id == finding.id && path == finding.path,
        })
    });
    findings
}

fn is_reserved(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|reserved| group == *reserved || group.ends_with(&format!(".{reserved}")))
}

/// Where a node is, for people and within the definition.
struct Node<'n> {
    path: &'n str,
    at: &'n str,
}

/// What is known of the nodes above.
#[derive(Clone, Default)]
struct Above {
    name: String,
    has_rules: bool,
}

struct Walk<'w> {
    version: &'w str,
    findings: &'w mut Vec<Finding>,
}

impl Walk<'_> {
    fn tell(&mut self, node: &Node<'_>, lint: &Lint, message: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding {
            version: self.version.to_owned(),
            path: if node.path.is_empty() { "<nil>" } else { node.path }.to_owned(),
            at: node.at.to_owned(),
            id: lint.id,
            message: message.into(),
            reason: lint.reason,
            fix: fix.into(),
        });
    }

    /// Rules that take half of what one may cost, or more.
    fn cost(&mut self, root: &Structural, rule: &RuleCosts, own: &str) {
        if rule.cost < EXPRESSION_ESTIMATE_MAX / 2 {
            return;
        }
        let advice = advise(root, rule);
        let fix = match advice.remedies.first() {
            Some(bounds) => format!("set {}", bounds.iter().map(Bound::to_string).collect::<Vec<_>>().join(", ")),
            None => "make the rule simpler".to_owned(),
        };
        let percent = rule.cost as f64 * 100.0 / EXPRESSION_ESTIMATE_MAX as f64;
        let message = format!("`{}` takes {percent:.0}% of what a rule may cost", one_line(&rule.rule.rule));
        let at = rule.path.replacen("spec.validation.openAPIV3Schema", own, 1);
        let path = at.strip_prefix(own).unwrap_or(&at).trim_start_matches('.').to_owned();
        self.tell(&Node { path: &path, at: &at }, &RULE_COST, message, fix);
    }

    fn node(&mut self, node: &Node<'_>, schema: &Structural, above: &Above) {
        let none = ValueValidation::default();
        let values = schema.value_validation.as_deref().unwrap_or(&none);
        self.bounds(node, schema, values, above);
        self.types(node, schema, values, above);
        self.names(node, schema, values, above);
        for (index, rule) in schema.validations.iter().enumerate() {
            let at = format!("{}.x-kubernetes-validations[{index}]", node.at);
            self.rule(&Node { path: node.path, at: &at }, rule, schema, values);
        }
        let has_rules = above.has_rules || !schema.validations.is_empty();
        for (name, below) in &schema.properties {
            let is_standard = node.path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
            if is_standard {
                continue;
            }
            let path = if node.path.is_empty() { name.clone() } else { format!("{}.{name}", node.path) };
            let at = format!("{}.properties[{name}]", node.at);
            self.node(&Node { path: &path, at: &at }, below, &Above { name: name.clone(), has_rules });
        }
        let values_below = schema.additional_properties.as_ref().and_then(StructuralOrBool::structural);
        for (word, below) in [("items", schema.items.as_deref()), ("additionalProperties", values_below)] {
            let Some(below) = below else { continue };
            let (path, at) = (format!("{}[*]", node.path), format!("{}.{word}", node.at));
            self.node(&Node { path: &path, at: &at }, below, &Above { name: String::new(), has_rules });
        }
    }

    fn bounds(&mut self, node: &Node<'_>, schema: &Structural, values: &ValueValidation, above: &Above) {
        let is_list = schema.generic.type_ == "array";
        if is_list && schema.extensions.list_type.is_none() {
            let message = "the list has no x-kubernetes-list-type";
            self.tell(node, &LIST_TYPE, message, "add x-kubernetes-list-type: map (with its keys), set or atomic");
        }
        let has_own = !schema.validations.is_empty() || above.has_rules;
        let has_rules_below = schema.items.as_deref().is_some_and(crate::schema::rules::any);
        let word = match schema.generic.type_.as_str() {
            "array" if values.max_items.is_none() && (has_own || has_rules_below) => "maxItems",
            "string"
                if values.max_length.is_none() && values.enum_.is_empty() && values.format.is_empty() && has_own =>
            {
                "maxLength"
            }
            _ => return,
        };
        self.tell(node, &UNBOUNDED, format!("it is seen by rules and has no {word}"), format!("add {word}"));
    }

    fn types(&mut self, node: &Node<'_>, schema: &Structural, values: &ValueValidation, above: &Above) {
        const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
        let is_in_spec = node.path.starts_with("spec");
        match schema.generic.type_.as_str() {
            "integer" if values.format == "int64" && values.maximum.is_none_or(|maximum| maximum > EXACT_MAX) => {
                let message = "an int64 may be larger than JSON readers hold exactly";
                self.tell(node, &INT64, message, "use format int32, a maximum of 9007199254740991, or a string");
            }
            "number" if is_in_spec => {
                let message = "it is a floating-point number in a spec";
                self.tell(node, &FLOAT, message, "use an integer with a unit, or a quantity as a string");
            }
            "boolean" if is_in_spec && !above.name.is_empty() => {
                let message = format!("`{}` can never have a third state", above.name);
                self.tell(node, &BOOLEAN, message, "consider a string with an enum");
            }
            "object"
                if schema
                    .additional_properties
                    .as_ref()
                    .and_then(StructuralOrBool::structural)
                    .is_some_and(|values| !values.properties.is_empty()) =>
            {
                let message = "it is a map of objects";
                self.tell(
                    node,
                    &MAP,
                    message,
                    "use a list with x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [name]",
                );
            }
            _ => {}
        }
        if schema.extensions.preserve_unknown_fields && ["", "spec", "status"].contains(&node.path) {
            let message = "all of it takes fields that nothing specifies";
            self.tell(
                node,
                &UNKNOWN_FIELDS,
                message,
                "specify the fields, and keep unknown ones only where they belong",
            );
        }
    }

    fn names(&mut self, node: &Node<'_>, schema: &Structural, values: &ValueValidation, above: &Above) {
        let name = above.name.as_str();
        let is_number = matches!(schema.generic.type_.as_str(), "integer" | "number");
        let lower = name.to_ascii_lowercase();
        if is_number
            && ["timeout", "period", "interval", "delay", "duration", "ttl"].iter().any(|word| lower.ends_with(word))
        {
            self.tell(node, &UNIT, format!("`{name}` does not say its unit"), format!("call it {name}Seconds"));
        }
        if let Some(stem) = name.strip_suffix("Reference").filter(|stem| !stem.is_empty()) {
            self.tell(node, &REFERENCE, format!("`{name}` is a reference"), format!("call it {stem}Ref"));
        }
        let is_reference = name.ends_with("Ref") || name.ends_with("Reference");
        if is_reference && schema.properties.contains_key("namespace") && schema.properties.contains_key("name") {
            let message = format!("`{name}` may name an object of another namespace");
            self.tell(
                node,
                &CROSS_NAMESPACE,
                message,
                "leave the namespace out, or ask the other side for its consent",
            );
        }
        let starts_upper = |text: &str| text.starts_with(|first: char| first.is_ascii_uppercase());
        let is_camel =
            |text: &str| text.is_empty() || (starts_upper(text) && text.chars().all(|c| c.is_ascii_alphanumeric()));
        let odd: Vec<&str> =
            values.enum_.iter().filter_map(|value| value.as_str()).filter(|text| !is_camel(text)).collect();
        if !odd.is_empty() {
            let message = format!("the values {} are not CamelCase", odd.join(", "));
            self.tell(node, &ENUM_CASE, message, "write them as CamelCase words");
        }
        if !name.is_empty() && (starts_upper(name) || name.contains(['_', '-'])) {
            self.tell(
                node,
                &NAME_CASE,
                format!("`{name}` is not lowerCamelCase"),
                "begin with a small letter, without _ and -",
            );
        }
        if node.path == "status.phase" {
            self.tell(node, &PHASE, "the status has a phase", "use conditions");
        }
        if node.path == "status.conditions" {
            self.conditions(node, schema);
        }
    }

    fn conditions(&mut self, node: &Node<'_>, schema: &Structural) {
        let is_map =
            schema.extensions.list_type.as_deref() == Some("map") && schema.extensions.list_map_keys == ["type"];
        if schema.generic.type_ == "array" && !is_map {
            let message = "conditions are not a list map by type";
            let fix = "add x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [type]";
            self.tell(node, &CONDITIONS, message, fix);
        }
        let Some(items) = schema.items.as_deref() else { return };
        let standard = ["type", "status", "lastTransitionTime", "reason", "message"];
        let missing: Vec<&str> = standard.into_iter().filter(|name| !items.properties.contains_key(*name)).collect();
        if !missing.is_empty() && !items.extensions.preserve_unknown_fields {
            let message = format!("conditions have no {}", missing.join(", "));
            self.tell(node, &CONDITIONS, message, "take the fields of metav1.Condition");
        }
    }

    fn rule(&mut self, node: &Node<'_>, rule: &ValidationRule, schema: &Structural, values: &ValueValidation) {
        let is_resource = node.path.is_empty() || schema.extensions.embedded_resource;
        let Some((checked, env)) = trace::check(rule, schema, is_resource) else { return };
        let expr = &checked.ast.expr;
        let text = one_line(&rule.rule);
        if !reads_object(expr) {
            let program = Program::new(&checked, &env).ok();
            let result = program.as_ref().map(|program| program.evaluate(&[None, None], CALL_LIMIT).result);
            match result {
                Some(Ok(Cel::Bool(true))) => {
                    self.tell(node, &NEVER_FAILS, format!("`{text}` holds for all values"), "remove the rule");
                }
                Some(Ok(Cel::Bool(false))) => {
                    self.tell(node, &NEVER_HOLDS, format!("`{text}` holds for no value"), "correct the rule");
                }
                _ => {}
            }
            return;
        }
        if let Some(path) = has_path(expr)
            && let [name] = path.as_slice()
            && values.required.contains(name)
        {
            let message = format!("`{text}` always holds, as `{name}` is required");
            self.tell(node, &NEVER_FAILS, message, "remove the rule");
        }
        let (mut read, mut tested) = (Vec::new(), Vec::new());
        collect_reads(expr, &mut read, &mut tested);
        read.sort();
        read.dedup();
        for path in read {
            if let Some(optional) = first_optional(schema, &path).filter(|optional| !tested.contains(optional)) {
                let field = format!("self.{}", optional.join("."));
                let message = format!("`{text}` reads the optional `{field}`");
                self.tell(
                    node,
                    &WITHOUT_HAS,
                    message,
                    format!("ask `!has({field}) || …` first, require the field, or give it a default"),
                );
            }
        }
    }
}

/// Whether an expression names `self` or `oldSelf`.
fn reads_object(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Ident(name) => [SELF, OLD_SELF].contains(&name.trim_start_matches('.')),
        _ => expr.children().into_iter().any(reads_object),
    }
}

/// The fields from `self` on, for `self.a.b`.
fn path_of(expr: &Expr) -> Option<Vec<String>> {
    match &expr.kind {
        ExprKind::Ident(name) if name == SELF => Some(Vec::new()),
        ExprKind::Select(select) if !select.test_only => {
            let mut path = path_of(&select.operand)?;
            path.push(select.field.clone());
            Some(path)
        }
        _ => None,
    }
}

/// The fields from `self` on, for `has(self.a.b)`.
fn has_path(expr: &Expr) -> Option<Vec<String>> {
    match &expr.kind {
        ExprKind::Select(select) if select.test_only => {
            let mut path = path_of(&select.operand)?;
            path.push(select.field.clone());
            Some(path)
        }
        _ => None,
    }
}

fn collect_reads(expr: &Expr, read: &mut Vec<Vec<String>>, tested: &mut Vec<Vec<String>>) {
    if let Some(path) = has_path(expr) {
        read.push(path[..path.len() - 1].to_vec());
        tested.push(path);
        return;
    }
    // What is asked for with `?` may be absent, and so may be all behind it.
    if let ExprKind::Call(call) = &expr.kind
        && call.function == crate::cel::ast::operators::OPTIONAL_SELECT
    {
        if let Some(path) = call.args.first().and_then(path_of) {
            read.push(path);
        }
        return;
    }
    match path_of(expr) {
        Some(path) => read.push(path),
        None => expr.children().into_iter().for_each(|child| collect_reads(child, read, tested)),
    }
}

/// The part of a path up to its first field that may be absent.
fn first_optional(schema: &Structural, path: &[String]) -> Option<Vec<String>> {
    let mut node = schema;
    for (at, name) in path.iter().enumerate() {
        let below = node.properties.get(name)?;
        let required = node.value_validation.as_deref().is_some_and(|values| values.required.contains(name));
        if !required && below.generic.default.is_none() {
            return Some(path[..=at].to_vec());
        }
        node = below;
    }
    None
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
