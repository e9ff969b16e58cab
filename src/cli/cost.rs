//! `skiff cost`: the estimated cost of the rules of CustomResourceDefinitions, and which bounds
//! would lower it.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::command_error::CommandError;
use super::definitions::{each, is_definition, none_in};
use super::documents::{self, ManifestDocument, ManifestText};
use super::minors::{Minors, Said};
use super::parallel;
use super::policies::{self, PolicyPrices};
use super::print::{UNUSABLE, note, output, tell};
use super::project::{Project, named_or};
use super::shares::{grouped, percent, share};
use crate::author::written_field;
use crate::cel::cost::model::{EXPRESSION_ESTIMATE_MAX, SCHEMA_ESTIMATE_MAX};
use crate::crd::bounds::{Advice, Bound, advise};
use crate::crd::definition;
use crate::crd::validate::expressions::{RuleCosts, SchemaCosts, SchemaStep, in_objects};
use crate::crd::{Definition, defaults, strategy, validate};
use crate::meta::field::{self, ErrorList, ErrorSubject};
use crate::meta::minor::Minor;
use crate::schema::convert::to_structural;
use crate::schema::structural::Structural;
use crate::value::yaml::TextPosition;
use crate::value::{Value, json};

/// Estimate what validation rules cost, and tell what to bound
///
/// Prices every rule of every version as the API server does when a CustomResourceDefinition is written. A rule may cost
/// 10,000,000 by the estimate, times how often it may be evaluated for an object; all rules of a schema together
/// 100,000,000. First come the totals, then the rules, the dearest first. From a tenth of the limit on it is told what has no
/// bound, from half of it which bounds would make the rule cheap enough. The expressions of policies are priced for the
/// largest objects of the kinds that they match: a server counts while they run.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff cost crd-examples\n  skiff cost --top 5 crds/\n\nExit codes: 0 fine, 1 invalid or over a limit, 2 wrong use or \
                  unreadable input"
)]
pub struct Cost {
    /// Files or folders with CustomResourceDefinitions and policies; those of skiff.toml unless named
    #[arg(value_name = "CRD")]
    crds: Vec<PathBuf>,

    /// Print only so many rules, the dearest
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    minors: Minors,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = CostOutput::Text)]
    output: CostOutput,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CostOutput {
    Text,
    Json,
}

/// The rules of one version, the most expensive first.
struct Report {
    file: String,
    crd: String,
    version: String,
    rules: Vec<PricedDefinition>,
    total: u64,
}

struct PricedDefinition {
    costs: RuleCosts,
    advice: Advice,
    /// The place of the rule in its file.
    place: Option<TextPosition>,
}

/// The costs of a definition with its errors, or why it can't be read.
type CostResult = Result<(Definition, ErrorList, Vec<SchemaCosts>, Vec<Report>), CommandError>;

impl Cost {
    /// Prints the costs. Exit codes: 0 if all is within the limits, 1 if not or if a definition is
    /// invalid, 2 if there is nothing to price or something can't be read.
    pub fn run(mut self) -> ExitCode {
        if let Err(message) = self.take_project() {
            tell(message);
            return ExitCode::from(UNUSABLE);
        }
        let sources = documents::read_each(&self.crds);
        let faults = || sources.iter().flat_map(|source| &source.faults);
        faults().for_each(|fault| tell(&fault.message));
        let definitions: Vec<(&ManifestText, &ManifestDocument)> =
            each(&sources).filter(|(_, document)| is_definition(&document.value)).collect();
        let is_empty = definitions.is_empty() && !policies::has_prices(&sources);
        if is_empty && faults().next().is_none() {
            tell(none_in(&self.crds));
        }
        let Some(minor) = self.minors.one() else {
            let is_readable = faults().next().is_none() && !is_empty;
            return self.minors.tell(self.output == CostOutput::Json, |minor| {
                let mut said = say(minor, &definitions, is_readable);
                said.lines.extend(policies::prices(minor, &sources).iter().flat_map(PolicyPrices::lines));
                said
            });
        };
        let policies = policies::prices(minor, &sources);
        let (mut reports, is_priced, is_fine) = report_all(minor, &definitions);
        let is_readable = is_priced && faults().next().is_none() && !is_empty;
        reports.sort_by_key(|report| std::cmp::Reverse(report.total));
        let text = match self.output {
            CostOutput::Text => show_text(&reports, self.top) + &policies::show_prices(&policies, !reports.is_empty()),
            CostOutput::Json => show_json(&reports, self.top, &policies) + "\n",
        };
        output(
            text,
            match (is_readable, is_fine) {
                (false, _) => ExitCode::from(UNUSABLE),
                (true, false) => ExitCode::FAILURE,
                (true, true) => ExitCode::SUCCESS,
            },
        )
    }

