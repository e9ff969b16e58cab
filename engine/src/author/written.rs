//! Where a field of a definition stands in its file.

/// Fields that the server sees above the versions where all versions have the same, and where they stand in a version.
const SHARED: [(&str, &str); 4] = [
    ("spec.validation", "schema"),
    ("spec.subresources", "subresources"),
    ("spec.additionalPrinterColumns", "additionalPrinterColumns"),
    ("spec.selectableFields", "selectableFields"),
];

/// The field that an error of a definition is about as it stands in a file, where what versions share stands in each of them:
/// in the one with the number `version`.
pub fn written_field(field: &str, version: usize) -> String {
    for (shared, own) in SHARED {
        if let Some(rest) = field.strip_prefix(shared).filter(|rest| rest.is_empty() || rest.starts_with(['.', '['])) {
            return format!("spec.versions[{version}].{own}{rest}");
        }
    }
    field.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_versions_share_stands_in_each() {
        let check = |field, expected: &str| assert_eq!(written_field(field, 1), expected);
        check("spec.validation.openAPIV3Schema.properties[a]", "spec.versions[1].schema.openAPIV3Schema.properties[a]");
        check("spec.additionalPrinterColumns[0].type", "spec.versions[1].additionalPrinterColumns[0].type");
        check("spec.validations", "spec.validations");
        check("spec.versions[0].schema", "spec.versions[0].schema");
    }
}
