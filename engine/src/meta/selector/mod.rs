//! Label and field selectors.
//!
//! Source: `k8s.io/apimachinery/pkg/labels` and `pkg/fields`, release 1.37, whose errors clients see.

mod error;
mod fields;
mod labels;
mod packed;

pub use error::SelectorError;
pub use fields::FieldSelector;
pub use labels::{LabelSelector, Labels};
pub use packed::PackedLabels;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work;

    #[test]
    fn ten_times_the_selector_takes_ten_times_the_steps() {
        let steps = |count: usize| {
            let values = vec!["v"; count].join(",");
            let requirements: String = (0..count).map(|at| format!(",k{at}!=v")).collect();
            let text = format!("a in ({values}){requirements},b notin ({values})");
            let fields: String = (0..count).map(|at| format!("metadata.name!=a{at},")).collect();
            let select = || {
                let labels = LabelSelector::parse(&text).expect("the test is a selector");
                let fields = FieldSelector::parse(&fields).expect("the test is a selector");
                assert!(labels.matches(&[("a", "v")][..]) && fields.matches(|_| "b".to_owned()));
            };
            work::counted(select).1
        };
        let (few, many) = (steps(1000), steps(10_000));
        assert!(many < 13 * few, "{few} steps, then {many}");
    }

    #[test]
    fn every_term_and_value_counts_for_what_a_selector_holds() {
        const COUNT: usize = 1000;
        const TERM_BYTES: usize = 40;
        let labels = |text: String| LabelSelector::parse(&text).expect("the test is a selector").size_bytes();
        let list = |term: &dyn Fn(usize) -> String| (0..COUNT).map(term).collect::<Vec<_>>().join(",");
        let absent = labels(list(&|at| format!("!k{at}")));
        assert!((COUNT * TERM_BYTES..2 * COUNT * TERM_BYTES).contains(&absent), "{absent}");
        let values = labels(format!("a in ({})", list(&|at| format!("v{at}"))));
        assert!((COUNT * TERM_BYTES / 2..COUNT * TERM_BYTES).contains(&values), "{values}");
        let long = labels(format!("a in ({})", list(&|at| format!("{at:063}"))));
        assert!(long >= values + COUNT * 63, "{long}");
        let fields = FieldSelector::parse(&list(&|at| format!("metadata.name!=a{at}"))).expect("it is a selector");
        assert!(fields.size_bytes() >= COUNT * TERM_BYTES, "{}", fields.size_bytes());
        assert_eq!((labels(String::new()), FieldSelector::default().size_bytes()), (0, 0));
    }

    #[track_caller]
    fn check(selector: &str, labels: &[(&str, &str)], expect: bool) {
        let selector = LabelSelector::parse(selector).expect("the selector is well formed");
        assert_eq!(selector.matches(labels), expect);
        // More labels than requirements are looked at in another way.
        let others = (0..9).map(|at| (format!("x{at}"), String::new()));
        let mut labels: Vec<_> = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        labels.extend(others);
        assert_eq!(selector.matches(&*labels), expect);
    }

    #[test]
    fn every_operator_selects() {
        check("a=1", &[("a", "1")], true);
        check("a!=1", &[], true);
        check("a in (1,2), b notin (3)", &[("a", "2")], true);
        check("a,!b", &[("a", "")], true);
        check("a>5,a<7", &[("a", "6")], true);
        check("a in ()", &[("a", "")], true);
        check("a,b,c", &[("a", ""), ("c", "")], false);
        check("b,a!=1,a,!c", &[("a", "2"), ("b", "")], true);
        check("b,a!=1,a,!c", &[("a", "1"), ("b", "")], false);
        check("b,a!=1,a,!c", &[("a", "2"), ("b", ""), ("c", "")], false);
        check("a!=1,a!=2,a=3", &[("a", "3")], true);
        check("a<7,a<6", &[("a", "6")], false);
    }

    #[test]
    fn few_labels_take_few_steps_of_any_selector() {
        let text = |term: &dyn Fn(usize) -> String| (0..10_000).map(term).collect::<Vec<_>>().join(",");
        let selector = LabelSelector::parse(&text(&|at| format!("!k{at}"))).expect("the test is a selector");
        let labels: Vec<_> = (0..10_000).map(|at| (format!("l{at:05}"), "v")).collect();
        let few = |labels: &[(String, &str)], selector: &LabelSelector| {
            let (selects, steps) = work::counted(|| selector.matches(labels));
            assert!(selects && steps < 10, "{selects} after {steps}");
        };
        few(&labels[..3], &selector);
        few(&labels, &LabelSelector::parse("l00007,!k,l09999!=x").expect("the test is a selector"));
    }

    #[test]
    fn errors_say_what_was_found_and_expected() {
        for (selector, error) in [
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ] {
            assert_eq!(LabelSelector::parse(selector).expect_err("malformed").to_string(), error);
        }
    }

    #[test]
    fn field_selectors_unescape_values() {
        let selector = FieldSelector::parse(r"metadata.name=a\,b,x!=y").expect("well formed");
        assert_eq!(selector.requires_exact("metadata.name"), Some("a,b"));
        let error = FieldSelector::parse("a").expect_err("it has no operator");
        assert_eq!(error.to_string(), "invalid selector: 'a'; can't understand 'a'");
    }
}
