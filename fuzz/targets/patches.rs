//! JSON patches, merge patches and strategic merge patches.

use kubeskiff::kinds;
use kubeskiff::patch::{json_patch, merge_patch, strategic_merge};
use kubeskiff::types::Message;
use kubeskiff::value::Value;
use kubeskiff::value::json::{self, Layout};

use super::{Linear, Target};

fn service_account() -> &'static Message {
    kinds::type_of("v1", "ServiceAccount").expect("the kind is built in")
}

/// Copies make up to 3 MiB of text, on which the other operations work.
pub const TARGET: Target = Target {
    name: "patches",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 256 << 20, per_byte: 10_000 },
};

/// The input is a patch, a line `---`, and an object. What a patch makes of the object is JSON; a merge patch that is
/// applied twice changes nothing more.
fn run(data: &[u8]) {
    let (patch, object) = super::parts(data);
    let object = json::decode(object).ok().filter(|object| matches!(object, Value::Object(_))).unwrap_or_default();
    for strict in [false, true] {
        if let Ok((patch, _)) = json_patch::Patch::decode(patch, strict)
            && let Ok(text) = patch.apply(&object, Layout::Sorted)
        {
            read(&text);
        }
        if let Ok((patch, _)) = merge_patch::MergePatch::decode(patch, strict) {
            let Some(merged) = read(&patch.apply(&object, Layout::Sorted)) else { continue };
            let again = read(&patch.apply(&merged, Layout::Sorted)).expect("the first one was in range, too");
            assert_eq!(merged, again, "a merge patch is idempotent");
        }
        if let Ok((patch, _)) = strategic_merge::StrategicMergePatch::decode(patch, strict)
            && let Ok(merged) = patch.apply(&object, service_account())
            && let Ok((decoded, _)) = service_account().decode(&merged)
        {
            let again = service_account().decode(&decoded).map(|(again, _)| again);
            assert_eq!(Ok(decoded), again, "what was decoded decodes to itself");
        }
    }
}

/// The value that a patch made, unless it has a number that no double holds.
fn read(text: &str) -> Option<Value> {
    match json::decode(text.as_bytes()) {
        Ok(value) => Some(value),
        Err(json::JsonError::Range(_)) => None,
        Err(error) => unreachable!("what a patch makes is JSON: {error}: {text}"),
    }
}
