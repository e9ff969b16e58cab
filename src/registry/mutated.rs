//! Decodes an object that mutating policies have changed, as Go decodes it.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating`, release 1.37; texts recorded from kube-apiserver.

use std::borrow::Cow;
use std::fmt::Display;

use crate::admission::Misread;
use crate::apply::TypeSchema;
use crate::crd::ServedVersion;
use crate::kinds;
use crate::meta::api_version::group_of;
use crate::meta::type_meta::{MissingKind, type_meta};
use crate::policy::mutation::{Mutated, check_numbers};
use crate::types::decoder::Findings;
use crate::value::{Value, json};

use super::decode::{not_registered_in_built_in, strict_error};
use super::{Resource, Subresource};

fn broken(error: impl Display) -> Misread {
    Misread::Broken(error.to_string())
}

/// Where an object is written to, and in which version the request has it.
#[derive(Clone, Copy)]
pub struct RequestScope<'a> {
    pub resource: &'a Resource,
    pub subresource: Subresource,
    pub version: &'a ServedVersion,
}

impl<'a> RequestScope<'a> {
    /// The types of what is sent here, an `object` in `version`. What a part takes has types where its kind is of the group
    /// and version that the resource is served in.
    pub fn types(&self, object: &Value, version: &ServedVersion) -> Option<Cow<'a, TypeSchema>> {
        let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        if api_version != version.api_version() {
            return None;
        }
        if kind == version.names.kind {
            return self.resource.types_of(api_version).map(Cow::Borrowed);
        }
        kinds::type_of(api_version, kind).map(|message| Cow::Owned(TypeSchema::of_message(message)))
    }

    /// Reads what became of `before`.
    pub fn read(&self, before: &Value, mutated: Mutated) -> Result<Value, Misread> {
        if self.resource.is_custom() { self.read_custom(mutated) } else { self.read_built_in(before, mutated) }
    }

    fn read_custom(&self, mutated: Mutated) -> Result<Value, Misread> {
        if self.subresource == Subresource::Scale {
            let why = "request to convert CR to an invalid group/version: autoscaling/v1";
            return Err(Misread::Fault(why.to_owned()));
        }
        let object = match mutated {
            Mutated::Merged(object) => {
                check_numbers(&object)?;
                object
            }
            Mutated::Patched(object) => {
                let (_, kind) = type_meta(&object).map_err(broken)?;
                if kind.is_empty() {
                    return Err(broken(MissingKind::of(&json::encode(&object))));
                }
                self.check_version(&object, &kind)?;
                object
            }
        };
        let decoded = self.resource.strategy.set_defaults(object, &self.resource.versions);
        decoded.map(|decoded| decoded.object).map_err(|error| Misread::Fault(error.to_string()))
    }

    /// Checks that a custom object can be converted back to what the request has.
    fn check_version(&self, object: &Value, kind: &str) -> Result<(), Misread> {
        let (api_version, wanted) = (object.str_at(&["apiVersion"]), self.version.api_version());
        let group = group_of(api_version);
        let why = match self.resource.version_of(api_version) {
            Some(_) => return Ok(()),
            None if group == self.version.group => {
                format!("request to convert CR from an invalid group/version: {api_version}")
            }
            None => {
                let group_version = if group.is_empty() { format!("/{api_version}") } else { api_version.to_owned() };
                let found = format!("{group_version}, Kind={kind}");
                format!("{found} is unstructured and is not suitable for converting to \"{wanted}\"")
            }
        };
        Err(Misread::Broken(format!("failed to convert object: {why}")))
    }

    fn read_built_in(&self, before: &Value, mutated: Mutated) -> Result<Value, Misread> {
        let is_patched = matches!(mutated, Mutated::Patched(_));
        let (Mutated::Patched(mut object) | Mutated::Merged(mut object)) = mutated;
        for name in ["apiVersion", "kind"] {
            if object.str_at(&[name]).is_empty() {
                object.make_object().insert(name, before.get(name).cloned().unwrap_or_default());
            }
        }
        let (api_version, kind) = type_meta(&object).map_err(broken)?;
        let message = kinds::message_of(&api_version, &kind);
        let message = message.ok_or_else(|| broken(not_registered_in_built_in(&kind, &api_version)))?;
        let unfit = |why: String| {
            if is_patched {
                Misread::Broken(why)
            } else {
                let group_version =
                    if api_version.contains('/') { api_version.clone() } else { format!("/{api_version}") };
                Misread::Fault(format!("unable to convert unstructured object to {group_version}, Kind={kind}: {why}"))
            }
        };
        if !is_patched {
            if let Some(why) = message.restore_error(&object) {
                return Err(unfit(why));
            }
            message.truncate_numbers(&mut object);
            check_numbers(&object)?;
        }
        let is_own = self.resource.versions.iter().any(|version| version.names.kind == kind);
        let (object, findings) = if is_own {
            let decoded = self.resource.strategy.decode(object, &self.resource.versions);
            let decoded = decoded.map_err(|error| unfit(error.to_string()))?;
            (decoded.object, decoded.findings)
        } else {
            message.decode(&object).map_err(|error| unfit(error.to_string()))?
        };
        if is_patched {
            check_strictly(&findings)?;
        }
        self.check_kind(before, &object)?;
        Ok(object)
    }

    /// Checks that the object can be converted back to what the request has.
    fn check_kind(&self, before: &Value, object: &Value) -> Result<(), Misread> {
        let text = |object: &Value, name: &str| object.str_at(&[name]).to_owned();
        let wanted = if self.resource.versions.iter().any(|version| version.names.kind == text(before, "kind")) {
            self.version.api_version()
        } else {
            text(before, "apiVersion")
        };
        let version_of = |api_version: &str| api_version.rsplit('/').next().unwrap_or_default().to_owned();
        let (found, kind) = (text(object, "apiVersion"), text(object, "kind"));
        if found != wanted {
            let (from, to) = (version_of(&found), version_of(&wanted));
            return Err(Misread::Fault(format!("converting ({from}.{kind}) to ({to}.{kind}): unknown conversion")));
        }
        let expected = text(before, "kind");
        if kind == expected {
            return Ok(());
        }
        let package = match self.version.group.split('.').next().unwrap_or_default() {
            "" => "core",
            group => group,
        };
        let from = version_of(&found);
        Err(Misread::Broken(format!(
            "failed to convert object: converting ({from}.{kind}) to ({package}.{expected}): unknown conversion"
        )))
    }
}

fn check_strictly(findings: &Findings) -> Result<(), Misread> {
    let errors: Vec<String> = findings.unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    if errors.is_empty() { Ok(()) } else { Err(Misread::Broken(strict_error(&errors))) }
}
