//! Rules for tests.

use super::rule::PolicyRule;

fn texts(texts: &str) -> Vec<String> {
    texts.split(' ').filter(|text| !text.is_empty()).map(|text| text.trim_matches('\'').to_owned()).collect()
}

/// A rule from words that are separated by blanks; `''` is the core group.
pub fn rule(verbs: &str, groups: &str, resources: &str, names: &str) -> PolicyRule {
    PolicyRule {
        verbs: texts(verbs),
        api_groups: texts(groups),
        resources: texts(resources),
        resource_names: texts(names),
        non_resource_urls: Vec::new(),
    }
}

pub fn urls(verbs: &str, urls: &str) -> PolicyRule {
    PolicyRule { verbs: texts(verbs), non_resource_urls: texts(urls), ..PolicyRule::default() }
}
