//! Strategic merges as the documentation and the reference have them.

use super::*;
use crate::types;

/// core/v1 Pod, which has every strategy.
fn pod() -> &'static Message {
    types::message_named("core.v1", "Pod")
}

#[track_caller]
fn check(live: &str, patch: &str, expected: &str) {
    let pod = pod();
    let live = json::decode(live.as_bytes()).expect("the test is JSON");
    let (patch, _) = StrategicMergePatch::decode(patch.as_bytes(), true).expect("the test is a patch");
    let found = match patch.apply(&live, pod) {
        Ok(object) => json::encode_to_string(&object),
        Err(error) => format!("{error:?}"),
    };
    assert_eq!(found, expected);
}

#[track_caller]
fn check_spec(live: &str, patch: &str, expected: &str) {
    let spec = |inner: &str| format!(r#"{{"spec":{inner}}}"#);
    check(&spec(live), &spec(patch), &spec(expected));
}

/// A list of `count` items made of their numbers.
fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..count).map(item).collect::<Vec<_>>().join(","))
}

#[track_caller]
fn check_growth(live: impl Fn(usize) -> String, patch: impl Fn(usize) -> String) {
    let pod = pod();
    let steps = |count: usize| {
        let live = json::decode(live(count).as_bytes()).expect("the test is JSON");
        let (patch, _) = StrategicMergePatch::decode(patch(count).as_bytes(), true).expect("the test is a patch");
        work::counted(|| patch.apply(&live, pod).expect("it applies")).1
    };
    let (few, many) = (steps(300), steps(3000));
    assert!(many < 13 * few, "{few} steps, then {many}");
}

