//! Objects as tables and as metadata alone.
//!
//! Input: objects, the columns of their kind, the time. Output: `Table`, `PartialObjectMetadata` and its list, as
//! values. Custom and built-in kinds differ only in where their columns come from. Source: answers recorded from
//! apiextensions-apiserver 1.37.

use std::cmp::Ordering;

use jiff::Timestamp;
use memchr::memmem;

use super::negotiate::Transform;
use super::query::IncludeObject;
use crate::crd::{self, ServedVersion};
use crate::kinds;
use crate::kinds::strategy::{Cell, Strategy, Table};
use crate::meta::json_path::{self, JsonPath};
use crate::object;
use crate::value::{Map, Value};
use crate::work;

/// The size limit of a row; cells after it are empty: each of many columns may show the whole object. The reference has
/// no such limit.
const ROW_BYTES_MAX: usize = 1 << 20;

/// The header of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnDefinition {
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub type_: String,
    pub format: String,
    pub description: String,
    /// Columns with a priority above zero are shown in wide output only.
    pub priority: i32,
}

impl ColumnDefinition {
    fn new(name: &str, type_: &str, description: &str, priority: i32) -> Self {
        ColumnDefinition {
            name: name.to_owned(),
            type_: type_.to_owned(),
            format: String::new(),
            description: description.to_owned(),
            priority,
        }
    }

    fn name_column() -> Self {
        ColumnDefinition { format: "name".to_owned(), ..Self::new("Name", "string", NAME_DESCRIPTION, 0) }
    }

    fn to_value(&self) -> Value {
        object! {
            "name" => self.name.as_str(),
            "type" => self.type_.as_str(),
            "format" => self.format.as_str(),
            "description" => self.description.as_str(),
            "priority" => i64::from(self.priority),
        }
    }
}

/// Makes the cells of one object, one for each column; ages are relative to the given time.
pub type Cells = Box<dyn Fn(&Value, Timestamp) -> Vec<Value> + Send + Sync>;

/// Why an object in a row is completed: a reason and a message.
type CompletionReason = Box<dyn Fn(&Value) -> Option<(&'static str, &'static str)> + Send + Sync>;

/// The columns of a kind, ready to make rows.
pub struct Columns {
    definitions: Vec<ColumnDefinition>,
    cells: Cells,
    completion: CompletionReason,
    /// The order of rows, if it is not that of the list.
    order: Option<fn(&Value, &Value) -> Ordering>,
    /// Whether an empty list has null rows: Go has no printer for the kind, or one that makes no rows for it.
    has_null_rows: bool,
}

impl std::fmt::Debug for Columns {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Columns").field("definitions", &self.definitions).finish_non_exhaustive()
    }
}

impl Columns {
    pub fn new(definitions: Vec<ColumnDefinition>, cells: Cells) -> Self {
        Columns { definitions, cells, completion: Box::new(|_| None), order: None, has_null_rows: false }
    }

    /// The columns of a custom kind: its name, then what its definition says, or its age where that says nothing. The
    /// first column with a malformed path and all after it are left out.
    pub fn custom(columns: &[crd::Column]) -> Self {
        let age = [crd::Column {
            name: "Age".to_owned(),
            type_: "date".to_owned(),
            description: CREATION_DESCRIPTION.to_owned(),
            json_path: ".metadata.creationTimestamp".to_owned(),
            ..crd::Column::default()
        }];
        let columns = if columns.is_empty() { age.as_slice() } else { columns };
        let mut definitions = vec![ColumnDefinition::name_column()];
        let mut paths = Vec::new();
        for column in columns {
            let Ok(path) = JsonPath::parse(&column.json_path) else { break };
            let description = match column.description.as_str() {
                "" => format!("Custom resource definition column (in JSONPath format): {}", column.json_path),
                description => description.to_owned(),
            };
            let definition = ColumnDefinition::new(&column.name, &column.type_, &description, column.priority);
            definitions.push(ColumnDefinition { format: column.format.clone(), ..definition });
            paths.push((path, column.type_.clone()));
        }
        let cells = move |object: &Value, now| {
            let name = Value::from(object.str_at(&["metadata", "name"]));
            let mut bytes = 0;
            let others = paths.iter().map(|(path, type_)| {
                let cell = if bytes < ROW_BYTES_MAX { custom_cell(object, path, type_, now) } else { Value::Null };
                bytes += cell.size_bytes();
                cell
            });
            std::iter::once(name).chain(others).collect()
        };
        Columns::new(definitions, Box::new(cells))
    }

