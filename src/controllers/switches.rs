//! Which controllers run: switched in the same way as those of kube-controller-manager.
//!
//! `*` means all that run by default: those that an API server needs to be useful, and in the profile `cluster` all.
//! The others, for workloads, run if they are named; until then they cost nothing.

use std::fmt;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::WORKLOADS;
use super::changes::keep_running;
use super::workload::ControllerContext;

/// A controller that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerName {
    /// Objects without owners are collected.
    Garbage,
    /// Namespaces that are being deleted are emptied.
    Namespaces,
    /// Namespaces have an account `default`.
    Accounts,
    /// Namespaces have `kube-root-ca.crt`.
    Authority,
    /// Cluster roles aggregate the rules of others.
    Aggregation,
    /// Policies are checked against the schemas of what they match.
    PolicyTypes,
}

/// Each controller with its name, and an earlier one that means the same.
const NAMES: [(ControllerName, [&str; 2]); 6] = [
    (ControllerName::Garbage, ["garbage-collector-controller", "garbagecollector"]),
    (ControllerName::Namespaces, ["namespace-controller", "namespace"]),
    (ControllerName::Accounts, ["serviceaccount-controller", "serviceaccount"]),
    (ControllerName::Authority, ["root-ca-certificate-publisher-controller", "root-ca-cert-publisher"]),
    (ControllerName::Aggregation, ["clusterrole-aggregation-controller", "clusterrole-aggregation"]),
    (ControllerName::PolicyTypes, ["validatingadmissionpolicy-status-controller", "validatingadmissionpolicy-status"]),
];

/// What `*` stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// What an API server needs to be useful.
    #[default]
    Server,
    /// All that are there: workloads become ready.
    Cluster,
}

/// Which of the controllers run, in the order of `NAMES` and of `WORKLOADS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches([bool; NAMES.len()], [bool; WORKLOADS.len()]);

/// A name that no controller has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownController(String);

impl fmt::Display for UnknownController {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = all_names().map(|[name, _]| name).collect();
        write!(out, "{:?} is not in the list of known controllers: {}", self.0, known.join(", "))
    }
}

fn all_names() -> impl Iterator<Item = [&'static str; 2]> {
    NAMES.iter().map(|(_, names)| *names).chain(WORKLOADS.iter().map(|workload| workload.names))
}

impl Switches {
    /// None of them runs.
    pub const NONE: Self = Switches([false; NAMES.len()], [false; WORKLOADS.len()]);

    /// Those that an API server needs to be useful.
    pub const SERVER: Self = Switches([true; NAMES.len()], [false; WORKLOADS.len()]);

    /// Whether `controller` runs.
    pub fn is_on(self, controller: ControllerName) -> bool {
        NAMES.iter().zip(self.0).any(|((known, _), is_on)| *known == controller && is_on)
    }

    /// Those that run, and those that simulated nodes are of no use without, unless `list` names them.
    pub fn with_those_for_nodes(mut self, list: &[String]) -> Self {
        let is_named = |names: [&str; 2]| list.iter().any(|item| names.contains(&item.trim_start_matches('-')));
        for (workload, is_on) in WORKLOADS.iter().zip(&mut self.1) {
            *is_on |= workload.is_for_nodes && !is_named(workload.names);
        }
        self
    }

    /// Whether a controller of workloads runs.
    pub fn has_workloads(self) -> bool {
        self.1.contains(&true)
    }

    /// Starts the controllers of workloads that are on.
    pub(super) fn start_workloads(self, context: &Arc<ControllerContext>, running: &mut JoinSet<()>) {
        for (workload, _) in WORKLOADS.iter().zip(self.1).filter(|(_, is_on)| *is_on) {
            let context = Arc::clone(context);
            running.spawn(keep_running(workload.names[0], move || (workload.start)(&context)));
        }
    }

