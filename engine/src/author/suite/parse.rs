//! Reading a suite: its tables are written out.

use std::collections::BTreeMap;

use super::{BrokenCase, Case, Expected, Suite, SuiteError, WriteTarget, texts};
use crate::author::policies::case::Setting;
use crate::meta::field::Path;
use crate::object;
use crate::patch::PatchError;
use crate::patch::json_patch::Patch;
use crate::schema::convert::to_structural;
use crate::schema::structural::Structural;
use crate::schema::{json_schema, prune, validate};
use crate::value::Value;
use crate::value::json::{self, Layout};

/// The schema of suite files.
const SCHEMA: &str = include_str!(concat!(env!("SCHEMAS"), "/suite.json"));

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
