//! The estimated cost of policies, for `skiff cost`.

use std::fmt::{self, Write as _};

use super::super::definitions::is_definition;
use super::super::documents::ManifestText;
use super::super::shares::share;
use super::values;
use crate::author::Catalog;
use crate::author::policies::is_policy;
use crate::author::policies::price::{LIMIT, Prices, price};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::{Value, json};

/// The costs of a policy.
pub struct PolicyPrices {
    kind: String,
    name: String,
    prices: Prices,
}

/// Whether `sources` contain policies whose expressions have a cost.
pub fn has_prices(sources: &[ManifestText]) -> bool {
    values(sources).any(is_priced)
}

fn is_priced(value: &Value) -> bool {
    is_policy(value) && !value.str_at(&["kind"]).ends_with("Binding")
}

/// The costs of all policies in `sources` for one version of Kubernetes. Definitions among them
/// bound the size of objects.
pub fn prices(minor: Minor, sources: &[ManifestText]) -> Vec<PolicyPrices> {
    let mut catalog = Catalog::of_minor(minor);
    for value in values(sources).filter(|value| is_definition(value)) {
        // Errors of definitions are reported elsewhere.
        _ = catalog.add(value);
    }
    let priced = |policy: &Value| PolicyPrices {
        kind: policy.str_at(&["kind"]).to_owned(),
        name: policy.str_at(&["metadata", "name"]).to_owned(),
        prices: price(policy, &catalog),
    };
    values(sources).filter(|value| is_priced(value)).map(priced).collect()
}

/// The costs as text; `follows` tells whether other output precedes them.
pub fn show_prices(policies: &[PolicyPrices], follows: bool) -> String {
    let mut out = String::new();
    for (index, policy) in policies.iter().enumerate() {
        if index > 0 || follows {
            out.push('\n');
        }
        // Writing to a String can't fail.
        let _ = policy.write(&mut out);
    }
    out
}

impl PolicyPrices {
    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "{} {}", self.kind, self.name)?;
        match self.prices.kinds.as_slice() {
            [] => writeln!(out, "  its rules name no kind that is known: nobody can tell how large objects are")?,
            kinds => writeln!(out, "  for the largest {}", kinds.join(", "))?,
        }
        for priced in &self.prices.expressions {
            writeln!(out, "  {}", priced.field)?;
            priced.text.trim().lines().try_for_each(|line| writeln!(out, "    {line}"))?;
            match priced.cost {
                Some(cost) => writeln!(out, "    {}", share(cost, LIMIT))?,
                None => writeln!(out, "    can't be priced")?,
            }
        }
        for (group, cost, budget) in &self.prices.groups {
            writeln!(out, "  {} {}", group.shown(), share(*cost, *budget))?;
        }
        Ok(())
    }

    /// The cost of each group of expressions, and the expressions without a cost or over the limit,
    /// one per line.
    pub fn lines(&self) -> Vec<String> {
        let head = format!("{} {}", self.kind, self.name);
        let groups = self.prices.groups.iter();
        let mut lines: Vec<String> = groups
            .map(|(group, cost, budget)| format!("{head}: {} {}", group.shown(), share(*cost, *budget)))
            .collect();
        for priced in &self.prices.expressions {
            match priced.cost {
                None => lines.push(format!("{head}: {}: can't be priced", priced.field)),
                Some(cost) if cost > LIMIT => lines.push(format!("{head}: {}: {}", priced.field, share(cost, LIMIT))),
                Some(_) => {}
            }
        }
        lines
    }

    /// The costs as JSON.
    pub fn to_json(&self) -> String {
        let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let expressions = self.prices.expressions.iter().map(|priced| {
            object! {
                "path" => priced.field.as_str(),
                "expression" => priced.text.as_str(),
                "estimatedCost" => priced.cost.map_or(Value::Null, number),
                "limit" => number(LIMIT),
            }
        });
        let groups = self.prices.groups.iter().map(|(group, cost, budget)| {
            object! { "group" => group.shown(), "estimatedCost" => number(*cost), "limit" => number(*budget) }
        });
        let kinds = self.prices.kinds.iter().map(|kind| Value::from(kind.as_str()));
        json::encode_to_string(&object! {
            "policy" => self.name.as_str(),
            "kind" => self.kind.as_str(),
            "kinds" => kinds.collect::<Vec<_>>(),
            "expressions" => expressions.collect::<Vec<_>>(),
            "groups" => groups.collect::<Vec<_>>(),
        })
    }
}
