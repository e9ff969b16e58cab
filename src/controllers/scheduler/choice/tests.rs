//! Where pods go, and why not elsewhere.

use super::super::pending::PendingPod;
use super::super::pod::Pod;
use super::super::preemption::victims;
use super::super::refusal::{awaited, reasons, told};
use super::super::state::{Awaits, State};
use super::choose;
use crate::meta::selector::{Labels as _, PackedLabels};
use crate::value::{Value, yaml};
use crate::work;

fn read(text: &str) -> Value {
    yaml::decode(text.as_bytes()).expect("YAML")
}

/// Three nodes in two zones, with two CPUs each.
fn state() -> State {
    let mut state = State::default();
    for (name, zone) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let node = format!(
            "metadata: {{name: {name}, labels: {{zone: '{zone}', name: {name}}}}}\n\
             status: {{allocatable: {{cpu: '2', memory: 1Gi, pods: '3'}}}}"
        );
        state.take_in_node(name, Some(&read(&node)));
    }
    state
}

fn pod(name: &str, spec: &str) -> Value {
    read(&format!("metadata: {{name: {name}, namespace: d, labels: {{app: {name}}}}}\nspec: {{{spec}}}"))
}

fn put(state: &mut State, name: &str, node: &str, spec: &str) {
    state.place(node, Pod::of(&pod(name, spec)));
}

fn chosen(state: &State, spec: &str) -> Result<String, String> {
    let pod = pod("p", spec);
    choose(&PendingPod::of(&pod), state).map_err(|refused| told(&refused, true))
}

/// How many steps it takes to find a node for a pod of this spec.
fn steps(state: &State, spec: &str) -> u64 {
    let pod = pod("p", spec);
    let wanted = PendingPod::of(&pod);
    work::counted(|| choose(&wanted, state)).1
}

#[test]
fn the_work_of_scores_is_counted_and_grows_as_terms_times_pods() {
    let many = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    let affinity = |kind: &str, count: usize| {
        let term = |_| "{topologyKey: zone, labelSelector: {matchLabels: {app: b}}}".to_owned();
        let terms = many(count, &term);
        format!("affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{terms}]}}}}")
    };
    let spread = |count: usize| {
        let constraint = |_| "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}".to_owned();
        format!("topologySpreadConstraints: [{}]", many(count, &constraint))
    };
    let ports = |address: usize, count: usize| {
        let port = |at: usize| {
            format!("{{containerPort: 1, hostPort: {}, hostIP: 10.0.{address}.{}}}", 1 + at / 200, 1 + at % 200)
        };
        format!("containers: [{{ports: [{}]}}]", many(count, &port))
    };
    let beside = |spec: &str| {
        let mut state = state();
        put(&mut state, "b", "a", spec);
        state
    };
    let plain = beside("");
    for (what, few, many, least) in [
        (
            "affinity",
            steps(&plain, &affinity("podAffinity", 100)),
            steps(&plain, &affinity("podAffinity", 1_000)),
            1_000,
        ),
        (
            "distance",
            steps(&plain, &affinity("podAntiAffinity", 100)),
            steps(&plain, &affinity("podAntiAffinity", 1_000)),
            1_000,
        ),
        ("spread", steps(&plain, &spread(100)), steps(&plain, &spread(1_000)), 1_000),
        (
            "ports",
            steps(&beside(&ports(1, 200)), &ports(2, 200)),
            steps(&beside(&ports(1, 2_000)), &ports(2, 2_000)),
            4_000,
        ),
        (
            "repelled",
            steps(&beside(&affinity("podAntiAffinity", 100)), ""),
            steps(&beside(&affinity("podAntiAffinity", 1_000)), ""),
            1_000,
        ),
    ] {
        assert!(many >= least && many < 13 * few, "{what}: {few} and {many} steps");
    }
}