    /// Takes the settings that have no argument from the project's file.
    fn take_project(&mut self) -> Result<(), CommandError> {
        self.crds = named_or(&self.crds, "files with definitions", Project::rules)?;
        self.minors.take_project(true)
    }
}

/// Prices definitions and prints their errors; returns the reports, whether all could be priced,
/// and whether all are valid.
fn report_all(minor: Minor, definitions: &[(&ManifestText, &ManifestDocument)]) -> (Vec<Report>, bool, bool) {
    let (mut reports, mut is_priced, mut is_fine) = (Vec::new(), true, true);
    let priced = parallel::map("definitions", definitions, |(source, document)| price(minor, source, document));
    for ((source, document), outcome) in definitions.iter().zip(priced) {
        match outcome {
            Ok((definition, errors, costs, found)) => {
                is_fine &= errors.is_empty();
                // Exceeded limits are in the report.
                report_errors((source, document), &definition, &errors, &costs);
                reports.extend(found);
            }
            Err(message) => {
                is_priced = false;
                tell(message);
            }
        }
    }
    (reports, is_priced, is_fine)
}

/// The costs of definitions in one version of Kubernetes, and the rules over the limit, one per
/// line.
fn say(minor: Minor, definitions: &[(&ManifestText, &ManifestDocument)], is_readable: bool) -> Said {
    let mut said = Said { is_fine: true, is_readable, ..Said::default() };
    for outcome in parallel::map("definitions", definitions, |(source, document)| price(minor, source, document)) {
        let (definition, errors, _, reports) = match outcome {
            Ok(priced) => priced,
            Err(message) => {
                said.is_readable = false;
                said.lines.push(message.to_string());
                continue;
            }
        };
        said.is_fine &= errors.is_empty();
        for Report { crd, version, rules, total, .. } in &reports {
            said.lines.push(format!("{crd} {version}: {}", shown_total(*total, rules)));
            for PricedDefinition { costs, .. } in rules.iter().filter(|rule| rule.costs.cost > EXPRESSION_ESTIMATE_MAX)
            {
                let cost = share(costs.cost, EXPRESSION_ESTIMATE_MAX);
                let rule = costs.rule.rule.split_whitespace().collect::<Vec<_>>().join(" ");
                said.lines.push(format!("{crd} {version}: {}: `{rule}`: {cost}", in_objects(&costs.steps)));
            }
        }
        said.lines.extend(errors.iter().map(|error| format!("{}: {error}", definition.name())));
    }
    said
}

fn price(minor: Minor, source: &ManifestText, document: &ManifestDocument) -> CostResult {
    let (mut definition, _) = definition::decode_in(minor, &document.value)
        .map_err(|error| CommandError::Definition { file: source.name.clone(), source: error })?;
    defaults::set_defaults(&mut definition);
    strategy::prepare_create(&mut definition);
    let (errors, costs) = validate::create_with_costs(&definition);
    let reports = report_versions(&source.name, &definition, &costs, |field| document.place(field));
    Ok((definition, errors, costs, reports))
}

/// Prints the errors of a definition with their places on stderr, except for exceeded limits that
/// the report shows.
fn report_errors(
    (source, document): (&ManifestText, &ManifestDocument),
    definition: &Definition,
    errors: &ErrorList,
    costs: &[SchemaCosts],
) {
    let is_in_report = |error: &field::Error| {
        error.subject == ErrorSubject::EstimatedCost && costs.iter().any(|costs| error.field.starts_with(&costs.path))
    };
    for error in errors.iter().filter(|error| !is_in_report(error)) {
        let at = document.error_place(&error.field).map_or(String::new(), |place| format!(":{}", place.line));
        note(format_args!("{}{at}: {}: {error}", source.name, definition.name()));
    }
}

