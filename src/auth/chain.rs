//! A chain of authorizers; the first one with an opinion decides.
//!
//! Source: `k8s.io/apiserver/pkg/authorization/union`, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use super::figures::{AuthorizerLabel, Figures};
use super::{Attributes, Authorizer, Decision, Rules, UserInfo, Verdict};
use crate::meta::Status;

/// Authorizers in the order in which they are asked.
pub struct Chain {
    members: Vec<ChainMember>,
    figures: Arc<Figures>,
}

/// One of the authorizers.
pub struct ChainMember {
    pub authorizer: Arc<dyn Authorizer>,
    /// The label for its decisions in metrics, if they are counted.
    pub counted_as: Option<AuthorizerLabel>,
}

impl Chain {
    /// A chain that counts its decisions in `figures`.
    pub fn new(figures: Arc<Figures>, members: Vec<ChainMember>) -> Self {
        Chain { members, figures }
    }

    fn count(&self, member: &ChainMember, decided: Verdict) {
        let decided = if decided == Verdict::Allow { "allowed" } else { "denied" };
        if let Some(by) = &member.counted_as {
            self.figures.decided(by, decided);
        }
    }
}

#[async_trait]
impl Authorizer for Chain {
    /// If no authorizer has an opinion, the result contains all their reasons and errors.
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        let (mut reasons, mut errors) = (Vec::new(), Vec::new());
        for member in &self.members {
            let decision = member.authorizer.authorize(user, attributes).await;
            if decision.verdict != Verdict::NoOpinion {
                self.count(member, decision.verdict);
                return decision;
            }
            reasons.push(decision.reason);
            errors.push(decision.error);
        }
        reasons.retain(|reason| !reason.is_empty());
        Decision { verdict: Verdict::NoOpinion, reason: reasons.join("\n"), error: aggregate(errors) }
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        let mut all = Rules::default();
        let mut errors = Vec::new();
        for rules in self.members.iter().map(|member| member.authorizer.rules_for(user, namespace)) {
            all.resource.extend(rules.resource);
            all.non_resource.extend(rules.non_resource);
            all.incomplete |= rules.incomplete;
            errors.push(rules.error);
        }
        Rules { error: aggregate(errors), ..all }
    }

    fn rules_bytes(&self, user: &UserInfo, namespace: &str) -> usize {
        self.members.iter().map(|member| member.authorizer.rules_bytes(user, namespace)).sum()
    }

    async fn refresh(&self) -> Result<(), Status> {
        for member in &self.members {
            member.authorizer.refresh().await?;
        }
        Ok(())
    }

    fn figures(&self) -> Option<&Arc<Figures>> {
        Some(&self.figures)
    }
}

/// Joins errors as Go's aggregate does: each once, without the empty ones.
pub(super) fn aggregate(errors: Vec<String>) -> String {
    let mut told: Vec<String> = Vec::new();
    for error in errors {
        if !error.is_empty() && !told.contains(&error) {
            told.push(error);
        }
    }
    match told.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the same answer to every request.
    struct Says(Verdict, &'static str);

    #[async_trait]
    impl Authorizer for Says {
        async fn authorize(&self, _: &UserInfo, _: &Attributes<'_>) -> Decision {
            Decision { verdict: self.0, reason: self.1.to_owned(), error: format!("{}!", self.1) }
        }

        fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
            Rules { incomplete: true, error: self.1.to_owned(), ..Rules::default() }
        }
    }

    fn chain(all: &[(Verdict, &'static str)]) -> Chain {
        let members = all.iter().map(|(verdict, text)| ChainMember {
            authorizer: Arc::new(Says(*verdict, text)),
            counted_as: (!text.is_empty()).then(|| AuthorizerLabel { r#type: "RBAC", name: (*text).to_owned() }),
        });
        Chain::new(Arc::default(), members.collect())
    }

    #[tokio::test]
    async fn the_first_that_has_an_opinion_decides() {
        use Verdict::{Allow, Deny, NoOpinion};
        let user = UserInfo::authenticated("jane", vec![]);
        let attributes = Attributes::Path { verb: "get", path: "/x" };
        for (all, verdict, reason, error) in [
            (&[(NoOpinion, "a"), (Deny, "b"), (Allow, "c")] as &[_], Deny, "b", "b!"),
            (&[(NoOpinion, "a"), (Allow, "b"), (Deny, "c")], Allow, "b", "b!"),
            (&[(NoOpinion, "a"), (NoOpinion, "b"), (NoOpinion, "b")], NoOpinion, "a\nb\nb", "[a!, b!]"),
            (&[], NoOpinion, "", ""),
        ] {
            let expected = Decision { verdict, reason: reason.to_owned(), error: error.to_owned() };
            assert_eq!(chain(all).authorize(&user, &attributes).await, expected);
        }
    }

    #[tokio::test]
    async fn the_one_that_decides_is_counted() {
        use Verdict::{Allow, Deny, NoOpinion};
        let user = UserInfo::authenticated("jane", vec![]);
        let attributes = Attributes::Path { verb: "get", path: "/x" };
        let mut registry = prometheus_client::registry::Registry::default();
        let figures = Arc::new(Figures::default());
        figures.register(&mut registry);
        for all in [&[(NoOpinion, "a"), (Allow, "b")] as &[_], &[(Deny, "c"), (Allow, "b")], &[(Allow, "")]] {
            let chain = Chain { figures: Arc::clone(&figures), ..chain(all) };
            chain.authorize(&user, &attributes).await;
        }
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("a text takes everything");
        let mut counted: Vec<_> = text.lines().filter(|line| line.contains("_decisions_total{")).collect();
        counted.sort_unstable();
        let line = |rest: &str| format!("apiserver_authorization_decisions_total{{type=\"RBAC\",{rest}}} 1");
        assert_eq!(counted, [line("name=\"b\",decision=\"allowed\""), line("name=\"c\",decision=\"denied\"")]);
    }

    #[test]
    fn the_rules_of_all_are_told() {
        let rules =
            chain(&[(Verdict::NoOpinion, "a"), (Verdict::NoOpinion, "")]).rules_for(&UserInfo::anonymous(), "n");
        assert_eq!((rules.incomplete, rules.error.as_str()), (true, "a"));
    }
}
