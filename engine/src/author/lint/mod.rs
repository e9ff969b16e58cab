//! Lints for definitions: violations of the API conventions, and rules that do not do what they seem to.
//!
//! Input: a definition. Output: findings, each with an id, the reason and a remedy. A finding is a fact about the
//! definition, never a guess about objects. Source: "API Conventions" of the Kubernetes community, by heading.

mod entry;
mod lints;
mod conventions;
mod decide;
mod ignore;
pub(super) mod of_policies;
mod older;
mod older_objects;
mod rules;
mod shapes;

pub use decide::RuleDecision;
pub(super) use decide::{decide_named, decide_without};
pub use entry::{Lint, Severity};
pub use lints::{LINTS, markdown};
pub use older::{older, older_than};
pub use older_objects::older_object;

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use super::DefinedKind;
use super::catalog::PricedKind;
use crate::crd::validate::expressions::SchemaStep;
use crate::crd::validate::validated::Validated;
use crate::crd::{ServedVersion, validate, warnings};
use crate::meta::field::ErrorSubject;
use crate::meta::minor::Minor;
use crate::meta::unmarshal::UnmarshalError;
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::value::Value;
use crate::work;
use lints::{DEPRECATED, NOT_STRUCTURAL, REFUSED};

pub(super) use ignore::apply as apply_ignored;

/// The path at which errors report a schema that all versions share.
const SHARED: &str = "spec.validation.openAPIV3Schema";

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The lint that found it.
    pub lint: &'static Lint,
    /// The versions that it is about; empty if it is about all of them.
    pub versions: Vec<String>,
    /// The field, such as `spec.ports[*]`; empty for the whole object.
    pub path: String,
    /// Its paths within the definition: one for each version, or one.
    pub places: Vec<String>,
    /// The message.
    pub message: String,
    /// What to change.
    pub fix: String,
}

/// Returns all findings in a definition, of all severities, except those that its annotation suppresses.
///
/// The same finding in several versions is reported once. For versions that are deprecated or not served only errors
/// are reported.
///
/// # Errors
/// The value does not fit the type of definitions.
pub fn lint(definition: &Value) -> Result<Vec<Finding>, UnmarshalError> {
    lint_in(Minor::NEWEST, definition)
}

/// Does the same as [`lint`] for version `minor` of Kubernetes.
///
/// # Errors
/// The value does not fit the type of definitions.
pub fn lint_in(minor: Minor, definition: &Value) -> Result<Vec<Finding>, UnmarshalError> {
    let PricedKind { kind, schemas, .. } = DefinedKind::priced(minor, definition)?;
    Ok(lint_kind(&kind, &schemas, definition, &|_| true))
}

/// Does the same as [`lint`] for a definition whose rules have been compiled and priced, for lints that are `wanted`:
/// others are not run.
pub fn lint_kind(
    kind: &DefinedKind,
    schemas: &Validated,
    definition: &Value,
    wanted: &dyn Fn(&Lint) -> bool,
) -> Vec<Finding> {
    let mut told = LintFindings::default();
    if definition.str_at(&["apiVersion"]) == "apiextensions.k8s.io/v1beta1" {
        let mut found = VersionFindings { version: "", is_used: true, wanted, told: &mut told };
        let node = NodeLocation { path: "", at: "apiVersion" };
        found.tell(&node, &DEPRECATED, "v1beta1 is no longer served since 1.22", "write it in apiextensions.k8s.io/v1");
        return told.findings;
    }
    look_at_definition(kind, definition, wanted, &mut told);
    for (index, version) in kind.versions.iter().enumerate() {
        let own = schema_place(index);
        let is_used = version.served && version.deprecation_warning.is_none();
        let mut found = VersionFindings { version: &version.version, is_used, wanted, told: &mut told };
        conventions::look_at_version(&mut found, version, &own);
        let costs = schemas.costs().find(|costs| costs.path == own || costs.path == SHARED);
        if let Some(costs) = costs {
            rules::look(&mut found, &version.structural, costs, &own);
        }
        look_below(&mut found, version, &mut WalkPath { path: String::new(), at: own }, &version.structural, "");
    }
    let mut findings = told.findings;
    ignore::apply(&kind.definition.metadata, &mut findings);
    findings
}

