//! Event, core/v1 and events.k8s.io/v1: two forms of one kind, stored once, in the older form.

use std::time::Duration;

use crate::crd::{Column, ServedVersion};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names;
use crate::value::{Map, Value, json};

use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata};

/// How long an event is kept. Source: kube-apiserver's `--event-ttl`.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
const CORE: &str = "v1";
const EVENTS: &str = "events.k8s.io/v1";

/// The fields whose names in core/v1 and in events.k8s.io/v1 differ.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Both forms; the older one is stored.
pub static KINDS: [&Kind; 2] = [&CORE_KIND, &EVENTS_KIND];

static CORE_KIND: Kind = Kind {
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    selectable_fields: &[
        ".involvedObject.kind",
        ".involvedObject.namespace",
        ".involvedObject.name",
        ".involvedObject.uid",
        ".involvedObject.apiVersion",
        ".involvedObject.resourceVersion",
        ".involvedObject.fieldPath",
        ".reason",
        ".reportingComponent",
        ".source",
        ".type",
    ],
    example: "metadata: {name: example}\ninvolvedObject: {kind: ConfigMap, namespace: default, name: a}\nreason: Seen",
    forms: &KINDS,
    ..Kind::new("", "v1", "Event", &Event)
};

static EVENTS_KIND: Kind = Kind {
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    selectable_fields: &[
        ".regarding.kind",
        ".regarding.namespace",
        ".regarding.name",
        ".regarding.uid",
        ".regarding.apiVersion",
        ".regarding.resourceVersion",
        ".regarding.fieldPath",
        ".reason",
        ".reportingController",
        ".type",
    ],
    example: r"
metadata: {name: example}
eventTime: 2026-01-02T03:04:05.000006Z
regarding: {kind: ConfigMap, namespace: default, name: a}
reportingController: example.com/controller
reportingInstance: controller-1
action: Look
reason: Seen
type: Normal
",
    forms: &KINDS,
    ..Kind::new("events.k8s.io", "v1", "Event", &Event)
};

struct Event;

