//! How errors show a struct of kube-apiserver's internal types: as Go's JSON of a struct without tags, which has every
//! field under its Go name. Types of apimachinery have tags and look as in the API.

use std::borrow::Cow;

use super::{Codec, Field, FieldKind, Message, Ref, Shape, find};
use crate::value::{Value, json};
use crate::work;

/// The value of a type, `core.v1.PodTemplateSpec`, as an error shows it.
pub fn show(type_: &str, value: &Value) -> String {
    let named = type_.rsplit_once('.').and_then(|(package, name)| find(package, name));
    let mut out = Vec::new();
    match named {
        Some(named) => write_message(Ref::Named(named), Some(value), &mut out),
        None => out = json::encode(value),
    }
    String::from_utf8(out).unwrap_or_default()
}

fn write_message(message: Ref, value: Option<&Value>, out: &mut Vec<u8>) {
    let has_tags = match message {
        Ref::Named(named) => named.package() == "meta.v1",
        Ref::Made(_) => false,
    };
    let message = message.get();
    match message.codec {
        Codec::Object if has_tags => {
            let zero = message.zero();
            out.extend(json::encode_as(&without_empty(value.unwrap_or(&zero)), message.layout()));
        }
        Codec::Object => {
            out.push(b'{');
            let start = out.len();
            write_fields(message, value, out, start);
            out.push(b'}');
        }
        Codec::SchemaOrArray | Codec::SchemaOrBool | Codec::SchemaOrStringArray => {
            write_alternative(message, value, out)
        }
        Codec::Quantity => out.extend(json::encode(value.unwrap_or(&Value::from("0")))),
        Codec::IntOrString => out.extend(json::encode(value.unwrap_or(&Value::Int(0)))),
        _ => out.extend(json::encode(value.unwrap_or(&Value::Null))),
    }
}

/// Structs whose fields are in a different order than those of the published type, by their Go names. Fields that are
/// not named follow.
const ORDERS: [(&str, &[&str]); 5] = [
    ("JSONSchemaProps", &["ID", "Schema", "Ref", "Description", "Type", "Nullable"]),
    (
        "PersistentVolumeSource",
        &[
            "GCEPersistentDisk",
            "AWSElasticBlockStore",
            "HostPath",
            "Glusterfs",
            "NFS",
            "RBD",
            "Quobyte",
            "ISCSI",
            "FlexVolume",
            "Cinder",
            "CephFS",
            "FC",
            "Flocker",
            "AzureFile",
            "VsphereVolume",
            "AzureDisk",
        ],
    ),
    (
        "PodSpec",
        &[
            "Volumes",
            "InitContainers",
            "Containers",
            "EphemeralContainers",
            "RestartPolicy",
            "TerminationGracePeriodSeconds",
            "ActiveDeadlineSeconds",
            "DNSPolicy",
            "NodeSelector",
            "ServiceAccountName",
            "AutomountServiceAccountToken",
            "NodeName",
            "SecurityContext",
            "ImagePullSecrets",
            "Hostname",
            "Subdomain",
            "SetHostnameAsFQDN",
            "Affinity",
            "SchedulerName",
            "Tolerations",
            "HostAliases",
            "PriorityClassName",
            "Priority",
            "PreemptionPolicy",
            "DNSConfig",
            "ReadinessGates",
            "RuntimeClassName",
            "Overhead",
            "EnableServiceLinks",
            "TopologySpreadConstraints",
            "OS",
            "SchedulingGates",
            "ResourceClaims",
            "Resources",
            "HostnameOverride",
            "SchedulingGroup",
        ],
    ),
    (
        "PodSecurityContext",
        &[
            "SELinuxOptions",
            "WindowsOptions",
            "RunAsUser",
            "RunAsGroup",
            "RunAsNonRoot",
            "SupplementalGroups",
            "SupplementalGroupsPolicy",
            "FSGroup",
            "FSGroupChangePolicy",
            "Sysctls",
        ],
    ),
    (
        "VolumeSource",
        &[
            "HostPath",
            "EmptyDir",
            "GCEPersistentDisk",
            "AWSElasticBlockStore",
            "GitRepo",
            "Secret",
            "NFS",
            "ISCSI",
            "Glusterfs",
            "PersistentVolumeClaim",
            "RBD",
            "Quobyte",
            "FlexVolume",
        ],
    ),
];

/// Fields of a spec that the internal type has in its security context, before the context's own fields.
const HOST_FIELDS: [&str; 5] = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];

/// Fields that an internal type does not have: old names of others, and fields that are elsewhere.
fn is_elsewhere(message: &Message, field: &Field) -> bool {
    match message.name {
        "PodSpec" => field.json == "serviceAccount" || HOST_FIELDS.contains(&field.json),
        "PodStatus" => field.json == "podIP",
        _ => false,
    }
}