    /// The columns of a built-in kind, with the completion reasons of its rows.
    pub fn built_in(table: Table, strategy: &'static dyn Strategy) -> Self {
        let definitions = table.columns.into_iter().map(|column| {
            let description = match (column.format.as_str(), column.name.as_str()) {
                ("name", _) => NAME_DESCRIPTION,
                (_, "Age" | CREATED_AT) => CREATION_DESCRIPTION,
                _ => &column.description,
            };
            let definition = ColumnDefinition::new(&column.name, &column.type_, description, column.priority);
            ColumnDefinition { format: column.format, ..definition }
        });
        let cells = move |object: &Value, now| {
            let print = |cell| match cell {
                Cell::Value(value) => value,
                Cell::Lasting(seconds) => human_duration(i128::from(seconds) * 1_000_000_000).into(),
                Cell::Since(time) => age(&time, now).unwrap_or_else(|| "<unknown>".to_owned()).into(),
                Cell::Ago { text, since } => match age(&since, now) {
                    Some(age) => format!("{text} ({age} ago)").into(),
                    None => text.into(),
                },
            };
            (table.cells)(object).into_iter().map(print).collect()
        };
        let completion = Box::new(|object: &Value| strategy.completion(object));
        let definitions: Vec<ColumnDefinition> = definitions.collect();
        let has_null_rows = definitions.iter().map(|column| column.name.as_str()).eq(["Name", CREATED_AT]);
        Columns { completion, order: strategy.row_order(), has_null_rows, ..Columns::new(definitions, Box::new(cells)) }
    }

    /// The columns of CustomResourceDefinitions.
    pub fn definition() -> Self {
        let definitions = vec![
            ColumnDefinition::name_column(),
            ColumnDefinition::new("Scope", "string", "Cluster/Namespaced", 0),
            ColumnDefinition::new("Versions", "string", "Served versions", 0),
            ColumnDefinition::new(CREATED_AT, "date", CREATION_DESCRIPTION, 0),
            ColumnDefinition::new("Group", "string", "API group", 1),
            ColumnDefinition::new("Kind", "string", "CustomResource kind", 1),
            ColumnDefinition::new("ShortNames", "string", "Short names", 1),
            ColumnDefinition::new("Established", "boolean", "Established status", 1),
        ];
        let columns = Columns::new(definitions, Box::new(|definition, _| definition_cells(definition)));
        Columns { has_null_rows: true, ..columns }
    }

    /// The columns of a Scale. A built-in kind's Scale has other column types. The wanted number of a custom kind is null
    /// if it is zero, as Go leaves it out.
    pub fn scale(is_built_in: bool) -> Self {
        let (name, age_type) = if is_built_in {
            (ColumnDefinition::new("Name", "string", NAME_DESCRIPTION, 0), "string")
        } else {
            (ColumnDefinition::name_column(), "date")
        };
        let definitions = vec![
            name,
            ColumnDefinition::new("Desired", "integer", "Number of desired replicas", 0),
            ColumnDefinition::new("Available", "integer", "Number of actual replicas", 0),
            ColumnDefinition::new("Age", age_type, CREATION_DESCRIPTION, 0),
        ];
        let cells = move |scale: &Value, now| {
            let replicas = |part| scale.at(&[part, "replicas"]).cloned().unwrap_or(Value::Int(0));
            let wanted = Some(replicas("spec")).filter(|wanted| is_built_in || *wanted != Value::Int(0));
            let age = age(scale.str_at(&["metadata", "creationTimestamp"]), now);
            let name = scale.str_at(&["metadata", "name"]);
            vec![name.into(), wanted.unwrap_or_default(), replicas("status"), age.unwrap_or_default().into()]
        };
        Columns::new(definitions, Box::new(cells))
    }

    pub fn definitions(&self) -> &[ColumnDefinition] {
        &self.definitions
    }

    fn row(&self, object: Value, transform: Transform, include: IncludeObject, now: Timestamp) -> Value {
        work::step();
        let mut row = object! { "cells" => (self.cells)(&object, now) };
        let fields = row.make_object();
        if let Some((reason, message)) = (self.completion)(&object) {
            let condition =
                object! { "type" => "Completed", "status" => "True", "reason" => reason, "message" => message };
            fields.insert("conditions", Value::Array(vec![condition]));
        }
        let shown = match include {
            // A bookmark that marks the end of the initial events must be recognizable.
            IncludeObject::None if !marks_initial_events_end(&object) => Value::Null,
            IncludeObject::None | IncludeObject::Metadata => partial(object, transform),
            IncludeObject::Object => object,
        };
        fields.insert("object", shown);
        row
    }
}

