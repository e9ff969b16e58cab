//! The parts of some rules that other rules do not cover.
//!
//! Input: the rules that a user holds, and those that are wanted. Output: the missing parts, each with
//! one verb, one resource or path, and at most one name, and no more of them than a message may
//! contain.
//!
//! Kubernetes splits the wanted rules into all their combinations, and a rule of 1.6 KB has 16
//! million of them. Here, values that are held by the same rules are processed together, and only
//! the missing combinations are built.
//!
//! Source: `validation.Covers` of Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::rule::{ALL, PolicyRule, RuleParts};
use super::rule_texts::PackedTexts;
use crate::work;

/// How often a value may be looked up in a rule: some 0.2 s and 30 MB. Only hundreds of overlapping
/// rules need as many.
const LOOKS_MAX: usize = 4_000_000;
/// How many bytes of missing parts a message contains.
pub(super) const MISSING_BYTES_MAX: usize = 64 << 10;
/// The bytes of a part in messages beside its own values.
const PART_BYTES: usize = 40;

/// The parts that are not covered.
#[derive(Debug, Default)]
pub struct Missing {
    /// Sorted by rule, group, resource, verb and name; paths by path and verb.
    pub parts: Vec<PolicyRule>,
    /// Whether there are, or may be, more of them.
    pub is_cut: bool,
}

impl Missing {
    pub fn is_nothing(&self) -> bool {
        self.parts.is_empty() && !self.is_cut
    }

    /// Formats the parts as lines; those that differ only in their verb share a line.
    pub(super) fn describe(&self) -> String {
        let mut by_resource: BTreeMap<[PackedTexts<'_>; 3], (&PolicyRule, Vec<&str>)> = BTreeMap::new();
        let mut lines = BTreeSet::new();
        for part in &self.parts {
            let verbs = part.verbs();
            if part.non_resource_urls().is_empty() {
                let of = [part.api_groups(), part.resources(), part.resource_names()];
                by_resource.entry(of).or_insert((part, Vec::new())).1.extend(verbs.iter());
            } else {
                lines.insert(part.describe(&verbs.iter().collect::<Vec<_>>()));
            }
        }
        lines.extend(by_resource.into_values().map(|(part, verbs)| part.describe(&verbs)));
        let mut lines: Vec<_> = lines.into_iter().collect();
        if self.is_cut {
            lines.push("and more".to_owned());
        }
        lines.join("\n")
    }
}

/// The parts of `wanted` that `own` does not cover, up to about `bytes_max` bytes.
pub fn uncovered<'r>(
    own: &[&'r PolicyRule],
    wanted: impl IntoIterator<Item = &'r PolicyRule>,
    bytes_max: usize,
) -> Missing {
    let held: Vec<_> = own.iter().map(|rule| Held::new(rule)).collect();
    let mut search = Search { looks: LOOKS_MAX, bytes: bytes_max, found: Vec::new() };
    let mut missing = Missing::default();
    for rule in wanted {
        let all: Vec<_> = held.iter().collect();
        missing.is_cut = search.resources(rule, &all).and_then(|()| search.urls(rule, &all)).is_err();
        search.found.sort();
        missing.parts.extend(search.found.drain(..).map(|found| found.part(rule)));
        if missing.is_cut {
            break;
        }
    }
    missing
}

/// A rule that the user holds, indexed by value.
struct Held<'r> {
    verbs: HashSet<&'r str>,
    groups: HashSet<&'r str>,
    resources: HashSet<&'r str>,
    names: HashSet<&'r str>,
    urls: HashSet<&'r str>,
    /// Paths that end in stars, without the stars.
    url_prefixes: Vec<&'r str>,
}

impl<'r> Held<'r> {
    fn new(rule: &'r PolicyRule) -> Self {
        let urls = rule.non_resource_urls();
        Held {
            verbs: set(&rule.verbs()),
            groups: set(&rule.api_groups()),
            resources: set(&rule.resources()),
            names: set(&rule.resource_names()),
            urls: set(&urls),
            url_prefixes: urls.iter().filter(|url| url.ends_with('*')).map(|url| url.trim_end_matches('*')).collect(),
        }
    }

