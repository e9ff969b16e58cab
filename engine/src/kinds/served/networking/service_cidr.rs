//! ServiceCIDR, networking.k8s.io/v1, and v1beta1 in older minor versions: a range from which cluster IPs are
//! allocated.
//!
//! Source: `pkg/registry/networking/servicecidr` and `pkg/apis/networking/validation` of Kubernetes 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::network::addresses::{check_canonical_prefix, parse_lenient_prefix};
use crate::kinds::services::ranges::ranges;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, metadata, prepare, show_internal};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::names;
use crate::object;
use crate::value::Value;

pub static KINDS: [&Kind; 2] = [&V1, &V1BETA1];

static V1: Kind = form();
static V1BETA1: Kind = form().former("v1beta1");

const fn form() -> Kind {
    Kind {
        plural: "servicecidrs",
        singular: "servicecidr",
        scope: Scope::Cluster,
        status: true,
        example: "metadata: {name: example}\nspec: {cidrs: [10.77.0.0/24]}",
        forms: &KINDS,
        gate: Some(Gate::MultiCidrServiceAllocator),
        ..Kind::new("networking.k8s.io", "v1", "ServiceCIDR", &ServiceCidr)
    }
}

/// One range per family.
const RANGES_MAX: usize = 2;
const UNCHANGED: &str = "field is immutable";

struct ServiceCidr;

impl Strategy for ServiceCidr {
    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        object.make_object().insert("status", object! {});
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        errors.extend(validate_ranges(object));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        if subresource != Subresource::Status {
            errors.extend(validate_change(new, old));
        }
        errors
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![Column::string("CIDRs", "The ranges of addresses.")];
        Some(Table::named(columns, |object| Cell::named(object, vec![Cell::text(&ranges(object).join(","))])))
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }
}

fn validate_ranges(object: &Value) -> ErrorList {
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let cidrs = spec.field("cidrs");
    match cidrs.len() {
        0 => return cidrs.required("at least one CIDR required").into(),
        count if count > RANGES_MAX => {
            let shown = show_internal("networking.v1.ServiceCIDRSpec", spec.value().unwrap_or(&Value::Null));
            let error = Error::invalid(cidrs.path(), Value::Null, "may only hold up to 2 values");
            return error.shown_as(shown).into();
        }
        _ => {}
    }
    let mut errors = ErrorList::new();
    for range in cidrs.items() {
        errors.extend(check_canonical_prefix(range.path(), range.text()));
    }
    let families: Vec<_> = ranges(object)
        .into_iter()
        .filter_map(parse_lenient_prefix)
        .map(|range| range.ip.to_canonical().is_ipv4())
        .collect();
    if families.len() == RANGES_MAX && families[0] == families[1] {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(cidrs.invalid(why));
    }
    errors
}

/// Checks that the ranges have not changed; a second one may be added.
fn validate_change(new: &Value, old: &Value) -> ErrorList {
    let spec = Path::new("spec");
    let path = spec.child("cidrs");
    let (now, before) = (ranges(new), ranges(old));
    let changed = now.iter().zip(&before).enumerate().filter(|(_, (now, before))| now != before);
    let mut errors: ErrorList =
        changed.map(|(at, (now, _))| Error::invalid(&path.index(at), *now, UNCHANGED)).collect();
    match (before.len(), now.len()) {
        (before, now) if before == now => {}
        (1, 2) => errors.extend(validate_ranges(new)),
        _ => {
            let shown = new.at(&["spec", "cidrs"]).cloned().unwrap_or_default();
            return Error::invalid(&path, shown, UNCHANGED).into();
        }
    }
    errors
}
