//! Columns and cells that the tables of storage kinds have in common.

use crate::crd::Column;
use crate::kinds::strategy::{Cell, Table};
use crate::value::Value;

/// A column with a type other than `string`.
pub fn typed(name: &str, type_: &str, description: &str) -> Column {
    Column { type_: type_.to_owned(), ..Column::string(name, description) }
}

/// A column that only wide tables show.
pub fn wide(name: &str, description: &str) -> Column {
    Column { priority: 1, ..Column::string(name, description) }
}

/// The table of kinds that have none of their own: names and creation times.
pub fn plain_table() -> Table {
    let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
    Table {
        columns: vec![name, typed("Created At", "date", "")],
        cells: |object| {
            let text = |name: &str| Cell::text(object.str_at(&["metadata", name]));
            vec![text("name"), text("creationTimestamp")]
        },
    }
}

/// A cell with a text, or `otherwise` if there is none.
pub fn text_or(value: Option<&Value>, otherwise: &str) -> Cell {
    Cell::text(value.and_then(Value::as_str).unwrap_or(otherwise))
}

/// A cell with the boolean at a path; false if there is none.
pub fn truth(object: &Value, path: &[&str]) -> Cell {
    Cell::Value(Value::Bool(object.at(path).and_then(Value::as_bool).unwrap_or_default()))
}

/// A cell with the phase of an object, or `Terminating` if it is being deleted.
pub fn phase(object: &Value) -> Cell {
    if object.at(&["metadata", "deletionTimestamp"]).is_some() {
        return Cell::text("Terminating");
    }
    Cell::text(object.str_at(&["status", "phase"]))
}

/// A cell with the class of a volume or a claim; the annotation wins over the field.
pub fn class(object: &Value) -> Cell {
    let annotation = object.at(&["metadata", "annotations", super::claim::CLASS_ANNOTATION]);
    text_or(annotation.or_else(|| object.at(&["spec", "storageClassName"])), "")
}
