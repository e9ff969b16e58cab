//! Suggestions for a kind or a field that is not known.
//!
//! Input: the kinds or words that there are, and what is named. Output: the nearest one; of a kind its name, as far as it is
//! another.

use crate::author::Catalog;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::meta::api_version::group_of;
use crate::meta::minor::Minor;

/// Of the letters of a kind, one in so many may be wrong.
const LETTERS_PER_MISTAKE: usize = 4;

/// A kind by its group, version and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedKind {
    /// `GROUP/VERSION`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// The kinds that there are in a version of Kubernetes.
pub struct KnownNames {
    minor: Minor,
    names: Vec<NamedKind>,
}

impl KnownNames {
    /// The built-in kinds that this minor serves, and `others`.
    pub fn with(minor: Minor, others: impl Iterator<Item = NamedKind>) -> Self {
        let config = RuntimeConfig::of(minor);
        let built_in =
            config.kinds().map(|kind| NamedKind { api_version: kind.api_version(), kind: kind.kind.to_owned() });
        KnownNames { minor, names: built_in.chain(others).collect() }
    }

    /// The built-in kinds and those of a catalog, each in the version that it is stored in if that is served.
    pub fn of(catalog: &Catalog) -> Self {
        KnownNames::with(
            catalog.minor(),
            catalog.kinds().filter_map(|kind| {
                let served = kind.versions.iter().filter(|version| version.served);
                let version = served.max_by_key(|version| version.storage)?;
                Some(NamedKind { api_version: version.api_version(), kind: kind.definition.spec.names.kind.clone() })
            }),
        )
    }

    /// Why an object of a kind that is not among these is not checked, with a guess where one is near.
    pub fn why_unchecked(&self, api_version: &str, kind: &str) -> String {
        if kind.is_empty() {
            return "not checked: it has no kind".to_owned();
        }
        if let Some(why) = not_served(self.minor, api_version, kind) {
            let group = group_of(api_version);
            let other = self.names.iter().find(|name| name.kind == kind && group_of(&name.api_version) == group);
            let other = other.map_or(String::new(), |name| format!("; did you mean {}?", name.api_version));
            return format!("not checked: {why}{other}");
        }
        let guess = self.near(api_version, kind).map_or(String::new(), |near| format!("; did you mean {near}?"));
        let shown = if api_version.is_empty() { "no group" } else { api_version };
        format!("not checked: there is no definition of {kind} in {shown}{guess}")
    }

    /// The kind that is nearest in name, and then in group: what of it is another.
    pub fn near(&self, api_version: &str, kind: &str) -> Option<String> {
        let group = group_of(api_version);
        let mistakes = Mistakes::of(kind);
        let near = self.names.iter().filter_map(|name| Some((mistakes.in_word(&name.kind)?, name)));
        let distance = |name: &NamedKind| strsim::damerau_levenshtein(group_of(&name.api_version), group);
        let (_, name) = near.min_by_key(|(mistakes, name)| (*mistakes, distance(name)))?;
        Some(match (name.kind == kind, name.api_version == api_version) {
            (true, _) => name.api_version.clone(),
            (false, true) => name.kind.clone(),
            (false, false) => format!("{} in {}", name.kind, name.api_version),
        })
    }
}

/// In which minors a built-in kind is served by default, which this one is not among; `None` where none serves it.
pub fn not_served(minor: Minor, api_version: &str, kind: &str) -> Option<String> {
    let serves = |minor: &Minor| RuntimeConfig::of(*minor).kind(api_version, kind).is_some();
    let first = Minor::all().find(serves)?;
    let last = Minor::all().rfind(serves)?;
    let when = if minor < first { format!("from Kubernetes {first} on") } else { format!("until Kubernetes {last}") };
    Some(format!("{kind} is served in {api_version} {when}"))
}

/// The word that is nearest to one, if it is near.
pub fn near_word<'w>(written: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let mistakes = Mistakes::of(written);
    let near = words.filter_map(|word| Some((mistakes.in_word(word)?, word)));
    near.min_by_key(|(mistakes, _)| *mistakes).map(|(_, word)| word)
}

/// How far words are from one that is written.
struct Mistakes {
    /// What is written, in small letters.
    written: String,
    max: usize,
}

impl Mistakes {
    fn of(written: &str) -> Self {
        Mistakes { written: written.to_lowercase(), max: (written.len() / LETTERS_PER_MISTAKE).max(1) }
    }

    /// How many mistakes make what is written of a word, if it is near.
    fn in_word(&self, word: &str) -> Option<usize> {
        Some(strsim::damerau_levenshtein(&word.to_lowercase(), &self.written)).filter(|mistakes| *mistakes <= self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(api_version: &str, kind: &str, near: Option<&str>) {
        let ferry = NamedKind { api_version: "harbour.example.com/v2".to_owned(), kind: "Ferry".to_owned() };
        assert_eq!(
            KnownNames::with(Minor::NEWEST, [ferry].into_iter()).near(api_version, kind).as_deref(),
            near,
            "{kind}"
        );
    }

    #[test]
    fn what_is_near_is_told() {
        check("harbour.example.com/v2", "Fery", Some("Ferry"));
        check("harbour.example.com/v1", "ferry", Some("Ferry in harbour.example.com/v2"));
        check("harbor.example.com/v1", "Ferry", Some("harbour.example.com/v2"));
        check("apps/v1beta1", "Deployment", Some("apps/v1"));
        check("extensions/v1beta1", "Ingress", Some("networking.k8s.io/v1"));
        check("apps/v1", "Deploymnet", Some("Deployment"));
        check("v1", "Crane", None);
    }

    #[test]
    fn a_kind_that_other_minors_serve_is_told_with_them() {
        let why = |minor, api_version, kind| {
            let names = KnownNames::with(Minor::of(minor), std::iter::empty());
            names.why_unchecked(api_version, kind).trim_start_matches("not checked: ").to_owned()
        };
        let expected = "DeviceClass is served in resource.k8s.io/v1 from Kubernetes 1.34 on";
        assert_eq!(why(33, "resource.k8s.io/v1", "DeviceClass"), expected);
        // A kind of a similar name is not meant.
        let expected = "MutatingAdmissionPolicy is served in admissionregistration.k8s.io/v1 from Kubernetes 1.36 on";
        assert_eq!(why(35, "admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"), expected);
        let expected = "FlowSchema is served in flowcontrol.apiserver.k8s.io/v1beta3 until Kubernetes 1.31; did you mean \
                        flowcontrol.apiserver.k8s.io/v1?";
        assert_eq!(why(32, "flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema"), expected);
        let expected =
            "there is no definition of DeviceClass in resource.k8s.io/v1beta1; did you mean resource.k8s.io/v1?";
        assert_eq!(why(37, "resource.k8s.io/v1beta1", "DeviceClass"), expected);
    }
}
