//! What admission policies and their bindings have in common: the resources that they match, parameters, expressions.
//!
//! Source: `pkg/apis/admissionregistration/validation`, release 1.36.

use std::collections::{BTreeMap, BTreeSet};

use crate::cel::env::{Env, Expressions};
use crate::cel::escape;
use crate::cel::types::Type;
use crate::crd::{Column, ServedVersion};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::meta::selector::LabelSelector;
use crate::object;
use crate::policy::environment::{Declarations, no_variables};
use crate::policy::expression::{self, CompileError};
use crate::policy::mutation::MutationType;
use crate::value::{Map, Value};

use super::strategy::{Cell, Strategy, Subresource, Table};
use super::{defaults, prepare, static_names, webhooks};

pub const GROUP: &str = "admissionregistration.k8s.io";
const POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCHES: [&str; 2] = ["Equivalent", "Exact"];
const MUTABLE_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

/// The strategy of ValidatingAdmissionPolicyBindings and of MutatingAdmissionPolicyBindings.
pub struct BindingStrategy {
    /// Sets the defaults of a binding.
    pub set_defaults: fn(&mut Value),
    /// Validates a binding.
    pub validate: fn(&Value) -> ErrorList,
}

impl Strategy for BindingStrategy {
    fn set_typed_defaults(&self, object: &mut Value) {
        (self.set_defaults)(object);
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::first_generation(object);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = (self.validate)(object);
        errors.extend(static_names::check_new_name(version, object));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        prepare::count_generation(new, old, &["spec"]);
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, _: &Value) -> ErrorList {
        (self.validate)(new)
    }

    fn warnings(&self, version: &ServedVersion, _: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        static_names::warnings(version, new, old)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn table(&self) -> Option<Table> {
        Some(binding_table())
    }
}

/// Sets the defaults of `MatchResources`.
pub fn set_match_defaults(resources: &mut Value) {
    defaults::set_pointer(resources, "matchPolicy", "Equivalent");
    for name in ["namespaceSelector", "objectSelector"] {
        defaults::set_pointer(resources, name, object! {});
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in defaults::items(resources, list) {
            defaults::set_pointer(rule, "scope", "*");
        }
    }
}

/// Sets the defaults of a policy's spec.
pub fn set_policy_defaults(object: &mut Value) {
    let Some(spec) = defaults::field(object, "spec") else { return };
    defaults::set_pointer(spec, "failurePolicy", "Fail");
    if let Some(resources) = defaults::field(spec, "matchConstraints") {
        set_match_defaults(resources);
    }
}

/// Checks that a field is set, and to one of `choices`.
fn choice(field: &FieldRef<'_>, choices: &[&str]) -> Option<Error> {
    if !field.is_set() {
        return Some(field.required(""));
    }
    (!choices.contains(&field.text())).then(|| field.not_supported(choices))
}

/// Validates the parts of a policy's spec before its expressions. `only_mutable` allows only operations that a mutation
/// can change.
pub fn validate_head(spec: &FieldRef<'_>, only_mutable: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(choice(&spec.field("failurePolicy"), &POLICIES));
    let kind = spec.field("paramKind");
    if kind.is_set() {
        errors.extend(validate_param_kind(&kind));
    }
    let matched = spec.field("matchConstraints");
    if !matched.is_set() {
        errors.push(matched.required(""));
        return errors;
    }
    errors.extend(validate_match(&matched));
    let rules = matched.field("resourceRules");
    if rules.is_empty() {
        errors.push(rules.required(""));
    }
    if only_mutable {
        errors.extend(validate_mutable(&matched));
    }
    errors
}

/// Checks that the rules only match operations whose object can be changed: creates and updates.
pub fn validate_mutable(matched: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let rules = matched.field("resourceRules");
    let at = rules.path().child("operations");
    for rule in rules.items() {
        for operation in rule.field("operations").texts() {
            if !MUTABLE_OPERATIONS.contains(&operation) {
                errors.push(Error::not_supported(&at, operation, &MUTABLE_OPERATIONS));
            }
        }
    }
    errors
}

fn validate_param_kind(kind: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (api_version, name) = (kind.field("apiVersion"), kind.field("kind"));
    let text = api_version.text();
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [""] => errors.push(api_version.required("")),
        [version] => errors.extend(validate_group_version(&api_version, "", version)),
        [group, version] => errors.extend(validate_group_version(&api_version, group, version)),
        _ => errors.push(api_version.invalid(format!("unexpected GroupVersion string: {text}"))),
    }
    if name.text().is_empty() {
        errors.push(name.required(""));
        return errors;
    }
    let faults = names::is_dns1035_label(&name.text().to_lowercase());
    if !faults.is_empty() {
        errors.push(name.invalid(format!("may have mixed case, but should otherwise match: {}", faults.join(","))));
    }
    errors
}

