//! The user of the request, as a form beside its text.

use super::inputs::{Inputs, Pane};
use super::shown::texts;
use crate::object;
use crate::value::{Value, yaml};

/// The user's name and groups in the request.
pub fn show(inputs: &Inputs) -> Value {
    let request = inputs.first(Pane::Request).map(|document| &document.value);
    let user = request.and_then(|request| request.get("user"));
    let groups = user.map_or(&[][..], |user| user.items_at(&["groups"]));
    let groups: Vec<String> = groups.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    object! { "name" => user.map_or("", |user| user.str_at(&["name"])), "groups" => texts(&groups) }
}

/// Returns the request with the `name` and the `groups` of `wanted`; without a user if both are empty. Returns `None`
/// if the request cannot be parsed.
pub fn with_user(inputs: &Inputs, wanted: &Value) -> Option<String> {
    let documents = inputs.documents(Pane::Request);
    if inputs.is_broken(Pane::Request) || documents.len() > 1 {
        return None;
    }
    let mut request = documents.first().map_or_else(|| object! {}, |document| document.value.clone());
    let (name, groups) = (wanted.str_at(&["name"]), wanted.items_at(&["groups"]));
    let fields = request.as_object_mut()?;
    let mut user = fields.remove("user").filter(|user| user.as_object().is_some()).unwrap_or_else(|| object! {});
    let of_user = user.as_object_mut()?;
    for (field, value, is_empty) in
        [("name", Value::from(name), name.is_empty()), ("groups", Value::Array(groups.to_vec()), groups.is_empty())]
    {
        if is_empty {
            of_user.remove(field);
        } else {
            of_user.insert(field, value);
        }
    }
    if !of_user.is_empty() {
        fields.insert("user", user);
    }
    Some(if fields.is_empty() { String::new() } else { yaml::encode(&request) })
}
