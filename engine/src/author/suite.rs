//! Suites: objects, and what is expected of them.
//!
//! In: a suite as its author wrote it (`schemas/suite.json` describes it), and the kinds that it is about. Out: for each
//! case what is not as expected, and which rules the cases have covered. Files are read by the command line.

use std::collections::BTreeMap;

use super::check::{Checked, Options, create, update};
use super::{Catalog, Kind};
use crate::meta::field::{Error, ErrorType, Path};
use crate::object;
use crate::patch::json_patch::Patch;
use crate::schema::convert::to_structural;
use crate::schema::structural::Structural;
use crate::schema::{json_schema, prune, validate};
use crate::value::Value;
use crate::value::json::{self, Layout};

/// The schema of suite files.
const SCHEMA: &str = include_str!("../../../schemas/suite.json");
/// What the server adds where it has not run the rules; it says nothing of its own.
const NOT_RUN: &str = "some validation rules were not checked";

/// A suite, its tables written out.
pub struct Suite {
    /// Files with definitions, as they are named in the suite.
    pub crds: Vec<String>,
    /// The cases, in the order they stand.
    pub cases: Vec<Case>,
}

/// An object and what is expected of it.
pub struct Case {
    /// What the case is called.
    pub name: String,
    /// The object that is created, or that replaces `old`.
    pub object: Value,
    /// The object that is stored; `None` where one is created.
    pub old: Option<Value>,
    /// Whether the write goes to `/status`.
    pub is_status: bool,
    /// What must come of it.
    pub expected: Expected,
}

/// What is expected.
pub enum Expected {
    /// As a suite says.
    Stated(Value),
    /// The lines of a file: `FIELD: MESSAGE`, or the faults of strict decoding.
    Lines(Vec<String>),
}

/// What came of a case.
pub struct Outcome {
    /// What is not as expected.
    pub failures: Vec<String>,
    /// What a snapshot of it holds; `None` if the case has none.
    pub snapshot: Option<Value>,
}

/// Reads a suite.
///
/// # Errors
/// Everything in which `value` is not what `schemas/suite.json` says, and patches that can't be applied.
pub fn parse(value: &Value) -> Result<Suite, String> {
    let mut pruned = value.clone();
    let schema = schema();
    let mut faults: Vec<String> =
        prune::prune(&mut pruned, &schema, false).into_iter().map(|path| format!("unknown field \"{path}\"")).collect();
    faults.extend(validate::validate(&Path::ROOT, value, &schema).iter().map(Error::to_string));
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    let crds = texts(value.get("crds"));
    let base = value.get("base");
    let mut cases = Vec::new();
    for case in value.get("cases").and_then(Value::as_array).unwrap_or_default() {
        let name = case.str_at(&["name"]);
        let about = |error: String| format!("case `{name}`: {error}");
        let start = case.get("object").or(base);
        let object = patched(start, case.get("patch")).map_err(about)?;
        let old_start = case.get("oldObject").or(base.filter(|_| case.get("oldPatch").is_some()));
        let old = match old_start {
            Some(old) => Some(patched(Some(old), case.get("oldPatch")).map_err(about)?),
            None => None,
        };
        let is_status = case.str_at(&["subresource"]) == "status";
        let expect = case.get("expect").cloned().unwrap_or_else(|| object! {});
        let Some(rows) = case.get("table").and_then(Value::as_array) else {
            let expected = Expected::Stated(expect);
            cases.push(Case { name: name.to_owned(), object, old, is_status, expected });
            continue;
        };
        for row in rows {
            let row_name = format!("{name}/{}", row.str_at(&["name"]));
            let about = |error: String| format!("case `{row_name}`: {error}");
            let object = patched(Some(&object), row.get("patch")).map_err(about)?;
            let old = match (&old, row.get("oldPatch")) {
                (None, None) => None,
                (None, patch) => Some(patched(base, patch).map_err(about)?),
                (old, patch) => Some(patched(old.as_ref(), patch).map_err(about)?),
            };
            let expected = Expected::Stated(row.get("expect").unwrap_or(&expect).clone());
            cases.push(Case { name: row_name, object, old, is_status, expected });
        }
    }
    Ok(Suite { crds, cases })
}

