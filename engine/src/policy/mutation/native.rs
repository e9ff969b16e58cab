//! Converts values of expressions as Go converts them to native values.
//!
//! Go does not convert list and map literals within others: they stay values of the evaluator, which an object cannot
//! contain.

use super::go_form::go_form;
use crate::apply::{Foreign, ForeignStep};
use crate::cel::eval::list::List;
use crate::cel::eval::map::Map as CelMap;
use crate::cel::eval::structure::{Struct, not_a_string};
use crate::cel::eval::value::type_name;
use crate::cel::eval::{EvalError, Value as Cel};
use crate::value::{Map, Value, go_quote};
use crate::work;

/// The native form of an object that an expression made.
#[derive(Debug, Default)]
pub struct Native {
    pub object: Value,
    /// The values that are missing in it, because JSON cannot represent them.
    pub foreign: Vec<Foreign>,
    /// Where it has empty lists that the expression made.
    pub empty: Vec<Vec<ForeignStep>>,
}

/// Converts `object` as Go does; `write` may return JSON for values that JSON cannot represent.
///
/// # Errors
/// A map has keys that are not strings.
pub fn of_struct(object: &Struct<'_>, write: fn(&Cel<'_>) -> Option<Value>) -> Result<Native, NativeError> {
    let mut walk = NativeWalk { path: Vec::new(), foreign: Vec::new(), empty: Vec::new(), write };
    let fields = walk.fields(object)?;
    Ok(Native { object: Value::Object(fields), foreign: walk.foreign, empty: walk.empty })
}

/// Why Go cannot convert a value.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    #[error("fail to convert field {name}: {source}", name = go_quote(name))]
    Field { name: String, source: Box<NativeError> },
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// A key that is not a string, with cel-go's message.
    #[error("{0}")]
    Key(String),
}

struct NativeWalk {
    path: Vec<ForeignStep>,
    foreign: Vec<Foreign>,
    empty: Vec<Vec<ForeignStep>>,
    write: fn(&Cel<'_>) -> Option<Value>,
}

/// Every double below this one is in the range of integers.
const LARGEST_INTEGER: f64 = 9e18;

/// The placeholder in a list for a value that JSON cannot represent.
const FOREIGN_ITEM: Value = Value::Bool(false);

impl NativeWalk {
    fn fields(&mut self, object: &Struct<'_>) -> Result<Map, NativeError> {
        let mut fields = Map::new();
        for (name, value) in object.fields() {
            let value = self.within(ForeignStep::Field(name.to_owned()), |walk| walk.field(value));
            let value =
                value.map_err(|source| NativeError::Field { name: name.to_owned(), source: Box::new(source) })?;
            value.into_iter().for_each(|value| _ = fields.insert(name.to_owned(), value));
        }
        Ok(fields)
    }

    fn within<T>(&mut self, step: ForeignStep, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = walk(self);
        self.path.pop();
        result
    }

    /// Converts a value in the field of an object. Lists and maps of the object are native already. The elements of list and
    /// map literals are converted as they are; other lists and maps are converted recursively.
    fn field(&mut self, value: &Cel<'_>) -> Result<Option<Value>, NativeError> {
        work::step();
        match value {
            Cel::List(List::Json(_)) | Cel::Map(CelMap::Json(_)) => self.raw(value),
            Cel::List(list) if list.is_texts() => self.raw(value),
            Cel::List(list) if is_literal(list) => {
                if list.is_empty() {
                    self.empty.push(self.path.clone());
                }
                self.items(list, Self::raw).map(Some)
            }
            Cel::List(list) => self.items(list, Self::field).map(Some),
            Cel::Map(map) if is_literal_map(map) => self.entries(map, Self::raw).map(Some),
            Cel::Map(map) => self.entries(map, Self::field).map(Some),
            other => self.raw(other),
        }
    }

    fn items(
        &mut self,
        list: &List<'_>,
        convert: fn(&mut Self, &Cel<'_>) -> Result<Option<Value>, NativeError>,
    ) -> Result<Value, NativeError> {
        let mut items = Vec::with_capacity(list.len());
        for (index, item) in list.iter().enumerate() {
            let item = item?;
            let item = self.within(ForeignStep::Item(index), |walk| convert(walk, &item))?;
            items.push(item.unwrap_or(FOREIGN_ITEM));
        }
        Ok(Value::Array(items))
    }

    fn entries(
        &mut self,
        map: &CelMap<'_>,
        convert: fn(&mut Self, &Cel<'_>) -> Result<Option<Value>, NativeError>,
    ) -> Result<Value, NativeError> {
        let mut fields = Map::new();
        for (key, value) in map.entries() {
            let Some(name) = key.as_str() else { return Err(NativeError::Key(not_a_string(&key))) };
            let value = value?;
            let value = self.within(ForeignStep::Field(name.to_owned()), |walk| convert(walk, &value))?;
            value.into_iter().for_each(|value| _ = fields.insert(name.to_owned(), value));
        }
        Ok(Value::Object(fields))
    }

    /// Converts a value as Go does; `None` if JSON cannot represent it.
    fn raw(&mut self, value: &Cel<'_>) -> Result<Option<Value>, NativeError> {
        work::step();
        Ok(Some(match value {
            Cel::Bool(truth) => Value::Bool(*truth),
            Cel::Int(number) => Value::Int(*number),
            // Go prints it without a fraction, and so treats it as an integer.
            Cel::Double(number) if number.fract() == 0.0 && number.abs() < LARGEST_INTEGER => {
                Value::Int(*number as i64)
            }
            Cel::Double(number) => Value::Float(*number),
            Cel::String(text) => Value::String(text.as_str().to_owned()),
            Cel::Type(ty) => Value::String(type_name(ty)),
            Cel::Optional(Some(content)) => return self.raw(content),
            Cel::Optional(None) => Value::Null,
            Cel::List(List::Json(items)) => {
                work::steps(items.len());
                Value::Array(items.to_vec())
            }
            Cel::Map(CelMap::Json(fields)) => {
                work::steps(fields.len());
                Value::Object((*fields).clone())
            }
            Cel::List(list) if !is_literal(list) => self.items(list, Self::raw)?,
            Cel::Map(map) if !is_literal_map(map) => self.entries(map, Self::field)?,
            Cel::Struct(object) if !object.is_json_patch() => match self.fields(object) {
                Ok(fields) => Value::Object(fields),
                Err(error) => {
                    let why = error.to_string();
                    return Ok(self.is_foreign("*types.Err", why.clone(), why));
                }
            },
            foreign => match (self.write)(foreign) {
                Some(json) => json,
                None => {
                    let (go_type, printed, syntax) = go_form(foreign);
                    return Ok(self.is_foreign(go_type, printed, syntax));
                }
            },
        }))
    }

    fn is_foreign(&mut self, go_type: &str, printed: String, syntax: String) -> Option<Value> {
        let foreign = Foreign { path: self.path.clone(), go_type: go_type.to_owned(), printed, syntax };
        self.foreign.push(foreign);
        None
    }
}

/// Whether the list is a literal.
fn is_literal(list: &List<'_>) -> bool {
    matches!(list, List::Owned(_) | List::Lent(_)) && !list.is_sum()
}

fn is_literal_map(map: &CelMap<'_>) -> bool {
    matches!(map, CelMap::Owned(_) | CelMap::Lent(_))
}
