//! What each minor said, in `tests/golden/minors`: to the definitions among the vectors that tell minors apart, and to those
//! of the corpus, which stands beside the project.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use kubeskiff::crd::validate::expressions::{SchemaCosts, SchemaStep};
use kubeskiff::crd::{Definition, defaults, definition, strategy, validate, warnings};
use kubeskiff::meta::field::Error;
use kubeskiff::meta::minor::Minor;
use kubeskiff::schema::rules::{CostLimits, Rules};
use kubeskiff::schema::{convert::to_structural, json_schema, validate as values};
use kubeskiff::value::json;
use serde_json::Value;

use crate::beside::DEFINITIONS;

/// The cases of a golden file, by name.
fn golden(file: &str) -> BTreeMap<String, Value> {
    lines(&format!("minors/{file}")).into_iter().map(|case| (text(&case["name"]), case)).collect()
}

fn lines(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    let file = std::fs::File::open(path).expect("the golden file is there");
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("it is text under gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is a case")).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// The minors with their answers.
fn answers(case: &Value) -> impl Iterator<Item = (Minor, &Value)> {
    case["minors"].as_array().into_iter().flatten().flat_map(|run| {
        let minor = |at: usize| run[at].as_u64().and_then(|minor| u16::try_from(minor).ok()).unwrap_or_default();
        (minor(0)..=minor(1)).map(move |number| (Minor::of(number), &run[2]))
    })
}

fn decoded(value: &Value) -> kubeskiff::value::Value {
    json::decode(value.to_string().as_bytes()).expect("it is JSON")
}

/// What we say to a new definition.
struct Said {
    errors: Vec<Error>,
    warnings: Vec<String>,
    unknown: Vec<String>,
    /// What rules cost, by the place that the golden files name.
    rules: HashMap<String, u64>,
}

fn say(minor: Minor, crd: &Value) -> Option<Said> {
    let (mut definition, findings) = definition::decode_in(minor, &decoded(crd)).ok()?;
    defaults::set_defaults(&mut definition);
    strategy::prepare_create(&mut definition);
    let (errors, costs) = validate::create_with_costs(&definition);
    let warnings = warnings::create(&definition);
    let rules = costs.iter().flat_map(|costs| prices(&definition, costs)).collect();
    Some(Said { errors: errors.into_vec(), warnings, unknown: findings.unknown, rules })
}

/// `v1.spec.ports[][0]`; the version is left out where all have the same schema.
fn prices(definition: &Definition, costs: &SchemaCosts) -> Vec<(String, u64)> {
    let index = costs.path.strip_prefix("spec.versions[").and_then(|rest| rest.split(']').next());
    let index: Option<usize> = index.and_then(|index| index.parse().ok());
    let version = index.map_or("", |index| definition.spec.versions[index].name.as_str());
    let price = |rule: &kubeskiff::crd::validate::expressions::RuleCosts| {
        let steps: String = rule
            .steps
            .iter()
            .map(|step| match step {
                SchemaStep::Property(name) => format!(".{name}"),
                SchemaStep::Items => "[]".to_owned(),
                SchemaStep::Values => "{}".to_owned(),
            })
            .collect();
        let at = rule.path.rsplit('[').next().unwrap_or_default().trim_end_matches(']');
        rule.compiled.expression.as_ref().map(|expression| (format!("{version}{steps}[{at}]"), expression.cost_max))
    };
    costs.rules.iter().filter_map(price).collect()
}

/// How the reference showed a rule before 1.34, as far as that is not an address.
const RULE: &str = "Invalid value: apiextensions.ValidationRule{";

/// Whether an error is the recorded text. How Go shows a bad value that is not a rule differs before 1.34, and is not compared.
fn is_it(error: &Error, recorded: &str) -> bool {
    if recorded.contains(RULE) && !recorded.contains("(0x") {
        return error.to_string().replace("selfType0", "selfType") == recorded;
    }
    let (field, detail) = (format!("{}: ", error.field), error.detail.replace("selfType0", "selfType"));
    recorded.starts_with(&field) && recorded.ends_with(&detail)
}

/// A difference between ours and the recorded answer.
struct Difference {
    name: String,
    minor: Minor,
    kind: &'static str,
    text: String,
}

/// What is told of an object or a definition.
const VERDICT: &str = "verdict";
/// What its rules cost.
const COST: &str = "cost";

