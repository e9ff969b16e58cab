//! How many nodes are simulated, and what each has: `3,cpu=8,memory=32Gi,label=zone=a`.

use std::str::FromStr;
use std::sync::Arc;

use crate::meta::names::{is_qualified_name, is_valid_label_value};
use crate::meta::quantity::{self, Quantity};

use super::stages::Stage;

/// How many there may be.
const NODES_MAX: usize = 1_000;
/// The default capacity of each.
const CAPACITY: [(&str, &str); 4] = [("cpu", "8"), ("ephemeral-storage", "100Gi"), ("memory", "32Gi"), ("pods", "110")];

/// What is wrong with the text of a plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    #[error("begin with a number of nodes, {NODES_MAX} at most")]
    Count,
    #[error("{0:?} is not NAME=VALUE")]
    Pair(String),
    #[error("{name:?} is not the name of a resource: {fault}")]
    Resource { name: String, fault: String },
    #[error("{name}={amount}: {source}")]
    Quantity { name: String, amount: String, source: quantity::QuantityError },
    #[error("{name}={amount}: it is negative")]
    Negative { name: String, amount: String },
    #[error("label={label}: {fault}")]
    Label { label: String, fault: String },
}

/// The nodes that are simulated from the start.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePlan {
    pub count: usize,
    /// What each has, by the names of resources.
    pub capacity: Vec<(String, String)>,
    /// Labels beside those that every node has.
    pub labels: Vec<(String, String)>,
    /// The stages from files for them, for the pods on them, and for objects of other kinds.
    pub stages: Arc<[Stage]>,
}

impl Default for NodePlan {
    fn default() -> Self {
        let capacity = CAPACITY.map(|(name, amount)| (name.to_owned(), amount.to_owned()));
        NodePlan { count: 0, capacity: capacity.into(), labels: Vec::new(), stages: Arc::default() }
    }
}

impl FromStr for NodePlan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let mut parts = text.split(',');
        let count = parts.next().unwrap_or_default();
        let count = count.parse().ok().filter(|count| *count <= NODES_MAX);
        let count = count.ok_or(PlanError::Count)?;
        let mut plan = NodePlan { count, ..NodePlan::default() };
        for part in parts {
            let (name, value) = part.split_once('=').ok_or_else(|| PlanError::Pair(part.to_owned()))?;
            match name {
                "label" => plan.labels.push(label(value)?),
                _ => plan.set_capacity(name, value)?,
            }
        }
        Ok(plan)
    }
}

impl NodePlan {
    fn set_capacity(&mut self, name: &str, amount: &str) -> Result<(), PlanError> {
        let owned = || (name.to_owned(), amount.to_owned());
        if let Some(fault) = is_qualified_name(name).into_iter().next() {
            return Err(PlanError::Resource { name: name.to_owned(), fault });
        }
        let quantity = Quantity::parse(amount).map_err(|source| {
            let (name, amount) = owned();
            PlanError::Quantity { name, amount, source }
        })?;
        if quantity.signum() < 0 {
            let (name, amount) = owned();
            return Err(PlanError::Negative { name, amount });
        }
        self.capacity.retain(|(known, _)| known != name);
        self.capacity.push((name.to_owned(), amount.to_owned()));
        Ok(())
    }

    /// The names of the nodes.
    pub fn names(&self) -> impl Iterator<Item = String> {
        (0..self.count).map(|number| format!("node-{number}"))
    }
}

fn label(text: &str) -> Result<(String, String), PlanError> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let faults = is_qualified_name(name).into_iter().chain(is_valid_label_value(value));
    match faults.into_iter().next() {
        Some(fault) => Err(PlanError::Label { label: text.to_owned(), fault }),
        None => Ok((name.to_owned(), value.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_a_number_and_what_each_node_has() {
        let plan: NodePlan = "3,cpu=2,example.com/gpu=1,label=zone=a,label=spot".parse().expect("a plan");
        assert_eq!(plan.names().collect::<Vec<_>>(), ["node-0", "node-1", "node-2"]);
        let capacity: Vec<String> = plan.capacity.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        assert_eq!(capacity, ["ephemeral-storage=100Gi", "memory=32Gi", "pods=110", "cpu=2", "example.com/gpu=1"]);
        assert_eq!(plan.labels, [("zone".into(), "a".into()), ("spot".into(), String::new())]);
    }

    #[test]
    fn what_is_not_a_plan_is_told() {
        for text in ["", "x", "2000", "1,cpu", "1,cpu=x", "1,cpu=-1", "1,label=/=", "1,a b=1"] {
            assert!(text.parse::<NodePlan>().is_err(), "{text}");
        }
    }
}
