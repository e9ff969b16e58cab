//! Suites: objects, and what is expected of them.
//!
//! In: a suite as its author wrote it (`schemas/suite.json` describes it), and the kinds that it is about. Out: for each
//! case what is not as expected, and which rules the cases have covered. Files are read by the command line.

use std::collections::BTreeMap;

use super::check::{BuiltIn, CheckOptions, Checked, create, update};
pub use super::coverage::{Coverage, RuleAt, RuleCounts, fits, list_rules};
use super::policies::admit::{AdmissionSetup, Admitted, SentRequest};
use super::policies::case::{self, Setting};
use super::policies::{self, Policies, RequestUser};
use super::{Catalog, DefinedKind};
use crate::meta::field::{Error, ErrorSubject, ErrorType, Path};
use crate::object;
use crate::patch::PatchError;
use crate::patch::json_patch::Patch;
use crate::policy::Operation;
use crate::schema::convert::to_structural;
use crate::schema::structural::Structural;
use crate::schema::{json_schema, prune, validate};
use crate::value::Value;
use crate::value::json::{self, Layout};

/// The schema of suite files.
const SCHEMA: &str = include_str!(concat!(env!("SCHEMAS"), "/suite.json"));

/// A suite, its tables written out.
#[derive(Default)]
pub struct Suite {
    /// Files with definitions, as they are named in the suite.
    pub crds: Vec<String>,
    /// Files with policies, their bindings and what they look up.
    pub policies: Vec<String>,
    /// The cases, in the order they stand.
    pub cases: Vec<Case>,
    /// Cases that can't be made.
    pub broken: Vec<BrokenCase>,
}

/// A case that can't be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenCase {
    /// What the case is called, or else where it stands.
    pub name: String,
    /// Why; there is one at least.
    pub faults: Vec<SuiteError>,
}

/// What is wrong with a suite, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteError {
    /// `cases[3].table[0]`; empty for the whole suite.
    pub path: String,
    /// What is wrong.
    pub text: String,
}

impl Case {
    /// Whether the object is expected to be valid, be it said or not, and to be admitted.
    pub fn is_valid(&self) -> bool {
        let Expected::Stated(expect) = &self.expected else { return false };
        let is = |name: &str| expect.get(name).and_then(Value::as_bool);
        let (errors, message) = (expect.items_at(&["errors"]), expect.get("message"));
        is("valid").unwrap_or(errors.is_empty()) && is("admitted").unwrap_or(message.is_none())
    }
}

/// An object and what is expected of it.
pub struct Case {
    /// What the case is called.
    pub name: String,
    /// Its place in the suite: `cases[3].table[0]`.
    pub path: String,
    /// The object that is created, or that replaces `old`.
    pub object: Value,
    /// The object that is stored; `None` where one is created.
    pub old: Option<Value>,
    /// Where the write goes.
    pub part: WriteTarget,
    /// Who asks, where, and with which parameters.
    pub setting: Setting,
    /// What must come of it.
    pub expected: Expected,
}

/// What a write is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteTarget {
    /// The object.
    #[default]
    Object,
    /// Its `/status`.
    Status,
    /// Its `/scale`. The case has the objects that the Scales stand for.
    Scale,
}

impl WriteTarget {
    /// What `subresource` of a case names.
    pub fn of(case: &Value) -> Self {
        match case.str_at(&["subresource"]) {
            "status" => WriteTarget::Status,
            "scale" => WriteTarget::Scale,
            _ => WriteTarget::Object,
        }
    }

    /// As rules name it; empty for the object.
    pub const fn name(self) -> &'static str {
        match self {
            WriteTarget::Object => "",
            WriteTarget::Status => "status",
            WriteTarget::Scale => "scale",
        }
    }
}

/// What cases are run with.
pub struct SuiteStage<'s> {
    /// The kinds of definitions.
    pub catalog: &'s Catalog,
    /// What requests must pass.
    pub policies: &'s Policies,
    /// The user that a UserInfo describes.
    pub find_user: &'s dyn Fn(Value) -> RequestUser,
}

