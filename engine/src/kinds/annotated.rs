//! Lists in annotations, as they were written before there were fields for them: JSON that Go decodes into its internal
//! types, whose fields have no names for JSON.

use crate::meta::unmarshal::UnmarshalError;
use crate::types::decoder::TypedDecoder;
use crate::value::{Map, Value};
use crate::work;

/// A list of structs of Go's internal type `core.NAME`. `fields` has their fields, as Go and as the API name them; `decode`
/// reads the value of one, by Go's name.
///
/// # Errors
///
/// Go can't decode the list.
pub fn decode_list(
    sent: Value,
    name: &str,
    fields: &[(&str, &'static str)],
    decode: impl Fn(&mut TypedDecoder<'_>, &str, &Value) -> Option<Value>,
) -> Result<Option<Vec<Value>>, UnmarshalError> {
    let names: Vec<&str> = fields.iter().map(|(of_go, _)| *of_go).collect();
    let sent = with_names(sent, &names);
    let (list, _) = TypedDecoder::run(|typed| {
        typed.list(&sent, format_args!("[]core.{name}"), |typed, item| {
            let mut decoded = Map::new();
            typed.structure_in("core", item, name, |typed, field, value| {
                let Some((_, known)) = fields.iter().find(|(of_go, _)| *of_go == field) else { return Ok(false) };
                if let Some(value) = decode(typed, field, value) {
                    decoded.insert(*known, value);
                }
                Ok(true)
            })?;
            Ok(Value::Object(decoded))
        })
    })?;
    Ok(list)
}

/// The value with fields named as Go names them, which ignores the case; unknown fields are dropped, as they are ignored.
pub fn with_names(value: Value, names: &[&str]) -> Value {
    work::step();
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(|item| with_names(item, names)).collect()),
        Value::Object(fields) => {
            let known = |name: &str| names.iter().find(|known| known.eq_ignore_ascii_case(name));
            let renamed = fields.into_iter().filter_map(|(name, value)| {
                let known = known(&name)?;
                Some(((*known).to_owned(), with_names(value, names)))
            });
            Value::Object(renamed.collect::<Map>())
        }
        other => other,
    }
}