/// What differs between ours and the recorded answer, with its kind.
fn differences(said: &Said, recorded: &Value) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut left: Vec<&Error> = said.errors.iter().collect();
    for text in texts(&recorded["errors"]) {
        match left.iter().position(|error| is_it(error, &text)) {
            Some(at) => drop(left.remove(at)),
            None => found.push((VERDICT, format!("not told: {text}"))),
        }
    }
    found.extend(left.into_iter().map(|error| (VERDICT, format!("told for nothing: {error}"))));
    let (ours, theirs): (BTreeSet<_>, BTreeSet<_>) =
        (said.warnings.iter().cloned().collect(), texts(&recorded["warnings"]).into_iter().collect());
    if ours != theirs {
        found.push((VERDICT, format!("warnings {ours:?}, recorded {theirs:?}")));
    }
    let unknown =
        |text: String| text.strip_prefix("unknown field \"").map(|path| path.trim_end_matches('"').to_owned());
    let theirs: BTreeSet<String> = texts(&recorded["unknown"]).into_iter().filter_map(unknown).collect();
    let ours: BTreeSet<String> = said.unknown.iter().cloned().collect();
    if ours != theirs {
        found.push((VERDICT, format!("unknown {ours:?}, recorded {theirs:?}")));
    }
    for rule in texts(&recorded["rules"]) {
        let mut words = rule.splitn(3, ' ');
        let (Some(at), Some(cost)) = (words.next(), words.next()) else { continue };
        // A rule that was not compiled has no price here.
        if let (Some(ours), Ok(theirs)) = (said.rules.get(at), cost.parse::<u64>())
            && *ours != theirs
        {
            found.push((COST, format!("{at} costs {ours}, recorded {theirs}")));
        }
    }
    found
}

/// Known differences, each a name, a kind and the minors, with the cause.
fn known() -> Vec<(&'static str, &'static str)> {
    let lines = include_str!("KNOWN").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": ")).collect()
}

/// Differences as `KNOWN` names them, `NAME KIND MINORS`, with what differs.
fn by_line(kind: &str, differences: &[Difference]) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<(&str, &str), Vec<&Difference>> = BTreeMap::new();
    for difference in differences {
        groups.entry((&difference.name, difference.kind)).or_default().push(difference);
    }
    let line = |((name, of), group): ((&str, &str), Vec<&Difference>)| {
        let minors: BTreeSet<Minor> = group.iter().map(|difference| difference.minor).collect();
        let minors: Vec<String> = minors.iter().map(Minor::to_string).collect();
        let texts = group.iter().map(|Difference { minor, text, .. }| format!("{minor}: {text}")).collect();
        (format!("{kind}/{name} {of} {}", minors.join(",")), texts)
    };
    groups.into_iter().map(line).collect()
}

/// Fails where something differs that is not known to, in a minor or a kind, and where what is known does not.
fn verdict(kind: &str, differences: &[Difference]) {
    let known = known();
    let found = by_line(kind, differences);
    let is_known = |line: &str| known.iter().any(|(known, _)| *known == line);
    let unexpected: Vec<String> = found
        .iter()
        .filter(|(line, _)| !is_known(line))
        .map(|(line, texts)| format!("{line}: {}", texts.join("; ")))
        .collect();
    let shown = unexpected.iter().take(std::env::var("SHOWN").ok().and_then(|n| n.parse().ok()).unwrap_or(20));
    assert!(unexpected.is_empty(), "{} differ:\n{}", unexpected.len(), shown.cloned().collect::<Vec<_>>().join("\n"));
    let prefix = format!("{kind}/");
    let is_met = |line: &str| !line.starts_with(&prefix) || found.contains_key(line);
    let mended: Vec<_> = known.iter().filter(|(line, _)| !is_met(line)).collect();
    assert!(mended.is_empty(), "known to differ, and equal: {mended:?}");
}

#[test]
fn a_known_difference_is_of_a_kind_and_minors() {
    let difference =
        |kind, minor| Difference { name: "a".to_owned(), minor: Minor::of(minor), kind, text: String::new() };
    let lines = by_line("objects", &[difference(COST, 31), difference(VERDICT, 33), difference(COST, 32)]);
    assert_eq!(lines.into_keys().collect::<Vec<_>>(), ["objects/a cost 1.31,1.32", "objects/a verdict 1.33"]);
}

