//! `/log`, `/exec`, `/attach`, `/portforward` and `/proxy`: the connections of clients to a pod, through its node.
//!
//! No kubelet is ever called here, so these end where the reference would contact one.
//! Source: `LogLocation`, `ExecLocation`, `ResourceLocation` and others of `pkg/registry/core/pod/strategy.go`.

use std::net::IpAddr;

use jiff::Timestamp;

use crate::kinds::pod::CONTAINER_LISTS;
use crate::meta::Status;
use crate::meta::field::{Error, ErrorList, Path};
use crate::object;
use crate::value::{Value, go_quote};

use super::ips;

const KUBELET_PORT: i64 = 10250;
/// Kinds of addresses of nodes, the preferred ones first.
const ADDRESSES: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];

/// The container of a request: the named one, or the only one.
///
/// # Errors
///
/// 400 if it is not in the pod, or none is named and there are several.
pub fn container<'p>(pod: &'p Value, asked: &'p str) -> Result<&'p str, Status> {
    let name = pod.str_at(&["metadata", "name"]);
    let names =
        || CONTAINER_LISTS.iter().flat_map(|list| pod.items_at(&["spec", list])).map(|one| one.str_at(&["name"]));
    if !asked.is_empty() {
        let why = format!("container {asked} is not valid for pod {name}");
        return if names().any(|own| own == asked) { Ok(asked) } else { Err(Status::bad_request(&why)) };
    }
    let why = format!("a container name must be specified for pod {name}");
    match pod.items_at(&["spec", "containers"]) {
        [only] => Ok(only.str_at(&["name"])),
        [] => Err(Status::bad_request(&why)),
        _ => {
            let names: Vec<&str> = names().collect();
            Err(Status::bad_request(&format!("{why}, choose one of: [{}]", names.join(" "))))
        }
    }
}

/// The options of a connection as an object of `kind`, from the query of a client: the first value of a name, or all of
/// them.
pub fn options(kind: &str, first: &dyn Fn(&str) -> String, all: &dyn Fn(&str) -> Vec<String>) -> Value {
    let mut options = object! { "apiVersion" => "v1", "kind" => kind };
    let mut set = |name: &str, value: Value| _ = options.make_object().insert(name, value);
    let is_true = |name: &str| matches!(first(name).as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True");
    let texts = |texts: Vec<String>| Value::Array(texts.into_iter().map(Value::from).collect());
    match kind {
        "PodExecOptions" | "PodAttachOptions" => {
            for name in ["stdin", "stdout", "stderr", "tty"] {
                if is_true(name) {
                    set(name, Value::Bool(true));
                }
            }
            if !first("container").is_empty() {
                set("container", Value::from(first("container")));
            }
            if kind == "PodExecOptions" && !all("command").is_empty() {
                set("command", texts(all("command")));
            }
        }
        "PodPortForwardOptions" => {
            let ports: Vec<Value> = all("ports").iter().filter_map(|port| port.parse().ok()).map(Value::Int).collect();
            if !ports.is_empty() {
                set("ports", Value::Array(ports));
            }
        }
        _ => {
            if !first("path").is_empty() {
                set("path", Value::from(first("path")));
            }
        }
    }
    options
}

/// The node that the pod is on, for actions that need one.
///
/// # Errors
///
/// 400 if it is on none.
pub fn node(pod: &Value) -> Result<&str, Status> {
    let (name, node) = (pod.str_at(&["metadata", "name"]), pod.str_at(&["spec", "nodeName"]));
    if node.is_empty() {
        return Err(Status::bad_request(&format!("pod {name} does not have a host assigned")));
    }
    Ok(node)
}

/// Where the kubelet of a node listens.
///
/// # Errors
///
/// Why that is not known.
pub fn kubelet(node: &Value) -> Result<String, Status> {
    Ok(joined(host(node)?, &kubelet_port(node).to_string()))
}

/// The address for a request to a node: that of the kubelet, if no port is named.
///
/// # Errors
///
/// 400 for an address that is not allowed, 500 if the node has none.
pub fn node_address(node: &Value, port: &str) -> Result<String, Status> {
    let host = host(node)?;
    if ips::parse(host).is_some_and(|ip| !is_global(ip)) {
        return Err(Status::bad_request("address not allowed"));
    }
    let kubelet = kubelet_port(node).to_string();
    Ok(joined(host, if port.is_empty() { &kubelet } else { port }))
}

fn kubelet_port(node: &Value) -> i64 {
    let port = node.at(&["status", "daemonEndpoints", "kubeletEndpoint", "Port"]).and_then(Value::as_i64);
    port.filter(|port| *port > 0).unwrap_or(KUBELET_PORT)
}

/// The address of a node that is preferred.
fn host(node: &Value) -> Result<&str, Status> {
    let addresses = node.items_at(&["status", "addresses"]);
    let of_kind = |kind: &&str| addresses.iter().find(|address| address.str_at(&["type"]) == *kind);
    let Some(found) = ADDRESSES.iter().find_map(of_kind) else {
        let shown: Vec<String> = addresses
            .iter()
            .map(|address| format!("{{{} {}}}", address.str_at(&["type"]), address.str_at(&["address"])))
            .collect();
        let why = format!("no preferred addresses found; known addresses: [{}]", shown.join(" "));
        return Err(Status::plain(500, &why));
    };
    Ok(found.str_at(&["address"]))
}

/// Host and port in one text.
fn joined(host: &str, port: &str) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Where `/proxy` of `[SCHEME:]NAME[:PORT]` goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxied<'r> {
    /// The name, without scheme and port.
    pub name: &'r str,
    /// The port's number or name; may be empty.
    pub port: &'r str,
}