/// The reports of a definition's versions; a version without a schema, or with an invalid one, is
/// left out.
fn report_versions(
    file: &str,
    definition: &Definition,
    costs: &[SchemaCosts],
    place: impl Fn(&str) -> Option<TextPosition>,
) -> Vec<Report> {
    let mut reports = Vec::new();
    for (index, version) in definition.spec.versions.iter().enumerate() {
        let own = format!("spec.versions[{index}].schema.openAPIV3Schema");
        let is_of_version = |costs: &&SchemaCosts| costs.path == own || costs.path == SHARED;
        let Some(costs) = costs.iter().find(is_of_version) else { continue };
        let Some(schema) = version.schema.as_ref().and_then(Option::as_ref) else { continue };
        let Ok(structural) = to_structural(schema) else { continue };
        let priced = |rule: &RuleCosts| PricedDefinition {
            costs: rule.clone(),
            advice: advice(&structural, rule),
            place: place(&format!("{}.rule", written_field(&rule.path, index))),
        };
        let mut rules: Vec<PricedDefinition> = costs.rules.iter().map(priced).collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.costs.cost));
        reports.push(Report {
            file: file.to_owned(),
            crd: definition.name().to_owned(),
            version: version.name.clone(),
            rules,
            total: costs.total,
        });
    }
    reports
}

/// The path of the schema that all versions share.
const SHARED: &str = "spec.validation.openAPIV3Schema";

/// Advice for rules that take a tenth of the limit or more.
fn advice(schema: &Structural, rule: &RuleCosts) -> Advice {
    if rule.cost >= EXPRESSION_ESTIMATE_MAX / 10 { advise(schema, rule) } else { Advice::default() }
}

/// The rules of all versions with their reports, the most expensive first.
fn by_cost(reports: &[Report]) -> Vec<(&Report, &PricedDefinition)> {
    let mut rules: Vec<(&Report, &PricedDefinition)> =
        reports.iter().flat_map(|report| report.rules.iter().map(move |rule| (report, rule))).collect();
    rules.sort_by_key(|(_, rule)| std::cmp::Reverse(rule.costs.cost));
    rules
}

/// A rule, and the versions that have it; `report` and `rule` are of the first one.
struct RuleAndVersions<'r> {
    report: &'r Report,
    rule: &'r PricedDefinition,
    versions: Vec<&'r str>,
}

/// Combines equal rules of several versions.
fn told(reports: &[Report]) -> Vec<RuleAndVersions<'_>> {
    let mut told: Vec<RuleAndVersions<'_>> = Vec::new();
    let mut known: HashMap<(&str, &[SchemaStep], &str, u64), usize> = HashMap::new();
    for (report, rule) in by_cost(reports) {
        let RuleCosts { steps, rule: written, cost, .. } = &rule.costs;
        let key = (report.crd.as_str(), steps.as_slice(), written.rule.as_str(), *cost);
        let version = report.version.as_str();
        match known.get(&key).map(|at| &mut told[*at]).filter(|told| !told.versions.contains(&version)) {
            Some(told) => told.versions.push(version),
            None => {
                known.insert(key, told.len());
                told.push(RuleAndVersions { report, rule, versions: vec![version] });
            }
        }
    }
    told
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "rule" } else { "rules" }
}

/// How many rules can't be priced: such rules are rejected.
fn unpriced(rules: &[PricedDefinition]) -> usize {
    rules.iter().filter(|rule| rule.costs.compiled.expression.is_none()).count()
}

/// The total cost of all rules, as far as they can be priced.
fn shown_total(total: u64, rules: &[PricedDefinition]) -> String {
    match unpriced(rules) {
        0 => share(total, SCHEMA_ESTIMATE_MAX),
        count if count == rules.len() => "can't be priced".to_owned(),
        count => {
            format!("{}, without {count} {} that can't be priced", share(total, SCHEMA_ESTIMATE_MAX), plural(count))
        }
    }
}

