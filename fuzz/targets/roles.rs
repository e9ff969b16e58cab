//! Roles: what they allow, and who may grant them.

use kubeskiff::auth::rbac::{PolicyRule, RbacPolicy, uncovered};
use kubeskiff::auth::{Attributes, ResourceAttributes, UserInfo};
use kubeskiff::value::{Value, json};

use super::{Linear, Target};

pub const TARGET: Target = Target {
    name: "roles",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 1 << 20, per_byte: 3_000 },
};

const BINDING: &[u8] = br#"{"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"u"}]}"#;

/// How much of what is missing is made, as for a message. All of it would be a product.
const MISSING_BYTES_MAX: usize = 64 << 10;

/// The input is a role, a line `---`, and another one. A user with a role may grant it, and nothing that it does not cover; what
/// a rule allows, the role does.
fn run(data: &[u8]) {
    let (own, other) = super::parts(data);
    let (Ok(own), Ok(other)) = (json::decode(own), json::decode(other).or_else(|_| json::decode(b"{}"))) else {
        return;
    };
    let (rules, wanted) = (PolicyRule::all_of(&own), PolicyRule::all_of(&other));
    let user = UserInfo::authenticated("u", Vec::new());
    let mut policy = RbacPolicy::default();
    policy.set_role("r", &own);
    policy.set_binding("b", &json::decode(BINDING).expect("it is JSON"));
    assert!(policy.confirm_no_escalation(&user, "", &rules).is_ok(), "a user with a role may grant it");
    let covered = uncovered(&rules.iter().collect::<Vec<_>>(), &wanted, MISSING_BYTES_MAX).is_nothing();
    assert_eq!(policy.confirm_no_escalation(&user, "", &wanted).is_ok(), covered, "nobody grants more than they have");
    let asked = attributes(&other);
    let is_allowed = rules.iter().any(|rule| rule.allows(&asked));
    assert_eq!(policy.decide(&user, &asked).is_allowed(), is_allowed, "a role allows what one of its rules does");
    policy.remove_binding("b");
    assert!(!policy.decide(&user, &asked).is_allowed(), "who has no role may do nothing");
}

/// A request for the first that the rules of a role name.
fn attributes(role: &Value) -> Attributes<'_> {
    let first = role.items_at(&["rules"]).first().unwrap_or(&Value::Null);
    let word = |name: &str| first.items_at(&[name]).first().and_then(Value::as_str).unwrap_or_default();
    Attributes::Resource(ResourceAttributes {
        verb: word("verbs"),
        group: word("apiGroups"),
        resource: word("resources"),
        name: word("resourceNames"),
        ..ResourceAttributes::default()
    })
}