/// What is expected.
pub enum Expected {
    /// As a suite says.
    Stated(Value),
    /// The lines of a file: `FIELD: MESSAGE`, or the faults of strict decoding.
    Lines(Vec<String>),
}

/// What came of a case.
pub struct CaseOutcome {
    /// What is not as expected.
    pub failures: Vec<CaseFailure>,
    /// Errors that are forgiven, as the update left the values alone: of rules, and of schemas.
    pub ratcheted: Vec<String>,
    /// What a snapshot of it holds; `None` if the case has none.
    pub snapshot: Option<Value>,
}

/// Something that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaseFailure {
    /// Nothing is known of the kind of the object.
    #[error("no definition has kind `{kind}` in `{api_version}`")]
    UnknownKind {
        /// `kind` of the object.
        kind: String,
        /// `apiVersion` of the object.
        api_version: String,
    },
    /// The case is to have a snapshot, and none was taken yet.
    #[error("it has no snapshot: run with --update to take one")]
    NoSnapshot,
    /// What came of the case is not what its snapshot holds.
    #[error("not as in the snapshot: {taken}, which was {known}")]
    OtherSnapshot {
        /// What came of the case, as JSON.
        taken: String,
        /// What the snapshot holds, as JSON.
        known: String,
    },
    /// The verdict is another one than is stated.
    #[error("{0}")]
    Verdict(String),
}

impl CaseFailure {
    /// Whether it is one of the snapshot alone, which taking a new one mends.
    pub fn is_of_snapshot(&self) -> bool {
        matches!(self, CaseFailure::NoSnapshot | CaseFailure::OtherSnapshot { .. })
    }
}

/// Reads a suite. A case that can't be made, or is not what `schemas/suite.json` says, is in [`Suite::broken`], and hides no
/// other.
///
/// # Errors
/// Everything in which `value` is not what `schemas/suite.json` says, if some of it is outside of cases.
pub fn parse(value: &Value) -> Result<Suite, Vec<SuiteError>> {
    let mut pruned = value.clone();
    let schema = schema();
    let unknown = prune::prune(&mut pruned, &schema, false).into_iter();
    let mut faults: Vec<SuiteError> =
        unknown.map(|path| SuiteError { text: format!("unknown field \"{path}\""), path }).collect();
    let invalid = validate::validate(&Path::ROOT, value, &schema);
    faults.extend(invalid.iter().map(|error| SuiteError { path: error.field.clone(), text: error.to_string() }));
    if faults.iter().any(|fault| case_of(&fault.path).is_none()) {
        return Err(faults);
    }
    let mut by_case: BTreeMap<String, Vec<SuiteError>> = BTreeMap::new();
    for fault in faults {
        let case = case_of(&fault.path).unwrap_or_default().to_owned();
        by_case.entry(case).or_default().push(fault);
    }
    let (crds, policies) = (texts(value.get("crds")), texts(value.get("policies")));
    let mut suite = Suite { crds, policies, cases: Vec::new(), broken: Vec::new() };
    for (index, written) in value.items_at(&["cases"]).iter().enumerate() {
        let path = format!("cases[{index}]");
        let name = name_or(written, &path);
        let mut faults = by_case.remove(&path).unwrap_or_default();
        if faults.is_empty() {
            match Start::new(written, value.get("base")) {
                Ok(start) => start.add_cases(&name, &path, &mut by_case, &mut suite),
                Err(error) => faults.push(SuiteError { path: path.clone(), text: error.to_string() }),
            }
        }
        // What is left is of rows that were not made.
        faults.extend(taken_below(&path, &mut by_case));
        if !faults.is_empty() {
            suite.broken.push(BrokenCase { name, faults });
        }
    }
    Ok(suite)
}

/// Takes the faults of the rows of a case.
fn taken_below(case: &str, by_case: &mut BTreeMap<String, Vec<SuiteError>>) -> Vec<SuiteError> {
    let begin = format!("{case}.");
    by_case.extract_if(.., |path, _| path.starts_with(&begin)).flat_map(|(_, faults)| faults).collect()
}

/// What a case or row is called, or else where it stands.
fn name_or(written: &Value, path: &str) -> String {
    match written.str_at(&["name"]) {
        "" => path.to_owned(),
        name => name.to_owned(),
    }
}

