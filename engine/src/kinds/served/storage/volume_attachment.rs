//! VolumeAttachment, storage.k8s.io/v1: the intent to attach a volume to a node.
//!
//! Source: `pkg/apis/storage` and `pkg/registry/storage/volumeattachment` of Kubernetes 1.36, with the types of 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::storage::{class, columns, drivers, volume};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, checks, metadata, prepare, show_internal};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::object;
use crate::value::Value;

const MESSAGE_BYTES_MAX: usize = 1024;
const ONE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "volumeattachments",
    singular: "volumeattachment",
    scope: Scope::Cluster,
    status: true,
    example: r"
metadata: {name: example}
spec: {attacher: disks.example.com, nodeName: worker, source: {persistentVolumeName: example}}",
    ..Kind::new("storage.k8s.io", "v1", "VolumeAttachment", &VolumeAttachment)
}];

struct VolumeAttachment;

impl Strategy for VolumeAttachment {
    fn set_typed_defaults(&self, object: &mut Value) {
        if let Some(spec) = object.at_mut(&["spec", "source", "inlineVolumeSpec"]).filter(|spec| !spec.is_null()) {
            volume::set_spec_defaults(spec);
        }
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! { "attached" => false });
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let root = FieldRef::root(object);
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        errors.extend(validate_spec(&root.field("spec")));
        errors.extend(validate_status(&root.field("status")));
        let name = object.at(&["spec", "source", "persistentVolumeName"]).and_then(Value::as_str);
        let at = Path::new("spec.source.persistentVolumeName");
        for fault in name.map(names::is_dns1123_subdomain).unwrap_or_default() {
            errors.push(Error::invalid(&at, name.unwrap_or_default(), fault));
        }
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = self.validate_create(version, new);
        let (root, spec) = (FieldRef::root(new), new.get("spec"));
        if !prepare::is_same_part(new, old, "spec") {
            let shown = spec.map(|spec| show_internal("storage.v1.VolumeAttachmentSpec", spec)).unwrap_or_default();
            errors.push(root.field("spec").invalid("field is immutable").shown_as(shown));
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let name = |name, description| Column { format: "name".to_owned(), ..Column::string(name, description) };
        let columns = vec![
            name("Attacher", "The driver that attaches the volume."),
            Column::string("PV", "The persistent volume that is to be attached."),
            Column::string("Node", "The node that it is to be attached to."),
            columns::typed("Attached", "boolean", "Whether it is attached."),
        ];
        Some(Table::named(columns, |attachment| {
            let text = |path: &[&str]| Cell::text(attachment.str_at(path));
            let cells = vec![
                text(&["spec", "attacher"]),
                text(&["spec", "source", "persistentVolumeName"]),
                text(&["spec", "nodeName"]),
                columns::truth(attachment, &["status", "attached"]),
            ];
            Cell::named(attachment, cells)
        }))
    }
}

fn validate_spec(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = drivers::validate_name(&spec.field("attacher"));
    let source = spec.field("source");
    let (inline, name) = (source.field("inlineVolumeSpec"), source.field("persistentVolumeName"));
    match (inline.is_set(), name.is_set()) {
        (false, false) => errors.push(source.required(ONE_SOURCE)),
        (true, true) => errors.push(source.forbidden(ONE_SOURCE)),
        (false, true) if name.is_empty() => errors.push(name.required("must specify non empty persistentVolumeName")),
        (false, true) => {}
        (true, false) => errors.extend(volume::validate_inline_spec(&inline)),
    }
    errors.extend(checks::named(&spec.field("nodeName"), names::is_dns1123_subdomain));
    errors
}

fn validate_status(status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let metadata = status.field("attachmentMetadata");
    if class::bytes(&metadata) > class::PARAMETERS_BYTES_MAX {
        errors.push(metadata.too_long(class::PARAMETERS_BYTES_MAX));
    }
    for name in ["attachError", "detachError"] {
        let error = status.field(name);
        let (message, code) = (error.field("message"), error.field("errorCode"));
        if message.text().len() > MESSAGE_BYTES_MAX {
            // The reference reports a different limit.
            errors.push(message.too_long(class::PARAMETERS_BYTES_MAX));
        }
        if code.int() < 0 {
            errors.push(code.invalid("must be between 0 and 2147483647, inclusive"));
        }
    }
    errors
}
