//! Controllers: they watch, compare, and write what is missing. Each is idempotent and restarts from what is stored.
//!
//! They run in one process at a time, under a lease row.
//!
//! All of them run the same loop (`controllers::changes`): read every change of every collection from the store's feed,
//! in order, and handle the keys that it concerns; a key is never handled twice at the same time, one that failed waits
//! 5 ms, then twice as long each time up to a minute, one that waits for other objects (a namespace for its content, a
//! definition for its objects, a dependent for the kind of its owner) is woken by their changes and not by a clock. The
//! feed (`store::feed`) loads nothing: the newest changes are in memory once for all, older ones are read from the log,
//! and a reader that falls behind the log's history starts over. A panic over one key is a failure of that key; a panic
//! elsewhere ends only its controller, which is restarted after a pause.
//!
//! The workload controllers share more ([`reconcile`]): access to objects ([`client`]), events ([`recorder`]),
//! ownership ([`family`]). Each of them is one file, which only the table below refers to; what it decides is a pure
//! function of objects and the time.

#[cfg(test)]
mod fixture;
mod identity;
mod authority;
mod queue;
mod back_off;
mod changes;
mod first_error;
mod metadata;
mod definitions;
mod namespaces;
mod namespace_content;
mod garbage;
mod aggregation;
mod policy_types;
mod decoded;
mod client;
mod kept_selector;
mod finalizers;
mod recorder;
mod reconcile;
mod family;
mod conditions;
mod selector_text;
mod workload;
mod pods;
mod template_hash;
mod amounts;
mod pod_control;
mod deployment;
mod replica_set;
mod history;
mod stateful_set;
mod daemon_set;
mod schedule;
mod index_set;
mod job;
mod cron_job;
mod time_to_live;
mod volumes;
mod volume_expansion;
mod ephemeral_volumes;
mod quota;
mod service_findings;
mod services;
mod trigger_times;
mod load_balancers;
mod slices;
mod endpoint_slice;
mod endpoint_mirror;
mod endpoints;
mod disruption;
mod autoscaler;
mod certificate_requests;
mod account_tokens;
mod simulated;
mod nodes;
mod scheduler;
mod node_lifecycle;
mod taint_eviction;
mod pod_garbage;
mod switches;
mod run;

use self::workload::Workload;

pub use self::aggregation::aggregate_default_roles;
pub use self::authority::{Authority, Sign, Unsigned};
pub use self::run::start;
pub use self::service_findings::FindingEvents;
pub use self::simulated::{NodePlan, PlanError, Stage, StageError};
pub use self::switches::{ControllerName, Profile, Switches, UnknownController};

/// The controllers of workloads.
const WORKLOADS: [Workload; 28] = [
    Workload::new(["deployment-controller", "deployment"], deployment::start),
    Workload::new(["replicaset-controller", "replicaset"], replica_set::start),
    Workload::new(["replicationcontroller-controller", "replicationcontroller"], replica_set::start_replication),
    Workload::new(["statefulset-controller", "statefulset"], stateful_set::start),
    Workload::new(["daemonset-controller", "daemonset"], daemon_set::start),
    Workload::new(["job-controller", "job"], job::start),
    Workload::new(["cronjob-controller", "cronjob"], cron_job::start),
    Workload::new(["ttl-after-finished-controller", "ttl-after-finished"], time_to_live::start),
    Workload::new(["persistentvolume-binder-controller", "persistentvolume-binder"], volumes::start),
    Workload::new(["persistentvolumeclaim-protection-controller", "pvc-protection"], volumes::start_protection),
    Workload::new(["persistentvolume-expander-controller", "persistentvolume-expander"], volume_expansion::start),
    Workload::new(["ephemeral-volume-controller", "ephemeral-volume"], ephemeral_volumes::start),
    Workload::new(["resourcequota-controller", "resourcequota"], quota::start),
    Workload::new(["endpointslice-controller", "endpointslice"], endpoint_slice::start),
    Workload::new(["endpoints-controller", "endpoint"], endpoints::start),
    Workload::new(["endpointslice-mirroring-controller", "endpointslicemirroring"], endpoint_mirror::start),
    Workload::new(["service-lb-controller", "service"], load_balancers::start),
    Workload::new(["disruption-controller", "disruption"], disruption::start),
    Workload::new(["horizontal-pod-autoscaler-controller", "horizontalpodautoscaling"], autoscaler::start),
    Workload::new(
        ["certificatesigningrequest-approving-controller", "csrapproving"],
        certificate_requests::start_approving,
    ),
    Workload::new(["certificatesigningrequest-signing-controller", "csrsigning"], certificate_requests::start_signing),
    Workload::new(["certificatesigningrequest-cleaner-controller", "csrcleaner"], certificate_requests::start_cleaning),
    Workload::new(["serviceaccount-token-controller", "serviceaccount-token"], account_tokens::start),
    Workload::for_nodes(["simulated-nodes", "simulated-nodes"], simulated::start),
    Workload::for_nodes(["kube-scheduler", "scheduler"], scheduler::start),
    Workload::for_nodes(["node-lifecycle-controller", "nodelifecycle"], node_lifecycle::start),
    Workload::for_nodes(["taint-eviction-controller", "taint-eviction-controller"], taint_eviction::start),
    Workload::new(["pod-garbage-collector-controller", "podgc"], pod_garbage::start),
];
