//! Groups of the Kubernetes community need its approval.
//!
//! Source: apiextensions-apiserver 1.37.

use crate::crd::approval::{ANNOTATION, Approval, annotation, is_protected};
use crate::crd::definition::Definition;
use crate::meta::field::{Error, Path};

/// An update may keep the old state of the approval, even an invalid one.
pub fn validate_approval(new: &Definition, old: Option<&Definition>) -> Option<Error> {
    let approval = Approval::of(new);
    if !is_protected(&new.spec.group) || old.is_some_and(|old| Approval::of(old) == approval) {
        return None;
    }
    let metadata = Path::new("metadata");
    let annotations = metadata.child("annotations");
    let path = annotations.key(ANNOTATION);
    match approval {
        Approval::Approved | Approval::Bypassed => None,
        Approval::Missing => Some(Error::required(&path, approval.message(new))),
        Approval::Invalid => Some(Error::invalid(&path, annotation(new), approval.message(new))),
    }
}
