//! Impersonated requests.

use async_trait::async_trait;
use futures_util::FutureExt as _;

use super::*;
use crate::auth::{Decision, Rules};

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
}

/// Allows what is listed, as `verb group/resource[/subresource] namespace/name`.
struct Lists(&'static [&'static str]);

#[async_trait]
impl Authorizer for Lists {
    async fn authorize(&self, _: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        let Attributes::Resource(of) = attributes else { return Decision::NO_OPINION };
        let ResourceAttributes { verb, group, resource, subresource, namespace, name, .. } = of;
        let asked = format!("{verb} {group}/{resource}/{subresource} {namespace}/{name}");
        if self.0.contains(&asked.as_str()) { Decision::ALLOW } else { Decision::NO_OPINION }
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
        Rules::default()
    }
}

/// The outcome for jane, who lists pods: the user's name and groups and the constraint, or the refusal.
#[track_caller]
fn check(allowed: &'static [&'static str], pairs: &[(&'static str, &'static str)], expected: Result<&str, &str>) {
    let jane = UserInfo::authenticated("jane", vec![]);
    let wanted = wanted(&headers(pairs)).expect("the headers make sense").expect("they ask for somebody");
    let request = ResourceAttributes { verb: "list", resource: "pods", namespace: "n", ..Default::default() };
    let request = Attributes::Resource(request);
    let got = impersonate((&Lists(allowed), true), &LastModes::default(), &jane, &wanted, &request)
        .now_or_never()
        .expect("a list is asked at once");
    let got = got.map(|got| format!("{} {} {}", got.user.name, got.user.groups.join(","), got.constraint));
    let got = got.map_err(|refusal| refusal.message);
    assert_eq!(got.as_deref().map_err(String::as_str), expected);
}

#[test]
fn without_the_gate_only_the_right_that_holds_for_all_requests_counts() {
    let jane = UserInfo::authenticated("jane", vec![]);
    let wanted = wanted(&headers(&[(USER, "joe")])).expect("the headers make sense").expect("they ask for somebody");
    let request = ResourceAttributes { verb: "list", resource: "pods", namespace: "n", ..Default::default() };
    let request = Attributes::Resource(request);
    let rights =
        &["impersonate:user-info authentication.k8s.io/users/ /joe", "impersonate-on:user-info:list /pods/ n/"];
    let may = |rights: &'static [&'static str], constrains| {
        let got =
            impersonate((&Lists(rights), constrains), &LastModes::default(), &jane, &wanted, &request).now_or_never();
        got.is_some_and(|got| got.is_ok())
    };
    assert!(may(rights, true) && !may(rights, false));
    assert!(may(&["impersonate /users/ /joe"], false));
}

#[test]
fn the_right_to_be_somebody_holds_for_all_requests() {
    check(&["impersonate /users/ /joe"], &[(USER, "joe")], Ok("joe system:authenticated "));
    check(
        &["impersonate /users/ /joe", "impersonate /groups/ /dev"],
        &[(USER, "joe"), (GROUP, "dev")],
        Ok("joe dev,system:authenticated "),
    );
    check(
        &["impersonate /serviceaccounts/ n/ci"],
        &[(USER, "system:serviceaccount:n:ci")],
        Ok("system:serviceaccount:n:ci system:serviceaccounts,system:serviceaccounts:n,system:authenticated "),
    );
    check(
        &["impersonate /users/ /system:anonymous"],
        &[(USER, "system:anonymous")],
        Ok("system:anonymous system:unauthenticated "),
    );
    check(
        &["impersonate /users/ /joe", "impersonate authentication.k8s.io/userextras/scopes /a"],
        &[(USER, "joe"), ("impersonate-extra-scopes", "a")],
        Ok("joe system:authenticated "),
    );
}

#[test]
fn a_constrained_right_holds_for_one_verb() {
    const ALLOWED: &[&str] =
        &["impersonate-on:user-info:list /pods/ n/", "impersonate:user-info authentication.k8s.io/users/ /joe"];
    check(ALLOWED, &[(USER, "joe")], Ok("joe system:authenticated impersonate:user-info"));
    check(
        ALLOWED,
        &[(USER, "ann")],
        Err("users.authentication.k8s.io \"ann\" is forbidden: User \"jane\" cannot impersonate:user-info resource \
                 \"users\" in API group \"authentication.k8s.io\" at the cluster scope"),
    );
    check(
        ALLOWED,
        &[(USER, "joe"), (GROUP, "system:masters")],
        Err("groups.authentication.k8s.io \"system:masters\" is forbidden: User \"jane\" cannot \
                 impersonate:user-info resource \"groups\" in API group \"authentication.k8s.io\" at the cluster scope: \
                 impersonating the system:masters group is not allowed"),
    );
}

#[test]
fn a_refusal_names_the_first_right_that_is_missing() {
    check(
        &[],
        &[(USER, "joe")],
        Err("pods is forbidden: User \"jane\" cannot impersonate-on:user-info:list resource \"pods\" in API group \
                 \"\" in the namespace \"n\""),
    );
    check(
        &["impersonate /users/ /joe"],
        &[(USER, "joe"), (GROUP, "dev")],
        Err("pods is forbidden: User \"jane\" cannot impersonate-on:user-info:list resource \"pods\" in API group \
                 \"\" in the namespace \"n\""),
    );
}

