//! Running the cases of a suite, and comparing what they come to with what is expected.

use super::{Case, CaseFailure, CaseOutcome, Coverage, Expected, SuiteStage, WriteTarget, texts};
use crate::author::DefinedKind;
use crate::author::check::{BuiltIn, CheckOptions, Checked, create, update};
use crate::author::policies::admit::{AdmissionSetup, Admitted, SentRequest};
use crate::author::policies::{self, case};
use crate::meta::field::{Error, ErrorSubject, ErrorType, Path};
use crate::object;
use crate::policy::Operation;
use crate::schema::validate;
use crate::value::{Value, json};

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
pub(in crate::author) fn ratcheted(kind: Option<&DefinedKind>, case: &Case, checked: &Checked) -> Vec<String> {
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
pub(in crate::author) fn admit(
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