/// The possible results of each rule of a kind, with its version, the path of its node and its text.
pub fn decisions(kind: &DefinedKind) -> Vec<(String, String, String, RuleDecision)> {
    let (_, costs) = validate::create_with_costs(&kind.definition);
    let mut decisions = Vec::new();
    for (index, version) in kind.versions.iter().enumerate() {
        let own = schema_place(index);
        for costs in costs.iter().filter(|costs| costs.path == own || costs.path == SHARED) {
            let decided = rules::decisions(&version.structural, costs);
            decisions.extend(decided.map(|(path, rule, decision)| (version.version.clone(), path, rule, decision)));
        }
    }
    decisions
}

fn schema_place(index: usize) -> String {
    format!("spec.versions[{index}].schema.openAPIV3Schema")
}

/// Adds the server's errors and warnings about the definition.
fn look_at_definition(kind: &DefinedKind, written: &Value, wanted: &dyn Fn(&Lint) -> bool, told: &mut LintFindings) {
    let mut found = VersionFindings { version: "", is_used: true, wanted, told };
    conventions::look_at_definition(&mut found, &kind.definition);
    for error in &kind.errors {
        let lint = if error.subject == ErrorSubject::Structure { &NOT_STRUCTURAL } else { &REFUSED };
        let at = error.field.replacen(SHARED, &schema_place(0), 1);
        found.tell(&NodeLocation { path: "", at: &at }, lint, error.to_string(), lint.remedy);
    }
    if let Some(preserves) = written.at(&["spec", "preserveUnknownFields"]).and_then(Value::as_bool) {
        let (message, fix) = if preserves {
            ("it keeps all unknown fields", "specify the fields, and use x-kubernetes-preserve-unknown-fields")
        } else {
            ("preserveUnknownFields: false is what v1 does anyway", "remove it")
        };
        found.tell(&NodeLocation { path: "", at: "spec.preserveUnknownFields" }, &DEPRECATED, message, fix);
    }
    for warning in warnings::create(&kind.definition) {
        found.tell(
            &NodeLocation { path: "", at: "spec" },
            &DEPRECATED,
            warning,
            "do without it: the server leaves it aside",
        );
    }
}

/// The location of a node, as shown to people and as a path within the definition.
struct NodeLocation<'n> {
    path: &'n str,
    at: &'n str,
}

/// The current location of a traversal. It grows and shrinks with the traversal, so that deep nesting needs only one
/// path at a time.
struct WalkPath {
    path: String,
    at: String,
}

impl WalkPath {
    fn node(&self) -> NodeLocation<'_> {
        NodeLocation { path: &self.path, at: &self.at }
    }

    fn enter_property(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
        self.at.extend([".properties[", name, "]"]);
    }

    /// Enters the elements of a list or a map, by the keyword that has their schema.
    fn enter_each(&mut self, keyword: &str) {
        self.path.push_str("[*]");
        self.at.extend([".", keyword]);
    }

    /// Goes back to the location at which both paths had these lengths.
    fn leave(&mut self, (path, at): (usize, usize)) {
        self.path.truncate(path);
        self.at.truncate(at);
    }

    fn lengths(&self) -> (usize, usize) {
        (self.path.len(), self.at.len())
    }
}

/// The findings in a version.
struct VersionFindings<'f> {
    version: &'f str,
    /// Whether the version is still developed, instead of only kept for existing objects.
    is_used: bool,
    /// Which lints are enabled.
    wanted: &'f dyn Fn(&Lint) -> bool,
    told: &'f mut LintFindings,
}