fn named(name: &str, minor: Minor, found: Vec<(&'static str, String)>) -> impl Iterator<Item = Difference> {
    found.into_iter().map(move |(kind, text)| Difference { name: name.to_owned(), minor, kind, text })
}

fn compare(golden: &BTreeMap<String, Value>, definitions: &HashMap<String, Value>) -> Vec<Difference> {
    let mut differing = Vec::new();
    for (name, case) in golden {
        let Some(crd) = definitions.get(name) else { continue };
        for (minor, recorded) in answers(case) {
            let is_unread = texts(&recorded["errors"]).iter().any(|text| text.starts_with("decode: "));
            let found = match say(minor, crd) {
                None if is_unread => Vec::new(),
                None => vec![(VERDICT, "it can't be read".to_owned())],
                Some(_) if is_unread => vec![(VERDICT, "it was read".to_owned())],
                Some(said) => differences(&said, recorded),
            };
            differing.extend(named(name, minor, found));
        }
    }
    differing
}

#[test]
fn definitions_get_the_verdict_of_each_minor() {
    let vectors = lines("vectors/compile.jsonl.gz").into_iter();
    let definitions = vectors.map(|case| (text(&case["name"]), case["crd"].clone())).collect();
    verdict("definitions", &compare(&golden("definitions.jsonl.gz"), &definitions));
}

#[test]
fn the_corpus_gets_the_verdict_of_each_minor() {
    let Some(corpus) = DEFINITIONS.read() else { return };
    let definitions: HashMap<_, _> =
        corpus.into_iter().map(|case| (text(&case["name"]), case["crd"].clone())).collect();
    let golden = golden("corpus.jsonl.gz");
    let is_known_in_all = |name| golden.get(name).is_some_and(|case| answers(case).count() == Minor::COUNT);
    assert!(definitions.keys().all(is_known_in_all), "there is an answer of each minor to each definition");
    verdict("corpus", &compare(&golden, &definitions));
}

/// What we say to an object: its errors, and what the rules cost.
fn judge(minor: Minor, case: &Value) -> (Vec<Error>, Option<i64>) {
    let schema = json_schema::decode(&decoded(&case["schema"])).expect("it is a schema").0;
    let schema = to_structural(&schema).expect("it is structural");
    let root = kubeskiff::meta::field::Path::ROOT;
    if case["op"] == "validate" {
        return (values::validate_in(minor, &root, &decoded(&case["input"]), &schema).into_vec(), None);
    }
    let rules = Rules::compile_for(minor, &schema, case["isResourceRoot"] == true);
    let (object, old) = (decoded(&case["object"]), case.get("oldObject").map(decoded));
    let usual = CostLimits::default();
    let limits = CostLimits {
        object: case["budget"].as_i64().unwrap_or(usual.object),
        call: case["perCallLimit"].as_u64().unwrap_or(usual.call),
    };
    let findings = rules.evaluate(&root, &object, old.as_ref(), None, limits, &mut |_| {});
    let cost = findings.left.map_or(-1, |left| limits.object - left);
    (findings.errors.into_vec(), Some(cost))
}

#[test]
fn objects_get_the_verdict_of_each_minor() {
    let mut cases: HashMap<String, Value> = HashMap::new();
    for (file, prefix) in [("eval", "eval/"), ("schema", "schema/")] {
        for case in lines(&format!("vectors/{file}.jsonl.gz")) {
            cases.insert(format!("{prefix}{}", text(&case["name"])), case);
        }
    }
    let mut differing = Vec::new();
    for (name, case) in golden("objects.jsonl.gz") {
        differing.extend(judged(&name, &cases[&name], &case));
    }
    verdict("objects", &differing);
}

/// The minors that say something else of an object than we do.
fn judged(name: &str, case: &Value, recorded: &Value) -> Vec<Difference> {
    let mut differing = Vec::new();
    for (minor, recorded) in answers(recorded) {
        let (errors, cost) = judge(minor, case);
        let rules = HashMap::new();
        let said = Said { errors, warnings: Vec::new(), unknown: Vec::new(), rules };
        let mut found = differences(&said, recorded);
        if let (Some(ours), Some(theirs)) = (cost, recorded["cost"].as_i64())
            && ours != theirs
        {
            found.push((COST, format!("cost {ours}, recorded {theirs}")));
        }
        differing.extend(named(name, minor, found));
    }
    differing
}

/// Changed rules of the vectors, and expressions of the CEL standard: of 22,261 those that the minors tell apart.
#[test]
fn expressions_get_the_verdict_of_each_minor() {
    let cases = lines("minors/expressions.jsonl.gz");
    let differing: Vec<_> = cases.iter().flat_map(|case| judged(&text(&case["name"]), case, case)).collect();
    verdict("expressions", &differing);
}
