//! iSCSI, in pods and in persistent volumes, whose errors differ in their words.

use std::sync::LazyLock;

use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::pattern::Pattern;

use super::disks;
use super::source::VolumeContext;

/// The most bytes of `VOLUME:PORTAL` if the initiator has a name.
const NAME_BYTES_MAX: usize = 64;
const NAME_TOO_LONG: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                             iscsi.initiatorName is specified.";
const FORMAT: &str = "must be valid format";

static QUALIFIED_NAME: LazyLock<Option<Pattern>> =
    LazyLock::new(|| Pattern::new(r"iqn\.\d{4}-\d{2}\.([[:alnum:]\-.]+)(:[^,;*&$|\s]+)$").ok());
static EXTENDED_IDENTIFIER: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new("^eui.[[:alnum:]]{16}$").ok());
static NETWORK_ADDRESS: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new("^naa.[[:alnum:]]{32}$").ok());

/// Whether a name of one of the three families is as it must be; `None` for a name of no family.
fn is_fit(name: &str) -> Option<bool> {
    let families = [("iqn", &QUALIFIED_NAME), ("eui", &EXTENDED_IDENTIFIER), ("naa", &NETWORK_ADDRESS)];
    let (_, pattern) = families.into_iter().find(|(prefix, _)| name.starts_with(prefix))?;
    Some(pattern.as_ref().is_none_or(|pattern| pattern.is_match(name)))
}

/// The source in a pod.
pub fn inline_iscsi(source: &FieldRef<'_>) -> ErrorList {
    let of_no_family = "must be valid format starting with iqn, eui, or naa";
    let mut errors = checks::required_fields(source, &["targetPortal"]);
    errors.extend(target(source, of_no_family));
    errors.extend(initiator(source, of_no_family));
    errors
}

/// The source of a persistent volume.
pub fn persistent_iscsi(source: &FieldRef<'_>, context: &VolumeContext<'_>) -> ErrorList {
    let mut errors = checks::required_fields(source, &["targetPortal"]);
    let portal = source.field("targetPortal").text();
    if source.field("initiatorName").is_set() && is_too_long(context.volume_name, portal) {
        errors.push(Error::invalid(&source.path().child("targetportal"), portal, NAME_TOO_LONG));
    }
    errors.extend(target(source, FORMAT));
    let secret = source.field("secretRef");
    if secret.is_set() {
        errors.extend(checks::required_fields(&secret, &["name"]));
    }
    errors.extend(initiator(source, FORMAT));
    errors
}

/// If the initiator has a name, the names of volumes are part of names on the node.
pub fn name_length(volume: &FieldRef<'_>, context: &VolumeContext<'_>) -> ErrorList {
    let source = volume.field("iscsi");
    let portal = source.field("targetPortal").text();
    let is_unfit = source.field("initiatorName").is_set() && is_too_long(context.volume_name, portal);
    let at = volume.path().child("name");
    is_unfit.then(|| Error::invalid(&at, context.volume_name, NAME_TOO_LONG)).into_iter().collect()
}

fn is_too_long(volume_name: &str, portal: &str) -> bool {
    volume_name.len() + 1 + portal.len() > NAME_BYTES_MAX
}

/// The name of the target, its unit and its secret.
fn target(source: &FieldRef<'_>, of_no_family: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = source.field("iqn");
    if name.is_empty() {
        errors.push(name.required(""));
    } else {
        match is_fit(name.text()) {
            None => errors.push(name.invalid(of_no_family)),
            Some(false) => errors.push(name.invalid(FORMAT)),
            Some(true) => {}
        }
    }
    errors.extend(disks::logical_unit(&source.field("lun")));
    let authenticates = source.field("chapAuthDiscovery").is_true() || source.field("chapAuthSession").is_true();
    let secret = source.field("secretRef");
    if authenticates && !secret.is_set() {
        errors.push(secret.required(""));
    }
    errors
}

/// The name of the initiator, which the reference spells in lower case.
fn initiator(source: &FieldRef<'_>, of_no_family: &str) -> Option<Error> {
    let name = source.field("initiatorName");
    if !name.is_set() {
        return None;
    }
    let why = match is_fit(name.text()) {
        None => of_no_family,
        Some(false) => FORMAT,
        Some(true) => return None,
    };
    Some(Error::invalid(&source.path().child("initiatorname"), name.text(), why))
}
