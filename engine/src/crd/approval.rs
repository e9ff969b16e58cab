//! Groups of the Kubernetes community: a definition needs their approval, or must state that it is unapproved.
//!
//! Source: Kubernetes documentation, "api-approved.kubernetes.io"; apiextensions-apiserver 1.37.

use super::definition::Definition;
use super::names::condition;
use crate::meta::url;
use crate::value::go_quote;

/// The annotation that states the approval.
pub const ANNOTATION: &str = "api-approved.kubernetes.io";
const REFERENCE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
const CONDITION: &str = "KubernetesAPIApprovalPolicyConformant";

/// What the annotation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The annotation is not there.
    Missing,
    /// The annotation is neither a URL nor states that the definition is unapproved.
    Invalid,
    /// By a URL.
    Approved,
    /// `unapproved`, and perhaps why.
    Bypassed,
}

impl Approval {
    /// The approval that the annotation of a definition states.
    pub fn of(definition: &Definition) -> Self {
        let annotation = annotation(definition);
        let is_url = || url::parse_request(annotation).is_ok_and(|url| !url.host.is_empty() && !url.scheme.is_empty());
        match annotation {
            "" => Approval::Missing,
            text if text.starts_with("unapproved") => Approval::Bypassed,
            _ if is_url() => Approval::Approved,
            _ => Approval::Invalid,
        }
    }

    /// The approval in words.
    pub fn message(self, definition: &Definition) -> String {
        let annotation = annotation(definition);
        let needed = format!("protected groups must have approval annotation {}", go_quote(ANNOTATION));
        match self {
            Approval::Missing => format!("{needed}, {REFERENCE}"),
            Approval::Invalid => {
                format!("{needed} with either a URL or a reason starting with \"unapproved\", {REFERENCE}")
            }
            Approval::Approved => format!("approved in {annotation}"),
            Approval::Bypassed => format!("not approved: {}", go_quote(annotation)),
        }
    }
}

/// Whether a group belongs to the community: `k8s.io`, `kubernetes.io` and their subdomains.
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|community| group.strip_suffix(community).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.')))
}

/// The value of the annotation; empty if there is none.
pub fn annotation(definition: &Definition) -> &str {
    definition.metadata.str_at(&["annotations", ANNOTATION])
}

/// The definition with its approval condition; `None` if nothing changes, or no approval is needed.
///
/// `now` is RFC 3339.
pub fn record(definition: &Definition, now: &str) -> Option<Definition> {
    if !is_protected(&definition.spec.group) {
        return None;
    }
    let approval = Approval::of(definition);
    let (status, reason) = match approval {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    definition.with_condition(condition(CONDITION, status, reason, &approval.message(definition)), now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    fn check(group: &str, annotation: &str, expected: Option<[&str; 3]>) {
        let mut definition = Definition {
            metadata: object! { "annotations" => object! { ANNOTATION => annotation } },
            ..Definition::default()
        };
        definition.spec.group = group.to_owned();
        let recorded = record(&definition, "1");
        let told = recorded.as_ref().and_then(|definition| definition.condition(CONDITION));
        let told = told.map(|told| [told.status.as_str(), told.reason.as_str(), told.message.as_str()]);
        assert_eq!(told, expected);
    }

    #[test]
    fn groups_of_the_community_tell_of_their_approval() {
        let url = "https://github.com/kubernetes/kubernetes/pull/78458";
        check("a.k8s.io", url, Some(["True", "ApprovedAnnotation", &format!("approved in {url}")]));
        let reason = "not approved: \"unapproved, testing\"";
        check("kubernetes.io", "unapproved, testing", Some(["False", "UnapprovedAnnotation", reason]));
    }

    #[test]
    fn other_groups_need_none() {
        check("example.com", "", None);
        check("notk8s.io", "", None);
    }
}
