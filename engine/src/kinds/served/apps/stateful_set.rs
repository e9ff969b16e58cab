//! StatefulSet, apps/v1.
//!
//! Source: defaults, conversion, validation, strategy and columns of Kubernetes 1.37.

use crate::crd::{Column, SelectorForm, ServedVersion};
use crate::kinds::features::{self, Feature};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::{self, cells, claims, percent, selector, status, template};
use crate::kinds::{Kind, Part, checks, defaults, metadata, prepare, semantic};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::value::Value;

const FEATURES: [Feature; 1] =
    [Feature::new(Gate::MaxUnavailableStatefulSet, &["spec.updateStrategy.rollingUpdate.maxUnavailable"])];
const ROLLING_UPDATE: &str = "RollingUpdate";
const ON_DELETE: &str = "OnDelete";
const ORDERED_READY: &str = "OrderedReady";
const PARALLEL: &str = "Parallel";
const RETAIN: &str = "Retain";
const DELETE: &str = "Delete";
const RETENTIONS: [&str; 2] = ["whenDeleted", "whenScaled"];

/// The fields of the spec that an update may change.
const CHANGEABLE: [&str; 6] =
    ["replicas", "ordinals", "template", "updateStrategy", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"];
/// Another field that may change, from that version of Kubernetes on.
const HISTORY: (&str, Minor) = ("revisionHistoryLimit", Minor::of(33));

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "statefulsets",
    singular: "statefulset",
    short_names: &["sts"],
    categories: &["all"],
    status: true,
    parts: &[Part::scale(SelectorForm::Requirements)],
    example: r"
metadata: {name: example}
spec:
  serviceName: example
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: example.com/db}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
",
    ..Kind::new("apps", "v1", "StatefulSet", &StatefulSet)
}];

struct StatefulSet;

impl Strategy for StatefulSet {
    fn set_typed_defaults(&self, object: &mut Value) {
        let spec = defaults::structure(object, "spec");
        defaults::set(spec, "podManagementPolicy", ORDERED_READY);
        set_strategy_defaults(defaults::structure(spec, "updateStrategy"));
        let retention = defaults::structure(spec, "persistentVolumeClaimRetentionPolicy");
        RETENTIONS.iter().for_each(|name| defaults::set(retention, name, RETAIN));
        defaults::set(spec, "replicas", 1);
        defaults::set(spec, "revisionHistoryLimit", 10);
        template::set_defaults(spec);
        defaults::items(spec, "volumeClaimTemplates").for_each(claims::set_defaults);
    }

    fn keep_empty(&self, sent: &Value, decoded: &mut Value) {
        template::keep_empty_labels(sent, decoded);
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::for_create(object, &self.zero(version));
        drop_disabled_fields(version.minor, object, None);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_label);
        let root = FieldRef::root(object);
        errors.extend(validate_spec(
            &root.field("spec"),
            &template::options(version.minor, object, None),
            Leniency::default(),
        ));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
            return;
        }
        drop_disabled_fields(version.minor, new, Some(old));
        workloads::prepare_update(new, old);
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        let of_metadata = metadata::validate_update(new, old);
        let (new_root, old_root) = (FieldRef::root(new), FieldRef::root(old));
        if subresource == Subresource::Status {
            return validate_status(&new_root.field("status"), &old_root.field("status"), of_metadata);
        }
        let mut errors = of_metadata;
        let options = template::options(version.minor, new, Some(old));
        let mut leniency = Leniency { keeps_names_and_claims: true, skips_template: false };
        leniency.skips_template = !validate_spec(&old_root.field("spec"), &options, leniency).is_empty();
        let (new_spec, old_spec) = (new_root.field("spec"), old_root.field("spec"));
        errors.extend(validate_spec(&new_spec, &options, leniency));
        errors.extend(check_kept(version.minor, &new_spec, &old_spec));
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        if subresource == Subresource::Status {
            return Vec::new();
        }
        let is_new = old.is_none_or(|old| workloads::generation_differs(new, old));
        let mut warnings = if is_new { template::warnings(new, old) } else { Vec::new() };
        warnings.extend(claim_warnings(new, old.is_some()));
        if cells::int(new, &["spec", "revisionHistoryLimit"]) < 0 {
            warnings.push(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                    .to_owned(),
            );
        }
        warnings
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        workloads::reset_fields(subresource)
    }
}

