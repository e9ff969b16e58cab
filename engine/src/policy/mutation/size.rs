//! How much of an object the value of a mutation's expression makes.
//!
//! Expressions share what they hold: forty variables that each hold the one before twice are a value of a trillion items that
//! takes no memory, until it is written into an object.

use crate::cel::eval::Value as Cel;
use crate::work;

/// What an item of a list or a field takes at least as JSON.
const ITEM_BYTES: usize = 2;

/// Whether `value` can be as JSON in `bytes_max` bytes. This looks at no more of it than would fit.
pub fn fits(value: &Cel<'_>, bytes_max: usize) -> bool {
    let mut room = bytes_max;
    take(value, &mut room).is_some()
}

/// Takes from `room` what `value` has at least as JSON; `None` where that is more than there is.
fn take(value: &Cel<'_>, room: &mut usize) -> Option<()> {
    work::step();
    *room = room.checked_sub(ITEM_BYTES)?;
    match value {
        Cel::String(text) => *room = room.checked_sub(text.len())?,
        Cel::Bytes(bytes) => *room = room.checked_sub(bytes.len())?,
        Cel::Optional(Some(content)) => take(content, room)?,
        // What does not fit its schema is told where it is written.
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
