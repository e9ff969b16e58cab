//! The size of the object that results from a mutation.
//!
//! Values share their parts: forty variables that each contain the one before twice are a value of a trillion items,
//! which takes no memory until it is written into an object.

use crate::cel::eval::Value as Cel;
use crate::work;

/// The minimum size of an item of a list or a field as JSON, in bytes.
const ITEM_BYTES: usize = 2;

/// Whether `value` may fit in `bytes_max` bytes as JSON. Reads no more of it than would fit.
pub fn fits(value: &Cel<'_>, bytes_max: usize) -> bool {
    let mut room = bytes_max;
    take(value, &mut room).is_some()
}

/// Subtracts the minimum size of `value` as JSON from `room`; `None` if that is too small.
fn take(value: &Cel<'_>, room: &mut usize) -> Option<()> {
    work::step();
    *room = room.checked_sub(ITEM_BYTES)?;
    match value {
        Cel::String(text) => *room = room.checked_sub(text.len())?,
        Cel::Bytes(bytes) => *room = room.checked_sub(bytes.len())?,
        Cel::Optional(Some(content)) => take(content, room)?,
        // An item that does not fit its schema is reported when it is written.
        Cel::List(list) => list.iter().try_for_each(|item| take(&item.unwrap_or_default(), room))?,
        Cel::Map(map) => {
            for (key, field) in map.entries() {
                take(&key, room)?;
                take(&field.unwrap_or_default(), room)?;
            }
        }
        Cel::Struct(part) => part.fields().try_for_each(|(_, field)| take(field, room))?,
        _ => {}
    }
    Some(())
}
