//! `/skiff/v1/clock`: the clock of this control plane.

use jiff::SignedDuration;

use super::super::app::App;
use super::{SkiffAnswer, text};
use crate::clock::{ClockStep, OutOfRange};
use crate::meta::{Status, duration};
use crate::object;
use crate::value::{Map, Value};

/// The fields of a change.
pub(super) const FIELDS: [&str; 4] = ["time", "advance", "offset", "frozen"];

/// The time, its offset from the machine's clock, and whether it stands still.
pub(super) fn show(app: &App) -> (u16, Value) {
    let clock = &app.registry.clock;
    let (setting, now) = (clock.setting(), clock.now());
    let offset = if setting.frozen.is_some() { now.duration_since(jiff::Timestamp::now()) } else { setting.offset };
    let nanos = i64::try_from(offset.as_nanos()).unwrap_or(if offset.is_negative() { i64::MIN } else { i64::MAX });
    let shown = object! {
        "time" => now.to_string(),
        "offset" => duration::print_go(nanos),
        "frozen" => setting.frozen.is_some(),
    };
    (200, shown)
}

/// Sets the clock as the fields say; without any, it follows the machine's clock again.
pub(super) fn set(app: &App, fields: &Map) -> SkiffAnswer {
    let steps = steps(fields)?;
    let moved = app.registry.clock.step(&steps);
    moved.map_err(|OutOfRange| Status::bad_request("the clock can show times from 1970 to 9998"))?;
    Ok(show(app))
}

/// First where the clock is set to, then how far it is moved, then whether it stands still.
fn steps(fields: &Map) -> Result<Vec<ClockStep>, Status> {
    let mut steps = Vec::new();
    if let Some(time) = text(fields, "time")? {
        let parsed = time.parse().map_err(|_| {
            Status::bad_request(&format!("the field `time` is not a time as in 2030-01-01T00:00:00Z: {time}"))
        })?;
        steps.push(ClockStep::Set(parsed));
    }
    if let Some(offset) = length(fields, "offset")? {
        if !steps.is_empty() {
            return Err(Status::bad_request("`time` and `offset` both say what the clock is to show"));
        }
        steps.push(ClockStep::Offset(offset));
    }
    steps.extend(length(fields, "advance")?.map(ClockStep::Advance));
    match fields.get("frozen") {
        None | Some(Value::Null) => {}
        Some(Value::Bool(frozen)) => steps.push(ClockStep::Freeze(*frozen)),
        Some(_) => return Err(Status::bad_request("the field `frozen` is neither true nor false")),
    }
    if steps.is_empty() {
        steps.push(ClockStep::Reset);
    }
    Ok(steps)
}

/// A field with a duration in Go's notation.
fn length(fields: &Map, name: &str) -> Result<Option<SignedDuration>, Status> {
    let Some(text) = text(fields, name)? else { return Ok(None) };
    let parsed = duration::parse_go(text);
    let nanos = parsed.map_err(|why| Status::bad_request(&format!("the field `{name}`: {why}")))?;
    Ok(Some(SignedDuration::from_nanos(nanos)))
}