/// Parses the target of `/proxy` of a `kind`.
///
/// # Errors
///
/// 400 for a text that is not a valid target.
pub fn proxied<'r>(id: &'r str, kind: &str) -> Result<Proxied<'r>, Status> {
    let parts: Vec<&str> = id.split(':').collect();
    let invalid = || Err(Status::bad_request(&format!("invalid {kind} request {}", go_quote(id))));
    let (scheme, name, port) = match parts.as_slice() {
        [name] => ("", *name, ""),
        [name, port] => ("", *name, *port),
        [scheme, name, port] => (*scheme, *name, *port),
        _ => return invalid(),
    };
    if name.is_empty() || !matches!(scheme, "" | "http" | "https") {
        return invalid();
    }
    Ok(Proxied { name, port })
}

/// The address of the target.
///
/// # Errors
///
/// 400 if the pod has no address that is allowed.
pub fn proxy_address(pod: &Value, port: &str) -> Result<String, Status> {
    let text = pod.items_at(&["status", "podIPs"]).first().map(|ip| ip.str_at(&["ip"])).unwrap_or_default();
    if !ips::parse(text).is_some_and(is_global) {
        return Err(Status::bad_request("address not allowed"));
    }
    let mut ports = pod.items_at(&["spec", "containers"]).iter().filter_map(|one| one.items_at(&["ports"]).first());
    let first = ports.next().and_then(|port| port.get("containerPort")).and_then(Value::as_i64);
    let port = match (port, first) {
        ("", Some(first)) => first.to_string(),
        ("", None) => "80".to_owned(),
        (port, _) => port.to_owned(),
    };
    Ok(joined(text, &port))
}

/// Whether somebody else can have the address.
const fn is_global(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || ip.is_link_local() || ip.is_broadcast())
        }
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || ip.is_unicast_link_local()),
    }
}

/// Nobody answers at `address`.
pub fn refused(address: &str) -> String {
    format!("dial tcp {address}: connect: connection refused")
}

/// The options of `/log`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// `tailLines`
    pub tail_lines: Option<i64>,
    /// `limitBytes`
    pub limit_bytes: Option<i64>,
    /// `sinceSeconds`
    pub since_seconds: Option<i64>,
    /// `sinceTime`
    pub since: Option<Timestamp>,
    /// `timestamps`
    pub timestamps: bool,
    /// `previous`
    pub previous: bool,
    /// Whether `stream` is there.
    pub stream: bool,
}

/// Checks the options of `/log` of the pod `name`.
///
/// # Errors
///
/// 422.
pub fn check_log_options(options: &LogOptions, name: &str) -> Result<(), Status> {
    let mut errors = ErrorList::new();
    let too_small = |field: &'static str, value: Option<i64>, min: i64, why: &str| {
        value.filter(|value| *value < min).map(|value| Error::invalid(&Path::new(field), value, why))
    };
    errors.extend(too_small("tailLines", options.tail_lines, 0, "must be greater than or equal to 0"));
    errors.extend(too_small("limitBytes", options.limit_bytes, 1, "must be greater than 0"));
    if options.since_seconds.is_some() && options.since.is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(Error::forbidden(&Path::new(""), why));
    } else {
        errors.extend(too_small("sinceSeconds", options.since_seconds, 1, "must be greater than 0"));
    }
    if options.stream {
        errors.push(Error::forbidden(&Path::new("stream"), "may not be specified"));
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid("", "PodLogOptions", name, &errors)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn a_container_is_named_where_there_are_several() {
        let pod = read("metadata: {name: a}\nspec: {initContainers: [{name: i}], containers: [{name: c}, {name: d}]}");
        assert_eq!(container(&pod, "i").ok(), Some("i"));
        let told = |asked: &str| container(&pod, asked).expect_err("it is refused").message;
        assert_eq!(told(""), "a container name must be specified for pod a, choose one of: [i c d]");
        assert_eq!(told("x"), "container x is not valid for pod a");
        assert_eq!(node(&pod).expect_err("it has none").message, "pod a does not have a host assigned");
    }

    #[test]
    fn nodes_and_pods_have_addresses() {
        let node = read("status: {addresses: [{type: InternalIP, address: '::1'}, {type: Other, address: x}]}");
        assert_eq!(kubelet(&node).ok().as_deref(), Some("[::1]:10250"));
        let told = kubelet(&read("{}")).expect_err("it has none").message;
        assert_eq!(told, "no preferred addresses found; known addresses: []");
        assert_eq!(node_address(&node, "").expect_err("it is its own").message, "address not allowed");
        let other = read("status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}");
        assert_eq!(node_address(&other, "").ok().as_deref(), Some("192.0.2.1:10250"));
        assert_eq!(node_address(&other, "80").ok().as_deref(), Some("192.0.2.1:80"));
        let pod = read("spec: {containers: [{ports: [{containerPort: 8080}]}]}\nstatus: {podIPs: [{ip: 10.0.0.1}]}");
        assert_eq!(proxy_address(&pod, "").ok().as_deref(), Some("10.0.0.1:8080"));
        assert_eq!(proxy_address(&read("{}"), "").expect_err("it has none").message, "address not allowed");
        assert_eq!(proxied("https:a:1", "pod").ok(), Some(Proxied { name: "a", port: "1" }));
        assert_eq!(proxied("a:b:c:d", "pod").expect_err("it is none").message, "invalid pod request \"a:b:c:d\"");
    }
}