/// A Table.
///
/// `metadata` is that of the list, or of the object if there is but one. In a watch only the first event has column
/// definitions; `with_definitions` says whether this is it.
pub fn table(
    columns: &Columns,
    transform: Transform,
    metadata: &Value,
    objects: impl IntoIterator<Item = Value>,
    include: IncludeObject,
    with_definitions: bool,
    now: Timestamp,
) -> Value {
    let definitions = if with_definitions {
        columns.definitions.iter().map(ColumnDefinition::to_value).collect::<Vec<_>>().into()
    } else {
        Value::Null
    };
    let row = |object| columns.row(object, transform, include, now);
    let rows: Vec<Value> = match columns.order {
        None => objects.into_iter().map(row).collect(),
        Some(order) => {
            let mut objects: Vec<Value> = objects.into_iter().collect();
            objects.sort_by(order);
            objects.into_iter().map(row).collect()
        }
    };
    object! {
        "kind" => "Table",
        "apiVersion" => transform.api_version(),
        "metadata" => list_metadata(metadata),
        "columnDefinitions" => definitions,
        "rows" => if rows.is_empty() && columns.has_null_rows { Value::Null } else { Value::Array(rows) },
    }
}

/// Only the metadata of an object.
pub fn partial(mut object: Value, transform: Transform) -> Value {
    work::step();
    let metadata = object.as_object_mut().and_then(|fields| fields.remove("metadata"));
    let mut metadata = metadata.unwrap_or_else(|| object! {});
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        let hidden = kinds::internal_annotations(object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        hidden.iter().for_each(|name| _ = annotations.remove(name));
        if !hidden.is_empty() && annotations.is_empty() {
            metadata.make_object().remove("annotations");
        }
    }
    object! { "kind" => "PartialObjectMetadata", "apiVersion" => transform.api_version(), "metadata" => metadata }
}

/// Whether [`partial`] shows the metadata of these objects of a kind as they are; false is only a guess.
pub fn shows_all_metadata<'o>(version: &ServedVersion, mut objects: impl Iterator<Item = &'o [u8]>) -> bool {
    let hidden = kinds::internal_annotations(&version.api_version(), &version.names.kind);
    let is_in = |object: &[u8]| {
        work::bytes(object.len());
        hidden.iter().any(|name| memmem::find(object, name.as_bytes()).is_some())
    };
    hidden.is_empty() || !objects.any(is_in)
}

/// The metadata of each object of a list; null for an empty list, as Go encodes a nil slice.
pub fn partial_list(metadata: &Value, objects: impl IntoIterator<Item = Value>, transform: Transform) -> Value {
    let items: Vec<Value> = objects.into_iter().map(|object| partial(object, transform)).collect();
    object! {
        "kind" => "PartialObjectMetadataList",
        "apiVersion" => transform.api_version(),
        "metadata" => list_metadata(metadata),
        "items" => if items.is_empty() { Value::Null } else { Value::Array(items) },
    }
}

/// The metadata of a list, without empty fields.
fn list_metadata(metadata: &Value) -> Value {
    let fields = ["resourceVersion", "continue", "remainingItemCount"].into_iter().filter_map(|name| {
        let value = metadata.get(name).filter(|value| !value.is_null() && value.as_str() != Some(""))?;
        Some((name.to_owned(), value.clone()))
    });
    fields.collect::<Map>().into()
}

fn marks_initial_events_end(object: &Value) -> bool {
    object.str_at(&["metadata", "annotations", "k8s.io/initial-events-end"]) == "true"
}

fn custom_cell(object: &Value, path: &JsonPath, type_: &str, now: Timestamp) -> Value {
    let found = path.find(object).unwrap_or_default();
    let Some(value) = found.first() else { return Value::Null };
    match (type_, value.as_ref()) {
        ("string", value) => json_path::print(value).into(),
        ("integer", Value::Int(number)) => Value::Int(*number),
        // A cast saturates where Go's is undefined.
        ("integer", Value::Float(number)) => Value::Int(*number as i64),
        ("number", Value::Int(number)) => Value::Float(*number as f64),
        ("number", Value::Float(number)) => Value::Float(*number),
        ("boolean", Value::Bool(truth)) => Value::Bool(*truth),
        ("date", Value::String(text)) => age(text, now).unwrap_or_else(|| "<invalid>".to_owned()).into(),
        _ => Value::Null,
    }
}

