//! Access modes: how several nodes or pods may mount a volume.

use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

pub const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// The mode that excludes all others.
const EXCLUSIVE: &str = "ReadWriteOncePod";

/// Validates a list of access modes. Errors are reported at the list, not at the item.
pub fn validate(modes: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for mode in modes.items().filter(|mode| !ACCESS_MODES.contains(&mode.text())) {
        errors.push(FieldRef::new(mode.value(), *modes.path()).not_supported(&ACCESS_MODES));
    }
    let has_exclusive = modes.texts().any(|mode| mode == EXCLUSIVE);
    let has_other = modes.texts().any(|mode| mode != EXCLUSIVE && ACCESS_MODES.contains(&mode));
    if has_exclusive && has_other {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
    errors
}

/// Abbreviates the modes as tables show them: `RWO,ROX,RWX,RWOP`, each at most once.
pub fn abbreviate(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let known = SHORT.iter().filter(|(mode, _)| modes.iter().any(|known| known.as_str() == Some(*mode)));
    known.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}
