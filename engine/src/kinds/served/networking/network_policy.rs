//! NetworkPolicy, networking.k8s.io/v1.
//!
//! Source: `pkg/registry/networking/networkpolicy` and `pkg/apis/networking` of Kubernetes 1.37.

use std::collections::HashSet;

use crate::crd::{Column, ServedVersion};
use crate::kinds::checks::{named, one_of, port_number};
use crate::kinds::defaults::{field, items, structure};
use crate::kinds::network::addresses::{check_prefix, parse_lenient_prefix, prefix_warnings};
use crate::kinds::network::names::is_port_name;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::selector;
use crate::kinds::{Kind, metadata, prepare};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::meta::selector::LabelSelector;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "networkpolicies",
    singular: "networkpolicy",
    short_names: &["netpol"],
    example: r"
metadata: {name: example}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress]
  ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: 80}]}]
",
    ..Kind::new("networking.k8s.io", "v1", "NetworkPolicy", &NetworkPolicy)
}];

/// The fields with rules, each with the field of the rules' peers.
const RULES: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];
const POLICY_TYPES: [&str; 2] = ["Ingress", "Egress"];

struct NetworkPolicy;

impl Strategy for NetworkPolicy {
    fn set_typed_defaults(&self, object: &mut Value) {
        let spec = structure(object, "spec");
        for (rules, _) in RULES {
            for rule in items(spec, rules) {
                for port in items(rule, "ports") {
                    if field(port, "protocol").is_none() {
                        port.make_object().insert("protocol", Value::from("TCP"));
                    }
                }
            }
        }
        if spec.items_at(&["policyTypes"]).is_empty() {
            let has_egress = !spec.items_at(&["egress"]).is_empty();
            let types = POLICY_TYPES.into_iter().take(if has_egress { 2 } else { 1 });
            spec.make_object().insert("policyTypes", types.map(Value::from).collect::<Vec<_>>().into());
        }
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::first_generation(object);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        errors.extend(validate(object, &Forgiven::new(version.minor)));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        if new.get("spec") != old.get("spec") {
            prepare::raise_generation(new, old);
        }
    }

    fn counts_empty(&self) -> bool {
        true
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        errors.extend(validate(new, &Forgiven::of(version.minor, old)));
        errors
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        warnings(new)
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![Column::string("Pod-Selector", "The pods that the policy is about.")];
        Some(Table::named(columns, |object| {
            let selector = selector::cell(object.at(&["spec", "podSelector"]));
            Cell::named(object, vec![Cell::text(&selector)])
        }))
    }
}

/// The faults that an older object may keep, and the version of Kubernetes whose rules apply.
struct Forgiven<'o> {
    minor: Minor,
    label_values: bool,
    ranges: HashSet<&'o str>,
}

impl<'o> Forgiven<'o> {
    fn new(minor: Minor) -> Self {
        Forgiven { minor, label_values: false, ranges: HashSet::new() }
    }

    fn of(minor: Minor, old: &'o Value) -> Self {
        let root = FieldRef::root(old);
        let spec = root.field("spec");
        let selector = check_selector(&spec.field("podSelector"), true);
        let blocks = RULES.into_iter().flat_map(|(rules, peers)| {
            let rules = old.items_at(&["spec", rules]).iter();
            rules.flat_map(move |rule| rule.items_at(&[peers])).filter_map(|peer| peer.get("ipBlock"))
        });
        let ranges = blocks.flat_map(|block| {
            let except = block.items_at(&["except"]).iter().filter_map(Value::as_str);
            std::iter::once(block.str_at(&["cidr"])).chain(except)
        });
        Forgiven { minor, label_values: !selector.is_empty(), ranges: ranges.collect() }
    }
}

fn check_selector(selector: &FieldRef<'_>, checks_values: bool) -> ErrorList {
    let value = selector.value().unwrap_or(&Value::Null);
    LabelSelector::validate(value, checks_values, selector.path())
}

