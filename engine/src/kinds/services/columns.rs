//! The table of services.
//!
//! Source: `pkg/printers/internalversion`, release 1.37.

use crate::crd::Column;
use crate::kinds::network::shown_addresses;
use crate::kinds::strategy::{Cell, Table};
use crate::kinds::workloads::selector;
use crate::value::Value;

use super::{field, number, ports, text, texts};

const NOTHING: &str = "<none>";

/// The table of services.
pub fn table() -> Table {
    let columns = vec![
        Column::string("Type", "How the service is reached."),
        Column::string("Cluster-IP", "Its address inside the cluster."),
        Column::string("External-IP", "Its addresses outside the cluster."),
        Column::string("Port(s)", "Its ports, node ports and protocols."),
    ];
    let mut table = Table::named(columns, cells);
    table.columns.push(Column { priority: 1, ..Column::string("Selector", "The labels of its pods.") });
    table
}

fn cells(service: &Value) -> Vec<Cell> {
    let cluster_ip = texts(service, "clusterIPs").first().copied().unwrap_or(NOTHING);
    let shown = vec![
        Cell::text(text(service, "type")),
        Cell::text(cluster_ip),
        Cell::text(&external_ips(service)),
        Cell::text(&shown_ports(service)),
    ];
    let mut cells = Cell::named(service, shown);
    cells.push(Cell::text(&selector::set_cell(field(service, "selector"))));
    cells
}

fn external_ips(service: &Value) -> String {
    let external = texts(service, "externalIPs");
    match text(service, "type") {
        "ExternalName" => text(service, "externalName").to_owned(),
        "LoadBalancer" => {
            let balancer = shown_addresses(service);
            let all: Vec<&str> =
                Some(balancer.as_str()).filter(|text| !text.is_empty()).into_iter().chain(external).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ClusterIP" | "NodePort" if external.is_empty() => NOTHING.to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        _ => "<unknown>".to_owned(),
    }
}

fn shown_ports(service: &Value) -> String {
    let shown = |port: &Value| match (number(port, "port"), number(port, "nodePort"), port.str_at(&["protocol"])) {
        (port, node_port @ 1.., protocol) => format!("{port}:{node_port}/{protocol}"),
        (port, _, protocol) => format!("{port}/{protocol}"),
    };
    let texts: Vec<String> = ports(service).iter().map(shown).collect();
    if texts.is_empty() { NOTHING.to_owned() } else { texts.join(",") }
}
