//! The flags for the addresses and ports of services, and the address of this server as a service; the loop that makes
//! objects of the server again that were deleted.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::controllers::FindingEvents;
use crate::kinds::services::allocate::PortRange;
use crate::registry::{Advertised, Registry, ServiceNetwork, ServiceRanges};

/// How often missing objects are looked for. Source: kube-apiserver's interval.
const REPAIR_INTERVAL: Duration = Duration::from_secs(10);
/// How many repairs there are for each look at the initial namespaces and objects. Source: kube-apiserver's interval of
/// a minute.
const REPAIRS_PER_REMAKE: usize = 6;
/// How long the start waits for objects that others may delay.
const START_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Args)]
pub struct Network {
    /// Ranges of the addresses that services get: one, or one of each family with a comma between them, the default first
    #[arg(long, value_name = "CIDRS", default_value = "10.0.0.0/24")]
    pub service_cluster_ip_range: ServiceRanges,

    /// Range of the node ports that services get
    #[arg(long, value_name = "FIRST-LAST", default_value_t = PortRange::default())]
    pub service_node_port_range: PortRange,
}

impl Network {
    pub fn network(&self) -> ServiceNetwork {
        ServiceNetwork::new(self.service_cluster_ip_range.clone(), self.service_node_port_range)
    }
}

/// Creates the service `kubernetes` and its endpoints; errors are only logged.
pub async fn make(registry: &Arc<Registry>, advertised: Advertised) {
    // Webhooks may be slow.
    _ = timeout(START_TIMEOUT, attempt(registry, advertised)).await;
}

/// Like [`make`], and keeps repairing the objects and what services are allocated.
pub async fn keep(registry: &Arc<Registry>, advertised: Advertised) -> JoinHandle<()> {
    make(registry, advertised).await;
    let registry = Arc::clone(registry);
    let events = FindingEvents::start(&registry);
    tokio::spawn(async move {
        let mut repaired = None;
        for round in 1_usize.. {
            repaired = match registry.repair_services(repaired).await {
                Ok(mut repaired) => {
                    repaired.findings.drain(..).for_each(|finding| events.record(finding));
                    Some(repaired)
                }
                Err(status) => {
                    tracing::warn!(status.message, "what services have can't be looked after");
                    None
                }
            };
            tokio::time::sleep(REPAIR_INTERVAL).await;
            attempt(&registry, advertised).await;
            if round % REPAIRS_PER_REMAKE == 0 {
                remake(&registry).await;
            }
        }
    })
}

async fn remake(registry: &Arc<Registry>) {
    if let Err(status) = registry.remake_initial_objects().await {
        tracing::warn!(status.message, "namespaces and objects of the server can't be made again");
    }
}

async fn attempt(registry: &Arc<Registry>, advertised: Advertised) {
    if let Err(status) = registry.make_kubernetes_service(advertised).await {
        tracing::warn!(status.message, "the service kubernetes is not as it should be");
    }
}

/// The address under which other machines reach a server that listens on `address`; for all
/// addresses or a loopback address, that is the machine's own address.
pub fn advertised(address: SocketAddr) -> Advertised {
    let ip = match address.ip() {
        ip if ip.is_unspecified() || ip.is_loopback() => own_address(ip),
        ip => Some(ip),
    };
    Advertised { ip, port: address.port() }
}

/// The same as clients are told of it; the one that it listens on where the machine has no other.
pub fn told(address: SocketAddr) -> String {
    match advertised(address) {
        Advertised { ip: Some(ip), port } => SocketAddr::new(ip, port).to_string(),
        Advertised { ip: None, .. } => address.to_string(),
    }
}

/// The address of this machine from which others of the family are reached; no packet is sent to
/// find it.
fn own_address(family: IpAddr) -> Option<IpAddr> {
    // Addresses that are reserved for documentation, and routed like any other.
    let (any, elsewhere) = match family {
        IpAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        IpAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(elsewhere).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    Some(ip).filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
}
