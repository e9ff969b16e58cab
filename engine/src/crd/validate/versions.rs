//! The versions of a definition, each alone and all together.

use std::collections::BTreeSet;

use super::columns::{validate_columns, validate_subresources};
use super::go_struct::{self, show_versions};
use super::internal::{InternalSpec, InternalVersion, SharedFields};
use super::names::validate_required_label;
use super::options::ValidationOptions;
use super::schema::validate_schema;
use super::selectable::validate_selectable_fields;
use super::validated::Validated;
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::minor::Minor;
use crate::schema::convert::to_structural;
use crate::schema::json_schema::JsonSchema;
use crate::schema::structural::Structural;
use crate::value::is_printable;
use crate::work;

const DEPRECATION_WARNING_BYTES_MAX: usize = 256;

/// Validates every version, at `path` with its index. The verdicts on schemas go to `validated`.
pub fn validate_versions(
    spec: &InternalSpec<'_>,
    options: &ValidationOptions,
    validated: &mut Validated,
    path: &Path<'_>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let statuses = spec.statuses_by_version();
    for (index, version) in spec.versions.iter().enumerate() {
        work::step();
        let path = path.index(index);
        let name = &version.version.name;
        errors.extend(validate_required_label(&path.child("name"), name));
        errors.extend(validate_deprecation_warning(version, &path.child("deprecationWarning")));
        let options = options.for_version(name);
        errors.extend(validate_content(
            &version.own,
            statuses.of(name) == Some(true),
            &options,
            "schema",
            validated,
            &path,
        ));
        errors.extend(validate_selectable(version, &options, &path));
    }
    let mut names = BTreeSet::new();
    let all_differ = spec.versions.iter().all(|version| names.insert(&version.version.name));
    if !all_differ {
        errors.push(invalid_versions(spec, "must contain unique version names", path));
    }
    if spec.versions.iter().filter(|version| version.version.storage).count() != 1 {
        errors.push(invalid_versions(spec, "must have exactly one version marked as storage version", path));
    }
    errors
}

fn invalid_versions(spec: &InternalSpec<'_>, detail: &str, path: &Path<'_>) -> Error {
    let shown = if spec.spec.names_versions { show_versions(&spec.versions) } else { "null".to_owned() };
    go_struct::invalid(path, shown, detail)
}

/// Validates the schema, which is named as it is at `path`, the subresources and the columns. The verdicts on schemas
/// go to `validated`.
pub fn validate_content(
    content: &SharedFields<'_>,
    has_status: bool,
    options: &ValidationOptions,
    schema_name: &str,
    validated: &mut Validated,
    path: &Path<'_>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(schema) = content.shared_schema() {
        let path = path.child(schema_name);
        let validate = || validate_schema(schema, has_status, options, &path);
        errors.extend(validated.errors_of(schema, has_status, options, &path, validate));
    }
    if let Some(subresources) = content.subresources {
        errors.extend(validate_subresources(subresources, &path.child("subresources")));
    }
    errors.extend(validate_columns(content.columns, &path.child("additionalPrinterColumns")));
    errors
}

fn validate_selectable(version: &InternalVersion<'_>, options: &ValidationOptions, path: &Path<'_>) -> ErrorList {
    let fields = version.own.selectable_fields;
    if fields.is_empty() {
        return ErrorList::new();
    }
    match version.own.open_api_schema() {
        Some(schema) => validate_selectable_in(fields, schema, options, &version.version.name, path),
        None => {
            let detail =
                selectable_detail(options, "may only be set when `version.schema.openAPIV3Schema` is not included");
            Error::invalid(&path.child("selectableFields"), "", detail).into()
        }
    }
}

/// `detail` in the words of the version; before 1.34 it had the name of the field, and no quotes.
pub fn selectable_detail(options: &ValidationOptions, detail: &str) -> String {
    if options.minor < Minor::of(34) {
        format!("selectableFields {}", detail.replace('`', ""))
    } else {
        detail.to_owned()
    }
}

/// Selectable fields of `version`, which is empty for those that all versions share.
pub fn validate_selectable_in(
    fields: &[String],
    schema: &JsonSchema,
    options: &ValidationOptions,
    version: &str,
    path: &Path<'_>,
) -> ErrorList {
    let any_number = options.any_number_of_selectable_fields.contains(version);
    let mut errors = ErrorList::new();
    let schema = to_structural(schema).unwrap_or_else(|error| {
        let schema_path = path.child("schema");
        errors.push(Error::invalid(&schema_path.child("openAPIV3Schema"), "", error.to_string()));
        // Invalid paths are still reported.
        Structural::default()
    });
    errors.extend(validate_selectable_fields(fields, &schema, any_number, &path.child("selectableFields")));
    errors
}

fn validate_deprecation_warning(version: &InternalVersion<'_>, path: &Path<'_>) -> ErrorList {
    let Some(warning) = &version.version.deprecation_warning else { return ErrorList::new() };
    let mut faults = Vec::new();
    if !version.version.deprecated {
        faults.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > DEPRECATION_WARNING_BYTES_MAX {
            faults.push(format!("must be <= {DEPRECATION_WARNING_BYTES_MAX} characters long"));
        }
        if warning.is_empty() {
            faults.push("must not be an empty string".to_owned());
        }
        if let Some((at, _)) = warning.char_indices().find(|(_, char)| !is_printable(*char)) {
            faults.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {at}"
            ));
        }
    }
    let errors = faults.into_iter().map(|fault| Error::invalid(path, warning.as_str(), fault));
    errors.map(Error::shown_as_json).collect()
}