    fn has_resource(&self, resource: &str) -> bool {
        let of_any = |(_, subresource)| self.resources.contains(format!("*/{subresource}").as_str());
        has(&self.resources, resource) || resource.split_once('/').is_some_and(of_any)
    }

    /// Whether the rule covers a name; `None` stands for any name.
    fn has_name(&self, name: Option<&str>) -> bool {
        self.names.is_empty() || name.is_some_and(|name| self.names.contains(name))
    }

    fn has_url(&self, url: &str) -> bool {
        work::steps(self.url_prefixes.len());
        self.urls.contains(url) || self.url_prefixes.iter().any(|prefix| url.starts_with(prefix))
    }
}

fn set<'t>(texts: &PackedTexts<'t>) -> HashSet<&'t str> {
    work::steps(texts.len());
    texts.iter().collect()
}

fn has(set: &HashSet<&str>, wanted: &str) -> bool {
    set.contains(ALL) || set.contains(wanted)
}

/// A missing combination, by the indexes of its values in the wanted rule.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum MissingRule {
    Resource { group: usize, resource: usize, verb: usize, name: Option<usize> },
    Url { url: usize, verb: usize },
}

impl MissingRule {
    fn part(&self, rule: &PolicyRule) -> PolicyRule {
        let [groups, resources, verbs] = [rule.api_groups(), rule.resources(), rule.verbs()];
        let (names, urls) = (rule.resource_names(), rule.non_resource_urls());
        let name = |name: usize| &names[name];
        match *self {
            MissingRule::Resource { group, resource, verb, name: named } => PolicyRule::new(&RuleParts {
                verbs: &[&verbs[verb]],
                api_groups: &[&groups[group]],
                resources: &[&resources[resource]],
                resource_names: named.map(name).as_slice(),
                non_resource_urls: &[],
            }),
            MissingRule::Url { url, verb } => PolicyRule::new(&RuleParts {
                verbs: &[&verbs[verb]],
                non_resource_urls: &[&urls[url]],
                ..RuleParts::default()
            }),
        }
    }

    fn bytes(&self, rule: &PolicyRule) -> usize {
        let texts = match *self {
            MissingRule::Resource { group, resource, verb, name } => {
                let name = name.map_or(0, |name| rule.resource_names()[name].len());
                rule.api_groups()[group].len() + rule.resources()[resource].len() + rule.verbs()[verb].len() + name
            }
            MissingRule::Url { url, verb } => rule.non_resource_urls()[url].len() + rule.verbs()[verb].len(),
        };
        texts + PART_BYTES
    }
}

/// The search was cut: there is no room for more parts, or it takes too long.
struct Cut;

/// Values, by their indexes, and the rules that hold all of them.
struct Class<'h, 'r> {
    values: Vec<usize>,
    held: Vec<&'h Held<'r>>,
}

struct Search {
    looks: usize,
    bytes: usize,
    found: Vec<MissingRule>,
}

