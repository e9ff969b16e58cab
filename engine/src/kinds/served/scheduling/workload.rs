//! Workload, PodGroup and CompositePodGroup, scheduling.k8s.io/v1beta1 and v1alpha3: pods that are scheduled together.
//!
//! They are plain kinds: their metadata is checked, and their status is not the writer's. DIFFERS: what their types' markers ask of
//! the specs (`+k8s:…`) is not checked; the versions are off unless somebody asks for them.
//!
//! Source: `pkg/apis/scheduling` and `pkg/registry/scheduling` of Kubernetes 1.36, with the types of 1.37.

use crate::crd::ServedVersion;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata, prepare};
use crate::meta::field::ErrorList;
use crate::meta::names;
use crate::object;
use crate::value::Value;

const GROUP: &str = "scheduling.k8s.io";

pub static KINDS: [&Kind; 5] = [&WORKLOAD_BETA, &WORKLOAD_ALPHA, &POD_GROUP_BETA, &POD_GROUP_ALPHA, &COMPOSITE];

static WORKLOADS: [&Kind; 2] = [&WORKLOAD_BETA, &WORKLOAD_ALPHA];
static WORKLOAD_BETA: Kind = workload("v1beta1");
static WORKLOAD_ALPHA: Kind = workload("v1alpha3");
static POD_GROUPS: [&Kind; 2] = [&POD_GROUP_BETA, &POD_GROUP_ALPHA];
static POD_GROUP_BETA: Kind = pod_group("v1beta1");
static POD_GROUP_ALPHA: Kind = pod_group("v1alpha3");
static COMPOSITE: Kind = Kind {
    plural: "compositepodgroups",
    singular: "compositepodgroup",
    status: true,
    is_default: false,
    example: "metadata: {name: example}\nspec: {workloadRef: {workloadName: a, templateName: b}, schedulingPolicy: {basic: {}}}",
    ..Kind::new(GROUP, "v1alpha3", "CompositePodGroup", &PLAIN_WITH_STATUS)
};

const fn workload(version: &'static str) -> Kind {
    Kind {
        plural: "workloads",
        singular: "workload",
        is_default: false,
        forms: &WORKLOADS,
        example: "metadata: {name: example}\nspec: {podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}]}",
        ..Kind::new(GROUP, version, "Workload", &PLAIN)
    }
}

const fn pod_group(version: &'static str) -> Kind {
    Kind {
        plural: "podgroups",
        singular: "podgroup",
        status: true,
        is_default: false,
        forms: &POD_GROUPS,
        example: "metadata: {name: example}\nspec: {schedulingPolicy: {basic: {}}}",
        ..Kind::new(GROUP, version, "PodGroup", &PLAIN_WITH_STATUS)
    }
}

static PLAIN: Plain = Plain { has_status: false };
static PLAIN_WITH_STATUS: Plain = Plain { has_status: true };

/// A kind whose spec nobody looks at.
struct Plain {
    has_status: bool,
}

impl Strategy for Plain {
    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        if self.has_status {
            prepare::reset(object, "status", object! {});
        }
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        metadata::validate(object, true, names::name_is_dns1123_subdomain)
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if self.has_status {
            prepare::for_update(subresource, new, old);
        }
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        metadata::validate_update(new, old)
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        match subresource {
            Subresource::Status => &[&["metadata"], &["spec"]],
            _ if self.has_status => &[&["status"]],
            _ => &[],
        }
    }

    fn table(&self) -> Option<Table> {
        Some(Table::named(Vec::new(), |object| Cell::named(object, Vec::new())))
    }
}