/// All findings, in the order in which they were found.
#[derive(Default)]
struct LintFindings {
    findings: Vec<Finding>,
    /// The indices of findings that say the same about the same node, by a hash.
    alike: HashMap<u64, Vec<usize>>,
}

impl LintFindings {
    /// Adds a finding, or adds its versions and paths to an equal one.
    fn add(&mut self, finding: Finding) {
        let alike = self.alike.entry(self.alike.hasher().hash_one(finding.said())).or_default();
        match alike.iter().find(|at| self.findings[**at].said() == finding.said()) {
            None => {
                alike.push(self.findings.len());
                self.findings.push(finding);
            }
            Some(at) => {
                let known = &mut self.findings[*at];
                add_new(&mut known.versions, finding.versions);
                add_new(&mut known.places, finding.places);
            }
        }
    }
}

impl Finding {
    /// What identifies the finding: its lint, its node and its texts.
    fn said(&self) -> (&str, &str, &str, &str) {
        (self.lint.id, &self.path, &self.message, &self.fix)
    }
}

impl VersionFindings<'_> {
    /// Whether a finding of this lint would be reported.
    fn is_told(&self, lint: &Lint) -> bool {
        (self.is_used || lint.severity == Severity::Error) && (self.wanted)(lint)
    }

    /// Adds a finding, or adds this version to an equal one.
    fn tell(
        &mut self,
        node: &NodeLocation<'_>,
        lint: &'static Lint,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        if !self.is_told(lint) {
            return;
        }
        let version = Some(self.version.to_owned()).filter(|version| !version.is_empty());
        self.told.add(Finding {
            lint,
            versions: version.into_iter().collect(),
            path: node.path.to_owned(),
            places: vec![node.at.to_owned()],
            message: message.into(),
            fix: fix.into(),
        });
    }
}

fn add_new(known: &mut Vec<String>, others: Vec<String>) {
    for other in others {
        if !known.contains(&other) {
            known.push(other);
        }
    }
}

/// Checks a node called `name`, which is empty for items, entries and the root, and all nodes below except those within
/// an embedded type of Kubernetes.
fn look_below(
    found: &mut VersionFindings<'_>,
    version: &ServedVersion,
    way: &mut WalkPath,
    schema: &Structural,
    name: &str,
) {
    work::step();
    let embedded = shapes::embedded(schema, &way.path);
    let named = conventions::NodeName { name, is_embedded: embedded.is_some() };
    conventions::look(found, version, &way.node(), schema, &named);
    let here = way.lengths();
    for (name, below) in schema.properties.iter() {
        let is_standard = way.path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name);
        if is_standard || embedded.is_some_and(|message| message.member(name).is_some()) {
            continue;
        }
        way.enter_property(name);
        look_below(found, version, way, below, name);
        way.leave(here);
    }
    let values_below = schema.additional_properties.as_ref().and_then(StructuralOrBool::structural);
    for (keyword, below) in [("items", schema.items.as_deref()), ("additionalProperties", values_below)] {
        let Some(below) = below else { continue };
        way.enter_each(keyword);
        look_below(found, version, way, below, "");
        way.leave(here);
    }
}

/// Formats a path like `spec.ports[*].name`.
fn path_of(steps: &[SchemaStep]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            SchemaStep::Property(name) if path.is_empty() => path.push_str(name),
            SchemaStep::Property(name) => path = format!("{path}.{name}"),
            SchemaStep::Items | SchemaStep::Values => path.push_str("[*]"),
        }
    }
    path
}

/// The path of a node in the definition, below the schema at `own`.
fn place_of(own: &str, steps: &[SchemaStep]) -> String {
    steps.iter().fold(own.to_owned(), |place, step| match step {
        SchemaStep::Property(name) => format!("{place}.properties[{name}]"),
        SchemaStep::Items => format!("{place}.items"),
        SchemaStep::Values => format!("{place}.additionalProperties"),
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
