//! Columns and cells of kinds with a pod template.

use crate::crd::Column;
use crate::kinds::strategy::Cell;
use crate::value::Value;
use crate::work;

pub fn name() -> Column {
    Column { format: "name".to_owned(), ..Column::string("Name", "") }
}

pub fn age() -> Column {
    Column::string("Age", "")
}

pub fn integer(name: &str, description: &str) -> Column {
    Column { type_: "integer".to_owned(), ..Column::string(name, description) }
}

/// A column that only wide tables show.
pub fn wide(name: &str, description: &str) -> Column {
    Column { priority: 1, ..Column::string(name, description) }
}

/// The columns for the containers in a template.
pub fn containers() -> Vec<Column> {
    vec![
        wide("Containers", "Names of each container in the template."),
        wide("Images", "Images referenced by each container in the template."),
    ]
}

/// The cells for [`containers`]; `spec` is the spec of a pod.
pub fn of_containers(spec: Option<&Value>) -> Vec<Cell> {
    let containers = spec.map(|spec| spec.items_at(&["containers"])).unwrap_or_default();
    work::steps(containers.len());
    let joined = |name: &str| {
        let texts: Vec<&str> = containers.iter().map(|container| container.str_at(&[name])).collect();
        Cell::text(&texts.join(","))
    };
    vec![joined("name"), joined("image")]
}

/// The integer at a path; 0 if there is none.
pub fn int(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_i64).unwrap_or_default()
}

/// A cell with the integer at a path.
pub fn of_int(object: &Value, path: &[&str]) -> Cell {
    Cell::Value(Value::Int(int(object, path)))
}

/// A cell with the object's age.
pub fn of_age(object: &Value) -> Cell {
    Cell::Since(object.str_at(&["metadata", "creationTimestamp"]).to_owned())
}

/// A cell with the object's name.
pub fn of_name(object: &Value) -> Cell {
    Cell::text(object.str_at(&["metadata", "name"]))
}

/// The columns of kinds that maintain a number of pods.
pub fn of_replicas() -> Vec<Column> {
    let mut columns = vec![
        name(),
        integer("Desired", "How many pods there should be."),
        integer("Current", "How many pods there are."),
        integer("Ready", "How many pods are ready."),
        age(),
    ];
    columns.extend(containers());
    columns.push(wide("Selector", "Which pods are counted."));
    columns
}

/// The cells for [`of_replicas`].
pub fn replicas_row(object: &Value, selector: &str) -> Vec<Cell> {
    let mut row = vec![
        of_name(object),
        of_int(object, &["spec", "replicas"]),
        of_int(object, &["status", "replicas"]),
        of_int(object, &["status", "readyReplicas"]),
        of_age(object),
    ];
    row.extend(of_containers(object.at(&["spec", "template", "spec"])));
    row.push(Cell::text(selector));
    row
}