impl Strategy for Event {
    fn internal_package(&self) -> Option<&'static str> {
        Some("core")
    }

    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        let rename = |name: &str| {
            let names =
                RENAMED.iter().map(|(core, events)| if api_version == CORE { (events, core) } else { (core, events) });
            names
                .into_iter()
                .find(|(from, _)| **from == name)
                .map_or_else(|| name.to_owned(), |(_, to)| (*to).to_owned())
        };
        let fields = object.as_object()?.iter().map(|(name, value)| (rename(name), value.clone()));
        let mut converted = Value::Object(fields.collect::<Map>());
        converted.make_object().insert("apiVersion", Value::from(api_version));
        // The forms differ in how they encode zero values.
        let message = if api_version == CORE { CORE_KIND.message() } else { EVENTS_KIND.message() };
        message.decode(&converted).ok().map(|(converted, _)| converted)
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let event = self.in_core(object);
        let mut errors = validate_always(&event, version);
        if version.group.is_empty() {
            return errors;
        }
        let name_check = names::name_is_dns1123_subdomain;
        errors.extend(metadata::validate(&event, true, name_check));
        errors.extend(validate_series(&event));
        if is_absent(&event, "eventTime") {
            errors.push(Error::required(&Path::new("eventTime"), ""));
        }
        let type_ = event.str_at(&["type"]);
        if !matches!(type_, "Normal" | "Warning") {
            errors.push(Error::invalid(&Path::new("type"), "", format!("has invalid value: {type_}")));
        }
        for name in ["firstTimestamp", "lastTimestamp", "count", "source"] {
            if !is_absent(&event, name) {
                errors.push(Error::invalid(&Path::new(name), "", "needs to be unset"));
            }
        }
        errors
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        // The error for the reason is reported twice.
        const UNCHANGED: [&str; 14] = [
            "involvedObject",
            "reason",
            "message",
            "source",
            "firstTimestamp",
            "lastTimestamp",
            "count",
            "reason",
            "type",
            "eventTime",
            "action",
            "related",
            "reportingComponent",
            "reportingInstance",
        ];
        let (new, old) = (self.in_core(new), self.in_core(old));
        let mut errors = validate_always(&new, version);
        if version.group.is_empty() {
            return errors;
        }
        errors.extend(metadata::validate_update(&new, &old));
        if new.get("series") != old.get("series") {
            errors.extend(validate_series(&new));
        }
        errors.extend(UNCHANGED.iter().filter_map(|name| check_unchanged(&new, &old, name)));
        errors
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn select(&self, object: &Value, field: &str) -> Option<String> {
        let component = |path: &[&str]| Some(object.str_at(path)).filter(|text| !text.is_empty());
        match field {
            "source" => component(&["source", "component"]).or(component(&["reportingComponent"])).map(str::to_owned),
            _ => None,
        }
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn collects_garbage(&self) -> bool {
        false
    }

    fn lifetime(&self) -> Option<Duration> {
        Some(LIFETIME)
    }

    fn table(&self) -> Option<Table> {
        let wide = |name, description| Column { priority: 1, ..Column::string(name, description) };
        const LAST: &str = "The time at which the most recent occurrence of this event was recorded.";
        const TYPE: &str = "Type of this event (Normal, Warning), new types could be added in the future";
        const REASON: &str = "This should be a short, machine understandable string that gives the reason for the \
                              transition into the object's current status.";
        const SUBOBJECT: &str = "If referring to a piece of an object instead of an entire object, this string should contain a valid \
             JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object \
             reference is to a container within a pod, this would take on a value like: \"spec.containers{name}\" (where \
             \"name\" refers to the name of the container that triggered the event) or if no container name is specified \
             \"spec.containers[2]\" (container with index 2 in this pod). This syntax is chosen only to have some \
             well-defined way of referencing a part of an object.";
        const SOURCE: &str = "The component reporting this event. Should be a short machine understandable string.";
        const FIRST: &str = "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)";
        Some(Table {
            columns: vec![
                Column::string("Last Seen", LAST),
                Column::string("Type", TYPE),
                Column::string("Reason", REASON),
                Column::string("Object", "The object that this event is about."),
                wide("Subobject", SUBOBJECT),
                wide("Source", SOURCE),
                Column::string("Message", "A human-readable description of the status of this operation."),
                wide("First Seen", FIRST),
                wide("Count", "The number of times this event has occurred."),
                Column { format: "name".to_owned(), ..wide("Name", "") },
            ],
            cells,
        })
    }
}

impl Event {
    /// The object in the form of core/v1, in which it is validated.
    fn in_core(&self, object: &Value) -> Value {
        match object.str_at(&["apiVersion"]) {
            EVENTS => self.convert(object, CORE).unwrap_or_else(|| object.clone()),
            _ => object.clone(),
        }
    }
}

/// Checks that a field has not changed; structs are shown with the field names of Go's internal types.
fn check_unchanged(new: &Value, old: &Value, name: &str) -> Option<Error> {
    const REFERENCE: [(&str, &str); 7] = [
        ("Kind", "kind"),
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("UID", "uid"),
        ("APIVersion", "apiVersion"),
        ("ResourceVersion", "resourceVersion"),
        ("FieldPath", "fieldPath"),
    ];
    let error = metadata::check_unchanged(new, old, name)?;
    let fields: &[_] = match name {
        "source" => &[("Component", "component"), ("Host", "host")],
        "involvedObject" | "related" => &REFERENCE,
        "reportingComponent" => {
            // The field's name in the internal type.
            let now = Value::from(new.str_at(&[name]));
            return Some(Error::invalid(&Path::new("reportingController"), now, "field is immutable"));
        }
        _ => return Some(error),
    };
    let Some(value) = new.get(name) else { return Some(error.shown_as("null".to_owned())) };
    let fields = fields.iter().map(|(shown, field)| {
        let text = json::encode_to_string(&Value::from(value.str_at(&[field])));
        format!("\"{shown}\":{text}")
    });
    Some(error.shown_as(format!("{{{}}}", fields.collect::<Vec<_>>().join(","))))
}

/// Whether a field is absent or has a zero value.
fn is_absent(event: &Value, name: &str) -> bool {
    match event.get(name) {
        None | Some(Value::Null | Value::Int(0)) => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(_) => false,
    }
}

