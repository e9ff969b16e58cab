//! Label and field selectors.

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
        let fields: Vec<String> = selector.fields().map(str::to_owned).collect();
        assert_eq!(selector.is_empty(), fields.is_empty());
        let exact = |field: &str| selector.requires_exact(field).unwrap_or_default().to_owned();
        if selector.matches(exact) {
            for field in &fields {
                let Some(value) = selector.requires_exact(field) else { continue };
                assert!(FieldSelector::exactly(field, value).matches(exact));
                assert!(!selector.matches(|name| if name == field { format!("{value}!") } else { exact(name) }));
            }
        }
    }
}
