//! The validation of definitions.
//!
//! Input: a definition with its defaults, prepared for storage; for an update also the old one. Output: all errors, in
//! Kubernetes' words and order; or the costs of the rules.
//!
//! Source: apiextensions-apiserver 1.37, answers recorded from it.

mod internal;
mod forgiven;
mod options;

mod approval;
pub mod ca_bundle;
mod columns;
pub(crate) mod conversion;
mod names;
mod selectable;
mod versions;

mod defaults;
pub mod expressions;
mod list_type;
mod rules;
mod schema;
pub mod validated;
mod walk;

mod go_struct;

use std::collections::BTreeMap;

use expressions::SchemaCosts;
use internal::InternalSpec;
use options::ValidationOptions;
use validated::Validated;

use super::REPEATED_NAMES_BYTES_MAX;
use super::definition::{Definition, Spec, Status, Version};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::minor::Minor;
use crate::meta::names::name_is_dns1123_subdomain;
use crate::meta::object_meta;
use crate::schema::json_schema::JsonSchema;
use crate::value::Value;

const METADATA: Path<'static> = Path::new("metadata");
const SPEC: Path<'static> = Path::new("spec");
const STATUS: Path<'static> = Path::new("status");

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];

/// The errors of a new definition.
pub fn create(definition: &Definition) -> ErrorList {
    create_with(definition, &ValidationOptions::for_create(definition), Validated::default()).0
}

/// The errors of a new definition, and the costs of the rules of each schema.
pub fn create_with_costs(definition: &Definition) -> (ErrorList, Vec<SchemaCosts>) {
    let options = ValidationOptions::for_create(definition).keeping_costs();
    let (errors, validated) = create_with(definition, &options, Validated::default());
    (errors, validated.into_costs())
}

/// The errors of a new definition, and the verdicts on its schemas; schemas that are unchanged since `before` are not
/// validated again.
pub fn create_after(definition: &Definition, before: &Validated) -> (ErrorList, Validated) {
    let options = ValidationOptions::for_create(definition).keeping_costs();
    let (errors, validated) = create_with(definition, &options, Validated::after(before));
    (errors, validated.alone())
}

fn create_with(definition: &Definition, options: &ValidationOptions, validated: Validated) -> (ErrorList, Validated) {
    let required_name = format!("{}.{}", definition.spec.names.plural, definition.spec.group);
    let name_check = |name: &str, prefix: bool| {
        let mut faults = name_is_dns1123_subdomain(name, prefix);
        if name != required_name {
            faults.push("must be spec.names.plural+\".\"+spec.group".to_owned());
        }
        faults
    };
    let mut errors = object_meta::validate(&definition.metadata, false, name_check, &METADATA);
    let (found, validated) = validate_spec(definition, options, validated);
    errors.extend(found);
    errors.extend(validate_rest(definition, None));
    (errors, validated)
}

/// The errors of `new` in place of `old`.
pub fn update(new: &Definition, old: &Definition) -> ErrorList {
    update_with(new, old, &ValidationOptions::for_update(new, old)).0
}

/// The errors of `new` in place of `old`, and the costs of the rules of each schema.
pub fn update_with_costs(new: &Definition, old: &Definition) -> (ErrorList, Vec<SchemaCosts>) {
    let (errors, validated) = update_with(new, old, &ValidationOptions::for_update(new, old).keeping_costs());
    (errors, validated.into_costs())
}

fn update_with(new: &Definition, old: &Definition, options: &ValidationOptions) -> (ErrorList, Validated) {
    let mut errors = object_meta::validate_update(&new.metadata, &old.metadata, &METADATA);
    let (found, validated) = validate_spec(new, options, Validated::default());
    errors.extend(found);
    errors.extend(validate_immutable(&new.spec, &old.spec, options.require_immutable_names));
    errors.extend(validate_rest(new, Some(old)));
    (errors, validated)
}

/// The errors of a write to `/status`.
pub fn update_status(new: &Definition, old: &Definition) -> ErrorList {
    let mut errors = object_meta::validate_update(&new.metadata, &old.metadata, &METADATA);
    errors.extend(validate_status(&new.status));
    errors
}

/// Every schema of a definition; one that all versions share comes once.
pub fn schemas(definition: &Definition) -> Vec<&JsonSchema> {
    InternalSpec::of(definition).schemas().collect()
}

/// Validates everything but the spec.
fn validate_rest(new: &Definition, old: Option<&Definition>) -> ErrorList {
    let mut errors = validate_status(&new.status);
    let stored_path = STATUS.child("storedVersions");
    errors.extend(validate_stored_versions(new.minor, &new.status.stored_versions, &new.spec.versions, &stored_path));
    errors.extend(approval::validate_approval(new, old));
    if new.spec.preserve_unknown_fields && !old.is_some_and(|old| old.spec.preserve_unknown_fields) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
                      instead";
        errors.push(Error::invalid(&SPEC.child("preserveUnknownFields"), true, detail));
    }
    errors
}

fn validate_status(status: &Status) -> ErrorList {
    names::validate_names(&status.accepted_names, &STATUS.child("acceptedNames"))
}