/// `schemas/suite.json` as a structural schema: what it forbids beside its properties, pruning finds.
fn schema() -> Structural {
    let mut schema = json::decode(SCHEMA.as_bytes()).expect("schemas/suite.json is JSON");
    remove_closed(&mut schema);
    let (schema, _) = json_schema::decode(&schema).expect("schemas/suite.json is a schema");
    to_structural(&schema).expect("schemas/suite.json is structural")
}

fn remove_closed(schema: &mut Value) {
    if let Value::Object(fields) = schema {
        if fields.get("additionalProperties") == Some(&Value::Bool(false)) {
            fields.remove("additionalProperties");
        }
        if fields.get("additionalProperties") == Some(&Value::Bool(true)) {
            fields.remove("additionalProperties");
            fields.insert("x-kubernetes-preserve-unknown-fields", Value::Bool(true));
        }
        fields.remove("$schema");
        fields.remove("$id");
        fields.values_mut().for_each(remove_closed);
    }
}

fn patched(object: Option<&Value>, patch: Option<&Value>) -> Result<Value, String> {
    let object = object.ok_or("it has no object, and the suite has no base")?;
    let Some(patch) = patch else { return Ok(object.clone()) };
    let (patch, _) = Patch::decode(&json::encode(patch), false).map_err(|error| error.to_string())?;
    let text = patch.apply(object, Layout::Sorted).map_err(|error| error.to_string())?;
    json::decode(text.as_bytes()).map_err(|error| error.to_string())
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Runs a case; what the rules did goes to `coverage`. `snapshot` is what the case came to before.
pub fn run(case: &Case, catalog: &Catalog, snapshot: Option<&Value>, coverage: &mut Coverage) -> Outcome {
    let Some(kind) = catalog.of(&case.object) else {
        let (kind, api_version) = (case.object.str_at(&["kind"]), case.object.str_at(&["apiVersion"]));
        let failure = format!("no definition has kind `{kind}` in `{api_version}`");
        return Outcome { failures: vec![failure], snapshot: None };
    };
    let options = Options { traces: true, is_status: case.is_status, ..Options::default() };
    let checked = match &case.old {
        Some(old) => update(kind, &case.object, old, options),
        None => create(kind, &case.object, options),
    };
    coverage.note(kind, &case.object, &checked);
    match &case.expected {
        Expected::Lines(lines) => Outcome { failures: compare_lines(&checked, lines), snapshot: None },
        Expected::Stated(expect) => {
            let mut failures = compare(&checked, expect);
            let wants_snapshot = expect.get("snapshot").and_then(Value::as_bool) == Some(true);
            let taken = wants_snapshot.then(|| take_snapshot(&checked));
            match (&taken, snapshot) {
                (Some(_), None) => failures.push("it has no snapshot: run with --update to take one".to_owned()),
                (Some(taken), Some(snapshot)) if taken != snapshot => failures.push(format!(
                    "not as in the snapshot: {}, which was {}",
                    json::encode_to_string(taken),
                    json::encode_to_string(snapshot)
                )),
                _ => {}
            }
            Outcome { failures, snapshot: taken }
        }
    }
}

/// All errors; unknown fields are among them.
fn errors(checked: &Checked) -> Vec<Error> {
    let unknown = checked.unknown.iter().map(|path| Error {
        kind: ErrorType::Invalid,
        field: path.clone(),
        bad_value: None,
        shown: None,
        detail: format!("unknown field \"{path}\""),
    });
    unknown.chain(checked.errors.iter().map(|rejected| rejected.error.clone())).collect()
}

fn take_snapshot(checked: &Checked) -> Value {
    let lines = |texts: Vec<String>| Value::Array(texts.into_iter().map(Value::from).collect());
    object! {
        "errors" => lines(errors(checked).iter().map(Error::to_string).collect()),
        "warnings" => lines(checked.warnings.iter().chain(&checked.ratcheted).cloned().collect()),
        "object" => checked.object.clone(),
    }
}

/// As `.errors` files have it: what strict decoding finds is all that the server tells.
fn compare_lines(checked: &Checked, expected: &[String]) -> Vec<String> {
    let found: Vec<String> = if !checked.unknown.is_empty() {
        checked.unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect()
    } else {
        checked
            .errors
            .iter()
            .map(|rejected| match rejected.error.kind {
                ErrorType::TypeInvalid if rejected.error.bad_value.is_none() => rejected.error.detail.clone(),
                _ => rejected.error.to_string(),
            })
            .collect()
    };
    let mut failures: Vec<String> = Vec::new();
    for line in &found {
        // The words around what can't be read, or is not served, are the server's.
        let is_expected = expected.iter().any(|expected| expected == line || expected.ends_with(line.as_str()));
        let is_not_served = line.starts_with("apiVersion: Unsupported value") && expected.len() == 1;
        if !is_expected && !is_not_served {
            failures.push(format!("not expected: {line}"));
        }
    }
    if found.len() != expected.len() {
        let missing = expected.iter().filter(|expected| !found.contains(expected));
        failures.extend(missing.map(|line| format!("expected, but not found: {line}")));
    }
    failures
}

fn compare(checked: &Checked, expect: &Value) -> Vec<String> {
    let mut failures = Vec::new();
    let found = errors(checked);
    let wanted = expect.get("errors").and_then(Value::as_array).unwrap_or_default();
    let is_valid = expect.get("valid").and_then(Value::as_bool).unwrap_or(wanted.is_empty());
    match (is_valid, found.is_empty()) {
        (false, true) => failures.push("expected to be invalid, but it is valid".to_owned()),
        // `valid: false` alone takes any error.
        (false, false) if wanted.is_empty() => {}
        _ => {
            let is_wanted = |error: &Error| wanted.iter().any(|wanted| matches(wanted, error));
            let unexpected = found.iter().filter(|error| !is_wanted(error) && !error.detail.starts_with(NOT_RUN));
            failures.extend(unexpected.map(|error| format!("not expected: {error}")));
        }
    }
    for wanted in wanted.iter().filter(|wanted| !found.iter().any(|error| matches(wanted, error))) {
        failures.push(format!("expected an error {}, but there is none", json::encode_to_string(wanted)));
    }
    for (name, texts_found) in [("warnings", &checked.warnings), ("ratcheted", &checked.ratcheted)] {
        for wanted in texts(expect.get(name)) {
            if !texts_found.iter().any(|text| text.contains(&wanted)) {
                failures.push(format!("expected in {name}, but not found: {wanted}"));
            }
        }
    }
    if let Some(limit) = expect.get("costAtMost").and_then(Value::as_i64)
        && i64::try_from(checked.cost()).unwrap_or(i64::MAX) > limit
    {
        failures.push(format!("the rules cost {}, which is more than {limit}", checked.cost()));
    }
    if let Some(wanted) = expect.get("object") {
        differ("", wanted, &checked.object, &mut failures);
    }
    failures
}

fn matches(wanted: &Value, error: &Error) -> bool {
    let is = |name: &str, test: &dyn Fn(&str) -> bool| wanted.get(name).and_then(Value::as_str).is_none_or(test);
    is("field", &|field| field == error.field)
        && is("type", &|kind| kind == error.kind.reason())
        && is("message", &|message| message == error.detail || message == error.body())
        && is("contains", &|part| error.body().contains(part))
}

/// The fields that `wanted` has must be the same in `found`; others may be there.
fn differ(path: &str, wanted: &Value, found: &Value, failures: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(fields), Value::Object(_)) => {
            for (name, wanted) in fields.iter() {
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                differ(&path, wanted, found.get(name).unwrap_or(&Value::Null), failures);
            }
        }
        _ if wanted == found => {}
        _ => failures.push(format!(
            "{path} is {}, not {}",
            json::encode_to_string(found),
            json::encode_to_string(wanted)
        )),
    }
}

