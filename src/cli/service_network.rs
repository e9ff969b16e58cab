//! The flags that say what services get, and where this server is reached as one.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::kinds::services::allocate::PortRange;
use crate::registry::{Advertised, Registry, ServiceNetwork, ServiceRanges};

/// How often it is looked whether something is missing. Source: kube-apiserver's interval.
const REPAIR_INTERVAL: Duration = Duration::from_secs(10);
/// How long the start waits for objects that others may hold up.
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

/// Makes the service `kubernetes` and what belongs to it, as far as nobody refuses that.
pub async fn make(registry: &Arc<Registry>, advertised: Advertised) {
    // Webhooks may take their time.
    _ = timeout(START_TIMEOUT, attempt(registry, advertised)).await;
}

/// [`make`], and goes on to look after it.
pub async fn keep(registry: &Arc<Registry>, advertised: Advertised) -> JoinHandle<()> {
    make(registry, advertised).await;
    let registry = Arc::clone(registry);
    tokio::spawn(async move {
        let mut repaired = None;
        loop {
            repaired = match registry.repair_services(repaired).await {
                Ok(repaired) => Some(repaired),
                Err(status) => {
                    tracing::warn!(status.message, "what services have can't be looked after");
                    None
                }
            };
            tokio::time::sleep(REPAIR_INTERVAL).await;
            attempt(&registry, advertised).await;
        }
    })
}

async fn attempt(registry: &Arc<Registry>, advertised: Advertised) {
    if let Err(status) = registry.make_kubernetes_service(advertised).await {
        tracing::warn!(status.message, "the service kubernetes is not as it should be");
    }
}

/// Where a server that listens on `address` is reached from other machines: one that listens on all addresses or on this
/// machine alone says which one the machine has.
pub fn advertised(address: SocketAddr) -> Advertised {
    let ip = match address.ip() {
        ip if ip.is_unspecified() || ip.is_loopback() => own_address(ip),
        ip => Some(ip),
    };
    Advertised { ip, port: address.port() }
}

/// The address of this machine from which others of the family are reached; nothing is sent to find it.
fn own_address(family: IpAddr) -> Option<IpAddr> {
    // Reserved for documentation, and routed as any other.
    let (any, elsewhere) = match family {
        IpAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        IpAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(elsewhere).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    Some(ip).filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
}
