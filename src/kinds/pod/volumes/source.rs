//! A volume is made of one of many sources, each a field of its own.

use crate::kinds::pod::Options;
use crate::meta::field::{ErrorList, Path};
use crate::meta::field_ref::FieldRef;

/// What a source is checked with.
#[derive(Clone, Copy, Debug)]
pub struct Context<'c> {
    /// Of the volume in the pod, or of the persistent volume.
    pub volume_name: &'c str,
    /// Empty where it is not known.
    pub pod_name: &'c str,
    /// Where the volume stands.
    pub path: Path<'c>,
    pub options: &'c Options,
}

type Check = fn(&FieldRef<'_>, &Context<'_>) -> ErrorList;

/// A source that a volume may have.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Its field.
    name: &'static str,
    /// What the reference calls it in errors of the source, and where it is one too many. It misspells some.
    checked_at: &'static str,
    refused_at: &'static str,
    check: Check,
    /// What is checked even where the source is one too many.
    always: Option<Check>,
}

impl Source {
    pub const fn new(name: &'static str, check: Check) -> Self {
        Source { name, checked_at: name, refused_at: name, check, always: None }
    }

    pub const fn checked_at(self, checked_at: &'static str) -> Self {
        Source { checked_at, ..self }
    }

    pub const fn refused_at(self, refused_at: &'static str) -> Self {
        Source { refused_at, ..self }
    }

    pub const fn always(self, always: Check) -> Self {
        Source { always: Some(always), ..self }
    }
}

/// What is wrong with the sources of `volume`, of which there must be one.
pub fn validate_one(volume: &FieldRef<'_>, sources: &[Source], context: &Context<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut has_source = false;
    for source in sources {
        let field = volume.field(source.name);
        if !field.is_set() {
            continue;
        }
        if has_source {
            let refused = FieldRef::new(None, volume.path().child(source.refused_at));
            errors.push(refused.forbidden("may not specify more than 1 volume type"));
        } else {
            let checked = FieldRef::new(field.value(), volume.path().child(source.checked_at));
            errors.extend((source.check)(&checked, context));
        }
        if let Some(always) = source.always {
            errors.extend(always(volume, context));
        }
        has_source = true;
    }
    if !has_source {
        errors.push(volume.required("must specify a volume type"));
    }
    errors
}
