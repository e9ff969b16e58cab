//! A volume is made of one of many sources, each a field of its own.

use crate::kinds::pod::PodValidationOptions;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;

/// The context for checking a source.
#[derive(Clone, Copy, Debug)]
pub struct VolumeContext<'c> {
    /// The name of the volume in the pod, or of the persistent volume.
    pub volume_name: &'c str,
    /// Empty if it is unknown.
    pub pod_name: &'c str,
    pub options: &'c PodValidationOptions,
}

type SourceCheck = fn(&FieldRef<'_>, &VolumeContext<'_>) -> ErrorList;

/// A source that a volume may have.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Its field.
    name: &'static str,
    /// The reference's name for it in errors of the source, and in the error about a second source. It misspells some.
    checked_at: &'static str,
    refused_at: &'static str,
    check: SourceCheck,
    /// A check of the volume itself, in addition to the source.
    of_volume: Option<OfVolume>,
    /// Whether it is never one too many.
    is_beside_others: bool,
}

/// A check of the volume that a source requires.
#[derive(Clone, Copy, Debug)]
struct OfVolume {
    check: SourceCheck,
    /// Whether it is made even if the source is one too many.
    always: bool,
}

impl Source {
    pub const fn new(name: &'static str, check: SourceCheck) -> Self {
        Source { name, checked_at: name, refused_at: name, check, of_volume: None, is_beside_others: false }
    }

    pub const fn checked_at(self, checked_at: &'static str) -> Self {
        Source { checked_at, ..self }
    }

    pub const fn refused_at(self, refused_at: &'static str) -> Self {
        Source { refused_at, ..self }
    }

    /// With a check of the volume, unless the source is one too many.
    pub const fn with(self, check: SourceCheck) -> Self {
        Source { of_volume: Some(OfVolume { check, always: false }), ..self }
    }

    /// With a check of the volume, in any case.
    pub const fn always(self, check: SourceCheck) -> Self {
        Source { of_volume: Some(OfVolume { check, always: true }), ..self }
    }

    pub const fn beside_others(self) -> Self {
        Source { is_beside_others: true, ..self }
    }

    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// The errors of the sources of `volume`, which must have exactly one.
pub fn validate_one(volume: &FieldRef<'_>, sources: &[Source], context: &VolumeContext<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut has_source = false;
    for source in sources {
        let field = volume.field(source.name);
        if !field.is_set() {
            continue;
        }
        let is_refused = has_source && !source.is_beside_others;
        if is_refused {
            let at = volume.path().child(source.refused_at);
            errors.push(Error::forbidden(&at, "may not specify more than 1 volume type"));
        } else {
            let checked = FieldRef::new(field.value(), volume.path().child(source.checked_at));
            errors.extend((source.check)(&checked, context));
        }
        if let Some(of_volume) = source.of_volume.filter(|check| check.always || !is_refused) {
            errors.extend((of_volume.check)(volume, context));
        }
        has_source = true;
    }
    if !has_source {
        errors.push(volume.required("must specify a volume type"));
    }
    errors
}