fn validate(object: &Value, forgiven: &Forgiven<'_>) -> ErrorList {
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let mut errors = check_selector(&spec.field("podSelector"), !forgiven.label_values);
    for (rules, peers) in RULES {
        for rule in spec.field(rules).items() {
            for port in rule.field("ports").items() {
                errors.extend(check_port(&port));
            }
            for peer in rule.field(peers).items() {
                errors.extend(check_peer(&peer, forgiven));
            }
        }
    }
    let types = spec.field("policyTypes");
    if types.len() > POLICY_TYPES.len() {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return errors;
    }
    for kind in types.items() {
        errors.extend(one_of(&kind, &POLICY_TYPES));
    }
    errors
}

fn check_port(item: &FieldRef<'_>) -> ErrorList {
    let (protocol, port, end) = (item.field("protocol"), item.field("port"), item.field("endPort"));
    let mut errors = ErrorList::new();
    if protocol.is_set() {
        errors.extend(one_of(&protocol, &["TCP", "UDP", "SCTP"]));
    }
    match port.value() {
        None if end.is_set() => errors.push(end.invalid("may not be specified when `port` is not specified")),
        None => {}
        Some(Value::String(_)) => {
            if end.is_set() {
                errors.push(end.invalid("may not be specified when `port` is non-numeric"));
            }
            errors.extend(named(&port, is_port_name));
        }
        Some(_) => {
            errors.extend(port_number(&port));
            if end.is_set() {
                if end.int() < port.int() {
                    errors.push(Error::invalid(end.path(), port.int(), "must be greater than or equal to `port`"));
                }
                errors.extend(port_number(&end));
            }
        }
    }
    errors
}

fn check_peer(peer: &FieldRef<'_>, forgiven: &Forgiven<'_>) -> ErrorList {
    let selectors = [peer.field("podSelector"), peer.field("namespaceSelector")];
    let block = peer.field("ipBlock");
    let mut errors = ErrorList::new();
    for selector in selectors.iter().filter(|selector| selector.is_set()) {
        errors.extend(check_selector(selector, !forgiven.label_values));
    }
    let has_selector = selectors.iter().any(FieldRef::is_set);
    if block.is_set() {
        errors.extend(check_block(&block, forgiven));
        if has_selector {
            errors.push(peer.forbidden("may not specify both ipBlock and another peer"));
        }
    } else if !has_selector {
        errors.push(peer.required("must specify a peer"));
    }
    errors
}

fn check_block(block: &FieldRef<'_>, forgiven: &Forgiven<'_>) -> ErrorList {
    let cidr = block.field("cidr");
    if cidr.text().is_empty() {
        return cidr.required("").into();
    }
    let known = |text: &str| forgiven.ranges.get(text).copied();
    let mut errors = check_prefix(forgiven.minor, cidr.path(), cidr.text(), known(cidr.text()));
    let Some(whole) = parse_lenient_prefix(cidr.text()) else { return errors };
    for part in block.field("except").items() {
        errors.extend(check_prefix(forgiven.minor, part.path(), part.text(), known(part.text())));
        let Some(range) = parse_lenient_prefix(part.text()) else { continue };
        if !whole.contains(range.ip) || whole.bits >= range.bits {
            errors.push(part.invalid("must be a strict subset of `cidr`"));
        }
    }
    errors
}

fn warnings(object: &Value) -> Vec<String> {
    const SPEC: Path<'static> = Path::new("spec");
    let mut warnings = Vec::new();
    for (rules, peers) in RULES {
        let path = SPEC.child(rules);
        for (at, rule) in object.items_at(&["spec", rules]).iter().enumerate() {
            let path = path.index(at);
            let path = path.child(peers);
            for (at, peer) in rule.items_at(&[peers]).iter().enumerate() {
                let path = path.index(at);
                let block = path.child("ipBlock");
                warnings.extend(prefix_warnings(&block.child("cidr"), peer.str_at(&["ipBlock", "cidr"])));
                let except = block.child("except");
                for (at, range) in peer.items_at(&["ipBlock", "except"]).iter().enumerate() {
                    warnings.extend(prefix_warnings(&except.index(at), range.as_str().unwrap_or_default()));
                }
            }
        }
    }
    warnings
}
