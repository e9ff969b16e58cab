//! Workload, PodGroup and CompositePodGroup, scheduling.k8s.io/v1beta1 and v1alpha3: pods that are scheduled together.
//!
//! They are validated by the markers of their types (`+k8s:…`). The versions are disabled by default.
//!
//! Source: `pkg/apis/scheduling` and `pkg/registry/scheduling` of Kubernetes 1.36, with the types of 1.37.

use std::collections::HashSet;

use crate::crd::{Column, ServedVersion};
use crate::kinds::features::{self, Feature};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, conditions, declared, defaults, metadata, prepare, semantic, type_of, workload_templates};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::object;
use crate::types::{self, FieldKind, Message};
use crate::value::Value;
use crate::work;

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
    gate: Some(Gate::CompositePodGroup),
    example: "metadata: {name: example}\nspec: {workloadRef: {workloadName: a, templateName: b}, schedulingPolicy: {basic: {}}}",
    ..Kind::new(GROUP, "v1alpha3", "CompositePodGroup", &COMPOSITE_POD_GROUP)
};

const fn workload(version: &'static str) -> Kind {
    Kind {
        plural: "workloads",
        singular: "workload",
        is_default: false,
        forms: &WORKLOADS,
        gate: Some(Gate::GenericWorkload),
        example: "metadata: {name: example}\nspec: {podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}]}",
        ..Kind::new(GROUP, version, "Workload", &WORKLOAD)
    }
}

const fn pod_group(version: &'static str) -> Kind {
    Kind {
        plural: "podgroups",
        singular: "podgroup",
        status: true,
        is_default: false,
        forms: &POD_GROUPS,
        gate: Some(Gate::GenericWorkload),
        example: "metadata: {name: example}\nspec: {schedulingPolicy: {basic: {}}}",
        ..Kind::new(GROUP, version, "PodGroup", &POD_GROUP)
    }
}

/// The strategy of Workload, which describes how its pods are scheduled and has no status.
static WORKLOAD: Grouping = Grouping {
    has_status: false,
    features: &OF_WORKLOAD,
    validate_spec: Some(workload_templates::validate),
    table: plain_table,
};
static POD_GROUP: Grouping =
    Grouping { has_status: true, features: &OF_POD_GROUP, validate_spec: None, table: pod_group_table };
static COMPOSITE_POD_GROUP: Grouping =
    Grouping { has_status: true, features: &OF_COMPOSITE, validate_spec: None, table: plain_table };

/// The fields behind gates that are off by default. The markers of each type (`+featureGate`) say which fields they
/// are.
static OF_WORKLOAD: [Feature; 1] = [Feature::new(Gate::CompositePodGroup, &["spec.compositePodGroupTemplates"])];

static OF_POD_GROUP: [Feature; 4] = [
    Feature::new(Gate::CompositePodGroup, &["spec.parentCompositePodGroupName"]),
    Feature::new(Gate::DraWorkloadResourceClaims, &["spec.resourceClaims", "status.resourceClaimStatuses"]),
    Feature::new(Gate::PodGroupPreemptionPolicy, &["spec.preemptionPolicy"]),
    Feature::new(Gate::TopologyAwareWorkloadScheduling, &["spec.schedulingConstraints"]),
];

static OF_COMPOSITE: [Feature; 1] = [Feature::new(Gate::PodGroupPreemptionPolicy, &["spec.preemptionPolicy"])];

/// The same for the templates in a Workload, by the field with the list.
static OF_TEMPLATES: [(&str, &[Feature]); 2] =
    [("podGroupTemplates", &OF_POD_GROUP_TEMPLATE), ("compositePodGroupTemplates", &OF_COMPOSITE_TEMPLATE)];

static OF_POD_GROUP_TEMPLATE: [Feature; 3] = [
    Feature::new(Gate::DraWorkloadResourceClaims, &["resourceClaims"]),
    Feature::new(Gate::PodGroupPreemptionPolicy, &["preemptionPolicy"]),
    Feature::new(Gate::TopologyAwareWorkloadScheduling, &["schedulingConstraints"]),
];

