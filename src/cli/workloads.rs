//! The options of controllers and of the nodes that are simulated for them.

use clap::{Args, ValueEnum};

use crate::controllers::{NodePlan, Profile, Switches, UnknownController};

/// How many nodes the profile `cluster` has, where nothing is said.
const CLUSTER_NODES: usize = 3;
/// What nodes need that are simulated.
const WITH_NODES: [&str; 3] = ["simulated-nodes", "kube-scheduler", "node-lifecycle-controller"];

/// The options.
#[derive(Args)]
pub struct Workloads {
    /// Controllers to run, by kube-controller-manager's names: * for all of the profile, NAME, -NAME for all but that
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "*", allow_hyphen_values = true)]
    controllers: Vec<String>,

    /// What `*` stands for among the controllers: what an API server needs, or all that make workloads ready
    #[arg(long, value_enum, default_value_t = ProfileArg::Server)]
    profile: ProfileArg,

    /// Nodes that nothing is behind, on which pods are ready at once: their number, then NAME=AMOUNT of a resource, or
    /// label=NAME=VALUE, as in 3,cpu=8,label=zone=a [default: 3 in the profile cluster]
    #[arg(long, value_name = "N[,NAME=AMOUNT...]")]
    simulate_nodes: Option<NodePlan>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProfileArg {
    Server,
    Cluster,
}

impl Workloads {
    /// Which controllers run. Errors: a name that none has.
    pub fn switches(&self) -> Result<Switches, UnknownController> {
        let profile = match self.profile {
            ProfileArg::Server => Profile::Server,
            ProfileArg::Cluster => Profile::Cluster,
        };
        let switches = Switches::parse(&self.controllers, profile)?;
        // One that is named, also to be left out, stays as it is.
        let is_named = |name: &&str| self.controllers.iter().any(|item| item.trim_start_matches('-') == *name);
        let beside: Vec<&str> = WITH_NODES.into_iter().filter(|name| !is_named(name)).collect();
        Ok(if self.simulate_nodes.is_some() { switches.with(&beside) } else { switches })
    }

    /// The nodes that are simulated.
    pub fn nodes(&self) -> NodePlan {
        let of_profile = match self.profile {
            ProfileArg::Server => NodePlan::default(),
            ProfileArg::Cluster => NodePlan { count: CLUSTER_NODES, ..NodePlan::default() },
        };
        self.simulate_nodes.clone().unwrap_or(of_profile)
    }
}
