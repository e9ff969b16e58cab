//! Policies in commands: reads them and the roles of users, evaluates them, and reports their
//! coverage.

mod prices;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use clap::Args;

use super::documents::{ManifestDocument, ManifestText};
use super::report::ReportedDocument;
use crate::admission::expression_authorizer::ExpressionAuthorizer;
use crate::auth::rbac::{self, RbacPolicy};
use crate::auth::{Attributes, Authorizer, Decision, Rules, UserInfo};
use crate::author::policies::admit::{AdmissionSetup, Admitted, SentRequest};
use crate::author::policies::coverage::{Coverage, Tried};
use crate::author::policies::{Policies, PolicyExpression, RequestUser, case};
use crate::author::{Catalog, Checked};
use crate::kinds::default_roles::{Extent, cluster_role_bindings, cluster_roles};
use crate::meta::minor::Minor;
use crate::meta::selector::LabelSelector;
use crate::object;
use crate::policy::matching::matches;
use crate::value::Value;

pub use prices::{PolicyPrices, has_prices, prices, show_prices};

/// The writer, for policies.
#[derive(Args)]
pub struct Requester {
    /// Who policies take the writer for; somebody who may do everything unless named
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,

    /// A group that the writer is in; more than once for several
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,

    /// The namespace of objects that name none
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: String,
}

impl Requester {
    /// A UserInfo of `authentication.k8s.io/v1`.
    fn user_info(&self) -> Value {
        let Some(name) = &self.user else { return case::administrator() };
        let groups: Vec<Value> = self.groups.iter().map(|group| Value::from(group.as_str())).collect();
        case::user_info(Some(&object! { "name" => name.as_str(), "groups" => groups }))
    }
}

/// Policies, and the roles that decide what users may do.
pub struct Given {
    pub set: Policies,
    roles: Arc<Roles>,
}

/// The default roles of every server, and those among the manifests.
struct Roles(RbacPolicy);

#[async_trait]
impl Authorizer for Roles {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        self.0.decide(user, attributes)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        self.0.rules_for(user, namespace)
    }
}

impl Given {
    /// Reads policies, the objects that they look up, and roles from manifests, for one version of
    /// Kubernetes.
    pub fn new<'m>(minor: Minor, manifests: impl Iterator<Item = &'m Value> + Clone) -> Self {
        let mut roles = RbacPolicy::default();
        let extent = Extent::Server;
        let mut objects: Vec<Value> = cluster_roles(extent).chain(cluster_role_bindings(extent)).collect();
        objects.extend(manifests.clone().filter(|object| is_role(object)).cloned());
        gather_rules(&mut objects);
        objects.iter().for_each(|object| take_role(&mut roles, object));
        Given { set: Policies::read(minor, manifests), roles: Arc::new(Roles(roles)) }
    }

    /// The user that a UserInfo describes.
    pub fn request_user(&self, user: Value) -> RequestUser {
        let authorizer: Arc<dyn Authorizer> = Arc::clone(&self.roles) as Arc<dyn Authorizer>;
        let authorizer = ExpressionAuthorizer::new(&authorizer, &decode_user(&user));
        RequestUser { user, authorizer: Arc::new(authorizer) }
    }

    /// Evaluates the policies for a manifest; `check` returns the errors of its kind. `None` if
    /// there are no policies.
    pub fn admit(
        &self,
        requester: &Requester,
        catalog: &Catalog,
        (object, old): (&Value, Option<&Value>),
        check: &mut dyn FnMut(&Value) -> Checked,
    ) -> Option<Admitted> {
        if self.set.is_empty() {
            return None;
        }
        let request_user = self.request_user(requester.user_info());
        let namespace = &requester.namespace;
        let admission = AdmissionSetup {
            policies: &self.set,
            catalog,
            request_user: &request_user,
            beside: &[],
            namespace,
            home: namespace,
        };
        let sent = SentRequest { object, old, subresource: "", operation: None };
        admission.admit(sent, check, &mut |_| {})
    }
}

fn is_role(object: &Value) -> bool {
    object.str_at(&["apiVersion"]).split_once('/').is_some_and(|(group, _)| group == rbac::GROUP)
}

/// Fills in the rules of aggregated cluster roles, which may be aggregated in turn, as the controller for them does.
fn gather_rules(objects: &mut [Value]) {
    let selectors_of = |role: &Value| -> Vec<LabelSelector> {
        let selectors = role.items_at(&["aggregationRule", "clusterRoleSelectors"]).iter();
        selectors.filter_map(|selector| LabelSelector::decode(selector).ok()).collect()
    };
    let aggregated = objects.iter().map(selectors_of).enumerate().filter(|(_, selectors)| !selectors.is_empty());
    let aggregated: Vec<_> = aggregated.collect();
    // No chain of roles is longer.
    for _ in 0..aggregated.len() {
        let mut has_changed = false;
        for (at, selectors) in &aggregated {
            let rules = Value::Array(rules_of_parts(objects, *at, selectors));
            if objects[*at].get("rules") != Some(&rules) {
                objects[*at].make_object().insert("rules", rules);
                has_changed = true;
            }
        }
        if !has_changed {
            break;
        }
    }
}

