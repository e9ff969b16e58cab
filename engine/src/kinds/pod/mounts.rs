//! Validation of the volumes that a container mounts, as directories or as devices.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::{HashMap, HashSet};

use super::volumes::{Volumes, paths};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;

/// Where a container has volumes of one way of mounting, by the names of the volumes.
struct Places<'v> {
    by_name: HashMap<&'v str, &'v str>,
    paths: HashSet<&'v str>,
}

impl<'v> Places<'v> {
    /// Of two mounts of one volume the last one counts.
    fn of(container: &FieldRef<'v>, list: &str, path: &str) -> Self {
        let items = container.value().map(|container| container.items_at(&[list])).unwrap_or_default();
        let by_name: HashMap<_, _> = items.iter().map(|item| (item.str_at(&["name"]), item.str_at(&[path]))).collect();
        let paths = by_name.values().copied().collect();
        Places { by_name, paths }
    }
}

/// The directories.
pub fn validate_mounts(container: &FieldRef<'_>, volumes: &Volumes<'_>) -> ErrorList {
    let devices = Places::of(container, "volumeDevices", "devicePath");
    let context = container.field("securityContext");
    let is_privileged = context.field("privileged").is_true();
    let mounts = container.field("volumeMounts");
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        if name.is_empty() {
            errors.push(name.required(""));
        }
        if !volumes.has(name.text()) {
            errors.push(name.not_found());
        }
        if path.is_empty() {
            errors.push(path.required(""));
        }
        if !seen.insert(mount.text_of("mountPath")) {
            errors.push(path.invalid("must be unique"));
        }
        if devices.by_name.contains_key(name.text()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if devices.paths.contains(path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        errors.extend(validate_sub_paths(&mount, &mounts));
        errors.extend(validate_propagation(&mount, &mounts, is_privileged));
        errors.extend(validate_recursive(&mount, &mounts));
    }
    errors
}

/// The field `name` of an item as errors tell it: without the item's index.
fn of_list<'v>(item: &FieldRef<'v>, list: &'v FieldRef<'v>, name: &'v str) -> FieldRef<'v> {
    FieldRef::new(item.value().and_then(|item| item.get(name)), list.path().child(name))
}

/// The part of the volume that is mounted.
fn validate_sub_paths(mount: &FieldRef<'_>, mounts: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (path, expression) = (of_list(mount, mounts, "subPath"), of_list(mount, mounts, "subPathExpr"));
    if !path.is_empty() {
        errors.extend(paths::descending(&path));
    }
    if !expression.is_empty() {
        if !path.is_empty() {
            errors.push(mount.field("subPathExpr").invalid("subPathExpr and subPath are mutually exclusive"));
        }
        errors.extend(paths::descending(&expression));
    }
    errors
}

/// Whether mounts within the mount are seen outside of it.
fn validate_propagation(mount: &FieldRef<'_>, mounts: &FieldRef<'_>, is_privileged: bool) -> ErrorList {
    let propagation = of_list(mount, mounts, "mountPropagation");
    let mut errors = ErrorList::new();
    if !propagation.is_set() {
        return errors;
    }
    let supported = ["Bidirectional", "HostToContainer", "None"];
    if !supported.contains(&propagation.text()) {
        errors.push(propagation.not_supported(&supported));
    }
    if propagation.text() == "Bidirectional" && !is_privileged {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(propagation.forbidden(why));
    }
    errors
}

/// Whether mounts within the mount are only read.
fn validate_recursive(mount: &FieldRef<'_>, mounts: &FieldRef<'_>) -> ErrorList {
    let recursive = of_list(mount, mounts, "recursiveReadOnly");
    let mut errors = ErrorList::new();
    match recursive.text() {
        _ if !recursive.is_set() => {}
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.field("readOnly").is_true() {
                errors.push(recursive.forbidden("may only be specified when readOnly is true"));
            }
            let propagation = mount.field("mountPropagation");
            if propagation.is_set() && propagation.text() != "None" {
                let why = "may only be specified when mountPropagation is None or not specified";
                errors.push(recursive.forbidden(why));
            }
        }
        _ => errors.push(recursive.not_supported(&["Disabled", "Enabled", "IfPossible"])),
    }
    errors
}

/// The devices.
pub fn validate_devices(container: &FieldRef<'_>, volumes: &Volumes<'_>) -> ErrorList {
    let mounts = Places::of(container, "volumeMounts", "mountPath");
    let mut errors = ErrorList::new();
    let (mut names, mut seen) = (HashSet::new(), HashSet::new());
    for device in container.field("volumeDevices").items() {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        errors.extend(validate_device_name(&device, volumes, &mut names));
        if path.is_empty() {
            errors.push(path.required(""));
        }
        if seen.contains(device.text_of("devicePath")) {
            errors.push(path.invalid("must be unique"));
        }
        if paths::no_backsteps(&path).is_some() {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        } else {
            seen.insert(device.text_of("devicePath"));
        }
        if mounts.by_name.contains_key(name.text()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if mounts.paths.contains(path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
    }
    errors
}

fn validate_device_name<'v>(device: &FieldRef<'v>, volumes: &Volumes<'_>, seen: &mut HashSet<&'v str>) -> Vec<Error> {
    let name = device.field("name");
    let mut errors = Vec::new();
    if name.is_empty() {
        errors.push(name.required(""));
    } else if !seen.insert(device.text_of("name")) {
        errors.push(name.invalid("must be unique"));
    }
    match volumes.is_claim(name.text()) {
        Some(true) => {}
        Some(false) => errors
            .push(name.invalid("can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")),
        None => errors.push(name.not_found()),
    }
    errors
}