/// Validates an event, in whichever API version it was written.
fn validate_always(event: &Value, version: &ServedVersion) -> ErrorList {
    const TEXT_BYTES_MAX: usize = 128;
    const MESSAGE_BYTES_MAX: usize = 1024;
    let mut errors = ErrorList::new();
    let namespace = event.str_at(&["metadata", "namespace"]);
    let involved = event.str_at(&["involvedObject", "namespace"]);
    let involved_object = Path::new("involvedObject");
    let mut check_namespace = |fits: bool| {
        if !fits {
            let at = involved_object.child("namespace");
            errors.push(Error::invalid(&at, involved, "does not match event.namespace"));
        }
    };
    if is_absent(event, "eventTime") {
        check_namespace(if involved.is_empty() { matches!(namespace, "" | "default") } else { namespace == involved });
    } else {
        check_namespace(!involved.is_empty() || matches!(namespace, "default" | "kube-system"));
        let controller = event.str_at(&["reportingComponent"]);
        let is_core = version.group.is_empty();
        let at = Path::new(if is_core { "reportingComponent" } else { "reportingController" });
        if controller.is_empty() {
            errors.push(Error::required(&at, ""));
        }
        let faults = names::is_qualified_name(controller).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&at, controller, fault)));
        for name in ["reportingInstance", "action", "reason"] {
            let text = event.str_at(&[name]);
            if text.is_empty() {
                errors.push(Error::required(&Path::new(name), ""));
            }
            errors.extend(too_long(text, name, TEXT_BYTES_MAX));
        }
        errors.extend(too_long(event.str_at(&["message"]), "message", MESSAGE_BYTES_MAX));
    }
    let faults = names::is_dns1123_subdomain(namespace).into_iter();
    errors.extend(faults.map(|fault| Error::invalid(&Path::new("namespace"), namespace, fault)));
    errors
}

fn too_long(text: &str, name: &str, bytes_max: usize) -> Option<Error> {
    let detail = format!("can have at most {bytes_max} characters");
    (text.len() > bytes_max).then(|| Error::invalid(&Path::new(name), "", detail))
}

fn validate_series(event: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(series) = event.get("series") else { return errors };
    if series.get("count").and_then(Value::as_i64).unwrap_or_default() < 2 {
        errors.push(Error::invalid(&Path::new("series.count"), "", "should be at least 2"));
    }
    if is_absent(series, "lastObservedTime") {
        errors.push(Error::required(&Path::new("series.lastObservedTime"), ""));
    }
    errors
}

/// The table cells of an event in either form.
fn cells(event: &Value) -> Vec<Cell> {
    let field = |name: &'static str| {
        let other = RENAMED.iter().find(|(core, _)| *core == name).map_or(name, |(_, events)| *events);
        event.get(name).or_else(|| event.get(other))
    };
    let text = |value: Option<&Value>, name: &str| value.map_or("", |value| value.str_at(&[name])).to_owned();
    let own_text = |name| field(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let or = |first: String, second: String| if first.is_empty() { second } else { first };
    let first = or(own_text("firstTimestamp"), own_text("eventTime"));
    let mut last = or(own_text("lastTimestamp"), first.clone());
    // An event of the newer form that happened once has no count.
    let mut count = field("count").and_then(Value::as_i64).filter(|count| *count != 0).unwrap_or(1);
    if let Some(series) = field("series") {
        last = series.str_at(&["lastObservedTime"]).to_owned();
        count = series.get("count").and_then(Value::as_i64).unwrap_or_default();
    }
    let involved = field("involvedObject");
    let mut object = text(involved, "kind").to_lowercase();
    let name = text(involved, "name");
    if !name.is_empty() {
        object = format!("{object}/{name}");
    }
    let mut source = or(text(field("source"), "component"), own_text("reportingComponent"));
    let instance = or(text(field("source"), "host"), own_text("reportingInstance"));
    if !instance.is_empty() {
        source = format!("{source}, {instance}");
    }
    let cell = |text: String| Cell::Value(Value::String(text));
    vec![
        Cell::Since(last),
        cell(own_text("type")),
        cell(own_text("reason")),
        cell(object),
        cell(text(involved, "fieldPath")),
        cell(source),
        cell(own_text("message").trim().to_owned()),
        Cell::Since(first),
        Cell::Value(Value::Int(count)),
        Cell::text(event.str_at(&["metadata", "name"])),
    ]
}