#[test]
fn parts_of_nobody_are_refused() {
    let refused = |pairs: &[(&'static str, &'static str)], constrains| {
        let refusal = wanted(&headers(pairs)).expect_err("nobody is named").refuse(constrains);
        assert_eq!(refusal.code, 400);
        refusal.message
    };
    let check = |pairs: &[(&'static str, &'static str)], expected: &str| assert_eq!(refused(pairs, true), expected);
    check(
        &[(GROUP, "dev")],
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"dev\"}, Extra:map[string][]string(nil)} \
             without impersonating a user name",
    );
    check(
        &[("impersonate-extra-acme.com%2fproject", "x"), (UID, "u")],
        "requested &user.DefaultInfo{Name:\"\", UID:\"u\", Groups:[]string(nil), \
             Extra:map[string][]string{\"acme.com/project\":[]string{\"x\"}}} without impersonating a user name",
    );
    assert_eq!(wanted(&headers(&[("accept", "x")])), Ok(None));
    let parts = [(UID, "u"), ("impersonate-extra-acme.com%2fproject", "x"), (GROUP, "dev")];
    assert_eq!(
        refused(&parts, false),
        "requested [{Group  dev    } {UserExtra  x  authentication.k8s.io/v1  acme.com/project} \
         {UID  u  authentication.k8s.io/v1  }] without impersonating a user"
    );
}

/// Refuses everything, and keeps what it was asked.
#[derive(Default)]
struct Refuses(Mutex<Vec<(String, UserInfo, bool)>>);

#[async_trait]
impl Authorizer for Refuses {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        if let Attributes::Resource(of) = attributes {
            let asked = (of.verb.to_owned(), user.clone(), of.fields.is_some());
            self.0.lock().expect("nobody panics").push(asked);
        }
        Decision { error: "out of order".to_owned(), ..Decision::no_opinion("no") }
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
        Rules::default()
    }
}

#[test]
fn a_refusal_tells_the_error_of_an_authorizer_unless_the_server_is_older() {
    let jane = UserInfo::authenticated("jane", vec![]);
    let wanted = UserInfo { name: "joe".to_owned(), ..UserInfo::default() };
    let request = Attributes::Path { verb: "get", path: "/version" };
    let told = |constrains| {
        let refuses = Refuses::default();
        let (authorizer, modes) = ((&refuses as &dyn Authorizer, constrains), LastModes::default());
        let refusal = impersonate(authorizer, &modes, &jane, &wanted, &request).now_or_never();
        refusal.expect("it is asked at once").expect_err("it refuses").message
    };
    assert!(told(true).ends_with(": out of order: no"), "{}", told(true));
    assert!(told(false).ends_with("at the cluster scope: no"), "{}", told(false));
}

#[test]
fn before_there_were_modes_the_uid_came_last() {
    let jane = UserInfo::authenticated("jane", vec![]);
    let parts = [(USER, "joe"), (GROUP, "dev"), (UID, "u")];
    let wanted = wanted(&headers(&parts)).expect("the headers make sense").expect("they ask for somebody");
    let request = Attributes::Path { verb: "get", path: "/version" };
    let may_be_joe = Lists(&["impersonate /users/ /joe"]);
    let asked = impersonate((&may_be_joe, false), &LastModes::default(), &jane, &wanted, &request).now_or_never();
    let refusal = asked.expect("a list is asked at once").expect_err("it refuses");
    assert!(refusal.message.contains("\"groups\""), "{}", refusal.message);
}

#[test]
fn a_service_account_is_asked_about_as_its_node_by_the_keys_of_what_is_known_of_it() {
    let extra = [(UserInfo::NODE_NAME, "n1"), ("authentication.kubernetes.io/pod-name", "p")];
    let extra = extra.map(|(key, value)| (key.to_owned(), vec![value.to_owned()]));
    let name = "system:serviceaccount:n:ci".to_owned();
    let agent = UserInfo { name, extra: BTreeMap::from(extra.clone()), ..UserInfo::default() };
    let wanted = UserInfo { name: "system:node:n1".to_owned(), ..UserInfo::default() };
    let fields = crate::meta::selector::FieldSelector::exactly("metadata.name", "a");
    let request = ResourceAttributes { verb: "list", resource: "pods", fields: Some(&fields), ..Default::default() };
    let (refuses, modes, request) = (Refuses::default(), LastModes::default(), Attributes::Resource(request));
    let asked = impersonate((&refuses, true), &modes, &agent, &wanted, &request);
    assert!(asked.now_or_never().is_some_and(|refused| refused.is_err()));
    let asked = refuses.0.into_inner().expect("nobody panics");
    let [(verb, user, has_fields), (other, whole, _), ..] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((verb.as_str(), has_fields), ("impersonate-on:associated-node:list", &true));
    let mut keys: Vec<_> = extra.iter().map(|(key, _)| key.clone()).collect();
    keys.sort();
    assert_eq!(user.extra, BTreeMap::from([("authentication.kubernetes.io/associated-node-keys".to_owned(), keys)]));
    assert_eq!((other.as_str(), &whole.extra), ("impersonate-on:arbitrary-node:list", &agent.extra));
}
