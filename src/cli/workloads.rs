//! The options about controllers and simulated nodes, of the process and of additional control
//! planes.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::documents::{self, Unreadable};
use super::print::tell;
use crate::controllers::{NodePlan, PlanError, Profile, Stage, StageError, Switches, UnknownController};
use crate::http::WantedWorkloads;

/// How many nodes the profile `cluster` has by default.
const CLUSTER_NODES: usize = 3;

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

    /// Files or folders with stages in the form of kwok (Stage of kwok.x-k8s.io/v1alpha1): what becomes of simulated nodes, of the
    /// pods on them in place of what usually does, and of objects of other kinds
    #[arg(long, value_name = "PATH")]
    stages: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProfileArg {
    Server,
    Cluster,
}

/// What is wrong with the requested workloads.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadsError {
    #[error("the profile `{0}` is not one of server and cluster")]
    Profile(String),
    #[error("the nodes to simulate: {0}")]
    Nodes(#[source] PlanError),
    #[error(transparent)]
    File(#[from] Unreadable),
    #[error("`{file}`: {source}")]
    Stage { file: String, source: StageError },
}

impl Workloads {
    /// The workloads of a control plane; missing options have their defaults.
    ///
    /// # Errors
    ///
    /// The profile is unknown, or the nodes can't be parsed.
    pub fn of_plane(wanted: &WantedWorkloads) -> Result<Self, WorkloadsError> {
        let profile = match wanted.profile.as_deref() {
            None => ProfileArg::Server,
            Some(name) => ProfileArg::from_str(name, false).map_err(|_| WorkloadsError::Profile(name.to_owned()))?,
        };
        let nodes = wanted.simulate_nodes.as_deref().map(str::parse).transpose();
        Ok(Workloads {
            controllers: wanted.controllers.clone().unwrap_or_else(|| vec!["*".to_owned()]),
            profile,
            simulate_nodes: nodes.map_err(WorkloadsError::Nodes)?,
            stages: Vec::new(),
        })
    }

    /// Whether the profile is `cluster`.
    pub fn is_cluster(&self) -> bool {
        self.profile == ProfileArg::Cluster
    }

    /// The controllers that run. Errors: an unknown name.
    pub fn switches(&self) -> Result<Switches, UnknownController> {
        let profile = match self.profile {
            ProfileArg::Server => Profile::Server,
            ProfileArg::Cluster => Profile::Cluster,
        };
        let switches = Switches::parse(&self.controllers, profile)?;
        Ok(if self.simulate_nodes.is_some() { switches.with_those_for_nodes(&self.controllers) } else { switches })
    }

    /// The simulated nodes, without stages.
    pub fn nodes(&self) -> NodePlan {
        let of_profile = match self.profile {
            ProfileArg::Server => NodePlan::default(),
            ProfileArg::Cluster => NodePlan { count: CLUSTER_NODES, ..NodePlan::default() },
        };
        self.simulate_nodes.clone().unwrap_or(of_profile)
    }

    /// The stages in the files; other objects are reported and ignored.
    ///
    /// # Errors
    ///
    /// A file can't be read, or a stage is invalid.
    pub fn stages(&self) -> Result<Arc<[Stage]>, WorkloadsError> {
        let mut stages = Vec::new();
        for source in documents::read(&self.stages)? {
            for document in &source.documents {
                let read = Stage::read(&document.value);
                match read.map_err(|error| WorkloadsError::Stage { file: source.name.clone(), source: error })? {
                    Some(stage) => stages.push(stage),
                    None => tell(format_args!(
                        "`{}`: {} `{}` is not a stage, and is left out",
                        source.name,
                        document.value.str_at(&["kind"]),
                        document.value.str_at(&["metadata", "name"])
                    )),
                }
            }
        }
        Ok(stages.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_plane_has_what_it_is_said_to_have() {
        let wanted = |profile: &str, controllers: Option<&str>, nodes: Option<&str>| WantedWorkloads {
            profile: Some(profile.to_owned()),
            controllers: controllers.map(|list| list.split(',').map(str::to_owned).collect()),
            simulate_nodes: nodes.map(str::to_owned),
        };
        let read = |wanted: &WantedWorkloads| {
            let workloads = Workloads::of_plane(wanted).map_err(|error| error.to_string())?;
            let switches = workloads.switches().map_err(|error| error.to_string())?;
            Ok::<_, String>((switches, workloads.nodes().count))
        };
        let (cluster, count) = read(&wanted("cluster", None, None)).expect("it is known");
        assert_eq!((cluster == Switches::SERVER, count), (false, CLUSTER_NODES));
        assert_eq!(read(&wanted("server", None, None)), Ok((Switches::SERVER, 0)));
        let (some, count) = read(&wanted("server", Some("*,deployment"), Some("2,cpu=4"))).expect("they are known");
        assert_eq!((some == cluster, some == Switches::SERVER, count), (false, false, 2));
        for (wanted, why) in [
            (wanted("large", None, None), "the profile `large`"),
            (wanted("server", Some("nonsense"), None), "nonsense"),
            (wanted("server", None, Some("x")), "the nodes to simulate: "),
        ] {
            let told = read(&wanted).expect_err(why);
            assert!(told.contains(why), "{told}");
        }
    }
}