#[test]
fn pods_are_counted_once_for_all_nodes() {
    const COUNT: usize = 50;
    let term = "{topologyKey: zone, labelSelector: {matchLabels: {app: none}}}";
    let required = format!("requiredDuringSchedulingIgnoredDuringExecution: [{}]", [term; COUNT].join(", "));
    let weighted = format!("{{weight: 1, podAffinityTerm: {term}}}");
    let preferred = format!("preferredDuringSchedulingIgnoredDuringExecution: [{}]", vec![weighted; COUNT].join(", "));
    let spread = |when: &str| {
        let constraint = format!("{{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: {when}, labelSelector: {{}}}}");
        format!("topologySpreadConstraints: [{}]", vec![constraint; COUNT].join(", "))
    };
    // Each node has a pod, with anti-affinity of `there`.
    let state = |nodes: usize, there: &str| {
        let mut state = State::default();
        for at in 0..nodes {
            let name = format!("n{at}");
            let node =
                format!("metadata: {{name: {name}, labels: {{zone: x}}}}\nstatus: {{allocatable: {{pods: '3'}}}}");
            state.take_in_node(&name, Some(&read(&node)));
            put(&mut state, &format!("on-{name}"), &name, there);
        }
        state
    };
    for (what, there, wanted) in [
        ("required affinity", "", format!("affinity: {{podAffinity: {{{required}}}}}")),
        ("required anti-affinity", "", format!("affinity: {{podAntiAffinity: {{{required}}}}}")),
        ("that of others", "affinity: {podAntiAffinity: {REQUIRED}}", String::new()),
        ("preferred affinity", "", format!("affinity: {{podAffinity: {{{preferred}}}}}")),
        ("preferred anti-affinity", "", format!("affinity: {{podAntiAffinity: {{{preferred}}}}}")),
        ("required spread", "", spread("DoNotSchedule")),
        ("preferred spread", "", spread("ScheduleAnyway")),
    ] {
        let there = there.replace("REQUIRED", &required);
        let [few, many] = [10, 100].map(|nodes| steps(&state(nodes, &there), &wanted));
        assert!(few >= COUNT as u64 && many < 13 * few, "{what}: {few} and {many} steps");
    }
}

const CPU_2: &str = "containers: [{resources: {requests: {cpu: '2'}}}]";

#[test]
fn a_pod_goes_where_there_is_room() {
    let mut state = state();
    assert_eq!(chosen(&State::default(), ""), Err("no nodes available to schedule pods".to_owned()));
    put(&mut state, "q", "a", CPU_2);
    put(&mut state, "r", "b", CPU_2);
    assert_eq!(chosen(&state, CPU_2).as_deref(), Ok("c"));
    put(&mut state, "s", "c", CPU_2);
    let none = "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: \
                3 No preemption victims found for incoming pod.";
    assert_eq!(chosen(&state, CPU_2), Err(none.to_owned()));
    let too_much = CPU_2.replace("'2'", "'3'");
    let never = "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: \
                 3 Preemption is not helpful for scheduling.";
    assert_eq!(chosen(&state, &too_much), Err(never.to_owned()));
}

#[test]
fn nodes_keep_pods_away() {
    let mut state = state();
    let tainted = "metadata: {name: a}\nspec: {taints: [{key: k, value: v, effect: NoSchedule}]}\nstatus: {allocatable: {pods: '1'}}";
    state.take_in_node("a", Some(&read(tainted)));
    let cordoned = "metadata: {name: b}\nspec: {unschedulable: true}\nstatus: {allocatable: {pods: '1'}}";
    state.take_in_node("b", Some(&read(cordoned)));
    assert_eq!(chosen(&state, "").as_deref(), Ok("c"));
    let told = "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, \
                1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. \
                no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    assert_eq!(chosen(&state, "nodeSelector: {zone: z}"), Err(told.to_owned()));
    let tolerates = "nodeSelector: {}, tolerations: [{key: k, operator: Exists}], \
                     affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
                     [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}}}";
    assert_eq!(chosen(&state, tolerates).as_deref(), Ok("a"));
}

#[test]
fn a_pod_that_is_to_go_to_certain_nodes_by_name_goes_to_no_other() {
    let state = state();
    let of = |fields: &str| {
        format!(
            "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{fields}]}}}}}}"
        )
    };
    let named = |name: &str| format!("{{matchFields: [{{key: metadata.name, operator: In, values: [{name}]}}]}}");
    let why = |spec: &str| {
        let pod = pod("p", spec);
        choose(&PendingPod::of(&pod), &state).map_err(|refused| reasons(&refused))
    };
    assert_eq!(why(&of(&named("b"))).as_deref(), Ok("b"));
    let told = "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity].";
    assert_eq!(why(&of(&named("z"))), Err(told.to_owned()));
    let both = "{matchFields: [{key: metadata.name, operator: In, values: [a]}, {key: metadata.name, operator: In, values: [b]}]}";
    let told = "0/3 nodes are available: pod affinity terms conflict.";
    assert_eq!(why(&of(both)), Err(told.to_owned()));
    // Another term that names a node is enough.
    assert_eq!(why(&of(&format!("{both}, {}", named("c")))).as_deref(), Ok("c"));
    // One term without a node name leaves all of them.
    let either = format!("{}, {{matchExpressions: [{{key: zone, operator: In, values: [z]}}]}}", named("z"));
    let told = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.";
    assert_eq!(why(&of(&either)), Err(told.to_owned()));
}

