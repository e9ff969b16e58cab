//! CSIDriver, storage.k8s.io/v1.
//!
//! Source: `pkg/apis/storage` and `pkg/registry/storage/csidriver` of Kubernetes 1.36, with the types of 1.37.

use std::collections::HashSet;

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::features::{self, Feature};
use crate::kinds::storage::columns;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, checks, defaults, metadata, prepare, semantic};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::value::Value;

const GROUP_POLICIES: [&str; 3] = ["File", "None", "ReadWriteOnceWithFSType"];
const LIFECYCLE_MODES: [&str; 2] = ["Persistent", "Ephemeral"];
const TOKEN_SECONDS_MIN: i64 = 10 * 60;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
const UPDATE_SECONDS_MIN: i64 = 10;
const FEATURES: [Feature; 4] = [
    Feature::new(Gate::SELinuxMountReadWriteOncePod, &["spec.seLinuxMount"]),
    Feature::new(Gate::MutableCsiNodeAllocatableCount, &["spec.nodeAllocatableUpdatePeriodSeconds"]),
    Feature::new(Gate::CsiServiceAccountTokenSecrets, &["spec.serviceAccountTokenInSecrets"]),
    Feature::new(Gate::VolumeLimitScaling, &["spec.preventPodSchedulingIfMissing"]),
];
const TOKENS_MAY_BE_LOGGED: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to \
                                    true to prevent possible logging of tokens in volume attributes";

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "csidrivers",
    singular: "csidriver",
    scope: Scope::Cluster,
    example: "metadata: {name: disks.example.com}\nspec: {attachRequired: false}",
    ..Kind::new("storage.k8s.io", "v1", "CSIDriver", &CsiDriver)
}];

struct CsiDriver;

impl Strategy for CsiDriver {
    fn set_typed_defaults(&self, object: &mut Value) {
        let spec = defaults::structure(object, "spec");
        for (name, value) in [
            ("attachRequired", true),
            ("podInfoOnMount", false),
            ("storageCapacity", false),
            ("requiresRepublish", false),
            ("seLinuxMount", false),
        ] {
            defaults::set(spec, name, value);
        }
        let policy = spec.make_object().entry("fsGroupPolicy");
        if policy.is_null() {
            *policy = Value::from("ReadWriteOnceWithFSType");
        }
        let modes = spec.make_object().entry("volumeLifecycleModes");
        if modes.as_array().is_none_or(<[Value]>::is_empty) {
            *modes = Value::Array(vec![Value::from("Persistent")]);
        }
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        features::drop_fields(&FEATURES, version.minor, object, None);
    }

    fn prepare_update(&self, version: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        features::drop_fields(&FEATURES, version.minor, new, Some(old));
        prepare::count_generation(new, old, &["spec"]);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        errors.extend(validate_spec(version.minor, &FieldRef::root(object).field("spec")));
        errors
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        let (new, old) = (new.field("spec"), old.field("spec"));
        errors.extend(validate_spec(version.minor, &new));
        let attach = FieldRef::new(new.field("attachRequired").value(), new.path().child("attachedRequired"));
        errors.extend(checks::unchanged(&attach, &old.field("attachRequired")));
        let modes = "volumeLifecycleModes";
        errors.extend(checks::unchanged(&new.field(modes), &old.field(modes)));
        errors
    }

    fn warnings(&self, version: &ServedVersion, _: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        if !version.minor.opens(Gate::CsiServiceAccountTokenSecrets) {
            return Vec::new();
        }
        let tokens = |object: &Value| object.at(&["spec", "tokenRequests"]).cloned();
        let has_tokens = !new.items_at(&["spec", "tokenRequests"]).is_empty();
        let is_new = old.is_none_or(|old| !semantic::equal_untyped(tokens(new).as_ref(), tokens(old).as_ref()));
        let is_secret = new.at(&["spec", "serviceAccountTokenInSecrets"]).is_some();
        let warning = (has_tokens && is_new && !is_secret).then(|| TOKENS_MAY_BE_LOGGED.to_owned());
        warning.into_iter().collect()
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let truth = |name, description| columns::typed(name, "boolean", description);
        let columns = vec![
            truth("AttachRequired", "Whether volumes have to be attached to nodes."),
            truth("PodInfoOnMount", "Whether the driver wants to know the pod."),
            truth("StorageCapacity", "Whether the scheduler looks at capacities that the driver tells."),
            Column::string("TokenRequests", "Whom the tokens are for that the driver gets."),
            truth("RequiresRepublish", "Whether the driver wants to be called again and again."),
            Column::string("Modes", "How long volumes of the driver may live."),
        ];
        Some(Table::named(columns, cells))
    }
}

fn cells(driver: &Value) -> Vec<Cell> {
    let truth = |name| columns::truth(driver, &["spec", name]);
    let modes: Vec<&str> =
        driver.items_at(&["spec", "volumeLifecycleModes"]).iter().filter_map(Value::as_str).collect();
    let tokens = driver.at(&["spec", "tokenRequests"]).and_then(Value::as_array);
    let audiences = tokens.map(|tokens| tokens.iter().map(|token| token.str_at(&["audience"])).collect::<Vec<_>>());
    Cell::named(
        driver,
        vec![
            truth("attachRequired"),
            truth("podInfoOnMount"),
            truth("storageCapacity"),
            Cell::text(&audiences.map_or_else(|| "<unset>".to_owned(), |audiences| audiences.join(","))),
            truth("requiresRepublish"),
            Cell::text(&if modes.is_empty() { "<none>".to_owned() } else { modes.join(",") }),
        ],
    )
}

fn validate_spec(minor: Minor, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, called) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.field(name).is_set() {
            errors.push(Error::required(&spec.path().child(called), ""));
        }
    }
    let policy = spec.field("fsGroupPolicy");
    if policy.is_set() {
        errors.extend(checks::one_of(&policy, &GROUP_POLICIES));
    }
    let tokens = spec.field("tokenRequests");
    errors.extend(validate_tokens(&tokens));
    let modes = spec.field("volumeLifecycleModes");
    for mode in modes.texts().filter(|mode| !LIFECYCLE_MODES.contains(mode)) {
        errors.push(Error::not_supported(modes.path(), mode, &LIFECYCLE_MODES));
    }
    let (mount, period, secret) = (
        spec.field("seLinuxMount"),
        spec.field("nodeAllocatableUpdatePeriodSeconds"),
        spec.field("serviceAccountTokenInSecrets"),
    );
    if !mount.is_set() && minor.opens(Gate::SELinuxMountReadWriteOncePod) {
        errors.push(mount.required(""));
    }
    if period.is_set() && period.int() < UPDATE_SECONDS_MIN {
        errors.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
    if secret.is_set() && tokens.is_empty() {
        errors.push(secret.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified"));
    }
    errors
}

/// Checks that each audience has one token, with a valid lifetime.
fn validate_tokens(tokens: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut audiences = HashSet::new();
    for token in tokens.items() {
        let (audience, seconds) = (token.field("audience"), token.field("expirationSeconds"));
        if !audiences.insert(audience.text().to_owned()) {
            errors.push(Error::duplicate(audience.path(), audience.text()));
            continue;
        }
        if seconds.is_set() && seconds.int() < TOKEN_SECONDS_MIN {
            errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
        }
        if seconds.int() > TOKEN_SECONDS_MAX {
            errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
        }
    }
    errors
}
