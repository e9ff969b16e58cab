//! `selectableFields`: fields that field selectors can name.

use std::collections::BTreeSet;

use crate::meta::field::{Error, ErrorList, Path};
use crate::schema::field_path::{Brackets, resolve};
use crate::schema::structural::Structural;

/// The most fields of a version that objects can be selected by.
pub const SELECTABLE_FIELDS_MAX: usize = 8;

/// With `any_number`, the limit is not enforced: the fields are unchanged since before it existed.
pub fn validate_selectable_fields(
    fields: &[String],
    schema: &Structural,
    any_number: bool,
    path: &Path<'_>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut known = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let item = path.index(index);
        let path = item.child("jsonPath");
        let invalid = |detail: String| Error::invalid(&path, field.as_str(), detail);
        if field.is_empty() {
            errors.push(Error::required(&path, ""));
            continue;
        }
        let resolved = match resolve(field, schema, Brackets::Forbidden) {
            Ok(resolved) => resolved,
            Err(error) => {
                errors.push(invalid(format!("is an invalid path: {error}")));
                continue;
            }
        };
        if resolved.root == "metadata" {
            errors.push(invalid("must not point to fields in metadata".to_owned()));
        }
        let type_ = resolved.schema.map_or("", |schema| schema.generic.type_.as_str());
        if !matches!(type_, "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                          formats are allowed.";
            errors.push(invalid(detail.to_owned()));
        }
        if !known.insert(resolved.text) {
            errors.push(Error::duplicate(&path, field.as_str()));
        }
    }
    if known.len() > SELECTABLE_FIELDS_MAX && !any_number {
        errors.push(Error::too_many(path, known.len() as i64, SELECTABLE_FIELDS_MAX as i64));
    }
    errors
}