impl Search {
    fn resources(&mut self, rule: &PolicyRule, held: &[&Held<'_>]) -> Result<(), Cut> {
        let (wanted_groups, wanted_resources) = (rule.api_groups(), rule.resources());
        let wanted_names = rule.resource_names();
        let (count, name) = (wanted_names.len(), |at: usize| wanted_names.get(at));
        for groups in self.classes(wanted_groups.len(), held, |held, at| has(&held.groups, &wanted_groups[at]))? {
            let of = |held: &Held<'_>, at: usize| held.has_resource(&wanted_resources[at]);
            for resources in self.classes(wanted_resources.len(), &groups.held, of)? {
                // Without names, the one value stands for any name.
                for names in self.classes(count.max(1), &resources.held, |held, at| held.has_name(name(at)))? {
                    let verbs = self.verbs(rule, &names.held)?;
                    let names = |count: usize| names.values.iter().map(move |at| (count > 0).then_some(*at));
                    for (group, resource) in pairs(&groups.values, &resources.values) {
                        for (verb, name) in verbs.iter().flat_map(|verb| names(count).map(move |name| (*verb, name))) {
                            self.add(rule, MissingRule::Resource { group, resource, verb, name })?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn urls(&mut self, rule: &PolicyRule, held: &[&Held<'_>]) -> Result<(), Cut> {
        let wanted = rule.non_resource_urls();
        for urls in self.classes(wanted.len(), held, |held, at| held.has_url(&wanted[at]))? {
            let verbs = self.verbs(rule, &urls.held)?;
            for (url, verb) in pairs(&urls.values, &verbs) {
                self.add(rule, MissingRule::Url { url, verb })?;
            }
        }
        Ok(())
    }

    /// The verbs of a rule that none of `held` has.
    fn verbs(&mut self, rule: &PolicyRule, held: &[&Held<'_>]) -> Result<Vec<usize>, Cut> {
        let wanted = rule.verbs();
        let classes = self.classes(wanted.len(), held, |held, at| has(&held.verbs, &wanted[at]))?;
        Ok(classes.into_iter().filter(|class| class.held.is_empty()).flat_map(|class| class.values).collect())
    }

    /// Groups the values from 0 to `count` by the rules of `held` that have them.
    fn classes<'h, 'r>(
        &mut self,
        count: usize,
        held: &[&'h Held<'r>],
        has: impl Fn(&Held<'r>, usize) -> bool,
    ) -> Result<Vec<Class<'h, 'r>>, Cut> {
        let mut classes: Vec<Class<'h, 'r>> = Vec::new();
        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        for value in 0..count {
            let looks = 1 + held.len();
            work::steps(looks);
            self.looks = self.looks.checked_sub(looks).ok_or(Cut)?;
            let having: Vec<usize> = (0..held.len()).filter(|at| has(held[*at], value)).collect();
            let class = *known.entry(having).or_insert_with_key(|having| {
                let held = having.iter().map(|at| held[*at]).collect();
                classes.push(Class { values: Vec::new(), held });
                classes.len() - 1
            });
            classes[class].values.push(value);
        }
        Ok(classes)
    }

    fn add(&mut self, rule: &PolicyRule, found: MissingRule) -> Result<(), Cut> {
        work::step();
        let bytes = found.bytes(rule);
        // The first part is included however long it is.
        let is_room = bytes <= self.bytes || self.found.is_empty();
        self.bytes = self.bytes.saturating_sub(bytes);
        self.found.push(found);
        if is_room { Ok(()) } else { Err(Cut) }
    }
}

fn pairs<'v>(left: &'v [usize], right: &'v [usize]) -> impl Iterator<Item = (usize, usize)> + 'v {
    left.iter().flat_map(move |left| right.iter().map(move |right| (*left, *right)))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{rule, urls};
    use super::*;

    /// A rule with `count` verbs, groups, resources and names.
    fn wide(count: usize) -> PolicyRule {
        let texts: Vec<_> = (0..count).map(|at| at.to_string()).collect();
        let all: &[&str] = &texts.iter().map(String::as_str).collect::<Vec<_>>();
        PolicyRule::new(&RuleParts {
            verbs: all,
            api_groups: all,
            resources: all,
            resource_names: all,
            non_resource_urls: all,
        })
    }

    #[test]
    fn what_is_not_covered_is_told_by_resource() {
        let check = |own: &[PolicyRule], wanted: &[PolicyRule], expected: &[&str]| {
            let own: Vec<_> = own.iter().collect();
            let missing = uncovered(&own, wanted, MISSING_BYTES_MAX).describe();
            assert_eq!(missing.lines().collect::<Vec<_>>(), expected);
        };
        let wanted = [rule("get list", "'' apps", "pods", ""), urls("get", "/a /b")];
        check(
            &[],
            &wanted,
            &[
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#,
                r#"{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}"#,
                r#"{NonResourceURLs:["/a"], Verbs:["get"]}"#,
                r#"{NonResourceURLs:["/b"], Verbs:["get"]}"#,
            ],
        );
        check(&PolicyRule::full_authority(), &wanted, &[]);
        check(
            &[rule("list", "*", "*", "")],
            &wanted[..1],
            &[
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#,
                r#"{APIGroups:["apps"], Resources:["pods"], Verbs:["get"]}"#,
            ],
        );
        check(&[rule("get", "''", "*/status", "")], &[rule("get", "''", "pods/status", "a")], &[]);
        check(
            &[rule("get", "''", "pods", "a")],
            &[rule("get", "''", "pods", "a b")],
            &[r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}"#],
        );
        check(
            &[rule("get", "''", "pods", "a")],
            &[rule("get", "''", "pods", "")],
            &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#],
        );
        check(&[urls("*", "/a/*")], &[urls("get", "/a/b /a/*")], &[]);
    }

    #[test]
    fn what_is_missing_is_told_within_bounds() {
        for own in [&[][..], &[rule("1", "*", "*", "")], &[rule("*", "1 2", "3 4", ""), rule("1", "*", "*", "5")]] {
            let own: Vec<_> = own.iter().collect();
            let steps = |count| {
                let wanted = wide(count);
                let (missing, steps) = crate::work::counted(|| uncovered(&own, [&wanted], MISSING_BYTES_MAX));
                assert!(missing.is_cut);
                let text = missing.describe();
                assert!(text.len() < 2 * MISSING_BYTES_MAX && text.ends_with("\nand more"), "{}", text.len());
                steps
            };
            assert!(steps(640) < 13 * steps(64), "{} {}", steps(640), steps(64));
        }
    }

    #[test]
    fn what_is_covered_is_found_without_all_combinations() {
        let all = PolicyRule::full_authority();
        let own: Vec<_> = all.iter().collect();
        let (missing, steps) = crate::work::counted(|| uncovered(&own, [&wide(10_000)], MISSING_BYTES_MAX));
        assert!(missing.is_nothing());
        assert!(steps < 200_000, "{steps}");
    }

    #[test]
    fn rules_that_overlap_too_often_are_not_looked_through() {
        let own: Vec<_> = (0..2000_usize).map(|at| rule("*", &format!("{at} 1"), "*", "")).collect();
        let (missing, steps) = crate::work::counted(|| {
            uncovered(&own.iter().collect::<Vec<_>>(), [&wide(2000), &wide(2000)], MISSING_BYTES_MAX)
        });
        assert!(!missing.is_nothing());
        assert!(steps < 2 * LOOKS_MAX as u64, "{steps}");
    }

    /// Compares with a check of each single combination, by the rules of the documentation.
    #[test]
    fn combinations_are_those_that_no_rule_has() {
        let own = [rule("get list", "a b", "x y/z", "n m"), rule("get", "b *", "*/z w", ""), rule("*", "c", "x", "m")];
        let values = ["a", "b", "c", "get", "list", "x", "y/z", "w", "n", "m", "o"];
        let all: &[&str] = &values;
        let wanted = PolicyRule::new(&RuleParts {
            verbs: all,
            api_groups: all,
            resources: all,
            resource_names: all,
            non_resource_urls: &[],
        });
        let missing = uncovered(&own.iter().collect::<Vec<_>>(), [&wanted], usize::MAX);
        let mut expected = Vec::new();
        for (group, resource, verb, name) in values.iter().flat_map(|group| {
            let values = &values;
            values.iter().flat_map(move |resource| {
                values.iter().flat_map(move |verb| values.iter().map(move |name| (group, resource, verb, name)))
            })
        }) {
            let has = |set: PackedTexts<'_>, one: &str| set.iter().any(|own| own == "*" || own == one);
            let of_any = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
            let covers = |rule: &PolicyRule| {
                has(rule.verbs(), verb)
                    && has(rule.api_groups(), group)
                    && (has(rule.resources(), resource)
                        || of_any.as_ref().is_some_and(|any| rule.resources().contains(any)))
                    && (rule.resource_names().is_empty() || rule.resource_names().contains(name))
            };
            if !own.iter().any(covers) {
                expected.push([group, resource, verb, name]);
            }
        }
        let texts = |part: &PolicyRule| {
            [part.api_groups(), part.resources(), part.verbs(), part.resource_names()].map(|texts| texts[0].to_owned())
        };
        assert_eq!(
            missing.parts.iter().map(texts).collect::<Vec<_>>(),
            expected.iter().map(|part| part.map(|text| (*text).to_owned())).collect::<Vec<_>>()
        );
        assert!(!missing.is_cut && expected.len() > 1000);
    }
}
