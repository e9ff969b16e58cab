//! Tests of reviews, and of how long answers are cached.

use super::*;
use crate::auth::ResourceAttributes;
use crate::memory::Memory;
use crate::meta::selector::{FieldSelector, LabelSelector};
use crate::value::yaml;

fn read(text: &str) -> Value {
    yaml::decode(text.as_bytes()).expect("the test is YAML")
}

#[test]
fn a_service_is_told_who_wants_what() {
    let user = UserInfo { uid: "u".to_owned(), ..UserInfo::authenticated("jane", vec!["dev".to_owned()]) };
    let fields = FieldSelector::parse("metadata.name=a,spec.x!=b").expect("it is a selector");
    let labels = LabelSelector::parse("d,b=c,a in (z,x),e>1,!f").expect("it is a selector");
    let attributes = Attributes::Resource(ResourceAttributes {
        verb: "list",
        version: "v1",
        resource: "pods",
        namespace: "shop",
        fields: Some(&fields),
        labels: Some(&labels),
        ..ResourceAttributes::default()
    });
    let wanted = ReviewRequest { user: &user, attributes: &attributes, selects: true };
    let selectors = "fieldSelector: {requirements: [{key: metadata.name, operator: In, values: [a]}, \
                         {key: spec.x, operator: NotIn, values: [b]}]}, labelSelector: {requirements: [\
                         {key: a, operator: In, values: [x, z]}, {key: b, operator: In, values: [c]}, \
                         {key: d, operator: Exists}, {key: f, operator: DoesNotExist}]}";
    let who = "user: jane, uid: u";
    let attributes =
        format!("resourceAttributes: {{namespace: shop, verb: list, version: v1, resource: pods, {selectors}}}");
    let expected = format!("{{{attributes}, {who}, groups: [dev, 'system:authenticated']}}");
    assert_eq!(wanted.spec(AccessReviewVersion::V1), read(&expected));
    let expected = format!("{{{attributes}, {who}, group: [dev, 'system:authenticated']}}");
    assert_eq!(wanted.spec(AccessReviewVersion::V1beta1), read(&expected));
    let older = ReviewRequest { selects: false, ..wanted };
    assert_eq!(older.spec(AccessReviewVersion::V1).at(&["resourceAttributes", "labelSelector"]), None);
    let path = Attributes::Path { verb: "get", path: "/x" };
    let nobody = UserInfo::default();
    let wanted = ReviewRequest { user: &nobody, attributes: &path, selects: true };
    assert_eq!(wanted.spec(AccessReviewVersion::V1), read("nonResourceAttributes: {path: /x, verb: get}"));
    let seen = "{nonResourceAttributes: {path: /x, verb: get}, user: '', uid: '', groups: [], extra: {}}";
    assert_eq!(wanted.seen(), read(seen));
}

#[test]
fn an_answer_allows_denies_or_says_nothing() {
    let decide = |status: &str| {
        let answer = read(&format!("status: {status}"));
        let answer = ReviewAnswer::decode(&json::encode(&answer), AccessReviewVersion::V1);
        answer.map(ReviewAnswer::decide).map_err(|error| error.to_string())
    };
    let expected = |verdict, error: &str| Ok(Decision { verdict, reason: "r".to_owned(), error: error.to_owned() });
    assert_eq!(decide("{allowed: true, reason: r}"), expected(Verdict::Allow, ""));
    assert_eq!(decide("{allowed: false, denied: true, reason: r}"), expected(Verdict::Deny, ""));
    assert_eq!(decide("{allowed: false, reason: r}"), expected(Verdict::NoOpinion, ""));
    assert_eq!(decide("{allowed: true, denied: true, reason: r}"), expected(Verdict::Deny, BOTH));
    let unfit =
        "json: cannot unmarshal string into Go struct field SubjectAccessReviewStatus.status.allowed of type bool";
    assert_eq!(decide("{allowed: 'yes'}"), Err(unfit.to_owned()));
}

#[test]
fn an_answer_of_another_type_is_told_as_there() {
    let check = |text: &str, version, expected: &str| {
        let error = ReviewAnswer::decode(text.as_bytes(), version).expect_err("it is of another type");
        assert_eq!(error.to_string(), expected, "{text}");
    };
    let (v1, v1beta1) = (AccessReviewVersion::V1, AccessReviewVersion::V1beta1);
    let converting = |from: &str, to: &str| format!("converting ({from}) to ({to}.{KIND}): unknown conversion");
    check(r#"{"apiVersion":"v1","kind":"Pod"}"#, v1, &converting("v1.Pod", "v1"));
    let beta = r#"{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview"}"#;
    check(beta, v1, &converting("v1beta1.SubjectAccessReview", "v1"));
    let stable = r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview"}"#;
    check(stable, v1beta1, &converting("v1.SubjectAccessReview", "v1beta1"));
    let unknown = format!("no kind \"Y\" is registered for version \"x/v1\" in scheme \"{SCHEME}\"");
    check(r#"{"apiVersion":"x/v1","kind":"Y"}"#, v1, &unknown);
    check("{", v1, "couldn't get version/kind; json parse error: unexpected end of JSON input");
}

/// A service that can't be reached.
fn webhook() -> AccessWebhook {
    let answering = Answering {
        version: AccessReviewVersion::V1,
        timeout: Duration::from_secs(1),
        authorized_ttl: Duration::from_secs(60),
        unauthorized_ttl: Duration::ZERO,
        on_failure: Verdict::NoOpinion,
        conditions: Vec::new(),
        minor: Minor::NEWEST,
    };
    let address = crate::webhook::Address::Url("https://localhost".to_owned());
    let endpoint = Endpoint { address, ca_bundle: Vec::new(), access: None };
    AccessWebhook::new(
        "w",
        Arc::default(),
        endpoint,
        Arc::new(WebhookClient::new(Vec::new(), Vec::new(), Arc::new(Memory::of_system()))),
        answering,
    )
}

/// Refuses to release.
struct Crowded;

#[async_trait]
impl patience::Releasable for Crowded {
    async fn release(&self) -> bool {
        false
    }

    fn make_room(&self) {}
}

#[tokio::test]
async fn a_request_that_finds_too_many_waiting_is_refused_whatever_the_failure_policy_says() {
    let (webhook, user) = (webhook(), UserInfo::authenticated("jane", Vec::new()));
    let attributes = Attributes::Path { verb: "get", path: "/x" };
    let decision = patience::holding(Arc::new(Crowded), webhook.authorize(&user, &attributes)).await;
    let error = patience::CROWDED.to_owned();
    assert_eq!(decision, Decision { verdict: Verdict::Deny, reason: String::new(), error });
}

#[test]
fn answers_are_remembered_as_long_as_is_said() {
    let webhook = webhook();
    let allowed = ReviewAnswer { allowed: true, ..ReviewAnswer::default() };
    webhook.remember("a".to_owned(), &allowed);
    webhook.remember("b".to_owned(), &ReviewAnswer::default());
    let now = Instant::now();
    let recall = |key: &str, now| webhook.answers().recall(key, now);
    assert_eq!([recall("a", now), recall("b", now)], [Some(allowed), None]);
    assert_eq!(recall("a", now + Duration::from_secs(61)), None);
}