fn show_json(reports: &[Report], top: Option<usize>, policies: &[PolicyPrices]) -> String {
    let text = |text: &str| json::encode_to_string(&Value::from(text));
    let join = |items: Vec<String>| items.join(",");
    let shown = by_cost(reports).into_iter().take(top.unwrap_or(usize::MAX));
    let shown: HashSet<*const PricedDefinition> = shown.map(|(_, rule)| std::ptr::from_ref(rule)).collect();
    let is_shown = |rule: &&PricedDefinition| shown.contains(&std::ptr::from_ref(*rule));
    let rule = |rule: &PricedDefinition| {
        let costs = &rule.costs;
        let line = rule.place.map_or("null".to_owned(), |place| place.line.to_string());
        let (estimated, of_limit) = match costs.compiled.expression {
            Some(_) => {
                (costs.compiled.cost_max().to_string(), percent(costs.cost, EXPRESSION_ESTIMATE_MAX).to_string())
            }
            None => ("null".to_owned(), "null".to_owned()),
        };
        format!(
            r#"{{"path":{},"field":{},"line":{line},"rule":{},"estimatedCost":{estimated},"cardinality":{},"limit":{EXPRESSION_ESTIMATE_MAX},"percent":{of_limit}}}"#,
            text(&costs.path),
            text(&in_objects(&costs.steps)),
            text(&costs.rule.rule),
            costs.cardinality(),
        )
    };
    let report = |report: &Report| {
        // There is no total if some rules are missing in it.
        let total = if unpriced(&report.rules) == 0 { report.total.to_string() } else { "null".to_owned() };
        format!(
            r#"{{"file":{},"crd":{},"version":{},"rules":[{}],"total":{total},"limit":{SCHEMA_ESTIMATE_MAX}}}"#,
            text(&report.file),
            text(&report.crd),
            text(&report.version),
            join(report.rules.iter().filter(is_shown).map(rule).collect()),
        )
    };
    let policies = policies.iter().map(PolicyPrices::to_json);
    format!("[{}]", join(reports.iter().map(report).chain(policies).collect()))
}

fn show_text(reports: &[Report], top: Option<usize>) -> String {
    let mut out = String::new();
    // Writing to a String can't fail.
    for Report { crd, version, rules, total, .. } in reports {
        let _ = match rules.len() {
            0 => writeln!(out, "{crd} {version}: no rules"),
            count => {
                writeln!(out, "{crd} {version}: {} for {count} {}", shown_total(*total, rules), plural(count))
            }
        };
    }
    let told = told(reports);
    let shown = top.unwrap_or(usize::MAX).min(told.len());
    for rule in &told[..shown] {
        let _ = write_rule(&mut out, rule);
    }
    match told.len() - shown {
        0 => {}
        1 => out.push_str("\nand a cheaper one\n"),
        more => _ = writeln!(out, "\nand {more} cheaper ones"),
    }
    out
}