/// Whether a field is a pointer in the published type only: unset, it shows as zero.
fn is_value(message: &Message, field: &Field) -> bool {
    match message.name {
        "RollingUpdateDaemonSet" | "RollingUpdateDeployment" => matches!(field.json, "maxUnavailable" | "maxSurge"),
        "RollingUpdateStatefulSetStrategy" => field.json == "partition",
        "ServiceAccountTokenProjection" => field.json == "expirationSeconds",
        _ => false,
    }
}

/// Fields that 1.37 added: they only show if they are set, so that other output does not change.
fn is_new(message: &Message, field: &Field) -> bool {
    match message.name {
        "PodSpec" => field.json == "evictionResponders",
        "PodStatus" => field.json == "volumeHealth",
        "VolumeMount" => field.json == "bindMountOptions",
        "HTTPGetAction" => field.json == "protocol",
        "ExactDeviceRequest" | "DeviceSubRequest" => field.json == "derivedAttributes",
        "GRPCAction" | "EmptyDirVolumeSource" => field.json == "mode",
        "ProjectedVolumeSource" | "ConfigMapVolumeSource" | "DownwardAPIVolumeSource" | "SecretVolumeSource" => {
            field.json == "defaultUser"
        }
        "PodCertificateProjection"
        | "ClusterTrustBundleProjection"
        | "ServiceAccountTokenProjection"
        | "KeyToPath"
        | "DownwardAPIVolumeFile" => field.json == "user",
        _ => false,
    }
}

/// The fields of a message in the order of the internal type.
fn ordered(message: &'static Message) -> Vec<&'static Field> {
    let mut fields: Vec<&Field> = message.fields.iter().filter(|field| !is_elsewhere(message, field)).collect();
    if let Some((_, order)) = ORDERS.iter().find(|(name, _)| *name == message.name) {
        let place = |field: &Field| order.iter().position(|name| *name == field.go_name());
        fields.sort_by_key(|field| place(field).unwrap_or(order.len()));
    }
    fields
}

/// The spec's fields about what a pod shares with its host, as its security context has them.
fn write_host_fields(spec: &'static Message, value: Option<&Value>, out: &mut Vec<u8>, start: usize) {
    for name in HOST_FIELDS {
        if let Some(field) = spec.fields.iter().find(|field| field.json == name) {
            write_field(field, field.shape, value, out, start);
        }
    }
}

/// The security context of a pod, to which the internal type adds the fields about what the pod shares with its host.
fn write_context(spec: &'static Message, field: &Field, value: Option<&Value>, out: &mut Vec<u8>, start: usize) {
    separate(out, start);
    out.extend(json::encode(&Value::String(field.go_name())));
    out.extend(b":{");
    let inner = out.len();
    write_host_fields(spec, value, out, inner);
    if let FieldKind::Message(context) = field.kind {
        write_fields(context.get(), value.and_then(|value| value.get(field.json)), out, inner);
    }
    out.push(b'}');
}

/// The fields of a struct, including those of embedded structs.
fn write_fields(message: &'static Message, value: Option<&Value>, out: &mut Vec<u8>, start: usize) {
    for field in ordered(message) {
        work::step();
        let is_set = value.and_then(|value| value.get(field.json)).is_some_and(|value| !value.is_null());
        if is_new(message, field) && !is_set {
            continue;
        }
        if message.name == "PodSpec" && field.json == "securityContext" {
            write_context(message, field, value, out, start);
            continue;
        }
        let shape = if is_value(message, field) { Shape::Value } else { field.shape };
        let FieldKind::Message(embedded) = field.kind else {
            write_field(field, shape, value, out, start);
            continue;
        };
        if field.shape == Shape::Inline {
            write_fields(embedded.get(), value, out, start);
        } else if embedded.is_object_meta() {
            write_members(value.and_then(|value| value.get(field.json)), embedded.get(), out, start);
        } else {
            write_field(field, shape, value, out, start);
        }
    }
}

/// A struct with tags as Go writes it: without empty lists and maps.
fn without_empty(value: &Value) -> Cow<'_, Value> {
    let is_empty = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    let Some(fields) = value.as_object().filter(|fields| fields.iter().any(|(_, value)| is_empty(value))) else {
        return Cow::Borrowed(value);
    };
    let kept = fields.iter().filter(|(_, value)| !is_empty(value));
    Cow::Owned(Value::Object(kept.map(|(name, value)| (name.to_owned(), value.clone())).collect()))
}

/// The members of metadata, which is embedded and has tags.
fn write_members(metadata: Option<&Value>, message: &'static Message, out: &mut Vec<u8>, start: usize) {
    let metadata = metadata.map(without_empty);
    let Some(metadata) = metadata.filter(|metadata| metadata.as_object().is_some_and(|fields| !fields.is_empty()))
    else {
        return;
    };
    let text = json::encode_as(&metadata, message.layout());
    separate(out, start);
    out.extend(&text[1..text.len() - 1]);
}