    /// Reads a list of `*` for all of a profile, `name`, and `-name` for all but that; the first entry that applies to
    /// a controller decides.
    ///
    /// An empty list means none, and so does `-*`. Source: the flag `--controllers` of kube-controller-manager 1.37.
    pub fn parse(list: &[String], profile: Profile) -> Result<Self, UnknownController> {
        let list: Vec<_> = list.iter().filter(|item| !item.is_empty() && *item != "-*").collect();
        for item in &list {
            let name = item.strip_prefix('-').unwrap_or(item);
            let is_known = all_names().any(|names| names.contains(&name));
            if *item != "*" && !is_known {
                return Err(UnknownController(name.to_owned()));
            }
        }
        let is_on = |names: [&str; 2], is_of_profile: bool| {
            let about = |item: &&&String| names.contains(&item.strip_prefix('-').unwrap_or(item));
            match list.iter().find(about) {
                Some(item) => !item.starts_with('-'),
                None => is_of_profile && list.iter().any(|item| *item == "*"),
            }
        };
        let workloads = WORKLOADS.map(|workload| is_on(workload.names, profile == Profile::Cluster));
        Ok(Switches(NAMES.map(|(_, names)| is_on(names, true)), workloads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Garbage, namespaces, accounts, authority, aggregation, types of policies.
    fn check(list: &str, expect: Result<[bool; 6], &str>) {
        let list: Vec<_> = list.split(',').map(str::to_owned).collect();
        let switches = Switches::parse(&list, Profile::Server);
        let got = switches.map(|Switches(found, _)| found);
        assert_eq!(got, expect.map_err(|name| UnknownController(name.to_owned())), "{list:?}");
    }

    #[test]
    fn controllers_are_switched_by_their_names() {
        check("*", Ok([true; 6]));
        assert_eq!(Switches::parse(&["*".to_owned()], Profile::Server), Ok(Switches::SERVER));
        check("*,-garbage-collector-controller", Ok([false, true, true, true, true, true]));
        check("-garbagecollector,*,-namespace", Ok([false, false, true, true, true, true]));
        check("serviceaccount", Ok([false, false, true, false, false, false]));
        check("-root-ca-cert-publisher,root-ca-cert-publisher", Ok([false; 6]));
        check("*,-garbage", Err("garbage"));
        check("", Ok([false; 6]));
        check("-*", Ok([false; 6]));
        check("-*,namespace", Ok([false, true, false, false, false, false]));
    }

    #[test]
    fn those_of_workloads_run_where_they_are_named_or_in_a_cluster() {
        let parse = |list: &str, profile| {
            let list: Vec<_> = list.split(',').map(str::to_owned).collect();
            let Switches(_, on) = Switches::parse(&list, profile).expect("the names are known");
            on
        };
        assert!(!parse("*", Profile::Server).contains(&true));
        assert!(!parse("*", Profile::Cluster).contains(&false));
        let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.names[0]).collect();
        let one = parse(&format!("*,{}", names[0]), Profile::Server);
        assert!(one[0] && !one[1..].contains(&true));
        let others = parse(&format!("*,-{}", names[0]), Profile::Cluster);
        assert!(!others[0] && !others[1..].contains(&false));
    }

    #[test]
    fn simulated_nodes_bring_what_they_need_unless_it_is_named() {
        let names_on = |list: &[&str]| {
            let list: Vec<_> = list.iter().map(|item| (*item).to_owned()).collect();
            let Switches(_, on) = Switches::NONE.with_those_for_nodes(&list);
            WORKLOADS.iter().zip(on).filter(|(_, is_on)| *is_on).map(|(it, _)| it.names[0]).collect::<Vec<_>>()
        };
        let all = ["simulated-nodes", "kube-scheduler", "node-lifecycle-controller", "taint-eviction-controller"];
        assert_eq!(names_on(&["*"]), all);
        assert_eq!(names_on(&["-scheduler", "taint-eviction-controller"]), ["simulated-nodes", all[2]]);
    }
}
