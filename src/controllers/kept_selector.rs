//! What an object selects by labels, as controllers keep it to find out which objects a change of another one concerns.
//!
//! A selector takes several times its text once it is read. A long one is not kept: a change of whatever it might select
//! concerns its object, which is then read anew.

use super::decoded;
use crate::meta::selector::{LabelSelector, Labels};
use crate::value::Value;

/// How many bytes a selector that is kept may take as a value, as it was sent.
const KEPT_BYTES_MAX: usize = 16 << 10;

/// A selector, if it is kept.
pub(super) enum KeptSelector {
    Nothing,
    Kept(LabelSelector),
    Long,
}

impl KeptSelector {
    /// Keeps what `decode` makes of a selector; `None` if it selects nothing.
    pub fn of(selector: Option<&Value>, decode: impl FnOnce() -> Option<LabelSelector>) -> Self {
        if selector.is_some_and(|selector| decoded::bytes_of(selector) > KEPT_BYTES_MAX) {
            return KeptSelector::Long;
        }
        decode().map_or(KeptSelector::Nothing, KeptSelector::Kept)
    }

    /// The selector, if it is kept and selects something.
    pub fn kept(&self) -> Option<&LabelSelector> {
        match self {
            KeptSelector::Kept(selector) => Some(selector),
            KeptSelector::Nothing | KeptSelector::Long => None,
        }
    }

    /// Whether an object with these labels may be selected.
    pub fn may_select(&self, labels: &impl Labels) -> bool {
        matches!(self, KeptSelector::Long) || self.kept().is_some_and(|selector| selector.matches(labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::selector::PackedLabels;
    use crate::value::yaml;

    #[test]
    fn a_long_selector_may_select_anything() {
        let labels = yaml::decode(b"{a: b}").expect("YAML");
        let labels = PackedLabels::from(&Some(&labels));
        let may_select = |text: &str| {
            let selector = yaml::decode(text.as_bytes()).expect("YAML");
            let kept = KeptSelector::of(Some(&selector), || LabelSelector::decode(&selector).ok());
            (kept.may_select(&labels), kept.kept().is_some())
        };
        assert_eq!(may_select("matchLabels: {a: b}"), (true, true));
        assert_eq!(may_select("matchLabels: {a: c}"), (false, true));
        assert_eq!(may_select("matchExpressions: [{key: a, operator: Odd}]"), (false, false));
        let many: Vec<_> = (0..1_000).map(|at| format!("v{at}")).collect();
        let long = format!("matchExpressions: [{{key: a, operator: In, values: [{}]}}]", many.join(", "));
        assert_eq!(may_select(&long), (true, false));
    }
}
