//! Checks the expressions of a policy against the schemas of the kinds that it matches.
//!
//! Input: a policy, and the served versions. Output: warnings, which do not affect the policy: expressions are not
//! typed when they run. Kinds that are matched by `*` or by a subresource are not checked, nor are more than ten. A
//! server only checks validations ([`check`]), a lint checks all expressions ([`TypedPolicy`]).
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go`, release 1.37.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::environment::{self, Declarations};
use super::mutation::MutationType;
use crate::cel::ast::{Expr, ExprKind};
use crate::cel::declared::DeclType;
use crate::cel::env::{Env, Expressions};
use crate::cel::mutation;
use crate::cel::types::Type;
use crate::crd::ServedVersion;
use crate::meta::minor::Minor;
use crate::schema::declare::declare;
use crate::schema::of_type::{Quantities, structural};
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::types;
use crate::value::Value;
use crate::work;

/// The maximum number of types that are checked per rule.
const TYPES_MAX: usize = 10;

/// The errors of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The field: `spec.validations[0].expression`.
    pub field: String,
    /// For each kind that the expression does not fit, a line followed by an empty one.
    pub text: String,
}

/// Group, version and kind, in this order.
type KindName = (String, String, String);

/// Checks a policy's expressions, given all served versions.
///
/// The reference hides [`Quantities`] from the check; callers that do not want warnings about them use
/// [`Quantities::Shown`].
pub fn check(policy: &Value, served: &[Arc<ServedVersion>], quantities: Quantities) -> Vec<Warning> {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let kinds = matched(spec, served);
    let params = params(spec, served, quantities);
    let environments: Vec<(String, Env)> = kinds
        .iter()
        .map(|((group, version, kind), served)| {
            let declared = declarations(served.minor, spec, type_of(served, quantities), &params);
            let env = declared.checking_environment();
            (format!("{group}/{version}, Kind={kind}"), env)
        })
        .collect();
    let mut warnings = Vec::new();
    for (at, validation) in spec.items_at(&["validations"]).iter().enumerate() {
        for name in ["expression", "messageExpression"] {
            let expression = validation.str_at(&[name]);
            if name != "expression" && expression.is_empty() {
                continue;
            }
            let faults: Vec<String> = environments
                .iter()
                .filter_map(|(kind, env)| Some(format!("{kind}: {}\n", env.compile(expression).err()?)))
                .collect();
            if !faults.is_empty() {
                warnings.push(Warning { field: format!("spec.validations[{at}].{name}"), text: faults.join("\n") });
            }
        }
    }
    warnings
}

/// The kinds that the rules of a policy name, sorted by name.
pub fn matched<'s>(spec: &Value, served: &'s [Arc<ServedVersion>]) -> BTreeMap<KindName, &'s Arc<ServedVersion>> {
    let by_name = by_name(served);
    let mut found = BTreeMap::new();
    for rule in spec.items_at(&["matchConstraints", "resourceRules"]) {
        let exact = |name: &str| {
            let texts = texts(rule, name);
            (!texts.iter().any(|text| text.contains('*'))).then_some(texts)
        };
        let (Some(groups), Some(versions)) = (exact("apiGroups"), exact("apiVersions")) else { continue };
        let mut resources = texts(rule, "resources");
        resources.retain(|resource| !resource.contains(['*', '/']));
        let resources: Vec<String> = resources.into_iter().map(str::to_lowercase).collect();
        let mut count = 0;
        let of_groups = groups.into_iter().filter_map(|group| by_name.get(group));
        let of_versions = of_groups.flat_map(|of_group| {
            work::steps(versions.len());
            versions.iter().filter_map(|version| of_group.get(version))
        });
        for of_version in of_versions {
            work::steps(resources.len());
            for version in resources.iter().filter_map(|resource| of_version.get(resource.as_str())).flatten() {
                let name = (version.group.clone(), version.version.clone(), version.names.kind.clone());
                found.insert(name, *version);
                count += 1;
                if count == TYPES_MAX {
                    return found;
                }
            }
        }
    }
    found
}

/// The texts of a list, sorted. More than [`TYPES_MAX`] equal ones name nothing more.
fn texts<'r>(rule: &'r Value, name: &str) -> Vec<&'r str> {
    let mut texts: Vec<&str> = rule.items_at(&[name]).iter().filter_map(Value::as_str).collect();
    work::steps(texts.len());
    texts.sort_unstable();
    texts.chunk_by(|one, other| one == other).flat_map(|same| same.iter().take(TYPES_MAX).copied()).collect()
}

/// Kinds by the names of their resources.
type KindsByName<'s> = HashMap<&'s str, Vec<&'s Arc<ServedVersion>>>;

/// What is served by group, version and name. Without a group, that of any.
fn by_name(served: &[Arc<ServedVersion>]) -> HashMap<&str, HashMap<&str, KindsByName<'_>>> {
    let mut by_name: HashMap<&str, HashMap<&str, KindsByName<'_>>> = HashMap::new();
    for known in served.iter().filter(|known| known.served) {
        work::step();
        let (group, names) = (known.group.as_str(), &known.names);
        for group in [Some(""), Some(group).filter(|group| !group.is_empty())].into_iter().flatten() {
            let of_version = by_name.entry(group).or_default().entry(known.version.as_str()).or_default();
            of_version.entry(names.plural.as_str()).or_default().push(known);
            if names.singular != names.plural {
                of_version.entry(names.singular.as_str()).or_default().push(known);
            }
        }
    }
    by_name
}

/// The type of `params`; `None` for a policy without parameters.
fn params(spec: &Value, served: &[Arc<ServedVersion>], quantities: Quantities) -> Option<Type> {
    let kind = spec.get("paramKind").filter(|kind| !kind.is_null())?;
    let (api_version, kind) = (kind.str_at(&["apiVersion"]), kind.str_at(&["kind"]));
    let is_it =
        |known: &&Arc<ServedVersion>| known.served && known.names.kind == kind && known.api_version() == api_version;
    Some(served.iter().find(is_it).map_or(Type::Dyn, |known| type_of(known, quantities)))
}

/// The type of objects of a version.
fn type_of(version: &ServedVersion, quantities: Quantities) -> Type {
    declared(version, quantities).map_or(Type::Dyn, |declared| declared.ty)
}

/// The declared type of a version's objects, with the maximum sizes; `None` if nothing is known about them.
pub fn declared(version: &ServedVersion, quantities: Quantities) -> Option<DeclType> {
    declare(&schema(version, quantities)?, true).map(|declared| declared.named(&version.names.kind))
}

/// The published schema of a version; custom kinds, too, have all fields of metadata.
pub fn schema(version: &ServedVersion, quantities: Quantities) -> Option<Structural> {
    if let Some(named) = types::of_kind(&version.group, &version.version, &version.names.kind) {
        return Some(structural(named.message(), quantities));
    }
    let mut schema = (*version.structural).clone();
    if schema.generic.type_ != "object" {
        return None;
    }
    schema.properties.insert("metadata", structural(types::object_meta(), quantities));
    let text = Structural {
        generic: crate::schema::structural::Generic { type_: "string".to_owned(), ..Default::default() },
        ..Structural::default()
    };
    for name in ["apiVersion", "kind"] {
        schema.properties.insert(name, text.clone());
    }
    Some(schema)
}

/// The declarations if `object` has this type. Variables have the types that follow from it.
fn declarations(minor: Minor, spec: &Value, object: Type, params: &Option<Type>) -> Declarations {
    let mut declared = Declarations {
        object,
        params: params.clone(),
        variables: Some(environment::no_variables()),
        minor,
        ..Declarations::default()
    };
    for variable in spec.items_at(&["variables"]) {
        let compiled = declared.checking_environment().compile(variable.str_at(&["expression"]));
        let ty = compiled.as_ref().ok().map(|checked| checked.result_type());
        declared.add_variable(variable.str_at(&["name"]), ty);
    }
    declared
}

/// The purpose of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A condition, a validation or a value: `authorizer` is available.
    Decision,
    /// A message: `authorizer` is not available.
    Message,
    /// A mutation.
    Mutation(MutationType),
}

/// The types that the expressions of a policy are checked against, for each kind that it matches.
pub struct TypedPolicy(Vec<TypedKind>);

struct TypedKind {
    /// `apps/v1, Kind=Deployment`.
    name: String,
    declared: Declarations,
    schema: Option<Structural>,
}

impl TypedPolicy {
    /// The kinds that a policy matches, given all served versions.
    pub fn new(policy: &Value, served: &[Arc<ServedVersion>], quantities: Quantities) -> Self {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let params = params(spec, served, quantities);
        let typed = |((group, version, kind), served): (KindName, &Arc<ServedVersion>)| TypedKind {
            name: format!("{group}/{version}, Kind={kind}"),
            declared: declarations(served.minor, spec, type_of(served, quantities), &params),
            schema: schema(served, quantities),
        };
        TypedPolicy(matched(spec, served).into_iter().map(typed).collect())
    }

    /// The errors of an expression, by the kinds that it does not fit: the name of each kind, and Kubernetes' message.
    pub fn faults(&self, expression: &str, purpose: Purpose) -> Vec<(&str, String)> {
        self.0.iter().filter_map(|kind| Some((kind.name.as_str(), kind.fault(expression, purpose)?))).collect()
    }
}

impl TypedKind {
    fn fault(&self, expression: &str, purpose: Purpose) -> Option<String> {
        let env = match purpose {
            Purpose::Decision => self.declared.environment(Expressions::Stored),
            Purpose::Message => self.declared.without_authorizer().environment(Expressions::Stored),
            Purpose::Mutation(_) => self.declared.environment(Expressions::Stored).with_mutations(),
        };
        let checked = match env.compile(expression) {
            Err(issues) => return Some(issues.to_string()),
            Ok(checked) => checked,
        };
        let schema = self.schema.as_ref().filter(|_| purpose == Purpose::Mutation(MutationType::ApplyConfiguration))?;
        unknown_field(&checked.ast.expr, schema)
    }
}

/// A field that a mutation sets but the kind does not have.
fn unknown_field(expr: &Expr, schema: &Structural) -> Option<String> {
    work::step();
    if let ExprKind::Struct(made) = &expr.kind
        && let Some(path) = made.type_name.strip_prefix(mutation::OBJECT)
    {
        let Some(at) = schema_at(schema, path) else { return Some(format!("undefined type '{}'", made.type_name)) };
        if let Some(field) = made.fields.iter().find(|field| !knows(at, &field.name)) {
            return Some(format!("undefined field '{}' in '{}'", field.name, made.type_name));
        }
    }
    expr.children().into_iter().find_map(|child| unknown_field(child, schema))
}

/// The schema for the name of a type: `.spec.ports` is an item of the list.
fn schema_at<'s>(schema: &'s Structural, path: &str) -> Option<&'s Structural> {
    let mut fields = path.split('.').filter(|field| !field.is_empty());
    fields.try_fold(schema, |at, field| {
        let values = at.additional_properties.as_ref().and_then(StructuralOrBool::structural);
        let mut found = at.properties.get(field).or(values)?;
        while let Some(items) = &found.items {
            found = items;
        }
        Some(found)
    })
}

/// Whether objects of a schema may have a field. If nothing is known about them, they may have any.
fn knows(schema: &Structural, field: &str) -> bool {
    let is_open = schema.extensions.preserve_unknown_fields || schema.additional_properties.is_some();
    schema.properties.is_empty() || is_open || schema.properties.get(field).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use crate::value::yaml;

    fn served() -> Vec<Arc<ServedVersion>> {
        kinds::all().map(|kind| Arc::new(kind.served_version())).collect()
    }

    fn policy(rules: &str, rest: &str) -> Value {
        let text = format!("{{spec: {{matchConstraints: {{resourceRules: [{rules}]}}, {rest}}}}}");
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    fn rule(group: &str, version: &str, resources: &str) -> String {
        format!("{{apiGroups: ['{group}'], apiVersions: ['{version}'], resources: [{resources}]}}")
    }

    #[track_caller]
    fn check_texts(rest: &str, expected: &[(&str, &str)]) {
        let warnings = check(&policy(&rule("apps", "v1", "deployments"), rest), &served(), Quantities::Hidden);
        let found: Vec<_> = warnings.iter().map(|warning| (warning.field.as_str(), warning.text.as_str())).collect();
        assert_eq!(found, expected, "{rest}");
    }

    fn kinds_of(rules: &str) -> Vec<String> {
        let policy = policy(rules, "validations: []");
        let served = served();
        let found = matched(policy.get("spec").expect("there is a spec"), &served);
        found.into_keys().map(|(group, version, kind)| format!("{group}/{version} {kind}")).collect()
    }

    #[test]
    fn kinds_are_those_that_rules_name() {
        assert_eq!(kinds_of(&rule("apps", "v1", "deployments")), ["apps/v1 Deployment"]);
        let several = [rule("apps", "v1", "deployments"), rule("", "v1", "pods")].join(", ");
        assert_eq!(kinds_of(&several), ["/v1 Pod", "apps/v1 Deployment"]);
        for nothing in [rule("apps", "v1", "'*'"), rule("apps", "*", "deployments"), rule("apps", "v1", "pods/*")] {
            assert_eq!(kinds_of(&nothing), [""; 0], "{nothing}");
        }
        // Without a group, any group matches.
        assert_eq!(kinds_of(&rule("", "v1", "events")), ["/v1 Event", "events.k8s.io/v1 Event"]);
    }

    #[test]
    fn what_repeats_or_is_not_served_takes_linear_steps() {
        let steps = |count: usize| {
            let lists = |known: &str| {
                let unknown: String = (0..count).map(|at| format!(", 'x{at}'")).collect();
                format!("[{}{unknown}]", vec![format!("'{known}'"); count].join(", "))
            };
            let rules = format!(
                "{{apiGroups: {}, apiVersions: {}, resources: {}}}",
                lists("apps"),
                lists("v1beta1"),
                lists("pods")
            );
            let (policy, served) = (policy(&rules, "validations: []"), served());
            let (found, steps) = work::counted(|| matched(policy.get("spec").unwrap_or(&Value::Null), &served).len());
            assert_eq!(found, 0);
            steps
        };
        let (few, many) = (steps(100), steps(1000));
        assert!(many < 12 * few, "{few} steps, then {many}");
    }

    #[test]
    fn a_field_that_is_not_there_is_told_with_the_kind() {
        let warning = "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n | \
                       object.replicas > 1\n | ......^\n";
        check_texts("validations: [{expression: object.replicas > 1}]", &[("spec.validations[0].expression", warning)]);
        check_texts("validations: [{expression: object.spec.replicas > 1}]", &[]);
        check_texts("validations: [{expression: object.metadata.labels.a == 'b'}]", &[]);
    }

    /// What the type checker of the API server's module 0.37.2 reports for these.
    #[test]
    fn expressions_that_do_not_fit_are_told_as_the_reference_tells_them() {
        let overload =
            |function: &str, types: &str| format!("found no matching overload for '{function}' applied to '({types})'");
        for (expression, column, expected) in [
            ("object.metadata.labels['a'] == 2", 29, overload("_==_", "string, int")),
            ("has(object.spec.foo)", 4, "undefined field 'foo'".to_owned()),
            ("object.spec.replicas + 1.0 > 0", 22, overload("_+_", "int, double")),
            ("object.metadata.creationTimestamp == 'x'", 35, overload("_==_", "timestamp, string")),
            ("1 in object.metadata.labels", 3, overload("@in", "int, map(string, string)")),
            ("1 in object.metadata.finalizers", 3, overload("@in", "int, list(string)")),
            ("object.metadata.ownerReferences.map(o, o.controller)[0] == 1", 57, overload("_==_", "bool, int")),
            ("object.spec.template.spec.volumes.exists_one(v, v.nope)", 50, "undefined field 'nope'".to_owned()),
            (
                "object.spec.template.spec.containers.all(c, c.image.startsWith('x') && c.name)",
                73,
                "expected type 'bool' but found 'string'".to_owned(),
            ),
        ] {
            let dots = ".".repeat(column - 1);
            let warning = format!(
                "apps/v1, Kind=Deployment: ERROR: <input>:1:{column}: {expected}\n | {expression}\n | {dots}^\n"
            );
            let rest = format!("validations: [{{expression: \"{expression}\"}}]");
            check_texts(&rest, &[("spec.validations[0].expression", &warning)]);
        }
    }

    #[test]
    fn messages_variables_and_parameters_are_looked_at() {
        let rest = "paramKind: {apiVersion: v1, kind: ConfigMap}, variables: [{name: count, expression: \
                    object.spec.replicas}], validations: [{expression: variables.count > int(params.data.max), \
                    messageExpression: \"params.datum + 'x'\"}]";
        let warning = "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'datum'\n | params.datum + 'x'\n \
                       | ......^\n";
        check_texts(rest, &[("spec.validations[0].messageExpression", warning)]);
        let rest = "variables: [{name: count, expression: object.spec.replicas}], validations: [{expression: \
                    variables.count == 'a'}]";
        let warning = "apps/v1, Kind=Deployment: ERROR: <input>:1:17: found no matching overload for '_==_' applied to \
                       '(int, string)'\n | variables.count == 'a'\n | ................^\n";
        check_texts(rest, &[("spec.validations[0].expression", warning)]);
    }

    #[test]
    fn an_unknown_parameter_kind_may_have_any_field() {
        let rest = "paramKind: {apiVersion: example.com/v1, kind: Limits}, validations: [{expression: \
                    object.spec.replicas <= params.max}]";
        check_texts(rest, &[]);
    }

    #[test]
    fn quantities_are_hidden_unless_they_are_shown() {
        let expression = "object.spec.template.spec.containers.all(c, has(c.resources.limits.memory))";
        let policy =
            policy(&rule("apps", "v1", "deployments"), &format!("validations: [{{expression: '{expression}'}}]"));
        let hidden = check(&policy, &served(), Quantities::Hidden);
        assert!(hidden[0].text.contains("undefined field 'limits'"), "{hidden:?}");
        assert_eq!(check(&policy, &served(), Quantities::Shown), []);
    }

    #[test]
    fn every_kind_that_does_not_fit_has_a_line() {
        let rules = [rule("apps", "v1", "deployments, daemonsets"), rule("", "v1", "pods")].join(", ");
        let warnings = check(
            &policy(&rules, "validations: [{expression: object.spec.replicas > 1}]"),
            &served(),
            Quantities::Hidden,
        );
        let text = &warnings[0].text;
        assert!(text.starts_with("/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'\n"), "{text}");
        assert!(text.contains("^\n\napps/v1, Kind=DaemonSet: ERROR:"), "{text}");
        assert!(!text.contains("Deployment"), "{text}");
    }
}