fn definition_cells(definition: &Value) -> Vec<Value> {
    let items = |path: &[&str]| definition.at(path).and_then(Value::as_array).unwrap_or_default();
    let is = |object: &Value, field: &str| object.get(field).and_then(Value::as_bool).unwrap_or_default();
    let mut versions: Vec<String> = items(&["spec", "versions"])
        .iter()
        .filter(|version| is(version, "served"))
        .map(|version| {
            let suffix = if is(version, "storage") { "(storage)" } else { "" };
            format!("{}{suffix}", version.str_at(&["name"]))
        })
        .collect();
    versions.sort();
    let short_names: Vec<&str> = items(&["spec", "names", "shortNames"]).iter().filter_map(Value::as_str).collect();
    let is_established = items(&["status", "conditions"])
        .iter()
        .any(|condition| condition.str_at(&["type"]) == "Established" && condition.str_at(&["status"]) == "True");
    let text = |path: &[&str]| Value::from(definition.str_at(path));
    vec![
        text(&["metadata", "name"]),
        text(&["spec", "scope"]),
        versions.join(",").into(),
        match definition.str_at(&["metadata", "creationTimestamp"]) {
            // A field that a bookmark lacks prints as Go's zero time.
            "" => "0001-01-01T00:00:00Z".into(),
            created => created.into(),
        },
        text(&["spec", "group"]),
        text(&["spec", "names", "kind"]),
        short_names.join(",").into(),
        is_established.into(),
    ]
}

/// How long ago the RFC 3339 time `text` was, as people read it; `None` if it is not such a time.
fn age(text: &str, now: Timestamp) -> Option<String> {
    if matches!(text, "" | "null") {
        return Some("<unknown>".to_owned());
    }
    let then = parse_time(text)?;
    Some(human_duration(now.as_nanosecond() - then.as_nanosecond()))
}

