//! Rules for tests.

use super::rule::{PolicyRule, RuleParts};

fn texts(texts: &str) -> Vec<&str> {
    texts.split(' ').filter(|text| !text.is_empty()).map(|text| text.trim_matches('\'')).collect()
}

/// A rule from words that are separated by blanks; `''` is the core group.
pub fn rule(verbs: &str, groups: &str, resources: &str, names: &str) -> PolicyRule {
    let [verbs, groups, resources, names] = [verbs, groups, resources, names].map(texts);
    PolicyRule::new(&RuleParts {
        verbs: &verbs,
        api_groups: &groups,
        resources: &resources,
        resource_names: &names,
        non_resource_urls: &[],
    })
}

pub fn urls(verbs: &str, urls: &str) -> PolicyRule {
    let [verbs, urls] = [verbs, urls].map(texts);
    PolicyRule::new(&RuleParts { verbs: &verbs, non_resource_urls: &urls, ..RuleParts::default() })
}