#[test]
fn a_pod_prefers_company_over_being_alone_of_its_kind() {
    let mut state = state();
    let owned = |name: &str, spec: &str| {
        let mut pod = pod(name, spec);
        let owner = read("[{kind: ReplicaSet, name: r, uid: u, controller: true}]");
        pod.make_object().entry("metadata").make_object().insert("ownerReferences", owner);
        pod
    };
    put(&mut state, "web", "a", "");
    state.place("a", Pod::of(&owned("first", "")));
    let preferring = "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: \
                      {topologyKey: name, labelSelector: {matchLabels: {app: web}}}}]}}";
    let choose_for = |spec: &str| choose(&PendingPod::of(&owned("second", spec)), &state).expect("there is room");
    assert_eq!(choose_for(preferring), "a");
    assert_ne!(choose_for(""), "a");
}

#[test]
fn pods_attract_repel_and_spread() {
    let mut state = state();
    put(&mut state, "web", "c", "");
    let term = |kind: &str| {
        format!(
            "affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: \
             [{{topologyKey: zone, labelSelector: {{matchLabels: {{app: web}}}}}}]}}}}"
        )
    };
    assert_eq!(chosen(&state, &term("podAffinity")).as_deref(), Ok("c"));
    assert_eq!(chosen(&state, &term("podAntiAffinity")).as_deref(), Ok("a"));
    put(&mut state, "own", "a", &term("podAntiAffinity").replace("web", "p"));
    assert_eq!(chosen(&state, "").as_deref(), Ok("c"));
    let spread = "topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, \
                  labelSelector: {matchLabels: {app: p}}}]";
    let mut state = self::state();
    put(&mut state, "p", "c", "");
    assert!(matches!(chosen(&state, spread).as_deref(), Ok("a" | "b")));
    put(&mut state, "port", "a", "containers: [{ports: [{hostPort: 80, protocol: TCP}]}]");
    let ported = "nodeSelector: {name: a}, containers: [{ports: [{hostPort: 80, protocol: TCP}]}]";
    assert!(chosen(&state, ported).is_err_and(|why| why.contains("1 node(s) didn't have free ports")));
}

#[test]
fn company_is_a_pod_that_all_terms_are_about() {
    let mut state = state();
    put(&mut state, "web", "a", "");
    let term = |key: &str, app: &str| format!("{{topologyKey: {key}, labelSelector: {{matchLabels: {{app: {app}}}}}}}");
    let drawn = |terms: &[String]| {
        let terms = terms.join(", ");
        format!("affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{terms}]}}}}")
    };
    assert_eq!(chosen(&state, &drawn(&[term("zone", "web"), term("name", "web")])).as_deref(), Ok("a"));
    put(&mut state, "db", "a", "");
    assert!(chosen(&state, &drawn(&[term("zone", "web"), term("zone", "db")])).is_err());
    // The first of a group of pods with affinity to each other may be anywhere.
    assert!(chosen(&state, &drawn(&[term("zone", "p"), term("name", "p")])).is_ok());
    assert!(chosen(&state, &drawn(&[term("none", "p")])).is_err());
}

#[test]
fn a_pod_goes_where_its_volumes_are() {
    let state = state();
    let pod = pod("p", "");
    let check = |zone: &str| {
        let terms =
            format!("{{nodeSelectorTerms: [{{matchExpressions: [{{key: zone, operator: In, values: ['{zone}']}}]}}]}}");
        let wanted = PendingPod { volumes: vec![read(&terms)], ..PendingPod::of(&pod) };
        choose(&wanted, &state).map_err(|refused| reasons(&refused))
    };
    assert_eq!(check("y").as_deref(), Ok("c"));
    let why = "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity.";
    assert_eq!(check("z"), Err(why.to_owned()));
}

#[test]
fn what_is_refused_says_what_it_waits_for() {
    let mut state = state();
    put(&mut state, "web", "a", "");
    let check = |state: &State, spec: &str, expected: Awaits| {
        let pod = pod("p", spec);
        let refused = choose(&PendingPod::of(&pod), state).expect_err("it is refused");
        assert_eq!(awaited(&refused), expected, "{spec}");
    };
    check(&state, &CPU_2.replace("'2'", "'3'"), Awaits::ROOM);
    check(&state, "nodeSelector: {zone: z}", Awaits::NODE);
    let term = |kind: &str, app: &str| {
        format!(
            "affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: \
             [{{topologyKey: none, labelSelector: {{matchLabels: {{app: {app}}}}}}}]}}}}"
        )
    };
    check(&state, &term("podAffinity", "db"), Awaits::COMPANY);
    for node in ["a", "b", "c"] {
        put(&mut state, &format!("on-{node}"), node, "");
        let node = state.nodes.get_mut(node).expect("it is there");
        node.labels.insert("none", Value::from("same"));
    }
    check(&state, &term("podAntiAffinity", "web"), Awaits::DISTANCE);
    let spread = "topologySpreadConstraints: [{topologyKey: name, maxSkew: 1, minDomains: 9, whenUnsatisfiable: DoNotSchedule, \
                  labelSelector: {}}]";
    check(&state, spread, Awaits::BALANCE);
    check(&State::default(), "", Awaits::NODE);
}