/// Which rules have held, and which have failed.
#[derive(Default)]
pub struct Coverage {
    versions: BTreeMap<(String, String), BTreeMap<RuleAt, Counts>>,
}

/// A rule, and the node of the schema that it stands at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleAt {
    /// `spec.ports[*]`.
    pub path: String,
    /// The rule's expression.
    pub rule: String,
}

/// How often what came of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Evaluations that were true.
    pub held: u64,
    /// Evaluations that were false.
    pub failed: u64,
    /// Evaluations that ended in an error.
    pub broke: u64,
    /// The conditions within the rule: how often true, how often false.
    pub parts: BTreeMap<String, (u64, u64)>,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.held += other.held;
        self.failed += other.failed;
        self.broke += other.broke;
        for (text, (held, failed)) in other.parts {
            let part = self.parts.entry(text).or_default();
            *part = (part.0 + held, part.1 + failed);
        }
    }

    /// Whether the rule has both held and failed.
    pub fn is_covered(&self) -> bool {
        self.held > 0 && self.failed + self.broke > 0
    }
}

impl Coverage {
    /// All rules of a kind, none of which has been run yet.
    pub fn expect(&mut self, kind: &Kind) {
        for version in &kind.versions {
            let key = (kind.definition.name().to_owned(), version.version.clone());
            let rules = self.versions.entry(key).or_default();
            list_rules("", &version.structural, &mut |path, rule| {
                rules.entry(RuleAt { path: path.to_owned(), rule: rule.to_owned() }).or_default();
            });
        }
    }

