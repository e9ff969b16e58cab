//! `resource.k8s.io/v1beta1`, whose claims and slices have a different shape from those of v1 and v1beta2: the details
//! of a request are in the request itself, and the attributes of a device in its field `basic`.
//!
//! Kinds are validated and stored in the newest shape. Source: `pkg/apis/resource/v1beta1/conversion.go`, release 1.36.

use std::borrow::Cow;

use crate::kinds::defaults;
use crate::value::{Map, Value};

const NEWEST: &str = "resource.k8s.io/v1";
const OLDEST: &str = "resource.k8s.io/v1beta1";
/// Fields of a request that v1 has in `exactly`.
const EXACTLY: [&str; 8] = [
    "adminAccess",
    "allocationMode",
    "capacity",
    "count",
    "derivedAttributes",
    "deviceClassName",
    "selectors",
    "tolerations",
];
/// Fields of a device that are outside `basic`.
const OF_DEVICE: [&str; 1] = ["name"];

/// The part of a kind's objects that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A `DeviceClaim`, at this path.
    Claim(&'static [&'static str]),
    /// A `ResourceSliceSpec` in `spec`.
    Slice,
}

impl Shape {
    /// The object in the shape of v1, for validation.
    pub fn newest(self, object: &Value) -> Cow<'_, Value> {
        if is_oldest(object) { Cow::Owned(self.convert(object, NEWEST)) } else { Cow::Borrowed(object) }
    }

    /// Changes the object in the shape of v1, whichever it has.
    pub fn change(self, object: &mut Value, change: impl FnOnce(&mut Value)) {
        if !is_oldest(object) {
            return change(object);
        }
        let mut newest = self.convert(object, NEWEST);
        change(&mut newest);
        *object = self.convert(&newest, OLDEST);
    }

    /// The object in the version `api_version`.
    pub fn convert(self, object: &Value, api_version: &str) -> Value {
        let mut converted = object.clone();
        let was_oldest = is_oldest(object);
        converted.make_object().insert("apiVersion", Value::from(api_version));
        let to_oldest = api_version == OLDEST;
        if was_oldest != to_oldest {
            match self {
                Shape::Claim(path) => convert_claim(&mut converted, path, to_oldest),
                Shape::Slice => convert_slice(&mut converted, to_oldest),
            }
        }
        converted
    }

    /// The object as Go reads it: converted from v1beta1 to the internal type and back.
    pub fn internalize(self, object: &mut Value) {
        self.change(object, |_| {});
    }
}

/// Whether an object is in the shape of v1beta1.
pub fn is_oldest(object: &Value) -> bool {
    object.str_at(&["apiVersion"]) == OLDEST
}

fn convert_claim(object: &mut Value, path: &[&str], to_oldest: bool) {
    let claim = path.iter().try_fold(object, |value, name| defaults::field(value, name));
    let Some(claim) = claim else { return };
    for request in defaults::items(claim, "requests") {
        let request = request.make_object();
        if to_oldest {
            if let Some(Value::Object(exactly)) = request.remove("exactly") {
                extend(request, exactly);
            }
            if request.get("deviceClassName").is_none() {
                request.insert("deviceClassName", Value::from(""));
            }
        } else {
            let exactly = take(request, |name| EXACTLY.contains(&name));
            if exactly.iter().any(|(name, value)| !is_zero(value) || is_set_pointer(name, value)) {
                request.insert("exactly", Value::Object(exactly));
            }
        }
    }
}

fn convert_slice(object: &mut Value, to_oldest: bool) {
    let Some(spec) = defaults::field(object, "spec") else { return };
    let fields = spec.make_object();
    for name in ["nodeName", "allNodes"] {
        if fields.get(name).is_some_and(is_zero) {
            fields.remove(name);
        }
    }
    for device in defaults::items(spec, "devices") {
        let device = device.make_object();
        if to_oldest {
            let basic = take(device, |name| !OF_DEVICE.contains(&name));
            device.insert("basic", Value::Object(basic));
        } else if let Some(Value::Object(basic)) = device.remove("basic") {
            extend(device, basic);
        }
    }
}

/// Removes and returns the wanted fields.
fn take(fields: &mut Map, is_wanted: impl Fn(&str) -> bool) -> Map {
    let names: Vec<String> = fields.iter().map(|(name, _)| name.to_owned()).filter(|name| is_wanted(name)).collect();
    let mut taken = Map::new();
    for name in names {
        if let Some(value) = fields.remove(&name) {
            taken.insert(name, value);
        }
    }
    taken
}

fn extend(fields: &mut Map, more: Map) {
    for (name, value) in more {
        fields.insert(name, value);
    }
}

/// Whether a field of a request is a pointer in Go, which is not nil: `false` is set.
fn is_set_pointer(name: &str, value: &Value) -> bool {
    name == "adminAccess" && !value.is_null()
}

/// Whether Go considers a value the zero value of its type; an empty list is not.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Int(0) | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    #[track_caller]
    fn check(shape: Shape, oldest: &str, newest: &str) {
        let oldest = read(&format!("{{apiVersion: {OLDEST}, spec: {oldest}}}"));
        let newest = read(&format!("{{apiVersion: {NEWEST}, spec: {newest}}}"));
        assert_eq!(*shape.newest(&oldest), newest);
        assert_eq!(shape.convert(&newest, OLDEST), oldest);
    }

    #[test]
    fn a_request_says_in_itself_what_newer_ones_say_in_exactly() {
        let claim = Shape::Claim(&["spec", "devices"]);
        check(
            claim,
            "{devices: {requests: [{name: a, deviceClassName: c, count: 2}, {name: b, deviceClassName: '', \
             firstAvailable: [{name: x}]}]}}",
            "{devices: {requests: [{name: a, exactly: {deviceClassName: c, count: 2}}, \
             {name: b, firstAvailable: [{name: x}]}]}}",
        );
    }

    #[test]
    fn administrative_access_that_is_refused_is_asked_for_in_exactly_too() {
        check(
            Shape::Claim(&["spec", "devices"]),
            "{devices: {requests: [{name: a, deviceClassName: '', adminAccess: false, firstAvailable: [{name: x}]}]}}",
            "{devices: {requests: [{name: a, exactly: {deviceClassName: '', adminAccess: false}, \
             firstAvailable: [{name: x}]}]}}",
        );
    }

    #[test]
    fn a_device_has_in_basic_what_newer_ones_have_in_themselves() {
        check(
            Shape::Slice,
            "{devices: [{name: a, basic: {attributes: {x: {int: 1}}}}, {name: b, basic: {}}]}",
            "{devices: [{name: a, attributes: {x: {int: 1}}}, {name: b}]}",
        );
    }

    #[test]
    fn the_other_versions_differ_in_their_name_alone() {
        let object = read("{apiVersion: resource.k8s.io/v1beta2, spec: {devices: [{name: a}]}}");
        assert_eq!(*Shape::Slice.newest(&object), object);
        let renamed = read("{apiVersion: resource.k8s.io/v1, spec: {devices: [{name: a}]}}");
        assert_eq!(Shape::Slice.convert(&object, NEWEST), renamed);
    }
}