#[test]
fn the_least_important_make_room() {
    let mut state = state();
    put(&mut state, "high", "a", &format!("priority: 9, {CPU_2}"));
    put(&mut state, "low", "b", &format!("priority: 1, {CPU_2}"));
    put(&mut state, "mid", "c", &format!("priority: 4, {CPU_2}"));
    let victims_of = |priority: i64| {
        let pod = pod("p", &format!("priority: {priority}, {CPU_2}"));
        let wanted = PendingPod::of(&pod);
        let refused = choose(&wanted, &state).expect_err("there is no room");
        victims(&wanted, &refused, &state)
    };
    assert_eq!(victims_of(5), Some(("b".to_owned(), vec!["d/low".to_owned()])));
    assert_eq!(victims_of(1), None);
}

#[test]
fn only_those_in_the_way_make_room() {
    let mut state = state();
    let alone = |app: &str, key: &str, zone: &str| {
        format!(
            "priority: 5, nodeSelector: {{zone: '{zone}'}}, affinity: {{podAntiAffinity: \
             {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: {key}, \
             labelSelector: {{matchLabels: {{app: {app}}}}}}}]}}}}"
        )
    };
    for (name, node) in [("in-the-way", "c"), ("beside", "c"), ("first", "a"), ("second", "b")] {
        put(&mut state, name, node, "priority: 1");
    }
    let victims_of = |state: &State, spec: &str| {
        let pod = pod("p", spec);
        let wanted = PendingPod::of(&pod);
        let refused = choose(&wanted, state).expect_err("others are in the way");
        victims(&wanted, &refused, state)
    };
    let found = victims_of(&state, &alone("in-the-way", "zone", "y"));
    assert_eq!(found, Some(("c".to_owned(), vec!["d/in-the-way".to_owned()])));
    // Others of them would stay in the same zone, whichever node is cleared.
    let mut twins = state;
    for (name, node) in [("first", "a"), ("second", "b")] {
        let mut twin = Pod::of(&pod(name, "priority: 1"));
        let labels = twin.labels.pairs().chain([("app", "twin")]).collect::<Vec<_>>();
        twin.labels = PackedLabels::from(&labels[..]);
        twins.place(node, twin);
    }
    assert_eq!(victims_of(&twins, &alone("twin", "zone", "x")), None);
    // The same goes for a pod that keeps the wanted one away.
    let repelling = alone("p", "zone", "x").replace("priority: 5, nodeSelector: {zone: 'x'}", "priority: 1");
    put(&mut twins, "a-repelling", "c", &repelling);
    let found = victims_of(&twins, "priority: 5, nodeSelector: {zone: 'y'}");
    assert_eq!(found, Some(("c".to_owned(), vec!["d/a-repelling".to_owned()])));
}

#[test]
fn budgets_for_disruptions_are_kept_where_another_can_go() {
    let mut state = state();
    put(&mut state, "low", "a", &format!("priority: 1, {CPU_2}"));
    put(&mut state, "mid", "b", &format!("priority: 4, {CPU_2}"));
    put(&mut state, "high", "c", &format!("priority: 9, {CPU_2}"));
    let budget = |allowed: i64| {
        let text = format!(
            "metadata: {{namespace: d}}\nspec: {{selector: {{matchLabels: {{app: low}}}}}}\nstatus: {{disruptionsAllowed: {allowed}}}"
        );
        super::super::budget::Budget::of(&read(&text)).expect("it selects pods")
    };
    let victims_of = |state: &State, priority: i64| {
        let pod = pod("p", &format!("priority: {priority}, {CPU_2}"));
        let wanted = PendingPod::of(&pod);
        let refused = choose(&wanted, state).expect_err("there is no room");
        victims(&wanted, &refused, state).map(|(node, _)| node)
    };
    assert_eq!(victims_of(&state, 5).as_deref(), Some("a"));
    state.budgets.insert("d/b".to_owned(), budget(0));
    assert_eq!(victims_of(&state, 5).as_deref(), Some("b"));
    // If no other pod can be removed, the budget is violated.
    assert_eq!(victims_of(&state, 2).as_deref(), Some("a"));
    state.budgets.insert("d/b".to_owned(), budget(1));
    assert_eq!(victims_of(&state, 5).as_deref(), Some("a"));
}
