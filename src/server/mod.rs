//! Sockets: TLS with our own CA, HTTP/1.1 and HTTP/2, identities, and a clean end.
//!
//! In: listeners and a service that answers requests. Out: connections served until told to stop. Every request that
//! reaches the service carries an [`auth::UserInfo`](crate::auth::UserInfo) and a
//! [`Stopping`](crate::http::Stopping) among its extensions, but for health checks, which carry no user. What a
//! request means is decided behind the service, never here.

mod certificates;
mod connections;
mod descriptors;
mod gate;
mod host;
mod kubeconfig;
mod loopback;
mod open;
mod pace;
mod secrets;
mod signals;
mod stall;
mod tls;

pub use certificates::{Authority, CertificateError, Identity};
pub use connections::{Connections, Service};
pub use descriptors::{Threads, addresses, connections_max, threads};
pub use gate::Gate;
pub use kubeconfig::Kubeconfig;
pub use secrets::{Secrets, SecretsError};
pub use signals::stop_requested;
pub use tls::{Tls, Trust};
