//! HorizontalPodAutoscaler, autoscaling/v2 and v1. It is stored and validated in v2.
//!
//! Source: defaults, conversion, validation, strategy and columns of Kubernetes 1.37.

use std::borrow::Cow;

use crate::crd::write::ReadError;
use crate::crd::{Column, ServedVersion};
use crate::kinds::autoscaling::{self, behavior, convert, validate};
use crate::kinds::features::{self, Feature};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::{self, cells, status};
use crate::kinds::{Kind, defaults, metadata, prepare};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::names;
use crate::value::Value;

/// The fields behind feature gates, by their paths in v2.
const FEATURES: [Feature; 1] = [Feature::new(
    Gate::HpaConfigurableTolerance,
    &["spec.behavior.scaleUp.tolerance", "spec.behavior.scaleDown.tolerance"],
)];
const V1: &str = "autoscaling/v1";
const V2: &str = "autoscaling/v2";

pub static KINDS: [&Kind; 2] = [&NEWER, &OLDER];

static NEWER: Kind = Kind {
    plural: "horizontalpodautoscalers",
    singular: "horizontalpodautoscaler",
    short_names: &["hpa"],
    categories: &["all"],
    status: true,
    example: r"
metadata: {name: example}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 10
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
",
    forms: &KINDS,
    ..Kind::new("autoscaling", "v2", "HorizontalPodAutoscaler", &HorizontalPodAutoscaler)
};

static OLDER: Kind = Kind {
    plural: "horizontalpodautoscalers",
    singular: "horizontalpodautoscaler",
    short_names: &["hpa"],
    categories: &["all"],
    status: true,
    example: r"
metadata: {name: example}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
  targetCPUUtilizationPercentage: 60
",
    forms: &KINDS,
    ..Kind::new("autoscaling", "v1", "HorizontalPodAutoscaler", &HorizontalPodAutoscaler)
};

struct HorizontalPodAutoscaler;

impl Strategy for HorizontalPodAutoscaler {
    fn set_typed_defaults(&self, object: &mut Value) {
        let is_older = is_older(object);
        let spec = defaults::structure(object, "spec");
        defaults::set(spec, "minReplicas", 1);
        if is_older {
            return;
        }
        if spec.items_at(&["metrics"]).is_empty() {
            let metric = autoscaling::cpu_metric(autoscaling::DEFAULT_CPU_UTILIZATION);
            spec.make_object().insert("metrics", Value::Array(vec![metric]));
        }
        if let Some(behavior) = defaults::field(spec, "behavior") {
            behavior::set_defaults(behavior);
        }
    }

    fn internalize(&self, object: &mut Value) -> Result<(), ReadError> {
        if is_older(object) {
            *object = convert::convert(&convert::convert(object, V2), V1);
        } else {
            convert::drop_annotations(object);
        }
        Ok(())
    }

    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        if object.str_at(&["apiVersion"]) == api_version {
            return None;
        }
        let mut converted = convert::convert(object, api_version);
        // Go sets these defaults when it decodes stored objects.
        if let Some(behavior) = converted.at_mut(&["spec", "behavior"]).filter(|behavior| !behavior.is_null()) {
            behavior::set_defaults(behavior);
        }
        Some(converted)
    }

    fn keep_empty(&self, sent: &Value, decoded: &mut Value) {
        behavior::keep_empty_policies(sent, decoded);
    }

    fn internal_annotations(&self) -> &'static [&'static str] {
        &convert::ANNOTATIONS
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::keep(object, &self.zero(version), &["status"]);
        let is_older = is_older(object);
        change_in_v2(object, |newer| {
            features::drop_fields(&FEATURES, version.minor, newer, None);
            if is_older {
                // A new object has no status, even if annotations of v1 have one.
                newer.make_object().remove("status");
            }
        });
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let object = in_v2(object);
        let mut errors = metadata::validate(&object, true, names::name_is_dns1123_subdomain);
        errors.extend(validate::spec(version.minor, &object, None));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        // Objects are compared in v2, because annotations of v1 belong to the spec or to the status.
        let (api_version, old) = (new.str_at(&["apiVersion"]).to_owned(), in_v2(old));
        let mut prepared = in_v2(new).into_owned();
        prepare::keep(&mut prepared, &old, self.leaves_alone(subresource));
        features::drop_fields(&FEATURES, version.minor, &mut prepared, Some(&old));
        *new = convert::convert(&prepared, &api_version);
    }

    fn leaves_alone(&self, subresource: Subresource) -> &'static [&'static str] {
        if subresource == Subresource::Status { &["spec"] } else { &["status"] }
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        let (new, old) = (in_v2(new), in_v2(old));
        let mut errors = metadata::validate_update(&new, &old);
        if subresource == Subresource::Status {
            let root = FieldRef::root(&new);
            errors.extend(status::not_negative(&root.field("status"), &["currentReplicas", "desiredReplicas"]));
        } else {
            errors.extend(validate::spec(version.minor, &new, Some(&old)));
        }
        errors
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        workloads::reset_fields(subresource)
    }
}

fn is_older(object: &Value) -> bool {
    object.str_at(&["apiVersion"]) == V1
}

fn in_v2(object: &Value) -> Cow<'_, Value> {
    if is_older(object) { Cow::Owned(convert::convert(object, V2)) } else { Cow::Borrowed(object) }
}

/// Changes an object in the form of v2, and converts it back if it is of v1.
fn change_in_v2(object: &mut Value, change: impl FnOnce(&mut Value)) {
    if !is_older(object) {
        return change(object);
    }
    let mut newer = convert::convert(object, V2);
    change(&mut newer);
    *object = convert::convert(&newer, V1);
}

fn table() -> Table {
    let columns = vec![
        Column::string("Reference", "What is scaled."),
        Column::string("Targets", "What is measured, and what it should be."),
        Column::string("MinPods", "How many pods there are at least."),
        Column::string("MaxPods", "How many pods there are at most."),
        Column::string("Replicas", "How many pods the autoscaler has seen."),
    ];
    Table::named(columns, |autoscaler| {
        let autoscaler = &*in_v2(autoscaler);
        let target = |name: &str| autoscaler.str_at(&["spec", "scaleTargetRef", name]);
        let min = autoscaler.at(&["spec", "minReplicas"]).and_then(Value::as_i64);
        let row = vec![
            Cell::text(&format!("{}/{}", target("kind"), target("name"))),
            Cell::text(&autoscaling::cells::metrics(autoscaler)),
            Cell::text(&min.map_or_else(|| "<unset>".to_owned(), |min| min.to_string())),
            cells::of_int(autoscaler, &["spec", "maxReplicas"]),
            cells::of_int(autoscaler, &["status", "currentReplicas"]),
        ];
        Cell::named(autoscaler, row)
    })
}