/// A schema, or its alternative: Go has a field for each.
fn write_alternative(message: &'static Message, value: Option<&Value>, out: &mut Vec<u8>) {
    out.push(b'{');
    let start = out.len();
    for field in message.fields {
        let is_held = |value: &&Value| match (field.shape, value) {
            (Shape::Pointer, Value::Object(_)) | (Shape::List, Value::Array(_)) => true,
            (Shape::Value, value) => matches!(value, Value::Bool(false)),
            _ => false,
        };
        write_name(field, out, start);
        match (field.shape, value.filter(is_held)) {
            // Whether anything is allowed; true if there is a schema.
            (Shape::Value, held) => out.extend(json::encode(&Value::Bool(held.is_none()))),
            (shape, held) => write_value(field, shape, held, out),
        }
    }
    out.push(b'}');
}

fn write_name(field: &Field, out: &mut Vec<u8>, start: usize) {
    separate(out, start);
    out.extend(json::encode(&Value::String(field.go_name())));
    out.push(b':');
}

fn write_field(field: &Field, shape: Shape, value: Option<&Value>, out: &mut Vec<u8>, start: usize) {
    write_name(field, out, start);
    let value = value.and_then(|value| value.get(field.json)).filter(|value| !value.is_null());
    write_value(field, shape, value, out);
}

fn write_value(field: &Field, shape: Shape, value: Option<&Value>, out: &mut Vec<u8>) {
    match (shape, value) {
        (Shape::Value | Shape::Inline, value) => write_one(field, value, out),
        (_, None) => out.extend(b"null"),
        (Shape::Pointer, value) => write_one(field, value, out),
        (Shape::List, Some(Value::Array(items))) => {
            out.push(b'[');
            let first = out.len();
            for item in items {
                separate(out, first);
                write_one(field, Some(item), out);
            }
            out.push(b']');
        }
        (Shape::Map | Shape::Extensions, Some(Value::Object(entries))) => {
            out.push(b'{');
            let first = out.len();
            for (key, item) in entries.iter() {
                separate(out, first);
                out.extend(json::encode(&Value::from(key)));
                out.push(b':');
                write_one(field, Some(item), out);
            }
            out.push(b'}');
        }
        (_, Some(other)) => out.extend(json::encode(other)),
    }
}

fn write_one(field: &Field, value: Option<&Value>, out: &mut Vec<u8>) {
    let zero = match field.kind {
        FieldKind::Message(message) => return write_message(message, value, out),
        FieldKind::Bool => Value::Bool(false),
        FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double => Value::Int(0),
        FieldKind::String => Value::from(""),
        FieldKind::Bytes => Value::Null,
    };
    out.extend(json::encode(value.unwrap_or(&zero)));
}

/// Writes a comma, unless nothing was written since `start`.
fn separate(out: &mut Vec<u8>, start: usize) {
    if out.len() > start {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_stands_under_its_go_name() {
        let value = json::decode(br#"{"kind":"ConfigMap","name":"a","apiGroup":"x"}"#).expect("the test is JSON");
        assert_eq!(
            show("core.v1.TypedLocalObjectReference", &value),
            r#"{"APIGroup":"x","Kind":"ConfigMap","Name":"a"}"#
        );
        let value = json::decode(br#"{"metadata":{"labels":{"a":"b"}},"spec":{"accessModes":["x"]}}"#);
        let shown = show("core.v1.PersistentVolumeClaimTemplate", &value.expect("the test is JSON"));
        assert!(shown.starts_with(r#"{"labels":{"a":"b"},"Spec":{"AccessModes":["x"],"Selector":null,"#), "{shown}");
    }

    #[test]
    fn a_value_that_is_published_as_a_pointer_shows_as_zero() {
        let value = json::decode(br#"{"rollingUpdate":{"maxUnavailable":2}}"#).expect("the test is JSON");
        let shown = show("apps.v1.DaemonSetUpdateStrategy", &value);
        assert_eq!(shown, r#"{"Type":"","RollingUpdate":{"MaxUnavailable":2,"MaxSurge":0}}"#);
    }

    #[test]
    fn a_pod_shares_what_its_context_says() {
        let value = json::decode(br#"{"hostNetwork":true,"securityContext":{"fsGroup":1},"setHostnameAsFQDN":true}"#);
        let shown = show("core.v1.PodSpec", &value.expect("the test is JSON"));
        let context = r#""SecurityContext":{"HostNetwork":true,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,"SELinuxOptions":null,"#;
        assert!(shown.contains(context), "{shown}");
        assert!(shown.contains(r#""Subdomain":"","SetHostnameAsFQDN":true,"Affinity":null"#), "{shown}");
        assert!(shown.ends_with(r#""HostnameOverride":null,"SchedulingGroup":null}"#), "{shown}");
    }
}
