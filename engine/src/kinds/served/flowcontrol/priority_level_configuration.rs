//! PriorityLevelConfiguration, flowcontrol.apiserver.k8s.io/v1, and v1beta3 in older minor versions: how many requests
//! of a level are executed at the same time.
//!
//! Objects are stored and validated, but this server schedules requests in another way.
//!
//! Source: `pkg/apis/flowcontrol/validation` and `pkg/registry/flowcontrol/prioritylevelconfiguration`, release 1.37.

use crate::crd::{Column, Scope};
use crate::kinds::strategy::{Cell, Table};
use crate::kinds::{Initial, Kind, defaults, flow_control, metadata, semantic, show_internal};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

const SHARES: i64 = 30;
const QUEUING: [(&str, i64); 3] = [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)];
const QUEUES_MAX: i64 = 10_000_000;
/// The number of bits in the hash of a flow.
const HASH_BITS: i64 = 60;
/// The annotation for zero shares in v1beta3, where zero otherwise means the default. It is only used there.
const ZERO_SHARES: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

pub static KINDS: [&Kind; 2] = [&V1, &V1BETA3];

/// The initial levels come with the flow schemas that refer to them.
static V1: Kind = Kind { initial: Some(Initial::Deferred(|| flow_control::INITIAL.clone())), ..form() };
/// Served up to 1.31, by default.
static V1BETA3: Kind = Kind { is_default: true, ..form().former("v1beta3") };

const fn form() -> Kind {
    Kind {
        plural: "prioritylevelconfigurations",
        singular: "prioritylevelconfiguration",
        scope: Scope::Cluster,
        status: true,
        example: "metadata: {name: example}\nspec: {type: Limited, limited: {limitResponse: {type: Reject}}}",
        forms: &KINDS,
        ..Kind::new(flow_control::GROUP, "v1", "PriorityLevelConfiguration", &STRATEGY)
    }
}

/// Whether an object is in the older version.
fn is_beta(object: &Value) -> bool {
    object.str_at(&["apiVersion"]).ends_with("/v1beta3")
}

/// Whether the annotation says that zero shares are intended.
fn says_zero(object: &Value) -> bool {
    object.at(&["metadata", "annotations", ZERO_SHARES]).is_some()
}

static STRATEGY: flow_control::FlowControlStrategy =
    flow_control::FlowControlStrategy { set_defaults, convert, validate, table, row_order: None };

fn convert(object: &Value, api_version: &str) -> Option<Value> {
    let mut converted = object.clone();
    let fields = converted.make_object();
    fields.insert("apiVersion", Value::from(api_version));
    let shares = object.at(&["spec", "limited"]).map(|limited| limited.get("nominalConcurrencyShares"));
    let has_none = matches!(shares, Some(None | Some(Value::Int(0))));
    if is_beta(&converted) && has_none {
        let annotations = converted.make_object().entry("metadata").make_object().entry("annotations");
        annotations.make_object().insert(ZERO_SHARES, Value::from(""));
    } else if let Some(annotations) = converted.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) {
        annotations.remove(ZERO_SHARES);
    }
    Some(converted)
}

fn set_defaults(object: &mut Value) {
    let no_shares_are_the_default = is_beta(object) && !says_zero(object);
    let Some(spec) = defaults::field(object, "spec") else { return };
    if let Some(exempt) = defaults::field(spec, "exempt") {
        defaults::set(exempt, "nominalConcurrencyShares", 0);
        defaults::set(exempt, "lendablePercent", 0);
    }
    let Some(limited) = defaults::field(spec, "limited") else { return };
    let shares = limited.make_object().entry("nominalConcurrencyShares");
    if shares.is_null() || (no_shares_are_the_default && *shares == Value::Int(0)) {
        *shares = Value::Int(SHARES);
    }
    defaults::set(limited, "lendablePercent", 0);
    let queuing = defaults::field(limited, "limitResponse").and_then(|response| defaults::field(response, "queuing"));
    if let Some(queuing) = queuing {
        for (name, number) in QUEUING {
            let field = queuing.make_object().entry(name);
            if matches!(field, Value::Null | Value::Int(0)) {
                *field = Value::Int(number);
            }
        }
    }
}

fn table() -> Table {
    let columns = ["Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit"];
    Table::named(columns.iter().map(|name| Column::string(name, "")).collect(), |object| {
        let limited = object.at(&["spec", "limited"]);
        let none = || Value::from("<none>");
        let number =
            |path: &[&str]| Cell::Value(limited.and_then(|limited| limited.at(path)).cloned().unwrap_or_else(none));
        let queuing = |name: &'static str| number(&["limitResponse", "queuing", name]);
        let row = vec![
            Cell::text(object.str_at(&["spec", "type"])),
            number(&["nominalConcurrencyShares"]),
            queuing("queues"),
            queuing("handSize"),
            queuing("queueLengthLimit"),
        ];
        Cell::named(object, row)
    })
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
    if says_zero(object) && !is_beta(object) {
        let why = format!("annotation '{ZERO_SHARES}' is forbidden");
        errors.push(Error::forbidden(&Path::new("metadata").child("annotations"), why));
    }
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let name = object.str_at(&["metadata", "name"]);
    errors.extend(validate_spec(name, &spec));
    errors.extend(validate_fixed(name, &spec));
    errors.extend(flow_control::validate_conditions(&root.field("status")));
    errors
}