#[test]
fn ten_times_the_patch_takes_ten_times_the_steps() {
    let containers = |count| list(count, |at| format!(r#"{{"name":"c{at}","image":"x"}}"#));
    let live = |count| {
        let labels: Vec<_> = (0..count).map(|at| format!(r#""l{at}":"x""#)).collect();
        let (containers, labels) = (containers(count), labels.join(","));
        format!(r#"{{"metadata":{{"finalizers":["a"],"labels":{{{labels}}}}},"spec":{{"containers":{containers}}}}}"#)
    };
    let spec = |items: String| format!(r#"{{"spec":{{"containers":{items}}}}}"#);
    check_growth(live, |count| spec(list(count, |at| format!(r#"{{"name":"c{at}","$patch":"delete"}}"#))));
    check_growth(live, |count| spec(list(count, |at| format!(r#"{{"name":"c{}","image":"y"}}"#, at * 2))));
    // Many items with the same key as one large item.
    check_growth(live, |count| {
        spec(list(count, |at| format!(r#"{{"name":"c0","f{at}":{}}}"#, if at % 2 == 0 { "1" } else { "null" })))
    });
    check_growth(live, |count| {
        let labels: Vec<_> = (0..count).map(|at| format!(r#""l{at}":null"#)).collect();
        let finalizers = list(count, |at| format!(r#""f{at}""#));
        format!(r#"{{"metadata":{{"finalizers":{finalizers},"labels":{{{}}}}}}}"#, labels.join(","))
    });
}

#[test]
fn lists_with_a_merge_key_are_merged_by_it() {
    // Documentation, "Use a strategic merge patch to update a Deployment".
    check_spec(
        r#"{"containers":[{"name":"patch-demo-ctr","image":"nginx"}]}"#,
        r#"{"containers":[{"name":"patch-demo-ctr-2","image":"redis"}]}"#,
        r#"{"containers":[{"image":"redis","name":"patch-demo-ctr-2"},{"image":"nginx","name":"patch-demo-ctr"}]}"#,
    );
    check_spec(
        r#"{"containers":[{"name":"a","image":"1","ports":[{"containerPort":80}]},{"name":"b","image":"2"}]}"#,
        r#"{"containers":[{"name":"a","ports":[{"containerPort":81}]}]}"#,
        r#"{"containers":[{"image":"1","name":"a","ports":[{"containerPort":81},{"containerPort":80}]},{"image":"2","name":"b"}]}"#,
    );
}

#[test]
fn lists_without_a_strategy_are_replaced() {
    check_spec(
        r#"{"tolerations":[{"key":"dedicated","value":"test-team"}]}"#,
        r#"{"tolerations":[{"key":"disktype","value":"ssd"}]}"#,
        r#"{"tolerations":[{"key":"disktype","value":"ssd"}]}"#,
    );
    check_spec(
        r#"{"containers":[{"name":"a","command":["x","y"]}]}"#,
        r#"{"containers":[{"name":"a","command":["z"]}]}"#,
        r#"{"containers":[{"command":["z"],"name":"a"}]}"#,
    );
}

#[test]
fn what_go_keeps_raw_has_no_fields_to_merge() {
    let live = json::decode(br#"{"data":{"spec":{"a":1},"b":2}}"#).expect("the test is JSON");
    let revision = types::message_named("apps.v1", "ControllerRevision");
    let apply = |patch: &[u8]| {
        let (patch, _) = StrategicMergePatch::decode(patch, true).expect("the test is a patch");
        patch.apply(&live, revision).map(|object| json::encode_to_string(&object))
    };
    let why = "unable to find api field in struct RawExtension for the json field \"spec\"".to_owned();
    assert_eq!(apply(br#"{"data":{"spec":{"a":2}}}"#), Err(MergeError::Failed(why)));
    assert_eq!(apply(br#"{"data":{"b":3}}"#), Ok(r#"{"data":{"b":3,"spec":{"a":1}}}"#.to_owned()));
}

#[test]
fn null_removes_a_field() {
    check_spec(
        r#"{"nodeName":"n","nodeSelector":{"a":"1","b":"2"}}"#,
        r#"{"nodeName":null,"nodeSelector":{"a":null,"c":"3"}}"#,
        r#"{"nodeSelector":{"b":"2","c":"3"}}"#,
    );
}

#[test]
fn the_patch_directive_replaces_and_deletes() {
    check_spec(
        r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
        r#"{"containers":[{"$patch":"delete","name":"a"}]}"#,
        r#"{"containers":[{"name":"b"}]}"#,
    );
    check_spec(
        r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
        r#"{"containers":[{"$patch":"replace"},{"name":"c"}]}"#,
        r#"{"containers":[{"name":"c"}]}"#,
    );
    check_spec(
        r#"{"nodeSelector":{"a":"1"},"nodeName":"n"}"#,
        r#"{"nodeSelector":{"$patch":"replace","b":"2"}}"#,
        r#"{"nodeName":"n","nodeSelector":{"b":"2"}}"#,
    );
    check_spec(r#"{"nodeSelector":{"a":"1"}}"#, r#"{"nodeSelector":{"$patch":"delete"}}"#, r#"{"nodeSelector":{}}"#);
}

#[test]
fn primitive_lists_are_merged_and_deleted_from() {
    let finalizers = |names: &str| format!(r#"{{"metadata":{{"finalizers":{names}}}}}"#);
    check(&finalizers(r#"["a/x","b/y"]"#), &finalizers(r#"["c/z","a/x"]"#), &finalizers(r#"["c/z","a/x","b/y"]"#));
    check(
        &finalizers(r#"["a/x","b/y","c/z"]"#),
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["b/y"]}}"#,
        &finalizers(r#"["a/x","c/z"]"#),
    );
}

#[test]
fn the_order_directive_orders() {
    check_spec(
        r#"{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#,
        r#"{"$setElementOrder/containers":[{"name":"c"},{"name":"a"}],"containers":[{"name":"a","image":"1"}]}"#,
        r#"{"containers":[{"name":"b"},{"name":"c"},{"image":"1","name":"a"}]}"#,
    );
    check(
        r#"{"metadata":{"finalizers":["a/x","b/y"]}}"#,
        r#"{"metadata":{"$setElementOrder/finalizers":["b/y","a/x"]}}"#,
        r#"{"metadata":{"finalizers":["b/y","a/x"]}}"#,
    );
}

#[test]
fn retained_keys_are_all_that_stays() {
    check_spec(
        r#"{"volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}]}"#,
        r#"{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"}}]}"#,
        r#"{"volumes":[{"hostPath":{"path":"/x"},"name":"v"}]}"#,
    );
    check(
        r#"{"spec":{"volumes":[{"name":"v"}]}}"#,
        r#"{"spec":{"volumes":[{"name":"v","$retainKeys":["name"],"hostPath":{}}]}}"#,
        r#"Malformed("invalid patch format of retainKeys")"#,
    );
}

#[test]
fn what_does_not_fit_is_told_in_the_words_of_the_reference() {
    for (patch, expected) in [
        (r#"{"containers":[{"image":"x"}]}"#, "map: map[image:x] does not contain declared merge key: name"),
        (r#"{"containers":["x"]}"#, "list element types are not identical: [[map[name:a]] [x]]"),
        (
            r#"{"containers":[{"name":"a","$patch":null}]}"#,
            "unknown patch type: %!s(<nil>) in map: map[$patch:<nil> name:a]",
        ),
        (
            r#"{"containers":[{"name":"a","$patch":5}]}"#,
            "unknown patch type: %!s(int64=5) in map: map[$patch:5 name:a]",
        ),
        (r#"{"containers":[{"$patch":"merge"}]}"#, "merging lists cannot yet be specified in the patch"),
        (r#"{"$setElementOrder/containers":"x"}"#, "expected a []interface {}, but received a string"),
    ] {
        let live = r#"{"spec":{"containers":[{"name":"a"}]}}"#;
        check(live, &format!(r#"{{"spec":{patch}}}"#), &format!("Failed({expected:?})"));
    }
}

#[test]
fn only_objects_are_patches() {
    let error = StrategicMergePatch::decode(b"[1]", false).expect_err("a list is not a patch");
    assert_eq!(error.to_string(), "json: cannot unmarshal array into Go value of type map[string]interface {}");
}

#[test]
fn what_is_not_a_struct_has_no_fields_to_look_up() {
    let live = r#"{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","args":[]}]}}"#;
    // Answers of kube-apiserver 1.36.2.
    for (patch, expected) in [
        (
            r#"{"metadata":{"labels":{"$setElementOrder/c":[]}}}"#,
            "merging an object in json but data type is not struct, instead is: map",
        ),
        (
            r#"{"metadata":{"$setElementOrder/zz":[]}}"#,
            r#"unable to find api field in struct ObjectMeta for the json field "zz""#,
        ),
        (r#"{"spec":{"$setElementOrder/nodeName":[]}}"#, "expected slice or array type, but got: struct"),
    ] {
        check(live, patch, &format!("Failed({expected:?})"));
    }
}

#[test]
fn a_patch_is_shown_without_what_the_merge_took_out_of_it() {
    #[track_caller]
    fn check(live: &str, patch: &str, left: &str) {
        let (patch, _) = StrategicMergePatch::decode(patch.as_bytes(), true).expect("the test is a patch");
        let live = json::decode(live.as_bytes()).expect("the test is JSON");
        assert_eq!(patch.printed(&live, pod()), left);
    }
    // Answers of kube-apiserver 1.36.2.
    let conditions = r#"{"status":{"conditions":[{"type":"a","status":null,"reason":"r"}]}}"#;
    check("{}", conditions, "map[status:map[conditions:[map[reason:r type:a]]]]");
    check(
        r#"{"status":{"conditions":[]}}"#,
        conditions,
        "map[status:map[conditions:[map[reason:r status:<nil> type:a]]]]",
    );
    check("{}", r#"{"$patch":"replace","spec":{"x":null}}"#, "map[spec:map[x:<nil>]]");
    check("{}", r#"{"$patch":"delete","spec":1}"#, "map[$patch:delete spec:1]");
    check(
        r#"{"metadata":{"finalizers":["a"]}}"#,
        r#"{"metadata":{"$setElementOrder/finalizers":["a","b"],"finalizers":["b"],"$retainKeys":["finalizers"]}}"#,
        "map[metadata:map[]]",
    );
    check(
        r#"{"spec":{"containers":[{"name":"a","resources":{}}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":null}}},{"name":"b","image":null}],"nodeName":null}}"#,
        "map[spec:map[containers:[map[name:a resources:map[limits:map[]]] map[image:<nil> name:b]] nodeName:<nil>]]",
    );
}