/// Versions that objects may be stored in must stay, and the storage version must be one of them.
fn validate_stored_versions(minor: Minor, stored: &[String], versions: &[Version], path: &Path<'_>) -> ErrorList {
    if stored.is_empty() {
        return Error::invalid(path, Value::Null, "must have at least one stored version").into();
    }
    let mut errors = ErrorList::new();
    let mut unmet: BTreeMap<&str, usize> =
        stored.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    for version in versions {
        // A second version of the same name does not count as stored.
        if unmet.remove(version.name.as_str()).is_none() && version.storage {
            let shown: Vec<Value> = stored.iter().map(|name| name.as_str().into()).collect();
            errors.push(Error::invalid(path, shown, format!("must have the storage version {}", version.name)));
        }
    }
    for (name, index) in unmet {
        let newer = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
             a storage migration ensures no data remains persisted in {name} and removes {name} from \
             status.storedVersions"
        );
        let detail = if minor < Minor::of(33) { "must appear in spec.versions".to_owned() } else { newer };
        errors.push(Error::invalid(&path.index(index), name, detail));
    }
    errors
}

/// The errors of a definition's spec; the verdicts on its schemas are added to `validated`.
fn validate_spec(
    definition: &Definition,
    options: &ValidationOptions,
    mut validated: Validated,
) -> (ErrorList, Validated) {
    let spec = InternalSpec::of(definition);
    let written = spec.spec;
    let mut options = options.clone();
    let mut errors = ErrorList::new();
    errors.extend(names::validate_group(&written.group, &SPEC.child("group")));
    errors.extend(validate_scope(&written.scope, &SPEC.child("scope")));
    // Without a schema everything would be pruned.
    if !written.preserve_unknown_fields {
        options.require_structural = true;
    }
    errors.extend(validate_schema_presence(&spec, &options));
    if spec.schemas().any(forgiven::has_defaults) {
        options.require_structural = true;
        if written.preserve_unknown_fields {
            let detail = "must be false in order to use defaults in the schema";
            errors.push(Error::invalid(&SPEC.child("preserveUnknownFields"), true, detail));
        }
    }
    options.require_structural |= spec.any_schema(schema::has_extensions);

    errors.extend(versions::validate_versions(&spec, &options, &mut validated, &SPEC.child("versions")));
    if let Some(error) = names::validate_label(&SPEC.child("version"), spec.version) {
        errors.push(error);
    }
    let names_path = SPEC.child("names");
    errors.extend(names::validate_presence(&written.names, &names_path));
    errors.extend(names::validate_names(&written.names, &names_path));
    if options.require_few_names && forgiven::repeats_too_many_names(written) {
        errors.push(Error::too_long(&names_path, REPEATED_NAMES_BYTES_MAX as i64));
    }
    let has_status = spec.any_has_status();
    let shared_options = options.for_version(spec.version);
    errors.extend(versions::validate_content(
        &spec.shared,
        has_status,
        &shared_options,
        "validation",
        &mut validated,
        &SPEC,
    ));
    errors.extend(validate_shared_selectable(&spec, &options));
    if let Some(conversion) = &written.conversion {
        let path = SPEC.child("conversion");
        if conversion.strategy != "None" && written.preserve_unknown_fields {
            let detail = "must be None if spec.preserveUnknownFields is true";
            let error = Error::invalid(&path.child("strategy"), conversion.strategy.as_str(), detail);
            errors.push(error.shown_as_json());
        }
        errors.extend(conversion::validate_conversion(conversion, &options, &path));
    }
    (errors, validated)
}

fn validate_scope(scope: &str, path: &Path<'_>) -> Option<Error> {
    match scope {
        "" => Some(Error::required(path, "")),
        scope if SCOPES.contains(&scope) => None,
        scope => Some(Error::not_supported(path, scope, &SCOPES)),
    }
}

/// Every version must have a schema; in definitions that were stored without schemas, only the versions that are served
/// and pruned.
fn validate_schema_presence(spec: &InternalSpec<'_>, options: &ValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.shared.open_api_schema().is_some() || !options.require_schema && spec.spec.preserve_unknown_fields {
        return errors;
    }
    let versions_path = SPEC.child("versions");
    for (index, version) in spec.versions.iter().enumerate() {
        if version.own.open_api_schema().is_none() && (options.require_schema || version.version.served) {
            let path = versions_path.index(index);
            let path = path.child("schema");
            let required = if options.minor < Minor::of(34) { "schemas are required" } else { "" };
            let detail = if options.require_schema { required } else { "because otherwise all fields are pruned" };
            errors.push(Error::required(&path.child("openAPIV3Schema"), detail));
        }
    }
    errors
}

fn validate_shared_selectable(spec: &InternalSpec<'_>, options: &ValidationOptions) -> ErrorList {
    let fields = spec.shared.selectable_fields;
    if fields.is_empty() {
        return ErrorList::new();
    }
    match (spec.shared.schema, spec.shared.open_api_schema()) {
        (_, Some(schema)) => versions::validate_selectable_in(fields, schema, options, "", &SPEC),
        // The missing schema was reported already.
        (Some(_), None) => ErrorList::new(),
        (None, _) => {
            let detail = versions::selectable_detail(options, "may only be set when validations.schema is included");
            Error::invalid(&SPEC.child("selectableFields"), "", detail).into()
        }
    }
}

/// Group and plural are part of the name, which never changes; scope and kind are part of stored objects.
fn validate_immutable(new: &Spec, old: &Spec, is_established: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut check = |path: &Path<'_>, new: &str, old: &str| {
        if new != old {
            errors.push(Error::invalid(path, new, "field is immutable").shown_as_json());
        }
    };
    let names_path = SPEC.child("names");
    if is_established {
        check(&SPEC.child("scope"), &new.scope, &old.scope);
        check(&names_path.child("kind"), &new.names.kind, &old.names.kind);
    }
    check(&SPEC.child("group"), &new.group, &old.group);
    check(&names_path.child("plural"), &new.names.plural, &old.names.plural);
    errors
}

#[cfg(test)]
mod tests;
