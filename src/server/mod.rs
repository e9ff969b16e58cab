//! Sockets: TLS with our own CA, HTTP/1.1 and HTTP/2, identities, and a clean end.
//!
//! Input: listeners and a service that answers requests. Output: connections served until told to stop. Every request
//! that reaches the service carries an [`auth::UserInfo`](crate::auth::UserInfo) and a
//! [`Stopping`](crate::http::Stopping) among its extensions, except health checks, which carry no user. What a request
//! means is decided behind the service, never here.
//!
//! # How connections and the process end
//!
//! - A connection counts from its socket to its socket's end (`server::open`), and has something to do while a request
//!   is being read, worked on or answered. Without a request it is closed after 32 s, later after 90 s; if no slots are
//!   left, the one that has been idle for the longest time is closed. The number of slots comes from the limit of file
//!   descriptors, which is raised as far as possible.
//! - Signals have a thread and a runtime of their own (`server::signals`), so that they count while all others
//!   compute. After the first one, nothing is accepted, watches end, and requests have 0.4 s; then connections are
//!   cut, what waits in the writer is written, and the process goes without waiting for threads. A second later it
//!   goes in any case: what is acknowledged is on disk, and nothing else was promised.
//! - The log is written by a separate thread (`cli::log`). A thread that logs never waits, and if stderr breaks, only
//!   log lines are lost.
//! - If the address space is limited (`ulimit -v`), there are fewer threads, each with its whole stack: how deep
//!   objects may be nested does not depend on the machine. Below 768 MiB the program reports that and exits.

mod certificates;
mod connections;
mod cork;
mod cors;
mod descriptors;
mod gate;
mod heads;
mod host;
mod kubeconfig;
mod loopback;
mod named_certificates;
mod open;
mod shares;
mod pace;
mod plain;
mod secrets;
mod signals;
mod stall;
mod subject;
mod tls;
mod version_1;

pub use certificates::{Authority, CertificateError, Identity, SECRET as AUTHORITY_SECRET};
pub use connections::{Connections, Service};
pub use cors::{AllowedOrigins, OriginError};
pub use descriptors::{STACK_BYTES, addresses, connections_max, threads};
pub use gate::Gate;
pub use kubeconfig::{Kubeconfig, write_private};
pub use named_certificates::NamedIdentity;
pub use open::OpenConnections;
pub use secrets::{Secrets, SecretsError};
pub use signals::{request_stop, stop_requested};
pub use tls::{Tls, Trust};