fn write_rule(out: &mut String, RuleAndVersions { report, rule, versions }: &RuleAndVersions<'_>) -> fmt::Result {
    let PricedDefinition { costs, advice, place } = rule;
    let line = place.map_or(String::new(), |place| format!(":{}", place.line));
    let node = in_objects(&costs.steps);
    let separator = if node.is_empty() { "" } else { " " };
    writeln!(out, "\n{}{line}: {} {}{separator}{node}", report.file, report.crd, versions.join(", "))?;
    for line in costs.rule.rule.trim().lines() {
        writeln!(out, "    {line}")?;
    }
    let Some(expression) = &costs.compiled.expression else { return writeln!(out, "  can't be priced") };
    writeln!(out, "  {}", share(costs.cost, EXPRESSION_ESTIMATE_MAX))?;
    if costs.cardinality() > 1 {
        let (each, times) = (grouped(expression.cost_max), grouped(costs.cardinality()));
        let why = if costs.schema_cardinality.is_none() { ", as nothing bounds that" } else { "" };
        writeln!(out, "  {each} each, up to {times} times{why}")?;
    }
    if let Some(Ok(message)) = &costs.compiled.message {
        writeln!(out, "  messageExpression {}", share(message.cost_max, EXPRESSION_ESTIMATE_MAX))?;
    }
    if !advice.unbounded.is_empty() {
        let places: Vec<String> = advice.unbounded.iter().map(|place| format!("{place} ({})", place.keyword)).collect();
        writeln!(out, "  unbounded: {}", places.join(", "))?;
    }
    let first = if costs.cost > EXPRESSION_ESTIMATE_MAX { "fits with" } else { "takes half with" };
    for (index, bounds) in advice.remedies.iter().enumerate() {
        let bounds: Vec<String> = bounds.iter().map(Bound::to_string).collect();
        writeln!(out, "  {} {}", if index == 0 { first } else { "  or with" }, bounds.join(", "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRD: &str = "
metadata: {name: foos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: foos, kind: Foo}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer}
              max: {type: integer}
              ports:
                type: array
                items:
                  type: object
                  properties:
                    name: {type: string}
                  x-kubernetes-validations:
                  - rule: self.name.startsWith('a')
            x-kubernetes-validations:
            - rule: self.replicas <= self.max
            - rule: self.ports.all(p, self.ports.exists_one(q, q.name == p.name))
";

    fn reports(crd: &str) -> Vec<Report> {
        let source = ManifestText::of_text("crd.yaml", crd.into());
        price(Minor::NEWEST, &source, &source.documents[0]).expect("the test is a definition").3
    }

    #[test]
    fn the_text_tells_what_to_bound() {
        let expected = "\
foos.example.com v1: 345,882,608,644,967,636 (OVER THE LIMIT: 3,458,826,086 times 100,000,000) for 3 rules

crd.yaml:30: foos.example.com v1 spec
    self.ports.all(p, self.ports.exists_one(q, q.name == p.name))
  345,882,608,641,821,903 (OVER THE LIMIT: 34,588,260,864 times 10,000,000)
  unbounded: spec.ports (maxItems), spec.ports[*].name (maxLength)
  fits with maxItems: 287 on spec.ports, maxLength: 287 on spec.ports[*].name
    or with maxItems: 5 on spec.ports

crd.yaml:27: foos.example.com v1 spec.ports[*]
    self.name.startsWith('a')
  3,145,728 (31.5% of 10,000,000)
  3 each, up to 1,048,576 times, as nothing bounds that
  unbounded: spec.ports (maxItems)

and a cheaper one
";
        assert_eq!(show_text(&reports(CRD), Some(2)), expected);
    }

    #[test]
    fn a_rule_that_versions_share_is_told_once() {
        let (head, version) = CRD.split_once("  - name: v1\n").expect("there is a version");
        let beta = version.replace("storage: true", "storage: false");
        let shown = show_text(&reports(&format!("{head}  - name: v1\n{version}  - name: v1beta1\n{beta}")), Some(1));
        assert!(shown.contains("\ncrd.yaml:30: foos.example.com v1, v1beta1 spec\n"), "{shown}");
        assert!(shown.ends_with("\nand 2 cheaper ones\n"), "{shown}");
    }

    #[test]
    fn the_json_has_all_numbers_as_they_are() {
        let expected = concat!(
            r#"[{"file":"crd.yaml","crd":"foos.example.com","version":"v1","rules":["#,
            r#"{"path":"spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[1]","#,
            r#""field":"spec","line":30,"rule":"self.ports.all(p, self.ports.exists_one(q, q.name == p.name))","#,
            r#""estimatedCost":345882608641821903,"cardinality":1,"limit":10000000,"percent":3458826086418.219},"#,
            r#"{"path":"spec.validation.openAPIV3Schema.properties[spec].properties[ports].items.x-kubernetes-validations[0]","#,
            r#""field":"spec.ports[*]","line":27,"#,
            r#""rule":"self.name.startsWith('a')","estimatedCost":3,"cardinality":1048576,"limit":10000000,"percent":31.45728},"#,
            r#"{"path":"spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]","#,
            r#""field":"spec","line":29,"rule":"self.replicas \u003c= self.max","estimatedCost":5,"cardinality":1,"limit":10000000,"percent":0.00005}],"#,
            r#""total":345882608644967636,"limit":100000000}]"#,
        );
        assert_eq!(show_json(&reports(CRD), None, &[]), expected);
    }
}