    /// Adds what other cases have covered.
    pub fn merge(&mut self, other: Coverage) {
        for (version, rules) in other.versions {
            let known = self.versions.entry(version).or_default();
            for (at, counts) in rules {
                known.entry(at).or_default().add(counts);
            }
        }
    }

    fn note(&mut self, kind: &Kind, object: &Value, checked: &Checked) {
        let Some(version) = kind.served(object) else { return };
        let key = (kind.definition.name().to_owned(), version.version.clone());
        let rules = self.versions.entry(key).or_default();
        for run in checked.runs.iter().filter(|run| !run.is_message) {
            // Rules under `allOf` are not listed beforehand.
            let known = rules.keys().find(|at| at.rule == run.rule && fits(&at.path, &run.path)).cloned();
            let at = known.unwrap_or_else(|| RuleAt { path: run.path.clone(), rule: run.rule.clone() });
            let counts = rules.entry(at).or_default();
            match run.truth {
                Some(true) => counts.held += 1,
                Some(false) => counts.failed += 1,
                None => counts.broke += 1,
            }
            for part in &run.parts {
                let count = |truth| u64::from(part.truth == Some(truth));
                if part.truth.is_some() {
                    let (held, failed) = counts.parts.entry(part.text.clone()).or_default();
                    *held += count(true);
                    *failed += count(false);
                }
            }
        }
    }

    /// By the names of definitions and versions.
    pub fn versions(&self) -> impl Iterator<Item = (&str, &str, &BTreeMap<RuleAt, Counts>)> {
        self.versions.iter().map(|((name, version), rules)| (name.as_str(), version.as_str(), rules))
    }
}

/// Tells `tell` each rule of a schema, with the path of its node.
pub fn list_rules(path: &str, schema: &Structural, tell: &mut impl FnMut(&str, &str)) {
    for rule in &schema.validations {
        tell(if path.is_empty() { "<nil>" } else { path }, &rule.rule);
    }
    for (name, schema) in schema.properties.iter() {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        list_rules(&path, schema, tell);
    }
    let values = schema.additional_properties.as_ref().and_then(|values| values.structural());
    for schema in schema.items.as_deref().into_iter().chain(values) {
        list_rules(&format!("{path}[*]"), schema, tell);
    }
}

/// Whether a value at `path` is of the node at `pattern`, in which `[*]` stands for any item or entry.
pub fn fits(pattern: &str, path: &str) -> bool {
    let mut rest = path;
    let mut literals = pattern.split("[*]");
    if let Some(first) = literals.next() {
        match rest.strip_prefix(first) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    for literal in literals {
        let Some(inner) = rest.strip_prefix('[') else { return false };
        let ends = inner.match_indices(']').map(|(at, _)| &inner[at + 1..]);
        match ends.into_iter().find(|behind| match literal {
            "" => behind.is_empty() || behind.starts_with('['),
            literal => behind.starts_with(literal),
        }) {
            Some(behind) => rest = &behind[literal.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn the_schema_of_suites_is_structural() {
        assert!(schema().properties.contains_key("cases"));
    }

    #[test]
    fn unknown_fields_of_a_suite_are_faults() {
        let suite = yaml::decode(b"{cases: [{name: a, objekt: {}}]}").expect("the test is YAML");
        assert_eq!(parse(&suite).err().as_deref(), Some("unknown field \"cases[0].objekt\""));
    }

    #[test]
    fn rules_are_found_by_the_paths_of_their_values() {
        assert!(fits("spec.ports[*].name", "spec.ports[3].name"));
        assert!(fits("spec.labels[*]", "spec.labels[a]"));
        assert!(!fits("spec.ports[*]", "spec.ports[3].name"));
        assert!(fits("<nil>", "<nil>"));
    }
}
