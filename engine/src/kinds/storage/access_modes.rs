//! How a volume may be mounted by several nodes or pods.

use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

pub const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// The mode that suffers no other beside it.
const EXCLUSIVE: &str = "ReadWriteOncePod";

/// The errors of a list of modes. Errors name the list, and not the item.
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

/// The modes as tables show them: `RWO,ROX,RWX,RWOP`, each once.
pub fn abbreviate(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let known = SHORT.iter().filter(|(mode, _)| modes.iter().any(|known| known.as_str() == Some(*mode)));
    known.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}