static OF_COMPOSITE_TEMPLATE: [Feature; 1] = [Feature::new(Gate::PodGroupPreemptionPolicy, &["preemptionPolicy"])];

/// A kind whose spec is validated by its markers.
struct Grouping {
    has_status: bool,
    features: &'static [Feature],
    /// The rules of the spec that have no markers.
    validate_spec: Option<fn(&FieldRef<'_>) -> ErrorList>,
    table: fn() -> Table,
}

impl Grouping {
    fn rules_of_spec(&self, object: &FieldRef<'_>) -> ErrorList {
        self.validate_spec.map(|validate| validate(&object.field("spec"))).unwrap_or_default()
    }
}

impl Strategy for Grouping {
    fn set_typed_defaults(&self, object: &mut Value) {
        let message = type_of(object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        let spec = message.and_then(|message| message.member("spec")).map(|field| field.kind);
        if let Some(FieldKind::Message(spec)) = spec {
            defaults::of_type(spec.get(), defaults::structure(object, "spec"));
        }
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        if self.has_status {
            prepare::reset(object, "status", object! {});
        }
        drop_fields(self.features, version.minor, object, None);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        let object = FieldRef::root(object);
        errors.extend(self.rules_of_spec(&object));
        errors.extend(declared::validate(message(version), &object, version.minor));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if self.has_status {
            prepare::for_update(subresource, new, old);
        }
        drop_fields(self.features, version.minor, new, Some(old));
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        if subresource == Subresource::Status {
            let status = new.field("status");
            errors.extend(conditions::validate(&status.field("conditions")));
            errors.extend(validate_claims(&status.field("resourceClaimStatuses"), &new.field("spec")));
        } else if !semantic::equal_untyped(new.field("spec").value(), old.field("spec").value()) {
            errors.extend(self.rules_of_spec(&new));
        }
        errors.extend(declared::validate_update(message(version), &new, &old, version.minor));
        errors
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        match subresource {
            Subresource::Status => &[&["metadata"], &["spec"]],
            _ if self.has_status => &[&["status"]],
            _ => &[],
        }
    }

    fn table(&self) -> Option<Table> {
        Some((self.table)())
    }
}

/// Names and ages alone.
fn plain_table() -> Table {
    Table::named(Vec::new(), |object| Cell::named(object, Vec::new()))
}

fn pod_group_table() -> Table {
    let columns = [
        (
            "Policy",
            "schedulingPolicy defines the scheduling policy for this instance of the PodGroup. Controllers are expected to fill \
             this field by copying it from a PodGroupTemplate.",
        ),
        ("Workload", "Name of the referenced Workload object"),
        ("Status", "Status of the PodGroup"),
    ];
    let columns = columns.map(|(name, description)| Column::string(name, description));
    Table::named(columns.into(), |group| {
        let spec = |path: &[&str]| group.get("spec").and_then(|spec| spec.at(path));
        let policy = if spec(&["schedulingPolicy", "gang"]).is_some() { "Gang" } else { "Basic" };
        let workload = spec(&["workloadRef", "workloadName"]).and_then(Value::as_str).unwrap_or("<none>");
        Cell::named(group, [policy, workload, pod_group_status(group)].map(Cell::text).into())
    })
}

/// What the conditions of a PodGroup say of it.
fn pod_group_status(group: &Value) -> &str {
    let conditions = group.items_at(&["status", "conditions"]);
    let last = |type_: &str| conditions.iter().rfind(|condition| condition.str_at(&["type"]) == type_);
    match (last("DisruptionTarget"), last("PodGroupInitiallyScheduled")) {
        (Some(disrupted), _) => disrupted.str_at(&["reason"]),
        (None, Some(scheduled)) if scheduled.str_at(&["status"]) == "True" => "Scheduled",
        (None, Some(_)) => "Unschedulable",
        (None, None) => "Pending",
    }
}

/// Removes the fields whose gates are off from the object and from its templates.
fn drop_fields(features: &[Feature], minor: Minor, new: &mut Value, old: Option<&Value>) {
    features::drop_fields(features, minor, new, old);
    if let Some(spec) = defaults::field(new, "spec") {
        drop_fields_of_templates(minor, spec, old.and_then(|old| old.get("spec")));
    }
}

/// Removes them from the templates in a spec, or in a template, which may contain others. As in the reference, the
/// template at the same index of the old object tells what was in use before.
fn drop_fields_of_templates(minor: Minor, new: &mut Value, old: Option<&Value>) {
    for (list, features) in OF_TEMPLATES {
        let before = old.and_then(|old| old.get(list)?.as_array()).unwrap_or_default();
        for (at, template) in defaults::items(new, list).enumerate() {
            work::step();
            features::drop_fields(features, minor, template, before.get(at));
            drop_fields_of_templates(minor, template, before.get(at));
        }
    }
    // Go encodes the constraints of a template even if there are none.
    for template in defaults::items(new, "podGroupTemplates") {
        defaults::set_pointer(template, "schedulingConstraints", Value::Null);
    }
}

/// The type of the version that is being written.
fn message(version: &ServedVersion) -> &'static Message {
    types::message_of_kind(&version.group, &version.version, &version.names.kind)
}

/// Checks that the claims of a status are claims of the spec.
fn validate_claims(statuses: &FieldRef<'_>, spec: &FieldRef<'_>) -> ErrorList {
    let claims = spec.field("resourceClaims");
    let known: HashSet<&str> = claims.items().map(|claim| claim.text_of("name")).collect();
    let mut errors = ErrorList::new();
    for status in statuses.items() {
        let name = status.field("name");
        if !known.contains(name.text()) {
            errors.push(name.invalid("must match the name of an entry in `spec.resourceClaims`"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::find;
    use crate::meta::gate::Gates;
    use crate::value::yaml;

    /// Checks the errors of a spec, given as YAML, or of an update of `old` to it.
    fn check(plural: &str, old: Option<&str>, new: &str, expect: &[&str]) {
        let kind = find(GROUP, plural).expect("the kind is there");
        let version = kind.served_version();
        let object = |spec: &str| {
            let text = format!(
                "{{apiVersion: {}, kind: {}, metadata: {{name: a}}, spec: {spec}}}",
                kind.api_version(),
                kind.kind
            );
            let sent = yaml::decode(text.as_bytes()).expect("the test is valid");
            kind.strategy.decode(sent, &[]).unwrap_or_else(|_| panic!("{spec} can be read")).object
        };
        let mut new = object(new);
        let errors = match old.map(object) {
            Some(old) => {
                kind.strategy.prepare_update(&version, Subresource::Main, &mut new, &old);
                kind.strategy.validate_update(&version, Subresource::Main, &new, &old)
            }
            None => {
                kind.strategy.prepare_create(&version, &mut new);
                kind.strategy.validate_create(&version, &new)
            }
        };
        let of_spec = |text: &String| text.starts_with("spec");
        let texts: Vec<String> = errors.iter().map(ToString::to_string).filter(of_spec).collect();
        assert_eq!(texts, expect);
    }

    #[test]
    fn a_workload_is_checked_as_its_markers_say() {
        check("workloads", None, "{podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}]}", &[]);
        check(
            "workloads",
            None,
            "{}",
            &["spec: Invalid value: \"\": must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"],
        );
        let many: Vec<String> =
            (0..9).map(|at| format!("{{name: a{at}, schedulingPolicy: {{basic: {{}}}}}}")).collect();
        check(
            "workloads",
            None,
            &format!("{{podGroupTemplates: [{}]}}", many.join(", ")),
            &["spec.podGroupTemplates: Too many: 9: must have at most 8 items"],
        );
        check(
            "workloads",
            None,
            "{controllerRef: {kind: a/b}, podGroupTemplates: [{name: '', schedulingPolicy: {gang: {minCount: -1}}}]}",
            &[
                "spec.controllerRef.kind: Invalid value: \"a/b\": may not contain '/'",
                "spec.controllerRef.name: Required value",
                "spec.podGroupTemplates[0].name: Required value",
                "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
            ],
        );
    }

    #[test]
    fn templates_of_a_workload_are_neither_added_nor_removed() {
        let one = "{podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}]}";
        let other = "{podGroupTemplates: [{name: b, schedulingPolicy: {basic: {}}}]}";
        check("workloads", Some(one), one, &[]);
        check(
            "workloads",
            Some(one),
            other,
            &[
                "spec.podGroupTemplates[0]: Forbidden: item may not be added",
                "spec.podGroupTemplates: Forbidden: item may not be removed",
            ],
        );
    }

    #[test]
    fn a_spec_that_stays_is_not_looked_at_again() {
        let of = |template: &str| {
            let group = |rest: &str| format!("{{name: {rest}, schedulingPolicy: {{gang: {{minCount: {template}}}}}}}");
            format!("{{podGroupTemplates: [{}, {}]}}", group("a, priority: 1"), group("b, priority: 2"))
        };
        let why = "spec: Invalid value: null: detected multiple priority configurations";
        check("workloads", None, &of("1"), &[why]);
        check("workloads", Some(&of("1")), &of("1"), &[]);
        check("workloads", Some(&of("1")), &of("2"), &[why]);
    }

    #[test]
    fn a_pod_group_is_checked_as_its_markers_say() {
        check(
            "podgroups",
            None,
            "{}",
            &["spec.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`"],
        );
        check(
            "podgroups",
            None,
            "{schedulingPolicy: {basic: {}, gang: {minCount: 0}}, priority: 2000000000}",
            &[
                "spec.schedulingPolicy: Invalid value: \"{basic, gang}\": must specify exactly one of: `basic`, `gang`",
                "spec.schedulingPolicy.gang.minCount: Required value",
                "spec.priority: Invalid value: 2000000000: must be less than or equal to 1000000000",
            ],
        );
        let gang = |count: i64| format!("{{schedulingPolicy: {{gang: {{minCount: {count}}}}}}}");
        check("podgroups", Some(&gang(2)), &gang(3), &[]);
        check(
            "podgroups",
            Some(&gang(2)),
            "{schedulingPolicy: {basic: {}}}",
            &[
                "spec.schedulingPolicy.basic: Invalid value: null: field is immutable",
                "spec.schedulingPolicy.gang: Invalid value: null: field cannot be cleared once set",
            ],
        );
    }

    /// Checks what is left of a spec, given as YAML, with the feature gates set as in `gates`.
    fn check_left(plural: &str, gates: &str, old: Option<&str>, new: &str, expect: &str) {
        let kind = find(GROUP, plural).expect("the kind is there");
        let mut version = kind.served_version();
        version.minor = version.minor.with_gates(Gates::parse(gates, version.minor).expect("the test is valid"));
        let object = |spec: &str| {
            let spec = yaml::decode(spec.as_bytes()).expect("the test is valid");
            object! { "spec" => spec }
        };
        let mut new = object(new);
        match old {
            Some(old) => kind.strategy.prepare_update(&version, Subresource::Main, &mut new, &object(old)),
            None => kind.strategy.prepare_create(&version, &mut new),
        }
        assert_eq!(new.get("spec"), object(expect).get("spec"));
    }

    #[test]
    fn fields_of_shut_gates_are_dropped() {
        const ALL: &str = "{parentCompositePodGroupName: a, preemptionPolicy: Never, schedulingConstraints: {topology: [{key: ''}]}, resourceClaims: [{name: a}]}";
        check_left("podgroups", "", None, ALL, "{}");
        check_left("podgroups", "", Some("{preemptionPolicy: Never}"), ALL, "{preemptionPolicy: Never}");
        check_left(
            "podgroups",
            "GenericWorkload=true,CompositePodGroup=true",
            None,
            ALL,
            "{parentCompositePodGroupName: a}",
        );
    }

    #[test]
    fn a_composite_group_has_its_constraints_and_its_parent_without_a_gate() {
        check_left(
            "compositepodgroups",
            "",
            None,
            "{parentCompositePodGroupName: a, preemptionPolicy: Never, schedulingConstraints: {topology: [{key: a}]}}",
            "{parentCompositePodGroupName: a, schedulingConstraints: {topology: [{key: a}]}}",
        );
    }

    #[test]
    fn templates_within_templates_lose_the_fields_of_shut_gates() {
        let gates = "GenericWorkload=true,CompositePodGroup=true";
        let template = "{name: a, resourceClaims: [{name: a}], preemptionPolicy: Never, schedulingConstraints: {topology: [{key: a}]}}";
        let left = "{name: a, schedulingConstraints: null}";
        let nested = |template: &str, rest: &str| {
            format!(
                "{{compositePodGroupTemplates: [{{name: b{rest}, podGroupTemplates: [{template}], \
                 compositePodGroupTemplates: [{{name: c{rest}, podGroupTemplates: [{template}]}}]}}]}}"
            )
        };
        let all = nested(template, ", preemptionPolicy: Never");
        check_left("workloads", "", None, &all, "{}");
        check_left("workloads", gates, None, &all, &nested(left, ""));
        check_left("workloads", gates, Some(&all), &all, &all);
        check_left(
            "workloads",
            "",
            None,
            &format!("{{podGroupTemplates: [{template}]}}"),
            &format!("{{podGroupTemplates: [{left}]}}"),
        );
    }

    #[test]
    fn a_template_keeps_what_the_one_in_its_place_used() {
        let of = |first: &str, second: &str| {
            format!(
                "{{podGroupTemplates: [{{name: a, schedulingConstraints: null{first}}}, {{name: b, schedulingConstraints: null{second}}}]}}"
            )
        };
        let policy = ", preemptionPolicy: Never";
        check_left("workloads", "", Some(&of(policy, "")), &of(policy, policy), &of(policy, ""));
    }

    #[test]
    fn every_field_that_a_gate_forbids_is_in_a_table() {
        let tables: [(&str, &[Feature]); 5] = [
            ("WorkloadSpec", &OF_WORKLOAD),
            ("PodGroupSpec", &OF_POD_GROUP),
            ("CompositePodGroupSpec", &OF_COMPOSITE),
            ("PodGroupTemplate", &OF_POD_GROUP_TEMPLATE),
            ("CompositePodGroupTemplate", &OF_COMPOSITE_TEMPLATE),
        ];
        let mut seen = 0;
        for named in ["scheduling.v1alpha3", "scheduling.v1beta1"].into_iter().flat_map(types::structs) {
            let message = named.message();
            let table = tables.iter().find(|(name, _)| *name == message.name).map_or(&[][..], |(_, table)| table);
            for field in message.fields {
                let Some((_, rest)) = field.markers.split_once("+k8s:ifDisabled(") else { continue };
                let gate = rest.split(')').next().unwrap_or_default().trim_matches('"');
                let is_dropped = table.iter().any(|feature| {
                    feature.gate.name() == gate && feature.paths.iter().any(|path| path.ends_with(field.json))
                });
                assert!(is_dropped, "{}.{} of {gate}", message.name, field.json);
                seen += 1;
            }
        }
        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn the_default_of_a_pod_group_comes_from_its_type() {
        let kind = find(GROUP, "podgroups").expect("the kind is there");
        let sent = object! { "apiVersion" => kind.api_version(), "kind" => kind.kind, "spec" => object! {} };
        let read = kind.strategy.decode(sent, &[]).unwrap_or_else(|_| panic!("it can be read")).object;
        assert_eq!(read.at(&["spec", "disruptionMode"]), Some(&object! { "single" => object! {} }));
    }
}
