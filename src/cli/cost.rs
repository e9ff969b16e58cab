//! `skiff cost`: what the rules of CustomResourceDefinitions cost by the estimate, and what to bound.

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::definitions::{each, is_definition, none_in};
use super::documents;
use super::parallel;
use super::print::{note, output, tell};
use crate::cel::cost::model::{EXPRESSION_ESTIMATE_MAX, SCHEMA_ESTIMATE_MAX};
use crate::crd::bounds::{Advice, Bound, advise};
use crate::crd::definition;
use crate::crd::validate::expressions::{RuleCosts, SchemaCosts};
use crate::crd::{Definition, defaults, strategy, validate};
use crate::meta::field::ErrorList;
use crate::schema::convert::to_structural;
use crate::schema::structural::Structural;
use crate::value::{Value, json};

/// Estimate what validation rules cost, and tell what to bound
///
/// Prices every rule of every version as the API server does when a CustomResourceDefinition is written. A rule may cost
/// 10,000,000 by the estimate, times how often it may be evaluated for an object; all rules of a schema together
/// 100,000,000.
#[derive(Args)]
#[command(
    after_help = "Example:\n  skiff cost crd-examples\n\nExit codes: 0 fine, 1 invalid or over a limit, 2 wrong use or unreadable input"
)]
pub struct Cost {
    /// Files or folders with CustomResourceDefinitions
    #[arg(value_name = "CRD", required = true)]
    crds: Vec<PathBuf>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// The rules of one version.
struct Report {
    crd: String,
    version: String,
    rules: Vec<Priced>,
    total: u64,
}

struct Priced {
    costs: RuleCosts,
    advice: Advice,
}

impl Cost {
    /// Prints the costs. Exit codes: 0 if all is within the limits, 1 if not or if a definition is invalid, 2 if there is
    /// nothing to price.
    pub fn run(self) -> ExitCode {
        let definitions = match self.definitions() {
            Ok(definitions) => definitions,
            Err(message) => {
                tell(message);
                return ExitCode::from(2);
            }
        };
        let priced = parallel::map("definitions", &definitions, |definition| {
            let (errors, costs) = validate::create_with_costs(definition);
            let reports = report_versions(definition, &costs);
            (errors, costs, reports)
        });
        let mut reports = Vec::new();
        let mut is_fine = true;
        for (definition, (errors, costs, found)) in definitions.iter().zip(priced) {
            is_fine &= errors.is_empty();
            // What is too dear is in the report.
            report_errors(definition, &errors, &costs);
            reports.extend(found);
        }
        let text = match self.output {
            Output::Text => show_text(&reports),
            Output::Json => show_json(&reports).to_string() + "\n",
        };
        output(text, if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn definitions(&self) -> Result<Vec<Definition>, String> {
        let mut definitions = Vec::new();
        let sources = documents::read(&self.crds).map_err(|error| error.to_string())?;
        for (source, document) in each(&sources).filter(|(_, document)| is_definition(&document.value)) {
            let decoded = definition::decode(&document.value);
            let (mut definition, _) = decoded.map_err(|error| format!("`{}`: {error}", source.name))?;
            defaults::set_defaults(&mut definition);
            strategy::prepare_create(&mut definition);
            definitions.push(definition);
        }
        if definitions.is_empty() { Err(none_in(&self.crds)) } else { Ok(definitions) }
    }
}

/// Tells on stderr what is wrong with a definition, but for limits that the report shows.
fn report_errors(definition: &Definition, errors: &ErrorList, costs: &[SchemaCosts]) {
    let is_in_report = |field: &str, detail: &str| {
        let is_cost = detail.contains("exceeds budget by factor of") || detail.starts_with("contributed to estimated");
        is_cost && costs.iter().any(|costs| field.starts_with(&costs.path))
    };
    for error in errors.iter().filter(|error| !is_in_report(&error.field, &error.detail)) {
        note(format_args!("{}: {error}", definition.name()));
    }
}

/// A version that has no schema, or one that can't be priced, is left out.
fn report_versions(definition: &Definition, costs: &[SchemaCosts]) -> Vec<Report> {
    let mut reports = Vec::new();
    for (index, version) in definition.spec.versions.iter().enumerate() {
        let own = format!("spec.versions[{index}].schema.openAPIV3Schema");
        let is_of_version = |costs: &&SchemaCosts| costs.path == own || costs.path == SHARED;
        let Some(costs) = costs.iter().find(is_of_version) else { continue };
        let Some(schema) = version.schema.as_ref().and_then(Option::as_ref) else { continue };
        let Ok(structural) = to_structural(schema) else { continue };
        let rules = costs.rules.iter().map(|rule| Priced { costs: rule.clone(), advice: advice(&structural, rule) });
        reports.push(Report {
            crd: definition.name().to_owned(),
            version: version.name.clone(),
            rules: rules.collect(),
            total: costs.total,
        });
    }
    reports
}

/// Where the schema is that all versions share.
const SHARED: &str = "spec.validation.openAPIV3Schema";

/// For rules that take a tenth of the limit or more.
fn advice(schema: &Structural, rule: &RuleCosts) -> Advice {
    if rule.cost >= EXPRESSION_ESTIMATE_MAX / 10 { advise(schema, rule) } else { Advice::default() }
}

fn percent(cost: u64, limit: u64) -> f64 {
    cost as f64 * 100.0 / limit as f64
}

fn show_json(reports: &[Report]) -> String {
    let text = |text: &str| json::encode_to_string(&Value::from(text));
    let join = |items: Vec<String>| items.join(",");
    let rule = |rule: &Priced| {
        let costs = &rule.costs;
        format!(
            r#"{{"path":{},"rule":{},"estimatedCost":{},"cardinality":{},"limit":{EXPRESSION_ESTIMATE_MAX},"percent":{}}}"#,
            text(&costs.path),
            text(&costs.rule.rule),
            costs.compiled.cost_max(),
            costs.cardinality(),
            percent(costs.cost, EXPRESSION_ESTIMATE_MAX),
        )
    };
    let report = |report: &Report| {
        format!(
            r#"{{"crd":{},"version":{},"rules":[{}],"total":{},"limit":{SCHEMA_ESTIMATE_MAX}}}"#,
            text(&report.crd),
            text(&report.version),
            join(report.rules.iter().map(rule).collect()),
            report.total,
        )
    };
    format!("[{}]", join(reports.iter().map(report).collect()))
}

fn show_text(reports: &[Report]) -> String {
    let mut out = String::new();
    for (index, report) in reports.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        // Writing to a String can't fail.
        let _ = write_report(&mut out, report);
    }
    out
}

fn write_report(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "{} {}", report.crd, report.version)?;
    if report.rules.is_empty() {
        return writeln!(out, "  no rules");
    }
    for rule in &report.rules {
        write_rule(out, rule)?;
    }
    writeln!(out, "  total {}", share(report.total, SCHEMA_ESTIMATE_MAX))
}

fn write_rule(out: &mut String, Priced { costs, advice }: &Priced) -> fmt::Result {
    writeln!(out, "  {}", costs.path)?;
    for line in costs.rule.rule.trim().lines() {
        writeln!(out, "    {line}")?;
    }
    let Some(expression) = &costs.compiled.expression else { return writeln!(out, "    can't be priced") };
    writeln!(out, "    {}", share(costs.cost, EXPRESSION_ESTIMATE_MAX))?;
    if costs.cardinality() > 1 {
        let (each, times) = (grouped(expression.cost_max), grouped(costs.cardinality()));
        let why = if costs.schema_cardinality.is_none() { ", as nothing bounds that" } else { "" };
        writeln!(out, "    {each} each, up to {times} times{why}")?;
    }
    if let Some(Ok(message)) = &costs.compiled.message {
        writeln!(out, "    messageExpression {}", share(message.cost_max, EXPRESSION_ESTIMATE_MAX))?;
    }
    if !advice.unbounded.is_empty() {
        let places: Vec<String> = advice.unbounded.iter().map(|place| format!("{place} ({})", place.keyword)).collect();
        writeln!(out, "    unbounded: {}", places.join(", "))?;
    }
    for (index, bounds) in advice.remedies.iter().enumerate() {
        let bounds: Vec<String> = bounds.iter().map(Bound::to_string).collect();
        writeln!(out, "    {} {}", if index == 0 { "fits with" } else { "  or with" }, bounds.join(", "))?;
    }
    Ok(())
}

/// `1,234 (0.1% of 1,000,000)`.
fn share(cost: u64, limit: u64) -> String {
    let percent = percent(cost, limit);
    let shown = match percent {
        _ if cost > limit && percent < 1000.0 => format!("OVER THE LIMIT: {percent:.0}% of"),
        _ if cost > limit => format!("OVER THE LIMIT: {} times", grouped(cost / limit)),
        percent if percent > 0.0 && percent < 0.1 => "less than 0.1% of".to_owned(),
        percent => format!("{percent:.1}% of"),
    };
    // Where counting ends, the cost is at least this.
    let at_least = if cost == u64::MAX { "at least " } else { "" };
    format!("{at_least}{} ({shown} {})", grouped(cost), grouped(limit))
}

/// With a comma after each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

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
        let value = &yaml::decode_all(crd.as_bytes()).expect("the test is YAML")[0];
        let mut definition = definition::decode(value).expect("and a definition").0;
        defaults::set_defaults(&mut definition);
        strategy::prepare_create(&mut definition);
        report_versions(&definition, &validate::create_with_costs(&definition).1)
    }

    #[test]
    fn the_text_tells_what_to_bound() {
        let expected = "\
foos.example.com v1
  spec.validation.openAPIV3Schema.properties[spec].properties[ports].items.x-kubernetes-validations[0]
    self.name.startsWith('a')
    3,145,728 (31.5% of 10,000,000)
    3 each, up to 1,048,576 times, as nothing bounds that
    unbounded: spec.ports (maxItems)
  spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]
    self.replicas <= self.max
    5 (less than 0.1% of 10,000,000)
  spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[1]
    self.ports.all(p, self.ports.exists_one(q, q.name == p.name))
    345,882,608,641,821,903 (OVER THE LIMIT: 34,588,260,864 times 10,000,000)
    unbounded: spec.ports (maxItems), spec.ports[*].name (maxLength)
    fits with maxItems: 287 on spec.ports, maxLength: 287 on spec.ports[*].name
      or with maxItems: 5 on spec.ports
  total 345,882,608,644,967,636 (OVER THE LIMIT: 3,458,826,086 times 100,000,000)
";
        assert_eq!(show_text(&reports(CRD)), expected);
    }

    #[test]
    fn the_json_has_all_numbers_as_they_are() {
        let expected = concat!(
            r#"[{"crd":"foos.example.com","version":"v1","rules":["#,
            r#"{"path":"spec.validation.openAPIV3Schema.properties[spec].properties[ports].items.x-kubernetes-validations[0]","#,
            r#""rule":"self.name.startsWith('a')","estimatedCost":3,"cardinality":1048576,"limit":10000000,"percent":31.45728},"#,
            r#"{"path":"spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]","#,
            r#""rule":"self.replicas \u003c= self.max","estimatedCost":5,"cardinality":1,"limit":10000000,"percent":0.00005},"#,
            r#"{"path":"spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[1]","#,
            r#""rule":"self.ports.all(p, self.ports.exists_one(q, q.name == p.name))","#,
            r#""estimatedCost":345882608641821903,"cardinality":1,"limit":10000000,"percent":3458826086418.219}],"#,
            r#""total":345882608644967636,"limit":100000000}]"#,
        );
        assert_eq!(show_json(&reports(CRD)), expected);
    }
}