fn validate_group_version(field: &FieldRef<'_>, group: &str, version: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let faults = if group.is_empty() { Vec::new() } else { names::is_dns1123_subdomain(group) };
    if !faults.is_empty() {
        errors.push(Error::invalid(field.path(), group, faults.join(",")));
    }
    if version.is_empty() {
        errors.push(field.invalid("version must be specified"));
        return errors;
    }
    let faults = names::is_dns1035_label(version);
    if !faults.is_empty() {
        errors.push(Error::invalid(field.path(), version, faults.join(",")));
    }
    errors
}

/// Validates `MatchResources`.
pub fn validate_match(matched: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if !matched.is_set() {
        return errors;
    }
    errors.extend(choice(&matched.field("matchPolicy"), &MATCHES));
    for name in ["namespaceSelector", "objectSelector"] {
        let selector = matched.field(name);
        match selector.value() {
            None => errors.push(selector.required("")),
            Some(value) => errors.extend(LabelSelector::validate(value, true, selector.path())),
        }
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in matched.field(list).items() {
            errors.extend(validate_named_rule(&rule));
        }
    }
    errors
}

fn validate_named_rule(rule: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for name in rule.field("resourceNames").items() {
        errors.extend(names::is_path_segment(name.text(), false).into_iter().map(|fault| name.invalid(fault)));
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
    errors.extend(webhooks::validate_rule(rule.value().unwrap_or(&Value::Null), rule.path()));
    errors
}

/// Validates a binding's spec: the policy's name, the parameters and the resources it matches.
pub fn validate_binding(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let policy = spec.field("policyName");
    match policy.text() {
        "" => errors.push(policy.required("")),
        name => errors.extend(names::is_dns1123_subdomain(name).into_iter().map(|fault| policy.invalid(fault))),
    }
    errors.extend(validate_param_ref(&spec.field("paramRef")));
    errors.extend(validate_match(&spec.field("matchResources")));
    errors
}

fn validate_param_ref(reference: &FieldRef<'_>) -> ErrorList {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let mut errors = ErrorList::new();
    if !reference.is_set() {
        return errors;
    }
    let (name, selector) = (reference.field("name"), reference.field("selector"));
    let action = reference.field("parameterNotFoundAction");
    if !name.text().is_empty() {
        errors.extend(names::is_path_segment(name.text(), false).into_iter().map(|fault| name.invalid(fault)));
        if selector.is_set() {
            errors.push(name.forbidden(EXCLUSIVE));
        }
    }
    if let Some(value) = selector.value() {
        errors.extend(LabelSelector::validate(value, true, selector.path()));
        if !name.text().is_empty() {
            errors.push(selector.forbidden(EXCLUSIVE));
        }
    } else if name.text().is_empty() {
        errors.push(reference.required("one of name or selector must be specified"));
    }
    match action.text() {
        "" => errors.push(action.required("")),
        "Deny" | "Allow" => {}
        _ => errors.push(action.not_supported(&["Deny", "Allow"])),
    }
    errors
}

/// The table of policies, with the number of items of `list`.
pub fn policy_table(list: &'static str, cells: fn(&Value) -> Vec<Cell>) -> Table {
    let name = if list == "mutations" { "Mutations" } else { "Validations" };
    let count = Column { type_: "integer".to_owned(), ..Column::string(name, "") };
    Table::named(vec![count, Column::string("ParamKind", "")], cells)
}

/// The cells of [`policy_table`].
pub fn policy_cells(object: &Value, list: &str) -> Vec<Cell> {
    let kind = object.at(&["spec", "paramKind"]).filter(|kind| !kind.is_null());
    let shown = kind.map(|kind| format!("{}/{}", kind.str_at(&["apiVersion"]), kind.str_at(&["kind"])));
    let count = Cell::count(object.items_at(&["spec", list]).len());
    Cell::named(object, vec![count, Cell::text(&shown.unwrap_or_else(|| "<unset>".to_owned()))])
}

/// The table of bindings.
fn binding_table() -> Table {
    Table::named(vec![Column::string("PolicyName", ""), Column::string("ParamRef", "")], |object| {
        let reference = |name: &str| object.str_at(&["spec", "paramRef", name]).to_owned();
        let shown = match (reference("namespace").as_str(), reference("name").as_str()) {
            (_, "") => match object.at(&["spec", "paramRef", "selector"]) {
                None | Some(Value::Null) => "<unset>".to_owned(),
                Some(selector) => print_selector(selector),
            },
            ("", name) => format!("*/{name}"),
            (namespace, name) => format!("{namespace}/{name}"),
        };
        Cell::named(object, vec![Cell::text(object.str_at(&["spec", "policyName"])), Cell::text(&shown)])
    })
}

/// Formats a LabelSelector as its method `String` in Go does.
fn print_selector(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let labels: BTreeMap<&str, &str> = labels.map(|(key, value)| (key, value.as_str().unwrap_or_default())).collect();
    let labels: String = labels.iter().map(|(key, value)| format!("{key}: {value},")).collect();
    let print = |requirement: &Value| {
        let values: Vec<&str> = requirement.items_at(&["values"]).iter().filter_map(Value::as_str).collect();
        let (key, operator) = (requirement.str_at(&["key"]), requirement.str_at(&["operator"]));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
    };
    let requirements: String = selector.items_at(&["matchExpressions"]).iter().map(print).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )
}

