//! Parameters that many operations share: v2 lists each of them once.

use crate::object;
use crate::value::{Map, Value};

/// Moves v2 parameters that don't depend on a kind to one place, and leaves references to them. They are named by a
/// hash of their content.
pub(super) fn share_parameters(paths: &mut Map) -> Map {
    let mut shared = Map::new();
    for path in paths.values_mut().filter_map(Value::as_object_mut) {
        for (name, value) in path.iter_mut() {
            let parameters = match name {
                "parameters" => Some(value),
                _ => value.get_mut("parameters"),
            };
            for parameter in parameters.and_then(Value::as_array_mut).into_iter().flatten() {
                let Some(name) = shared_name(parameter) else { continue };
                let reference = object! { "$ref" => format!("#/parameters/{name}") };
                shared.insert(name, std::mem::replace(parameter, reference));
            }
        }
    }
    shared
}

/// `name-hash`; `None` for a parameter that depends on a kind, and for the two that kubectl up to 1.27 inspects to
/// detect features.
fn shared_name(parameter: &Value) -> Option<String> {
    let name = parameter.str_at(&["name"]);
    let is_own = match (parameter.str_at(&["in"]), name) {
        (_, "name") | ("query", "fieldValidation" | "dryRun") => true,
        ("body", _) => !parameter.str_at(&["schema", "$ref"]).starts_with("#/definitions/io.k8s.apimachinery"),
        _ => false,
    };
    if is_own {
        return None;
    }
    // The hash is computed over the fields in this order.
    let mut encoded = Vec::new();
    for field in ["uniqueItems", "type", "description", "name", "in", "required", "schema"] {
        let Some(value) = parameter.get(field) else { continue };
        encoded.push(if encoded.is_empty() { b'{' } else { b',' });
        encoded.extend_from_slice(format!("\"{field}\":").as_bytes());
        crate::value::json::encode_into(value, &mut encoded);
    }
    encoded.push(b'}');
    Some(format!("{name}-{}", short_hash(&encoded)))
}

/// The first six bytes of FNV-1, in URL-safe base64.
fn short_hash(bytes: &[u8]) -> String {
    use base64::Engine;
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| hash.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(*byte));
    base64::engine::general_purpose::URL_SAFE.encode(&hash.to_be_bytes()[..6])
}
