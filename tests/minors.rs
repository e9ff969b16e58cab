//! Several minors of Kubernetes: what each of them said to definitions and objects, and the commands that tell them apart.
//!
//! The answers were recorded from the modules of each minor, `k8s.io/apiextensions-apiserver` v0.29 to v0.37.

#[expect(dead_code, reason = "other tests read the rest")]
#[path = "beside.rs"]
mod beside;
#[path = "minors/commands.rs"]
mod commands;
#[path = "minors/recorded.rs"]
mod recorded;
#[path = "minors/servers.rs"]
mod servers;
#[path = "minors/table.rs"]
mod table;