/// The case, or the row of its table, that a path leads into: `cases[3]`, `cases[3].table[0]`.
fn case_of(path: &str) -> Option<&str> {
    let end = |from: usize, begin: &str| {
        let rest = path[from..].strip_prefix(begin)?;
        Some(from + begin.len() + rest.find(']')? + 1)
    };
    let case = end(0, "cases[")?;
    Some(&path[..end(case, ".table[").unwrap_or(case)])
}

impl Suite {
    fn add_broken(&mut self, name: String, path: String, text: String) {
        self.broken.push(BrokenCase { name, faults: vec![SuiteError { path, text }] });
    }
}

/// Why a case, or a row of its table, has no objects.
#[derive(Debug, thiserror::Error)]
enum CaseError {
    #[error("it has no object, and the suite has no base")]
    NoObject,
    /// A patch is not one, or can't be applied.
    #[error(transparent)]
    Patch(#[from] PatchError),
    #[error(transparent)]
    Json(#[from] json::JsonError),
}

/// What a case begins with, which the rows of its table may vary.
struct Start<'s> {
    written: &'s Value,
    base: Option<&'s Value>,
    object: Value,
    old: Option<Value>,
    part: WriteTarget,
    expect: Value,
}

impl<'s> Start<'s> {
    fn new(written: &'s Value, base: Option<&'s Value>) -> Result<Self, CaseError> {
        let object = patched(written.get("object").or(base), written.get("patch"))?;
        let old = written.get("oldObject").or(base.filter(|_| is_update(written)));
        let old = old.map(|old| patched(Some(old), written.get("oldPatch"))).transpose()?;
        let part = WriteTarget::of(written);
        let expect = written.get("expect").cloned().unwrap_or_else(|| object! {});
        Ok(Start { written, base, object, old, part, expect })
    }

    /// Adds the case, or one for each row of its table that is not faulty.
    fn add_cases(&self, name: &str, path: &str, faulty: &mut BTreeMap<String, Vec<SuiteError>>, suite: &mut Suite) {
        let Some(rows) = self.written.get("table").and_then(Value::as_array) else {
            let (name, objects) = (name.to_owned(), (self.object.clone(), self.old.clone()));
            suite.cases.push(self.case(name, path.to_owned(), objects, None));
            return;
        };
        for (index, row) in rows.iter().enumerate() {
            let path = format!("{path}.table[{index}]");
            let name = format!("{name}/{}", name_or(row, &path));
            if let Some(faults) = faulty.remove(&path) {
                suite.broken.push(BrokenCase { name, faults });
                continue;
            }
            match self.varied(row) {
                Ok(objects) => suite.cases.push(self.case(name, path, objects, Some(row))),
                Err(error) => suite.add_broken(name, path, error.to_string()),
            }
        }
    }

    /// The objects of a row.
    fn varied(&self, row: &Value) -> Result<(Value, Option<Value>), CaseError> {
        let object = patched(Some(&self.object), row.get("patch"))?;
        let old = match (&self.old, row.get("oldPatch")) {
            (None, patch) if patch.is_some() || (is_update(row) && self.base.is_some()) => {
                Some(patched(self.base, patch)?)
            }
            (None, _) => None,
            (old, patch) => Some(patched(old.as_ref(), patch)?),
        };
        Ok((object, old))
    }