/// Only the strict form of RFC 3339: upper-case letters, no leap second.
fn parse_time(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let is_strict = bytes.get(10) == Some(&b'T') && bytes.get(17..19) != Some(b"60");
    let zone = text.get(19..)?.trim_start_matches(['.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    let has_zone = zone == "Z" || (zone.len() == 6 && zone.starts_with(['+', '-']) && zone.as_bytes()[3] == b':');
    if !is_strict || !has_zone {
        return None;
    }
    text.parse().ok()
}

/// Two units at most, and the smaller one only if it is significant.
fn human_duration(nanoseconds: i128) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |large: i128, large_unit: &str, small: i128, small_unit: &str| match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    };
    match seconds {
        // Clocks may differ by a second.
        _ if seconds < -1 => "<invalid>".to_owned(),
        _ if seconds < 0 => "0s".to_owned(),
        _ if seconds < 120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => pair(days, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although \
    some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily \
    intended for creation idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// The column next to the name if Go has no printer for a kind.
const CREATED_AT: &str = "Created At";
const CREATION_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
    created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this \
    value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More \
    info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

#[cfg(test)]
mod tests {
    use super::super::negotiate::TransformKind;
    use super::*;

    const V1: Transform = Transform { kind: TransformKind::Table, version: "v1" };

    #[test]
    fn no_objects_of_a_kind_without_a_printer_are_null_rows() {
        let rows = |group: &str, plural: &str| {
            let strategy = crate::kinds::find(group, plural).expect("the kind is there").strategy;
            let columns = Columns::built_in(strategy.table().expect("it has columns"), strategy);
            let none = std::iter::empty();
            let now = Timestamp::UNIX_EPOCH;
            table(&columns, V1, &Value::Null, none, IncludeObject::None, true, now).get("rows").cloned()
        };
        assert_eq!(rows("rbac.authorization.k8s.io", "roles"), Some(Value::Null));
        assert_eq!(rows("", "limitranges"), Some(Value::Null));
        assert_eq!(rows("", "pods"), Some(Value::Array(Vec::new())));
    }

    #[test]
    fn no_definitions_are_null_rows() {
        let none = std::iter::empty();
        let table = table(&Columns::definition(), V1, &Value::Null, none, IncludeObject::None, true, now());
        assert_eq!(table.get("rows"), Some(&Value::Null));
    }

    #[test]
    fn a_custom_scale_without_replicas_wants_none() {
        let wanted = |is_built_in, spec: Value| {
            let scale = object! { "spec" => spec, "status" => object! { "replicas" => Value::Int(0) } };
            let cells = (Columns::scale(is_built_in).cells)(&scale, now());
            (cells[1].clone(), cells[2].clone())
        };
        let replicas = |count| object! { "replicas" => Value::Int(count) };
        assert_eq!(wanted(false, replicas(0)), (Value::Null, Value::Int(0)));
        assert_eq!(wanted(false, object! {}), (Value::Null, Value::Int(0)));
        assert_eq!(wanted(false, replicas(2)), (Value::Int(2), Value::Int(0)));
        assert_eq!(wanted(true, replicas(0)), (Value::Int(0), Value::Int(0)));
    }

    #[test]
    fn flow_schemas_stand_in_the_order_in_which_requests_are_matched() {
        let group = "flowcontrol.apiserver.k8s.io";
        let strategy = crate::kinds::find(group, "flowschemas").expect("the kind is there").strategy;
        let columns = Columns::built_in(strategy.table().expect("it has columns"), strategy);
        let schemas = [("a", 1000), ("b", 1), ("c", 1000), ("d", 500)].map(|(name, precedence)| {
            object! {
                "metadata" => object! { "name" => name },
                "spec" => object! { "matchingPrecedence" => Value::Int(precedence) },
            }
        });
        let now = Timestamp::UNIX_EPOCH;
        let table = table(&columns, V1, &Value::Null, schemas, IncludeObject::None, true, now);
        let names = table.items_at(&["rows"]).iter().map(|row| row.items_at(&["cells"])[0].clone());
        assert_eq!(names.collect::<Vec<_>>(), ["b", "d", "a", "c"].map(Value::from));
    }

    fn column(type_: &str, json_path: &str) -> crd::Column {
        crd::Column { name: "X".into(), type_: type_.into(), json_path: json_path.into(), ..crd::Column::default() }
    }

    fn widget() -> Value {
        object! {
            "metadata" => object! { "name" => "a", "creationTimestamp" => "2026-01-01T00:00:00Z" },
            "spec" => object! {
                "float" => Value::Float(7.9), "null" => Value::Null, "date" => "yesterday",
                "many" => vec![Value::from("x"), Value::from("y")],
            },
        }
    }

    fn now() -> Timestamp {
        "2026-01-01T03:20:00Z".parse().expect("a time")
    }

    #[track_caller]
    fn check(type_: &str, json_path: &str, expected: impl Into<Value>) {
        let columns = Columns::custom(&[column(type_, json_path)]);
        assert_eq!((columns.cells)(&widget(), now()), [Value::from("a"), expected.into()]);
    }

    #[test]
    fn cells_have_the_type_of_their_column() {
        check("integer", ".spec.float", 7_i64);
        check("integer", ".spec.date", Value::Null);
        check("string", ".spec.many[*]", "x");
        check("string", ".spec.null", "<no value>");
        check("string", ".spec.absent", Value::Null);
        check("date", ".spec.date", "<invalid>");
        check("date", ".metadata.creationTimestamp", "3h20m");
    }

    #[test]
    fn without_columns_the_age_shows() {
        let names: Vec<String> = Columns::custom(&[]).definitions().iter().map(|column| column.name.clone()).collect();
        assert_eq!(names, ["Name", "Age"]);
    }

    #[test]
    fn a_malformed_path_ends_the_columns() {
        let columns = Columns::custom(&[column("string", ".l["), column("string", ".spec.date")]);
        assert_eq!((columns.cells)(&widget(), now()), [Value::from("a")]);
    }

    #[test]
    fn durations_show_two_units_at_most() {
        let of = |seconds: i128| human_duration(seconds * 1_000_000_000);
        assert_eq!(
            [of(-5), of(-1), of(119), of(120), of(599), of(3600)].map(|text| text),
            ["<invalid>", "0s", "119s", "2m", "9m59s", "60m"]
        );
        assert_eq!(
            [of(3 * 3600), of(86400 * 3 + 3600), of(86400 * 800), of(86400 * 4000)],
            ["3h", "3d1h", "2y70d", "10y"]
        );
    }

    #[test]
    fn a_row_carries_what_was_asked_for() {
        let columns = Columns::custom(&[]);
        let of = |include, with_definitions| {
            let metadata = object! { "resourceVersion" => "7", "continue" => "" };
            table(&columns, V1, &metadata, [widget()], include, with_definitions, now())
        };
        let object =
            |table: &Value| table.get("rows").and_then(Value::as_array).map(|rows| rows[0].get("object").cloned());
        assert_eq!(object(&of(IncludeObject::None, true)), Some(Some(Value::Null)));
        assert_eq!(object(&of(IncludeObject::Object, true)), Some(Some(widget())));
        let found = of(IncludeObject::Metadata, false);
        assert_eq!(found.get("columnDefinitions"), Some(&Value::Null));
        assert_eq!(found.get("metadata"), Some(&object! { "resourceVersion" => "7" }));
        assert_eq!(object(&found), Some(Some(partial(widget(), V1))));
    }
}
