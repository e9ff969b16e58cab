//! ConfigMap, core/v1.

use crate::crd::{Column, ServedVersion};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names;
use crate::value::Value;

use crate::kinds::data::{DATA_BYTES_MAX, decoded_bytes, entries};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "configmaps",
    singular: "configmap",
    short_names: &["cm"],
    example: "metadata: {name: example}\ndata: {greeting: hello}",
    ..Kind::new("", "v1", "ConfigMap", &ConfigMap)
}];

struct ConfigMap;

impl Strategy for ConfigMap {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        let mut size_bytes = 0;
        for (field, other) in [("data", "binaryData"), ("binaryData", "data")] {
            let path = Path::new(field);
            for (key, value) in entries(object, field) {
                let at = path.key(key);
                errors.extend(names::is_config_map_key(key).into_iter().map(|fault| Error::invalid(&at, key, fault)));
                if field == "data" && object.at(&[other, key]).is_some() {
                    errors.push(Error::invalid(&at, key, format!("duplicate of key present in {other}")));
                }
                size_bytes += match field {
                    "data" => value.as_str().unwrap_or_default().len(),
                    _ => decoded_bytes(value),
                };
            }
        }
        if size_bytes > DATA_BYTES_MAX {
            errors.push(Error::too_long(&Path::new(""), DATA_BYTES_MAX as i64));
        }
        errors
    }

    fn tells_empty(&self) -> &'static [&'static [&'static str]] {
        // Absent `data` defaults to an empty map.
        &[&["binaryData"]]
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        errors.extend(metadata::check_immutable(new, old, &["data", "binaryData"]));
        errors.extend(self.validate_create(version, new));
        errors
    }

    fn table(&self) -> Option<Table> {
        const DATA: &str = "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', \
                            '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. The keys \
                            stored in Data must not overlap with the keys in the BinaryData field, this is enforced \
                            during validation process.";
        Some(Table::named(vec![Column::string("Data", DATA)], |object| {
            let count = entries(object, "data").count() + entries(object, "binaryData").count();
            Cell::named(object, vec![Cell::count(count)])
        }))
    }
}