/// Checks that a mandatory level has the fixed spec; the exempt one may differ in `spec.exempt`.
fn validate_fixed(name: &str, spec: &FieldRef<'_>) -> Option<Error> {
    let fixed = flow_control::mandatory_spec("PriorityLevelConfiguration", name)?;
    let is_exempt = name == "exempt";
    let compared = |spec: &Value| {
        let mut spec = spec.clone();
        if is_exempt {
            spec.make_object().remove("exempt");
        }
        spec
    };
    let own = spec.value().cloned().unwrap_or_default();
    if semantic::equal_untyped(Some(&compared(&own)), Some(&compared(fixed))) {
        return None;
    }
    let exception = if is_exempt { " except the 'spec.exempt' field" } else { "" };
    let why = format!("spec of '{name}'{exception} must equal the fixed value");
    Some(spec.invalid(why).shown_as(show_internal("flowcontrol.v1.PriorityLevelConfigurationSpec", &own)))
}

fn validate_spec(name: &str, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = spec.field("type");
    if (name == "exempt") != (kind.text() == "Exempt") {
        errors.push(kind.invalid_as_json("must be 'Exempt' if and only if `name` is 'exempt'"));
    }
    let (limited, exempt) = (spec.field("limited"), spec.field("exempt"));
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                errors.push(limited.forbidden("must be nil if the type is not Limited"));
            }
            if exempt.is_set() {
                errors.extend(validate_shares(&exempt));
                errors.extend(validate_lendable(&exempt));
            }
        }
        "Limited" => {
            if exempt.is_set() {
                errors.push(exempt.forbidden("must be nil if the type is Limited"));
            }
            if limited.is_set() {
                errors.extend(validate_limited(&limited));
            } else {
                errors.push(limited.required("must not be empty when type is Limited"));
            }
        }
        _ => errors.push(kind.not_supported(&["Exempt", "Limited"])),
    }
    errors
}

fn validate_limited(limited: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(validate_shares(limited));
    errors.extend(validate_response(&limited.field("limitResponse")));
    errors.extend(validate_lendable(limited));
    let borrowed = limited.field("borrowingLimitPercent");
    if borrowed.int() < 0 {
        errors.push(borrowed.invalid("if specified, must be a non-negative integer"));
    }
    errors
}

fn validate_shares(level: &FieldRef<'_>) -> Option<Error> {
    let shares = level.field("nominalConcurrencyShares");
    (shares.int() < 0).then(|| shares.invalid("must be a non-negative integer"))
}

fn validate_lendable(level: &FieldRef<'_>) -> Option<Error> {
    let percent = level.field("lendablePercent");
    (!(0..=100).contains(&percent.int())).then(|| percent.invalid("must be between 0 and 100, inclusive"))
}

fn validate_response(response: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (kind, queuing) = (response.field("type"), response.field("queuing"));
    match kind.text() {
        "Reject" if queuing.is_set() => {
            errors.push(queuing.forbidden("must be nil if limited.limitResponse.type is not Limited"));
        }
        "Reject" => {}
        "Queue" if queuing.is_set() => errors.extend(validate_queuing(&queuing)),
        "Queue" => errors.push(queuing.required("must not be empty if limited.limitResponse.type is Limited")),
        _ => errors.push(kind.not_supported(&["Queue", "Reject"])),
    }
    errors
}

fn validate_queuing(queuing: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (length, queues, hand) =
        (queuing.field("queueLengthLimit"), queuing.field("queues"), queuing.field("handSize"));
    if length.int() <= 0 {
        errors.push(length.invalid("must be positive"));
    }
    if queues.int() <= 0 {
        errors.push(queues.invalid("must be positive"));
    } else if queues.int() > QUEUES_MAX {
        errors.push(queues.invalid(format!("must not be greater than {QUEUES_MAX}")));
    }
    let (queue_count, hand_size) = (queues.int(), hand.int());
    if hand_size <= 0 {
        errors.push(hand.invalid("must be positive"));
    } else if hand_size > queue_count {
        errors.push(hand.invalid(format!("should not be greater than queues ({queue_count})")));
    } else if entropy_bits(queue_count, hand_size) > HASH_BITS {
        let why = format!(
            "required entropy bits of deckSize {queue_count} and handSize {hand_size} should not be greater than {HASH_BITS}"
        );
        errors.push(hand.invalid(why));
    }
    errors
}

/// The number of bits of entropy needed to choose a hand of queues.
fn entropy_bits(queues: i64, hand_size: i64) -> i64 {
    ((queues as f64).log2() * hand_size as f64).ceil() as i64
}
