//! Apply configurations: `Object{…}`, merged into the object by the types of its kind.
//!
//! Nothing is removed, and no ownership is recorded. Values that can only be replaced, not merged, are refused, because
//! an author who sets one of their fields hardly intends to remove the others.

use super::error::MutationError;
use super::native::{self, Native};
use crate::apply::{ForeignStep, TypeErrors, TypeSchema};
use crate::cel::eval::Value as Cel;
use crate::cel::eval::list::List;
use crate::cel::eval::map::Map as CelMap;
use crate::value::{Value, go_quote};
use crate::work;

/// Merges `configuration` into `object` by the `types` of its kind, which are `None` if none are published.
///
/// # Errors
/// The configuration does not fit the types; the message is Kubernetes'.
///
/// ```
/// use kubeskiff_engine::apply::TypeSchema;
/// use kubeskiff_engine::cel::env::{Env, Expressions};
/// use kubeskiff_engine::kinds;
/// use kubeskiff_engine::object;
/// use kubeskiff_engine::policy::mutation::{MutationType, apply_configuration};
///
/// let env = Env::kubernetes(Expressions::New).with_mutations();
/// let expression = "Object{metadata: Object.metadata{labels: {'team': 'a'}}}";
/// let program = MutationType::ApplyConfiguration.compile(expression, &env).expect("it compiles");
/// let value = program.evaluate(&[], 1_000).result?;
///
/// let types = kinds::type_of("v1", "ConfigMap").map(TypeSchema::of_message);
/// let config_map = object! { "apiVersion" => "v1", "kind" => "ConfigMap" };
/// let labelled = apply_configuration::merge(&value, &config_map, types.as_ref()).expect("it fits");
/// assert_eq!(labelled.str_at(&["metadata", "labels", "team"]), "a");
/// # Ok::<(), kubeskiff_engine::cel::eval::EvalError>(())
/// ```
pub fn merge(configuration: &Cel<'_>, object: &Value, types: Option<&TypeSchema>) -> Result<Value, MutationError> {
    let Cel::Struct(whole) = configuration else {
        return Err(MutationError::ReturnType(configuration.type_name()));
    };
    check_names(configuration, whole.name())?;
    let native = native::of_struct(whole, |_| None).map_err(MutationError::NotNative)?;
    merge_native(native, object, types)
}

fn merge_native(native: Native, object: &Value, types: Option<&TypeSchema>) -> Result<Value, MutationError> {
    let Native { object: mut patch, foreign, empty } = native;
    for name in ["apiVersion", "kind"] {
        patch
            .make_object()
            .insert(name.to_owned(), object.get(name).cloned().unwrap_or_else(|| Value::String(String::new())));
    }
    let unfit = |why: String| MutationError::Patch(why);
    let types = types.ok_or_else(|| unfit(format!("no corresponding type for {}", kind_of(object))))?;
    let faults: Vec<String> = foreign.iter().filter_map(|foreign| types.foreign_fault(&patch, foreign)).collect();
    match faults.as_slice() {
        [] => types.validate(&patch, false).map_err(|errors: TypeErrors| unfit(errors.to_string()))?,
        [only] => return Err(unfit(only.clone())),
        several => return Err(unfit(format!("errors:\n  {}", several.join("\n  ")))),
    }
    let atomics = types.atomics(&patch);
    if !atomics.is_empty() {
        return Err(MutationError::Atomics(atomics));
    }
    types.validate(object, true).map_err(MutationError::Original)?;
    // Where the object's list is empty or missing, an empty list of the evaluator removes the field.
    empty.iter().for_each(|path| remove_empty(&mut patch, path));
    let mut merged = types.merge(object, &patch);
    // An item of the patch is not at the same index of the merged list.
    let has_no_item = |path: &&Vec<ForeignStep>| path.iter().all(|step| matches!(step, ForeignStep::Field(_)));
    empty.iter().filter(has_no_item).for_each(|path| remove_empty(&mut merged, path));
    keep_managed_fields(object, &mut merged);
    Ok(merged)
}

/// Removes the list at `path` if it is empty.
fn remove_empty(value: &mut Value, path: &[ForeignStep]) {
    let Some((ForeignStep::Field(name), parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(value, |value, step| match step {
        ForeignStep::Field(name) => value.get_mut(name),
        ForeignStep::Item(index) => value.as_array_mut()?.get_mut(*index),
    });
    let Some(fields) = parent.and_then(Value::as_object_mut) else { return };
    if fields.get(name).and_then(Value::as_array).is_some_and(|list| list.is_empty()) {
        fields.remove(name);
    }
}

/// Keeps managedFields, which merges skip: ownership stays as it is.
fn keep_managed_fields(object: &Value, merged: &mut Value) {
    const NAME: &str = "managedFields";
    if let (Some(managed), Some(metadata)) = (object.at(&["metadata", NAME]), merged.get_mut("metadata")) {
        metadata.make_object().insert(NAME, managed.clone());
    }
}

/// Formats the kind of an object as Go prints it: `apps/v1, Kind=Deployment`.
fn kind_of(object: &Value) -> String {
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let group_version = if api_version.contains('/') { api_version.to_owned() } else { format!("/{api_version}") };
    format!("{group_version}, Kind={kind}")
}

/// Checks that the types of the parts of `value`, whose type is `name`, are named by their position.
///
/// # Errors
/// All parts that are not.
pub(super) fn check_names(value: &Cel<'_>, name: &str) -> Result<(), MutationError> {
    let mut faults = Vec::new();
    note_names(value, name, &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(MutationError::Names(faults)) }
}

fn note_names(value: &Cel<'_>, name: &str, faults: &mut Vec<String>) {
    work::step();
    match value {
        Cel::Struct(part) if !part.is_json_patch() => {
            if part.name() != name {
                let (found, expected) = (go_quote(part.name()), go_quote(name));
                faults.push(format!(
                    "unexpected type name {found}, expected {expected}, which matches field name path from root Object \
                     type"
                ));
            }
            for (field, value) in part.fields() {
                note_names(value, &format!("{name}.{field}"), faults);
            }
        }
        Cel::List(list @ (List::Owned(_) | List::Lent(_))) if !list.is_sum() => {
            list.iter().for_each(|item| note_names(&item.unwrap_or_default(), name, faults));
        }
        Cel::Map(map @ (CelMap::Owned(_) | CelMap::Lent(_))) => {
            map.entries().into_iter().for_each(|(_, value)| note_names(&value.unwrap_or_default(), name, faults));
        }
        _ => {}
    }
}
