//! Roles and bindings: decisions, and who grants what.

use kubeskiff::auth::rbac::{PolicyRule, RbacPolicy, uncovered};
use kubeskiff::auth::{Attributes, ResourceAttributes, UserInfo};
use kubeskiff::kinds;
use kubeskiff::value::Value;

use crate::inputs::{list, value};
use crate::pass::{Pass, pass};

const SIZE: usize = 20;

fn role(rules: &str) -> Value {
    value(&format!(
        r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{{"name":"r"}},"rules":{rules}}}"#
    ))
}

fn binding(subjects: &str) -> Value {
    value(&format!(
        r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{{"name":"b"}},
        "roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}},"subjects":{subjects}}}"#
    ))
}

fn texts(size: usize, prefix: &str) -> String {
    list(size, |at| format!(r#""{prefix}{at}""#))
}

type Roles = fn(usize) -> Value;

/// Roles that are large in one way each.
const ROLES: [(&str, Roles); 8] = [
    ("many rules", |size| {
        role(&list(size, |at| format!(r#"{{"verbs":["get"],"apiGroups":[""],"resources":["r{at}"]}}"#)))
    }),
    ("many verbs", |size| role(&format!(r#"[{{"verbs":{},"apiGroups":[""],"resources":["r"]}}]"#, texts(size, "v")))),
    ("many groups", |size| {
        role(&format!(r#"[{{"verbs":["get"],"apiGroups":{},"resources":["r"]}}]"#, texts(size, "g")))
    }),
    ("many resources", |size| {
        role(&format!(r#"[{{"verbs":["get"],"apiGroups":[""],"resources":{}}}]"#, texts(size, "r")))
    }),
    ("many names", |size| {
        role(&format!(
            r#"[{{"verbs":["get"],"apiGroups":[""],"resources":["r"],"resourceNames":{}}}]"#,
            texts(size, "n")
        ))
    }),
    ("many paths", |size| role(&format!(r#"[{{"verbs":["get"],"nonResourceURLs":{}}}]"#, texts(size, "/p")))),
    ("verbs of groups of resources of names", |size| {
        // A fourth of the items each.
        let of = |prefix| texts(size.div_ceil(4), prefix);
        role(&format!(
            r#"[{{"verbs":{},"apiGroups":{},"resources":{},"resourceNames":{}}}]"#,
            of("v"),
            of("g"),
            of("r"),
            of("n")
        ))
    }),
    ("one rule many times", |size| {
        role(&list(size, |_| r#"{"verbs":["get"],"apiGroups":[""],"resources":["r"]}"#.to_owned()))
    }),
];

fn user() -> UserInfo {
    UserInfo::authenticated("u", vec!["g".to_owned()])
}

fn asked() -> Attributes<'static> {
    let wanted = ResourceAttributes { verb: "delete", group: "z", resource: "z", ..ResourceAttributes::default() };
    Attributes::Resource(wanted)
}

pub fn passes() -> Vec<Pass> {
    let mut passes = Vec::new();
    for (shape, role) in ROLES {
        let bound = move |size: usize| {
            let mut policy = RbacPolicy::default();
            policy.set_role("r", &role(size));
            policy.set_binding("b", &binding(r#"[{"kind":"User","name":"u"}]"#));
            (policy, PolicyRule::all_of(&role(size)))
        };
        passes.extend([
            pass("role taken in", shape, SIZE, role, |role| {
                let mut policy = RbacPolicy::default();
                policy.set_role("r", role);
                policy
            }),
            pass("role validated", shape, SIZE, role, |role| {
                kinds::find("rbac.authorization.k8s.io", "clusterroles")
                    .map(|kind| kind.strategy.validate_create(&kind.served_version(), role))
            }),
            pass("decision", shape, SIZE, bound, |(policy, _)| policy.decide(&user(), &asked())),
            pass("rules of a user", shape, SIZE, bound, |(policy, _)| {
                policy.rules_for(&user(), "default").resource.len()
            }),
            pass("escalation by who has nothing", shape, SIZE, bound, |(_, rules)| {
                RbacPolicy::default().confirm_no_escalation(&user(), "", rules)
            }),
            pass("escalation by who has it all", shape, SIZE, bound, |(policy, rules)| {
                policy.confirm_no_escalation(&user(), "", rules)
            }),
            pass("rules covered by one", shape, SIZE, bound, |(_, rules)| {
                let all = PolicyRule::full_authority();
                uncovered(&[&all[0], &all[1]], rules, 1 << 20).parts.len()
            }),
        ]);
    }
    passes.extend(bindings());
    passes
}

fn bindings() -> Vec<Pass> {
    let subjects = |size: usize| binding(&list(size, |at| format!(r#"{{"kind":"User","name":"u{at}"}}"#)));
    let of_one = |size: usize| binding(&list(size, |_| r#"{"kind":"User","name":"u"}"#.to_owned()));
    let many = |size: usize| {
        let mut policy = RbacPolicy::default();
        let to_user = binding(r#"[{"kind":"User","name":"u"}]"#);
        (0..size).for_each(|at| policy.set_binding(&format!("b{at}"), &to_user));
        policy
    };
    let take_in = |binding: &Value| {
        let mut policy = RbacPolicy::default();
        policy.set_binding("b", binding);
        policy.remove_binding("b");
    };
    let groups = |size: usize| UserInfo::authenticated("u", (0..size).map(|at| format!("g{at}")).collect());
    // The user is in none of the groups of the binding but the last.
    let of_groups = |size: usize| {
        let mut policy = RbacPolicy::default();
        let last = r#"{"kind":"Group","name":"last"}"#;
        let subjects = (0..size).map(|at| format!(r#"{{"kind":"Group","name":"b{at}"}}"#));
        let subjects: Vec<String> = subjects.chain([last.to_owned()]).collect();
        policy.set_role("r", &role("[]"));
        policy.set_binding("b", &binding(&format!("[{}]", subjects.join(","))));
        let groups = (0..size).map(|at| format!("g{at}")).chain(["last".to_owned()]);
        (policy, UserInfo::authenticated("u", groups.collect()))
    };
    vec![
        pass("binding taken in", "many subjects", SIZE, subjects, take_in),
        pass("binding taken in", "one subject many times", SIZE, of_one, take_in),
        pass("decision", "many bindings to roles that are not there", SIZE, many, |policy| {
            policy.decide(&user(), &asked())
        }),
        pass("rules of a user", "many bindings to roles that are not there", SIZE, many, |policy| {
            policy.rules_for(&user(), "default").error
        }),
        pass("decision", "many groups of a user and of a binding", SIZE, of_groups, |(policy, user)| {
            policy.decide(user, &asked())
        }),
        pass("decision", "many groups of a user", SIZE, groups, |user| RbacPolicy::default().decide(user, &asked())),
    ]
}