/// The checks that validation skips, because the value was stored before the rule existed.
#[derive(Clone, Copy, Default)]
struct Leniency {
    /// The service's name and the claims cannot change, so their names are not checked.
    keeps_names_and_claims: bool,
    skips_template: bool,
}

fn set_strategy_defaults(strategy: &mut Value) {
    if strategy.str_at(&["type"]).is_empty() {
        defaults::set(strategy, "type", ROLLING_UPDATE);
        defaults::structure(strategy, "rollingUpdate");
    }
    if strategy.str_at(&["type"]) == ROLLING_UPDATE
        && let Some(rolling) = defaults::field(strategy, "rollingUpdate")
    {
        defaults::set(rolling, "partition", 0);
    }
}

fn drop_disabled_fields(minor: Minor, new: &mut Value, old: Option<&Value>) {
    features::drop_fields(&FEATURES, minor, new, old);
    template::drop_disabled_fields(minor, new, old);
}

fn validate_spec(spec: &FieldRef<'_>, options: &template::PodValidationOptions, leniency: Leniency) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(check_management(&spec.field("podManagementPolicy")));
    errors.extend(validate_strategy(&spec.field("updateStrategy")));
    errors.extend(validate_retention(&spec.field("persistentVolumeClaimRetentionPolicy")));
    if !leniency.keeps_names_and_claims {
        errors.extend(claims::validate(&spec.field("volumeClaimTemplates")));
    }
    errors.extend(checks::not_negative(&spec.field("replicas")));
    errors.extend(checks::not_negative(&spec.field("minReadySeconds")));
    errors.extend(checks::not_negative(&spec.field("ordinals").field("start")));
    let service = spec.field("serviceName");
    if !leniency.keeps_names_and_claims && !service.is_empty() {
        errors.extend(checks::named(&service, names::is_dns1123_label));
    }
    errors.extend(validate_selector(&spec.field("selector")));
    errors.extend(validate_template(spec, options, leniency));
    errors.extend(template::check_running(&spec.field("template"), "StatefulSet"));
    errors
}

fn check_management(policy: &FieldRef<'_>) -> Option<Error> {
    match policy.text() {
        "" => Some(policy.required("")),
        ORDERED_READY | PARALLEL => None,
        _ => Some(policy.invalid_as_json("must be 'OrderedReady' or 'Parallel'")),
    }
}

fn validate_strategy(strategy: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "" => errors.push(strategy.required("")),
        ON_DELETE if rolling.is_set() => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(workloads::invalid_struct(&rolling, "apps.v1.RollingUpdateStatefulSetStrategy", why));
        }
        ON_DELETE => {}
        ROLLING_UPDATE if rolling.is_set() => errors.extend(validate_rolling_update(&rolling)),
        ROLLING_UPDATE => {}
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(workloads::invalid_struct(strategy, "apps.v1.StatefulSetUpdateStrategy", why));
        }
    }
    errors
}

fn validate_rolling_update(rolling: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(checks::not_negative(&rolling.field("partition")));
    let unavailable = rolling.field("maxUnavailable");
    if unavailable.is_set() {
        errors.extend(percent::validate(&unavailable));
        if percent::amount(&unavailable) == 0 {
            errors.push(unavailable.invalid("cannot be 0"));
        }
        errors.extend(percent::not_above_all(&unavailable));
    }
    errors
}

fn validate_retention(retention: &FieldRef<'_>) -> Vec<Error> {
    if !retention.is_set() {
        return Vec::new();
    }
    RETENTIONS.iter().filter_map(|name| checks::one_of(&retention.field(name), &[RETAIN, DELETE])).collect()
}

fn validate_selector(field: &FieldRef<'_>) -> ErrorList {
    let mut errors = selector::validate(field, true);
    if !field.is_set() {
        errors.push(field.required(""));
    }
    if selector::is_empty(field) {
        errors.push(selector::invalid(field, "empty selector is invalid for statefulset"));
    }
    errors
}

