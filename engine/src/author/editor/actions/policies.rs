//! Code actions for policies and bindings: what one lacks of the other, and a first case for a policy.

use super::super::complete::{Around, plain};
use super::super::outline::OutlineStep;
use super::super::paths::{folder_of, relative};
use super::super::rewrite::with_field;
use super::super::text::{Text, TextRange};
use super::super::workspace::Workspace;
use super::{ActionChange, Aim, CodeAction, bounded, change_of, is_in};
use crate::author::lint::decide_named;
use crate::author::policies::{self, price};
use crate::author::sample::sample;
use crate::crd::validate::expressions::SchemaStep as Way;
use crate::object;
use crate::policy::type_check;
use crate::schema::of_type::Quantities;
use crate::schema::structural::Structural;
use crate::value::Value;
use crate::value::yaml::{self, decode_all_located};

/// The maximum number of policies or parameters that are offered.
const OFFERED_MAX: usize = 5;

impl Workspace {
    /// The actions in a range of a policy or a binding of the file called `name`, apart from the fixes of lints.
    pub(super) fn policy_actions(
        &self,
        name: &str,
        around: &Around<'_>,
        text: &Text,
        range: TextRange,
    ) -> Vec<CodeAction> {
        let Ok(value) = yaml::decode(around.text.as_bytes()) else { return Vec::new() };
        let found = self.policy_findings(&value);
        let documents = decode_all_located(around.text.as_bytes()).unwrap_or_default();
        let line_of = |at: &String| {
            let place = documents.first()?.place(at);
            Some(place.line - 1 + text.line_of(around.start))
        };
        let is_found = |id: &str, at: &str| {
            let is_here = |place: &String| {
                (at.is_empty() || place == at) && line_of(place).is_some_and(|line| is_in(range, line))
            };
            found.iter().any(|finding| finding.lint.id == id && finding.places.iter().any(is_here))
        };
        let own = Own { workspace: self, around, text, value: &value };
        let mut actions = Vec::new();
        if is_found("policy-without-binding", "") {
            actions.extend(own.binding());
        }
        if is_found("binding-without-policy", "") {
            actions.extend(own.policies());
        }
        if is_found("binding-params", "spec") {
            actions.extend(own.references());
        }
        if !around.head.kind.ends_with("Binding") {
            actions.extend(own.bounds(name));
            actions.extend(own.case(name));
        }
        actions
    }
}

/// A policy or a binding with its context.
struct Own<'w> {
    workspace: &'w Workspace,
    around: &'w Around<'w>,
    text: &'w Text,
    value: &'w Value,
}