/// The rules of the cluster roles that one of `selectors` selects, each once; the role at `own` is none of them.
fn rules_of_parts(objects: &[Value], own: usize, selectors: &[LabelSelector]) -> Vec<Value> {
    let mut rules = Vec::new();
    for (_, role) in objects.iter().enumerate().filter(|(at, _)| *at != own) {
        let labels = role.at(&["metadata", "labels"]);
        if role.str_at(&["kind"]) == "ClusterRole" && selectors.iter().any(|selector| matches(selector, labels)) {
            for rule in role.items_at(&["rules"]) {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}

fn take_role(roles: &mut RbacPolicy, object: &Value) {
    let kind = object.str_at(&["kind"]);
    let name = object.str_at(&["metadata", "name"]);
    let namespaced = || match object.str_at(&["metadata", "namespace"]) {
        "" => format!("default/{name}"),
        namespace => format!("{namespace}/{name}"),
    };
    match kind {
        "ClusterRole" => roles.set_role(name, object),
        "Role" => roles.set_role(&namespaced(), object),
        "ClusterRoleBinding" => roles.set_binding(name, object),
        "RoleBinding" => roles.set_binding(&namespaced(), object),
        _ => {}
    }
}

fn decode_user(user: &Value) -> UserInfo {
    let texts = |texts: &[Value]| texts.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let extra = user.get("extra").and_then(Value::as_object);
    let extra = extra.into_iter().flat_map(|extra| extra.iter());
    UserInfo {
        name: user.str_at(&["username"]).to_owned(),
        uid: user.str_at(&["uid"]).to_owned(),
        groups: texts(user.items_at(&["groups"])),
        extra: extra.map(|(name, values)| (name.to_owned(), texts(values.as_array().unwrap_or_default()))).collect(),
    }
}

/// All manifests of texts.
pub fn values(sources: &[ManifestText]) -> impl Iterator<Item = &Value> + Clone {
    sources.iter().flat_map(|source| &source.documents).map(|document| &document.value)
}

/// Adds the results of the policies for a manifest to the errors of its kind.
pub fn report(item: &mut ReportedDocument, admitted: Admitted, document: &ManifestDocument) {
    item.take(admitted.checked, document);
    item.warnings.extend(admitted.warnings);
    if let Some(denial) = admitted.denial {
        item.deny(denial.message, document);
    }
}

/// How many expressions of a policy are covered.
pub fn covered(places: &BTreeMap<PolicyExpression, Tried>) -> usize {
    places.iter().filter(|(place, tried)| tried.is_covered(**place)).count()
}

/// Appends a line for each policy and, with `tells_gaps`, what no case has covered, as text.
pub fn show_coverage(out: &mut String, coverage: &Coverage, tells_gaps: bool) {
    for (kind, name, places) in coverage.policies().filter(|(_, _, places)| !places.is_empty()) {
        let (covered, all) = (covered(places), places.len());
        let percent = covered * 100 / all;
        // Writing to a String can't fail.
        let _ = writeln!(out, "{kind} {name}: {covered} of {all} expressions have been tried ({percent}%)");
        for (place, tried) in places.iter().filter(|_| tells_gaps) {
            let gaps = tried.gaps(*place);
            if !gaps.is_empty() {
                let text = tried.text.split_whitespace().collect::<Vec<_>>().join(" ");
                let _ = writeln!(out, "  {}: {text}", place.shown());
                gaps.iter().for_each(|gap| _ = writeln!(out, "    {gap}"));
            }
        }
    }
}

/// The coverage as JSON.
pub fn coverage_json(coverage: &Coverage) -> Vec<Value> {
    let integer = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let expression = |place: String, tried: &Tried| {
        object! {
            "path" => place,
            "expression" => tried.text.as_str(),
            "held" => integer(tried.held),
            "failed" => integer(tried.failed),
            "broke" => integer(tried.broke),
        }
    };
    coverage
        .policies()
        .map(|(kind, name, places)| {
            let expressions: Vec<Value> =
                places.iter().map(|(place, tried)| expression(place.shown(), tried)).collect();
            object! { "kind" => kind, "name" => name, "expressions" => expressions }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cluster role that others select by its name, and that selects the one called `part`.
    fn aggregated(name: &str, part: &str) -> Value {
        let selector = object! { "matchLabels" => object! { "is" => part } };
        object! {
            "kind" => "ClusterRole",
            "metadata" => object! { "name" => name, "labels" => object! { "is" => name } },
            "aggregationRule" => object! { "clusterRoleSelectors" => vec![selector] },
        }
    }

    #[test]
    fn roles_are_gathered_at_any_depth() {
        let rule = object! { "verbs" => vec![Value::from("get")] };
        let last = object! {
            "kind" => "ClusterRole",
            "metadata" => object! { "name" => "9", "labels" => object! { "is" => "9" } },
            "rules" => vec![rule.clone()],
        };
        let chain = (0..9).map(|at: usize| aggregated(&at.to_string(), &(at + 1).to_string()));
        let mut roles: Vec<Value> = chain.chain([last]).collect();
        gather_rules(&mut roles);
        assert!(roles.iter().all(|role| role.items_at(&["rules"]) == [rule.clone()]), "{roles:?}");
    }

    #[test]
    fn roles_that_gather_each_other_have_each_rule_once() {
        let rule = object! { "verbs" => vec![Value::from("get")] };
        let part = object! {
            "kind" => "ClusterRole",
            "metadata" => object! { "name" => "part", "labels" => object! { "is" => "a" } },
            "rules" => vec![rule.clone()],
        };
        let mut roles = vec![aggregated("a", "b"), aggregated("b", "a"), part];
        gather_rules(&mut roles);
        assert!(roles.iter().all(|role| role.items_at(&["rules"]) == [rule.clone()]), "{roles:?}");
    }
}