/// Compiles the expressions of one policy. A variable is declared for the expressions after it.
pub struct Compiler {
    declared: Declarations,
    known: BTreeSet<String>,
}

impl Compiler {
    /// Makes a compiler for a policy that replaces `old`. Expressions of `old` may continue to use what they used, in
    /// that version of Kubernetes.
    pub fn new(minor: Minor, spec: &FieldRef<'_>, old: Option<&Value>) -> Self {
        let mut known = BTreeSet::new();
        for list in ["matchConditions", "validations", "auditAnnotations", "mutations"] {
            for item in old.map(|old| old.items_at(&["spec", list])).unwrap_or_default() {
                let paths: [&[&str]; 5] = [
                    &["expression"],
                    &["messageExpression"],
                    &["valueExpression"],
                    &["applyConfiguration", "expression"],
                    &["jsonPatch", "expression"],
                ];
                known.extend(paths.iter().map(|path| item.str_at(path).to_owned()));
            }
        }
        // Mutating policies always have the variable `variables`, others only if they define some.
        let has_variables = !spec.field("variables").is_empty() || spec.field("mutations").is_set();
        let declared = Declarations {
            params: spec.field("paramKind").is_set().then_some(Type::Dyn),
            variables: has_variables.then(no_variables),
            minor,
            ..Declarations::default()
        };
        Compiler { declared, known }
    }

    fn env(&self, expression: &str) -> Env {
        self.declared.environment(self.expressions(expression))
    }

    fn expressions(&self, expression: &str) -> Expressions {
        if self.known.contains(expression) { Expressions::Stored } else { Expressions::New }
    }

    /// Compiles an expression and returns its type, which must be one of `wanted` if there are any.
    fn check(&self, expression: &str, wanted: &[Type]) -> Result<Type, CompileError> {
        expression::compile(&self.env(expression), expression, wanted).map(|(_, ty)| ty)
    }

    /// The error of an expression whose type must be one of `wanted`.
    pub fn fault(&self, field: &FieldRef<'_>, wanted: &[Type]) -> Option<Error> {
        let error = self.check(field.text(), wanted).err()?;
        Some(error.into_field_error(field.path(), field.text()))
    }

    /// As [`Compiler::fault`], for an expression that is compiled without the spaces around it.
    pub fn trimmed_fault(&self, field: &FieldRef<'_>, wanted: &[Type]) -> Option<Error> {
        let error = self.check(field.text().trim(), wanted).err()?;
        Some(error.into_field_error(field.path(), field.text()))
    }

    /// The error of an expression that returns a message; it cannot use the authorizer.
    pub fn message_fault(&self, field: &FieldRef<'_>) -> Option<Error> {
        let env = self.declared.without_authorizer().environment(self.expressions(field.text()));
        let error = expression::compile(&env, field.text(), &[Type::String]).err()?;
        Some(error.into_field_error(field.path(), field.text()))
    }

    /// The error of an expression that returns a patch.
    pub fn patch_fault(&self, field: &FieldRef<'_>, patch: MutationType) -> Option<Error> {
        let text = field.text().trim();
        let error = patch.compile(text, &self.env(text).with_mutations()).err()?;
        Some(error.into_field_error(field.path(), text))
    }

    /// Validates the variables of a policy and declares them for later expressions; a variable that does not compile
    /// has no known type.
    pub fn variables(&mut self, list: &FieldRef<'_>) -> ErrorList {
        let mut errors = ErrorList::new();
        for variable in list.items() {
            let (name, expression) = (variable.field("name"), variable.field("expression"));
            if name.text().trim().is_empty() {
                errors.push(name.required("name is not specified"));
            } else if !is_identifier(name.text()) {
                errors.push(name.invalid("must be a valid CEL identifier"));
            }
            if expression.text().trim().is_empty() {
                errors.push(expression.required("expression is not specified"));
                continue;
            }
            match self.check(expression.text(), &[]) {
                Ok(ty) => self.declared.add_variable(name.text(), Some(&ty)),
                Err(error) => {
                    self.declared.add_variable(name.text(), None);
                    errors.push(error.into_field_error(expression.path(), expression.text()));
                }
            }
        }
        errors
    }

    /// Validates the match conditions of a policy. They can use parameters, but not variables.
    pub fn conditions(&self, list: &FieldRef<'_>) -> ErrorList {
        let conditions = list.value().and_then(Value::as_array).unwrap_or_default();
        let declared = Declarations { variables: None, ..self.declared.clone() };
        let fault = |text: &str| {
            let env = declared.environment(self.expressions(text));
            expression::compile(&env, text, &[Type::Bool]).err()
        };
        webhooks::validate_match_conditions(conditions, &fault, list.path())
    }
}

fn is_identifier(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && !name.starts_with(|first: char| first.is_ascii_digit()) && !escape::is_reserved(name)
}