/// Validates the template as the pods will have it, with the volumes of the claims.
fn validate_template(spec: &FieldRef<'_>, options: &template::PodValidationOptions, leniency: Leniency) -> ErrorList {
    let field = spec.field("selector");
    let Some(selector) = selector::compile(&field) else { return selector::invalid(&field, "").into() };
    let template = spec.field("template");
    let mut errors = ErrorList::new();
    errors.extend(selector.check_template(&template));
    if !leniency.skips_template {
        let made = template.value().map(|template| claims::mounted(template, spec.value()));
        let made = FieldRef::new(made.as_ref(), *template.path());
        errors.extend(crate::kinds::pod::validate_template(&made, options));
    }
    errors.extend(template::validate_metadata(&template, options));
    errors
}

fn check_kept(minor: Minor, new: &FieldRef<'_>, old: &FieldRef<'_>) -> Option<Error> {
    let keeps_history = minor < HISTORY.1;
    let kept = |spec: &FieldRef<'_>| {
        let mut fields = spec.value().and_then(Value::as_object).cloned().unwrap_or_default();
        CHANGEABLE.iter().for_each(|name| _ = fields.remove(name));
        if !keeps_history {
            fields.remove(HISTORY.0);
        }
        Value::Object(fields)
    };
    let history = if keeps_history { "" } else { "'revisionHistoryLimit', " };
    let why = || {
        format!(
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
             {history}'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
    };
    // The templates of claims have quantities.
    let is_kept = semantic::equal("spec", Some(&kept(new)), Some(&kept(old)));
    (!is_kept).then(|| new.forbidden(why()))
}

fn validate_status(new: &FieldRef<'_>, old: &FieldRef<'_>, of_metadata: ErrorList) -> ErrorList {
    const COUNTERS: [&str; 7] = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    const PARTS: [&str; 4] = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    let mut errors = status::not_negative(new, &COUNTERS);
    errors.extend(status::not_above(new, &PARTS, "replicas", "cannot be greater than status.replicas"));
    let why = "cannot be greater than status.readyReplicas";
    errors.extend(status::not_above(new, &["availableReplicas"], "readyReplicas", why));
    errors.extend(of_metadata);
    errors.extend(status::not_decremented(new, old, "collisionCount"));
    errors
}

fn claim_warnings(set: &Value, is_update: bool) -> Vec<String> {
    let root = FieldRef::root(set);
    let spec = root.field("spec");
    let templates = spec.field("volumeClaimTemplates");
    templates.items().flat_map(|claim| claims::warnings(&claim, is_update)).collect()
}

fn table() -> Table {
    let ready = Column::string("Ready", "Number of the pod with ready state");
    let mut columns = vec![cells::name(), ready, cells::age()];
    columns.extend(cells::containers());
    Table {
        columns,
        cells: |set| {
            let ready = cells::int(set, &["status", "readyReplicas"]);
            let wanted = cells::int(set, &["spec", "replicas"]);
            let mut row = vec![cells::of_name(set), Cell::text(&format!("{ready}/{wanted}")), cells::of_age(set)];
            row.extend(cells::of_containers(set.at(&["spec", "template", "spec"])));
            row
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn annotations_of_the_template_are_told_twice() {
        let cost = "controller.kubernetes.io/pod-deletion-cost";
        let text = format!(
            "{{selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}, annotations: {{{cost}: x}}}}, \
             spec: {{containers: [{{name: c, image: i}}]}}}}}}"
        );
        let mut set = crate::object! { "spec" => yaml::decode(text.as_bytes()).expect("YAML") };
        StatefulSet.set_typed_defaults(&mut set);
        let options = template::options(Minor::NEWEST, &set, None);
        let errors = validate_spec(&FieldRef::root(&set).field("spec"), &options, Leniency::default());
        let found: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        let field = format!("spec.template.annotations[{cost}]");
        assert_eq!(found, [&field, &field]);
    }
}