impl Own<'_> {
    fn fix(&self, title: String, code: &str, changed: Option<String>) -> Option<CodeAction> {
        let edit = change_of(self.text, self.around.start, self.around.text, &changed?)?;
        Some(CodeAction { title, aim: Aim::Fix, code: Some(code.to_owned()), change: ActionChange::Edits(vec![edit]) })
    }

    /// Adds a binding that denies after the policy.
    fn binding(&self) -> Option<CodeAction> {
        let name = self.value.str_at(&["metadata", "name"]);
        let mut spec = object! { "policyName" => name };
        if self.around.head.kind.starts_with("Validating") {
            spec.make_object().insert("validationActions", Value::Array(vec![Value::from("Deny")]));
        }
        if let Some(reference) = self.parameters(self.value).into_iter().next() {
            spec.make_object().insert("paramRef", reference);
        }
        let binding = object! {
            "apiVersion" => self.around.head.api_version.as_str(),
            "kind" => format!("{}Binding", self.around.head.kind),
            "metadata" => object! { "name" => name },
            "spec" => spec,
        };
        let before = self.around.text;
        let join = if before.ends_with('\n') { "" } else { "\n" };
        let changed = format!("{before}{join}---\n{}", yaml::encode(&binding));
        let read = decode_all_located(changed.as_bytes()).ok()?;
        let is_meant = read.iter().map(|document| &document.value).eq([self.value, &binding]);
        self.fix("Add a binding".to_owned(), "policy-without-binding", Some(changed).filter(|_| is_meant))
    }

    /// The actions that set a binding's policy to a known one.
    fn policies(&self) -> Vec<CodeAction> {
        let kind = self.around.head.kind.trim_end_matches("Binding");
        let way = ["spec", "policyName"].map(|name| OutlineStep::Key(name.to_owned()));
        let Some(node) = self.around.outline.find(&way) else { return Vec::new() };
        let range = self.around.outline.nodes[node].value.clone();
        let known = self.workspace.policy_values().filter(|policy| policy.str_at(&["kind"]) == kind);
        let use_it = |policy: &Value| {
            let name = policy.str_at(&["metadata", "name"]);
            let text = self.around.text;
            let changed = [&text[..range.start], &plain(&Value::from(name)), &text[range.end..]].concat();
            self.fix(format!("Use policy {name}"), "binding-without-policy", Some(changed))
        };
        known.take(OFFERED_MAX).filter_map(use_it).collect()
    }

    /// The actions that set a binding's `paramRef` to a known object.
    fn references(&self) -> Vec<CodeAction> {
        let kind = self.around.head.kind.trim_end_matches("Binding");
        let name = self.value.str_at(&["spec", "policyName"]);
        let is_it = |policy: &&Value| policy.str_at(&["kind"]) == kind && policy.str_at(&["metadata", "name"]) == name;
        let Some(policy) = self.workspace.policy_values().find(is_it) else { return Vec::new() };
        let add = |reference: &Value| {
            let title = format!("Set paramRef to {}", reference.str_at(&["name"]));
            let changed = with_field(self.around.text, &[OutlineStep::Key("spec".to_owned())], "paramRef", reference);
            self.fix(title, "binding-params", changed)
        };
        self.parameters(policy).iter().take(OFFERED_MAX).filter_map(add).collect()
    }

    /// The references to all known objects that can be parameters of a policy.
    fn parameters(&self, policy: &Value) -> Vec<Value> {
        let kind = |field: &str| policy.str_at(&["spec", "paramKind", field]);
        let is_one = |object: &&Value| {
            !kind("kind").is_empty()
                && ["apiVersion", "kind"].iter().all(|field| object.str_at(&[field]) == kind(field))
        };
        let reference = |object: &Value| {
            let metadata = |field: &str| object.str_at(&["metadata", field]);
            let mut reference = object! { "name" => metadata("name") };
            let fields = reference.make_object();
            if !metadata("namespace").is_empty() {
                fields.insert("namespace", Value::from(metadata("namespace")));
            }
            fields.insert("parameterNotFoundAction", Value::from("Deny"));
            reference
        };
        self.workspace.policy_values().filter(is_one).map(reference).collect()
    }

    /// Sets bounds in the definition of a kind, without which the policy may be too expensive for the kind's largest
    /// objects.
    fn bounds(&self, name: &str) -> Option<CodeAction> {
        let spec = self.value.get("spec")?;
        let served = policies::served(&self.workspace.catalog);
        let kind = type_check::matched(spec, &served).into_values().next()?;
        let (file, text, part) = self.workspace.definition_of(&kind.group, &kind.names.kind)?;
        let definition = &self.workspace.catalog.named(&kind.group, &kind.names.kind)?.definition;
        let version = definition.spec.versions.iter().position(|version| version.name == kind.version)?;
        let ways = self.read(spec, &kind.structural);
        let bounds = price::remedy(self.value, &self.workspace.catalog, kind, &ways);
        let before = &text.as_str()[part.range.clone()];
        let edit = change_of(text, part.range.start, before, &bounded(before, version, &bounds)?)?;
        let shown: Vec<String> = bounds.iter().map(ToString::to_string).collect();
        Some(CodeAction {
            title: format!("Set {} in {}", shown.join(", "), relative(folder_of(name), file)),
            aim: Aim::Fix,
            code: Some("policy-cost".to_owned()),
            change: ActionChange::Elsewhere(file.to_owned(), edit),
        })
    }

    /// A case with an object that has the fields which the policy reads.
    fn case(&self, name: &str) -> Option<CodeAction> {
        let spec = self.value.get("spec")?;
        let served = policies::served(&self.workspace.catalog);
        let kind = type_check::matched(spec, &served).into_values().next()?;
        let schema = type_check::schema(kind, Quantities::Shown)?;
        let ways = self.read(spec, &schema);
        let object = sample(&kind.api_version(), &kind.names.kind, kind.is_namespaced(), &schema, &ways);
        let policy = self.value.str_at(&["metadata", "name"]);
        let binds = |value: &Value| value.str_at(&["spec", "policyName"]) == policy;
        let others = self.workspace.files.iter().filter(|(_, file)| file.policies.iter().any(binds));
        let mut files: Vec<String> = others.map(|(file, _)| file.clone()).collect();
        if !files.iter().any(|file| file == name) {
            files.push(name.to_owned());
        }
        let crds = self.workspace.file_of(&kind.group, &kind.names.kind).map(str::to_owned).into_iter().collect();
        self.workspace.case_of((policy, policy), object, crds, files, true)
    }

    /// The paths of the object's fields that a policy's expressions read.
    fn read(&self, spec: &Value, schema: &Structural) -> Vec<Vec<Way>> {
        let env = self.workspace.policy_environment(self.around);
        let lists = ["matchConditions", "variables", "validations"].iter().flat_map(|list| spec.items_at(&[list]));
        let texts = lists.map(|item| item.str_at(&["expression"]));
        let read = texts.filter_map(|text| env.compile(text).ok());
        read.flat_map(|checked| decide_named(&checked.ast.expr, "object", schema).read).collect()
    }
}
