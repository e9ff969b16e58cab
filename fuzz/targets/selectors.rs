//! Label and field selectors.

use std::collections::{BTreeMap, BTreeSet};

use kubeskiff::meta::selector::{FieldSelector, LabelSelector};

use super::{Linear, Target};

pub const TARGET: Target = Target {
    name: "selectors",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 1 << 20, per_byte: 1_000 },
};

/// An empty selector selects everything, an exact one what it names, and what is required exactly is what matches.
fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(selector) = LabelSelector::parse(&text) {
        let selects =
            [&[][..], &[("a", "1"), ("b", ""), ("c", "a")]].map(|labels: &[(&str, &str)]| selector.matches(labels));
        assert!(!selector.is_empty() || selects == [true, true], "an empty selector selects everything");
        let again = LabelSelector::parse(&format!(" {text} ")).expect("spaces around a selector change nothing");
        assert_eq!(selector, again);
    }
    if let Ok(selector) = FieldSelector::parse(&text) {
        let fields: BTreeSet<&str> = selector.fields().collect();
        assert_eq!(selector.is_empty(), fields.is_empty());
        let required: BTreeMap<_, _> =
            fields.iter().filter_map(|field| Some((*field, selector.requires_exact(field)?))).collect();
        let exact = |field: &str| required.get(field).copied().unwrap_or_default().to_owned();
        if selector.matches(exact) {
            for (field, value) in &required {
                assert!(FieldSelector::exactly(field, value).matches(exact));
                assert!(!selector.matches(|name| if name == *field { format!("{value}!") } else { exact(name) }));
            }
        }
    }
}