    /// What the row says goes before what the case says.
    fn case(&self, name: String, path: String, (object, old): (Value, Option<Value>), row: Option<&Value>) -> Case {
        let expect = row.and_then(|row| row.get("expect")).unwrap_or(&self.expect);
        let (setting, expected) = (Setting::decode(self.written, row), Expected::Stated(expect.clone()));
        Case { name, path, object, old, part: self.part, setting, expected }
    }
}

/// Whether a case, or a row, begins with the base: it is an update, or says what was different before.
fn is_update(written: &Value) -> bool {
    written.get("oldPatch").is_some() || written.str_at(&["operation"]) == "UPDATE"
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

fn patched(object: Option<&Value>, patch: Option<&Value>) -> Result<Value, CaseError> {
    let object = object.ok_or(CaseError::NoObject)?;
    let Some(patch) = patch else { return Ok(object.clone()) };
    let (patch, _) = Patch::decode(&json::encode(patch), false)?;
    let text = patch.apply(object, Layout::Sorted)?;
    Ok(json::decode(text.as_bytes())?)
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Runs a case; what the rules and policies did goes to `coverage`. `snapshot` is what the case came to before.
pub fn run(case: &Case, stage: &SuiteStage<'_>, snapshot: Option<&Value>, coverage: &mut Coverage) -> CaseOutcome {
    let Some(admitted) = admit(case, stage, &mut coverage.policies) else {
        let text = |name| case.object.str_at(&[name]).to_owned();
        let failure = CaseFailure::UnknownKind { kind: text("kind"), api_version: text("apiVersion") };
        return CaseOutcome { failures: vec![failure], ratcheted: Vec::new(), snapshot: None };
    };
    let checked = &admitted.checked;
    let kind = stage.catalog.of(&case.object);
    if let Some(kind) = kind {
        coverage.note(kind, &case.object, checked);
    }
    let ratcheted = ratcheted(kind, case, checked);
    let expect = match &case.expected {
        Expected::Lines(lines) => {
            let failures = compare_lines(checked, lines).into_iter().map(CaseFailure::Verdict).collect();
            return CaseOutcome { failures, ratcheted, snapshot: None };
        }
        Expected::Stated(expect) => expect,
    };
    let mut failures = compare(checked, &ratcheted, expect);
    failures.extend(case::compare(&admitted, expect));
    let mut failures: Vec<CaseFailure> = failures.into_iter().map(CaseFailure::Verdict).collect();
    let wants_snapshot = expect.get("snapshot").and_then(Value::as_bool) == Some(true);
    // What fails otherwise is not an example for later.
    let taken = (wants_snapshot && failures.is_empty()).then(|| take_snapshot(&admitted, &ratcheted));
    match (&taken, snapshot) {
        (Some(_), None) => failures.push(CaseFailure::NoSnapshot),
        (Some(taken), Some(known)) if taken != known => failures.push(CaseFailure::OtherSnapshot {
            taken: json::encode_to_string(taken),
            known: json::encode_to_string(known),
        }),
        _ => {}
    }
    CaseOutcome { failures, ratcheted, snapshot: taken }
}

/// What an update is forgiven. The server warns of rules alone; what a schema has against values that were left alone shows
/// when they are validated as if they were new.
pub(super) fn ratcheted(kind: Option<&DefinedKind>, case: &Case, checked: &Checked) -> Vec<String> {
    let mut ratcheted: Vec<String> = checked.ratcheted.iter().map(Error::to_string).collect();
    let is_update = case.old.is_some() && matches!(case.setting.operation, None | Some(Operation::Update));
    // Of a scale what was checked is not what is shown.
    let is_whole = case.part != WriteTarget::Scale;
    let version = kind.and_then(|kind| kind.served(&case.object)).filter(|_| is_update && is_whole);
    let Some(version) = version else { return ratcheted };
    let is_told = |error: &Error| {
        let is_it = |known: &Error| (&known.field, &known.detail) == (&error.field, &error.detail);
        checked.errors.iter().any(|rejected| is_it(&rejected.error))
    };
    // A write goes to the status, or to all else.
    let is_written = |error: &Error| {
        let is_of_status = error.field == "status" || error.field.starts_with("status.");
        !version.status || is_of_status == (case.part == WriteTarget::Status)
    };
    let of_schema = validate::validate_in(version.minor, &Path::ROOT, &checked.object, &version.structural);
    let forgiven = of_schema.iter().filter(|error| !is_told(error) && is_written(error)).map(Error::to_string);
    let forgiven: Vec<String> = forgiven.filter(|text| !ratcheted.contains(text)).collect();
    ratcheted.extend(forgiven);
    ratcheted
}

/// The request of a case past policies and checks, with all warnings; `None` for a kind that is not known.
pub(super) fn admit(
    case: &Case,
    stage: &SuiteStage<'_>,
    coverage: &mut policies::coverage::Coverage,
) -> Option<Admitted> {
    let options = CheckOptions { traces: true, is_status: case.part == WriteTarget::Status, ..CheckOptions::default() };
    let mut check = |object: &Value| match (stage.catalog.of(object), &case.old) {
        (Some(kind), Some(old)) => update(kind, object, old, options),
        (Some(kind), None) => create(kind, object, options),
        (None, old) => {
            let known = BuiltIn::of_in(stage.catalog.minor(), object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
            let written = known.map(|known| known.write_with(object, old.as_ref(), options));
            written.map_or_else(Checked::default, |written| {
                written.unwrap_or_else(|error| Checked::refuse(object.clone(), &error))
            })
        }
    };
    let admission = AdmissionSetup {
        policies: stage.policies,
        catalog: stage.catalog,
        request_user: &(stage.find_user)(case.setting.user.clone()),
        beside: &case.setting.beside,
        namespace: &case.setting.namespace,
        home: "",
    };
    let sent = SentRequest {
        object: &case.object,
        old: case.old.as_ref(),
        subresource: case.part.name(),
        operation: case.setting.operation,
    };
    let admitted = admission.admit(sent, &mut check, &mut |note| coverage.note(note));
    let Some(mut admitted) = admitted else {
        // A version that is not served, and the like.
        let kind = stage.catalog.of(&case.object)?;
        return Some(Admitted { checked: create(kind, &case.object, options), ..Admitted::default() });
    };
    admitted.checked.warnings.append(&mut admitted.warnings);
    Some(admitted)
}

/// All errors; unknown fields are among them.
fn errors(checked: &Checked) -> Vec<Error> {
    errors_of_unknown(checked).chain(checked.errors.iter().map(|rejected| rejected.error.clone())).collect()
}

fn errors_of_unknown(checked: &Checked) -> impl Iterator<Item = Error> {
    checked.unknown.iter().map(|path| Error::unknown_field(path))
}

fn take_snapshot(admitted: &Admitted, ratcheted: &[String]) -> Value {
    let checked = &admitted.checked;
    let lines = |texts: Vec<String>| Value::Array(texts.into_iter().map(Value::from).collect());
    let mut taken = object! {
        "errors" => lines(errors(checked).iter().map(Error::to_string).collect()),
        "warnings" => lines(checked.warnings.iter().chain(ratcheted).cloned().collect()),
        "object" => checked.object.clone(),
    };
    if let Some(said) = case::snapshot(admitted) {
        taken.make_object().insert("policies", said);
    }
    taken
}

/// As `.errors` files have it: what strict decoding finds is all that the server tells.
fn compare_lines(checked: &Checked, expected: &[String]) -> Vec<String> {
    let found: Vec<Error> = if checked.unknown.is_empty() {
        checked.errors.iter().map(|rejected| rejected.error.clone()).collect()
    } else {
        errors_of_unknown(checked).collect()
    };
    let lines: Vec<String> = found.iter().map(line_of).collect();
    let mut failures: Vec<String> = Vec::new();
    for (error, line) in found.iter().zip(&lines) {
        // The words around what can't be read, or is not served, are the server's.
        let is_expected = expected.iter().any(|expected| expected == line || expected.ends_with(line.as_str()));
        let is_not_served = error.kind == ErrorType::NotSupported && error.field == "apiVersion";
        let is_told_otherwise = is_not_served && expected.len() == 1;
        if !(is_expected || is_told_otherwise) {
            failures.push(format!("not expected: {line}"));
        }
    }
    if lines.len() != expected.len() {
        let missing = expected.iter().filter(|expected| !lines.contains(expected));
        failures.extend(missing.map(|line| format!("expected, but not found: {line}")));
    }
    failures
}

/// An error as a line of an `.errors` file.
fn line_of(error: &Error) -> String {
    match error.subject {
        ErrorSubject::UnknownField | ErrorSubject::Unreadable => error.detail.clone(),
        _ => error.to_string(),
    }
}

fn compare(checked: &Checked, ratcheted: &[String], expect: &Value) -> Vec<String> {
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
            let unexpected =
                found.iter().filter(|error| !is_wanted(error) && error.subject != ErrorSubject::SkippedRules);
            failures.extend(unexpected.map(|error| format!("not expected: {error}")));
        }
    }
    for wanted in wanted.iter().filter(|wanted| !found.iter().any(|error| matches(wanted, error))) {
        failures.push(format!("expected an error {}, but there is none", json::encode_to_string(wanted)));
    }
    for (name, texts_found) in [("warnings", checked.warnings.as_slice()), ("ratcheted", ratcheted)] {
        for wanted in texts(expect.get(name)) {
            if !texts_found.iter().any(|text| text.contains(&wanted)) {
                let found = if texts_found.is_empty() { "nothing".to_owned() } else { texts_found.join("; ") };
                failures.push(format!("expected in {name}, but not found: {wanted}; there is {found}"));
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
        let suite = yaml::decode(b"{case: [], cases: [{name: a, objekt: {}}]}").expect("the test is YAML");
        let faults: Vec<SuiteError> = parse(&suite).err().expect("it has some");
        let told: Vec<(&str, &str)> = faults.iter().map(|fault| (fault.path.as_str(), fault.text.as_str())).collect();
        let of_case = ("cases[0].objekt", "unknown field \"cases[0].objekt\"");
        assert_eq!(told, [("case", "unknown field \"case\""), of_case]);
    }

    #[test]
    fn an_update_of_the_base_begins_with_it() {
        let change = "patch: [{op: replace, path: /a, value: 2}]";
        let rows = format!("{{name: v, table: [{{name: u, operation: UPDATE, {change}}}, {{name: c, {change}}}]}}");
        let cases = format!("{{name: x, operation: UPDATE, {change}}}, {{name: z, {change}}}, {rows}");
        let suite = yaml::decode(format!("{{base: {{a: 1}}, cases: [{cases}]}}").as_bytes());
        let suite = parse(&suite.expect("the test is YAML")).expect("it is a suite");
        let old = |case: &Case| case.old.as_ref().map(|old| old.get("a").and_then(Value::as_i64));
        let begins: Vec<_> = suite.cases.iter().map(|case| (case.name.as_str(), old(case))).collect();
        let base = Some(Some(1));
        assert_eq!(begins, [("x", base), ("z", None), ("v/u", base), ("v/c", None)]);
    }

    #[test]
    fn a_broken_case_hides_no_other() {
        let cases = "{name: x, patch: [{op: remove, path: /b}]}, {name: z}, {name: w, objekt: {}, patch: a}, {}, {name: v, table: [{nam: 1}, {name: u}]}";
        let suite = yaml::decode(format!("{{base: {{a: 1}}, cases: [{cases}]}}").as_bytes());
        let suite = parse(&suite.expect("the test is YAML")).expect("it is a suite");
        assert_eq!(suite.cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>(), ["z", "v/u"]);
        let paths =
            |case: &BrokenCase| case.faults.iter().map(|fault| fault.path.clone()).collect::<Vec<_>>().join(" ");
        let row = "v/cases[4].table[0]: cases[4].table[0].nam cases[4].table[0].name";
        let broken: Vec<String> = suite.broken.iter().map(|case| format!("{}: {}", case.name, paths(case))).collect();
        assert_eq!(broken, ["x: cases[0]", "w: cases[2].objekt cases[2].patch", "cases[3]: cases[3].name", row]);
    }

    #[test]
    fn faults_of_rows_are_told_with_those_of_their_case() {
        let row = "table: [{name: r, nam: 1}]";
        let patch = "patch: [{op: remove, path: /b}]";
        let cases = format!("{{name: x, objekt: {{}}, {row}}}, {{name: z, {patch}, {row}}}");
        let suite = yaml::decode(format!("{{base: {{a: 1}}, cases: [{cases}]}}").as_bytes());
        let suite = parse(&suite.expect("the test is YAML")).expect("it is a suite");
        let paths = |case: &BrokenCase| case.faults.iter().map(|fault| fault.path.clone()).collect::<Vec<_>>();
        let broken: Vec<_> = suite.broken.iter().map(paths).collect();
        assert_eq!(broken, [["cases[0].objekt", "cases[0].table[0].nam"], ["cases[1]", "cases[1].table[0].nam"]]);
    }
}
