//! Tests with the cases of `k8s.io/apiserver/pkg/admission/plugin/policy/mutating` and `pkg/cel/mutation`, release
//! 1.37, and with further results of their code.

use std::sync::LazyLock;

use super::super::expression::CompileError;
use super::{Misread, Mutated, MutationType, apply_configuration, check_numbers, check_size, check_value, json_patch};
use crate::apply::TypeSchema;
use crate::cel::env::{Env, Expressions};
use crate::cel::eval::Value as Cel;
use crate::cel::types::Type;
use crate::kinds::{self, layout};
use crate::object;
use crate::schema::convert::to_structural;
use crate::schema::json_schema;
use crate::value::{Value, json, yaml};
use crate::work::counted;

static ENV: LazyLock<Env> = LazyLock::new(|| {
    let env = Env::kubernetes(Expressions::Stored).with_variable("object", Type::Dyn);
    env.with_variable("oldObject", Type::Dyn).with_mutations()
});

const WIDGET: &str = "{apiVersion: e.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1, words: [a], tags: [t], labels: \
                      {l: m}, ports: [{name: p, port: 1}]}}";

const DEPLOYMENT: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 1, selector: \
                          {matchLabels: {a: b}}, template: {spec: {containers: [{name: c, image: i, command: [x], env: \
                          [{name: A, value: '1'}]}]}}}}";

fn read(text: &str) -> Value {
    yaml::decode(text.as_bytes()).expect("the test is YAML")
}

fn widgets() -> TypeSchema {
    let schema = "
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              num: {type: number}
              flag: {type: boolean}
              color: {type: string}
              words: {type: array, items: {type: string}}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              labels: {type: object, additionalProperties: {type: string}}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
              at: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}}}
              nest: {type: object, properties: {list: {type: array, items: {type: string}}}}
              of: {type: object, additionalProperties: {type: object, properties: {q: {type: string}}}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer}}}
    ";
    let (schema, _) = json_schema::decode(&read(schema)).expect("it is a schema");
    let schema = to_structural(&schema).expect("the schema is structural");
    TypeSchema::of_custom_resource(&schema, false)
}

/// The object after the expression, or its error.
fn mutate(patch: MutationType, expression: &str, object: &Value) -> Result<Option<Value>, String> {
    let program = patch.compile(expression, &ENV).map_err(|error| error.text().to_owned())?;
    let old = Value::Null;
    let evaluation = program.evaluate(&[Some(Ok(Cel::json(object))), Some(Ok(Cel::json(&old)))], 1_000_000);
    let value = evaluation.result.map_err(|error| error.to_string())?;
    let mutated = match patch {
        MutationType::ApplyConfiguration => {
            let types = match object.str_at(&["kind"]) {
                "Widget" => Some(widgets()),
                kind => kinds::type_of(object.str_at(&["apiVersion"]), kind).map(TypeSchema::of_message),
            };
            apply_configuration::merge(&value, object, types.as_ref()).map(Some)
        }
        MutationType::JsonPatch => json_patch::apply(&value, object, layout::of(object)),
    };
    mutated.map_err(|error| error.to_string())
}

/// Checks the spec after a mutation, or its error.
#[track_caller]
fn check(patch: MutationType, object: &str, expression: &str, expected: Result<&str, &str>) {
    let found = mutate(patch, expression, &read(object));
    match expected {
        Ok(spec) => {
            let found = found.unwrap_or_else(|why| panic!("{expression}: {why}"));
            let spec = read(spec);
            assert_eq!(found.as_ref().and_then(|object| object.get("spec")), Some(&spec), "{expression}");
        }
        Err(why) => {
            let shown = found.map(|object| object.map(|object| json::encode_to_string(&object)));
            assert_eq!(shown.as_ref().map_err(String::as_str), Err(why), "{expression}");
        }
    }
}

#[track_caller]
fn applies(expression: &str, expected: &str) {
    check(MutationType::ApplyConfiguration, WIDGET, expression, Ok(expected));
}

#[track_caller]
fn refuses(expression: &str, why: &str) {
    check(MutationType::ApplyConfiguration, WIDGET, expression, Err(why));
}

#[track_caller]
fn unfit(expression: &str, why: &str) {
    let prefix = "error applying patch: failed to convert patch object to typed object: ";
    refuses(expression, &format!("{prefix}{why}"));
}

#[track_caller]
fn patches(expression: &str, expected: Result<&str, &str>) {
    check(MutationType::JsonPatch, WIDGET, expression, expected);
}

const REST: &str = "words: [a], tags: [t], labels: {l: m}, ports: [{name: p, port: 1}]";

#[test]
fn an_apply_configuration_sets_what_it_names() {
    applies("Object{}", &format!("{{size: 1, {REST}}}"));
    applies("Object{spec: Object.spec{size: object.spec.size + 1}}", &format!("{{size: 2, {REST}}}"));
    applies("Object{spec: {'color': 'b'}}", &format!("{{size: 1, color: b, {REST}}}"));
    applies("Object{spec: Object.spec{color: optional.of('x')}}", &format!("{{size: 1, color: x, {REST}}}"));
    applies(
        "Object{spec: Object.spec{?color: optional.none(), ?size: optional.of(3)}}",
        &format!("{{size: 3, {REST}}}"),
    );
    applies("Object{spec: Object.spec{?color: oldObject.?spec.color}}", &format!("{{size: 1, {REST}}}"));
    applies("Object{apiVersion: 'v9', kind: 'Other'}", &format!("{{size: 1, {REST}}}"));
}

#[test]
fn sets_and_lists_with_keys_and_maps_are_merged() {
    applies(
        "Object{spec: Object.spec{tags: ['u'] + ['v'], labels: {'a': 'b'}, ports: [Object.spec.ports{name: 'q'}, \
         Object.spec.ports{name: 'p', port: 2}]}}",
        "{size: 1, words: [a], tags: [t, u, v], labels: {a: b, l: m}, ports: [{name: q}, {name: p, port: 2}]}",
    );
    applies(
        "Object{spec: Object.spec{ports: object.spec.ports.map(p, Object.spec.ports{name: p.name, port: 9})}}",
        "{size: 1, words: [a], tags: [t], labels: {l: m}, ports: [{name: p, port: 9}]}",
    );
    applies(
        "Object{spec: Object.spec{ports: [object.spec.ports[0]]}}",
        "{size: 1, words: [a], tags: [t], labels: {l: m}, ports: [{name: p, port: 1}]}",
    );
    applies(
        "Object{spec: Object.spec{of: {'a': Object.spec.of{q: '1'}}}}",
        &format!("{{size: 1, of: {{a: {{q: '1'}}}}, {REST}}}"),
    );
}

#[test]
fn empty_lists_that_an_expression_makes_add_nothing_and_remove_empty_ones() {
    applies("Object{spec: Object.spec{tags: [], ports: []}}", &format!("{{size: 1, {REST}}}"));
    let applied = |object: &str, expression: &str, expected: &str| {
        check(MutationType::ApplyConfiguration, object, expression, Ok(expected));
    };
    let bare = "{apiVersion: e.com/v1, kind: Widget, spec: {words: []}}";
    applied(
        bare,
        "Object{spec: Object.spec{tags: [], ports: ['a'].filter(x, false).map(x, Object.spec.ports{})}}",
        "{words: []}",
    );
    // The object's own is a list as any other.
    applied(bare, "Object{spec: Object.spec{tags: object.spec.words}}", "{words: [], tags: []}");
    let empty = "{apiVersion: e.com/v1, kind: Widget, spec: {tags: [], size: 1}}";
    applied(empty, "Object{spec: Object.spec{tags: []}}", "{size: 1}");
}

#[test]
fn an_empty_list_of_an_item_leaves_other_items_alone() {
    const PODS: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: [{name: \
                        first, env: []}, {name: second, env: []}]}}}}";
    let container = "Object.spec.template.spec.containers{name: 'third', env: []}";
    let expression = format!(
        "Object{{spec: Object.spec{{template: Object.spec.template{{spec: Object.spec.template.spec{{containers: \
         [{container}]}}}}}}}}"
    );
    let expected = "{template: {spec: {containers: [{name: first, env: []}, {name: second, env: []}, {name: third}]}}}";
    check(MutationType::ApplyConfiguration, PODS, &expression, Ok(expected));
}

#[test]
fn strings_that_a_function_made_are_not_a_list_until_one_is_made_of_them() {
    unfit("Object{spec: Object.spec{tags: 'u,v'.split(',')}}", ".spec.tags: expected list, got &{[u v]}");
    unfit(
        "Object{spec: Object.spec{color: 'u v'.findAll('[a-z]')}}",
        ".spec.color: expected string, got &value.valueUnstructured{Value:[]string{\"u\", \"v\"}}",
    );
    let tags = "{size: 1, words: [a], tags: [t, u, v], labels: {l: m}, ports: [{name: p, port: 1}]}";
    applies("Object{spec: Object.spec{tags: 'u,v'.split(',').map(x, x)}}", tags);
    applies("Object{spec: Object.spec{tags: 'u'.split(',') + ['v']}}", tags);
}

#[test]
fn lists_and_maps_of_the_object_are_taken_over_with_their_nulls() {
    const HOLDER: &str = "{apiVersion: e.com/v1, kind: Widget, spec: {size: 1, labels: {l: m, n: null}}}";
    let expression = "Object{spec: Object.spec{labels: object.spec.labels}}";
    check(MutationType::ApplyConfiguration, HOLDER, expression, Ok("{size: 1, labels: {l: m, n: null}}"));
    let literal = "Object{spec: Object.spec{labels: {'n': null}}}";
    let why = "error applying patch: failed to convert patch object to typed object: .spec.labels.n: expected string, got \
               &value.valueUnstructured{Value:0}";
    check(MutationType::ApplyConfiguration, HOLDER, literal, Err(why));
}

#[test]
fn what_is_atomic_is_refused() {
    refuses(
        "Object{spec: Object.spec{words: ['x']}}",
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.words",
    );
    refuses(
        "Object{spec: Object.spec{at: Object.spec.at{a: 'x'}, nest: Object.spec.nest{list: ['a']}}}",
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.at, \
         .spec.nest.list",
    );
    check(
        MutationType::ApplyConfiguration,
        DEPLOYMENT,
        "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'x': 'y'}}}}",
        Err(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector",
        ),
    );
    check(
        MutationType::ApplyConfiguration,
        DEPLOYMENT,
        "Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{uid: 'u'}]}}",
        Err("error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
             .metadata.ownerReferences[0]"),
    );
}

#[test]
fn parts_are_called_by_where_they_are() {
    let mismatch = |found: &str, expected: &str| {
        format!(
            "type mismatch: unexpected type name \"{found}\", expected \"{expected}\", which matches field name path from \
             root Object type"
        )
    };
    refuses("Object{spec: Object.wrong{color: 'x'}}", &mismatch("Object.wrong", "Object.spec"));
    refuses(
        "Object{spec: Object.spec{ports: [Object.spec.port{}]}}",
        &mismatch("Object.spec.port", "Object.spec.ports"),
    );
    refuses("Object{spec: Object.spec{of: {'a': Object.spec{}}}}", &mismatch("Object.spec", "Object.spec.of"));
}

#[test]
fn what_does_not_fit_the_types_is_told() {
    unfit("Object{spec: Object.spec{nope: 'x'}}", ".spec.nope: field not declared in schema");
    unfit("Object{status: Object.status{x: 1}}", ".status: field not declared in schema");
    unfit("Object{spec: Object.spec{size: 'x'}}", ".spec.size: expected numeric (int or float), got string");
    unfit(
        "Object{spec: Object.spec{flag: 'x', color: 1}}",
        "errors:\n  .spec.color: expected string, got &value.valueUnstructured{Value:1}\n  .spec.flag: expected boolean, got \
         &{x}",
    );
    unfit("Object{spec: Object.spec{tags: ['a', 'a']}}", ".spec.tags: duplicate entries for key [=\"a\"]");
    unfit(
        "Object{spec: Object.spec{ports: [Object.spec.ports{port: 1}]}}",
        ".spec.ports: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't \
         have default values for any key fields)",
    );
}

#[test]
fn what_a_library_has_is_told_as_go_prints_it() {
    let text = |value: &str, syntax: &str| {
        unfit(
            &format!("Object{{spec: Object.spec{{color: {value}}}}}"),
            &format!(".spec.color: expected string, got &value.valueUnstructured{{Value:{syntax}}}"),
        );
    };
    let quantity = "(*resource.Quantity)(0x0)";
    let address = "netip.Addr{addr:netip.uint128{hi:0x0, lo:0xffff0a000000}, \
                   z:unique.Handle[net/netip.addrDetail]{value:(*netip.addrDetail)(0x0)}}";
    let version = "semver.Version{Major:0x1, Minor:0x2, Patch:0x3, Pre:[]semver.PRVersion(nil), Build:[]string(nil)}";
    text("timestamp('2024-02-03T04:05:06.7Z')", "time.Date(2024, time.February, 3, 4, 5, 6, 700000000, time.UTC)");
    text(
        "timestamp('2024-12-03T04:05:06+02:00')",
        "time.Date(2024, time.December, 3, 4, 5, 6, 0, time.Location(\"\"))",
    );
    text("quantity('1.5Gi')", quantity);
    text("url('https://a.b/c')", "(*url.URL)(0x0)");
    text("ip('10.0.0.0')", address);
    text("cidr('10.0.0.0/8')", &format!("netip.Prefix{{ip:{address}, bitsPlusOne:0x9}}"));
    text("semver('1.2.3')", version);
    text(
        "semver('1.2.3-a.1+b.c')",
        "semver.Version{Major:0x1, Minor:0x2, Patch:0x3, Pre:[]semver.PRVersion{semver.PRVersion{VersionStr:\"a\", \
         VersionNum:0x0, IsNum:false}, semver.PRVersion{VersionStr:\"\", VersionNum:0x1, IsNum:true}}, \
         Build:[]string{\"b\", \"c\"}}",
    );
    unfit(
        "Object{spec: Object.spec{size: quantity('1')}}",
        ".spec.size: expected numeric (int or float), got *resource.Quantity",
    );
}

#[test]
fn what_is_in_a_list_is_told_in_the_types_of_the_evaluator() {
    for (value, syntax) in [
        ("1u", "0x1"),
        ("b'ab'", "types.Bytes{0x61, 0x62}"),
        ("duration('3s')", "types.Duration{Duration:3000000000}"),
        ("timestamp(0)", "time.Date(1970, time.January, 1, 0, 0, 0, 0, time.UTC)"),
        ("quantity('1')", "cel.Quantity{Quantity:(*resource.Quantity)(0x0)}"),
        ("quantity('1').add(1)", "(*cel.Quantity)(0x0)"),
        ("url('http://a')", "cel.URL{URL:(*url.URL)(0x0)}"),
        ("[1]", "(*types.baseList)(0x0)"),
        ("{'a': 1}", "(*types.baseMap)(0x0)"),
        ("int", "(*types.Type)(0x0)"),
        ("optional.of(1)", "(*types.Optional)(0x0)"),
    ] {
        unfit(
            &format!("Object{{spec: Object.spec{{labels: {{'a': [{value}]}}}}}}"),
            &format!(".spec.labels.a: expected string, got &value.valueUnstructured{{Value:[]ref.Val{{{syntax}}}}}"),
        );
    }
}

#[test]
fn what_json_does_not_have_is_told_as_go_has_it() {
    let element = ".spec.ports: element 0: associative list with keys may not have non-map elements";
    unfit("Object{spec: Object.spec{ports: [{'name': 'http'}]}}", element);
    unfit("Object{spec: {'labels': {'a': 'b'}}}", ".spec.labels: expected map, got &{map[a:b]}");
    unfit("Object{spec: {'tags': ['a', 'b']}}", ".spec.tags: expected list, got &{[a b]}");
    for (list, printed) in [
        ("[false]", "[false]"),
        ("[['a', 'b'], ['c']]", "[[a, b] [c]]"),
        ("[{'a': ['x', 'y']}]", "[{a: [x, y]}]"),
        ("[[b'ab', b'c']]", "[[[97 98], [99]]]"),
    ] {
        unfit(
            &format!("Object{{spec: {{'tags': {list}}}}}"),
            &format!(".spec.tags: expected list, got &{{{printed}}}"),
        );
    }
    unfit("Object{spec: {'labels': {'a': {'b': 1}}}}", ".spec.labels: expected map, got &{map[a:{b: 1}]}");
    unfit("Object{spec: Object.spec{any: {'y': {'z': 1}}}}", ".spec.any.y: expected map, got &{map[z:1]}");
    unfit("Object{spec: null}", ".spec: expected map, got &{NULL_VALUE}");
    unfit(
        "Object{spec: Object.spec{size: null}}",
        ".spec.size: expected numeric (int or float), got structpb.NullValue",
    );
    unfit("Object{spec: Object.spec{size: 5u}}", ".spec.size: expected numeric (int or float), got uint64");
    unfit(
        "Object{spec: Object.spec{color: b'abc'}}",
        ".spec.color: expected string, got &value.valueUnstructured{Value:[]uint8{0x61, 0x62, 0x63}}",
    );
    unfit(
        "Object{spec: Object.spec{labels: {'a': ['x']}}}",
        ".spec.labels.a: expected string, got &value.valueUnstructured{Value:[]ref.Val{\"x\"}}",
    );
    unfit(
        "Object{spec: Object.spec{tags: [['x']]}}",
        ".spec.tags[={{undefined}}]: expected string, got &value.valueUnstructured{Value:[]ref.Val{\"x\"}}",
    );
    unfit(
        "Object{spec: Object.spec{labels: {true: 'x'}}}",
        ".spec: expected map, got &{fail to convert field \"labels\": map key %!q(types.Bool=true) is of type types.Bool, not \
         string}",
    );
    for (key, shown) in [("1", "'\\x01'"), ("39", "'\\''"), ("34u", "'\"'"), ("65", "'A'"), ("-1", "'\u{fffd}'")] {
        let go_type = if key.ends_with('u') { "types.Uint" } else { "types.Int" };
        unfit(
            &format!("Object{{spec: Object.spec{{labels: {{{key}: 'x'}}}}}}"),
            &format!(
                ".spec: expected map, got &{{fail to convert field \"labels\": map key {shown} is of type {go_type}, not \
                 string}}"
            ),
        );
    }
}

#[test]
fn numbers_that_json_does_not_have_can_not_be_written() {
    let check = |object: Value, expected: Result<(), &'static str>| {
        assert_eq!(check_numbers(&object), expected.map_err(Misread::Unwritable));
    };
    let nested = |number: f64| object! { "spec" => vec![object! { "weight" => Value::Float(number) }] };
    check(nested(0.5), Ok(()));
    check(nested(f64::INFINITY), Err("json: unsupported value: +Inf"));
    check(nested(f64::NEG_INFINITY), Err("json: unsupported value: -Inf"));
    check(nested(f64::NAN), Err("json: unsupported value: NaN"));
}

#[test]
fn built_in_kinds_have_types() {
    let spec = |replicas: &str, container: &str| {
        format!(
            "{{replicas: {replicas}, selector: {{matchLabels: {{a: b}}}}, template: {{spec: {{containers: [{container}]}}}}}}"
        )
    };
    let container = "{name: c, image: i, command: [x], env: [{name: A, value: '1'}]}";
    let check = |expression: &str, expected: Result<&str, &str>| {
        check(MutationType::ApplyConfiguration, DEPLOYMENT, expression, expected);
    };
    check("Object{spec: Object.spec{replicas: 3}}", Ok(&spec("3", container)));
    check(
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: \
         [Object.spec.template.spec.containers{name: 'c', image: 'j', env: [Object.spec.template.spec.containers.env{name: \
         'A', value: '2'}]}]}}}}",
        Ok(&spec("1", "{name: c, image: j, command: [x], env: [{name: A, value: '2'}]}")),
    );
    check(
        "Object{spec: Object.spec{replicasx: 1}}",
        Err(
            "error applying patch: failed to convert patch object to typed object: .spec.replicasx: field not declared in \
             schema",
        ),
    );
    self::check(
        MutationType::ApplyConfiguration,
        "{apiVersion: policy/v1, kind: Nope}",
        "Object{}",
        Err(
            "error applying patch: failed to convert patch object to typed object: no corresponding type for policy/v1, \
             Kind=Nope",
        ),
    );
}

#[test]
fn entries_that_stand_twice_become_one_where_they_are_changed() {
    let object = "{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, env: [{name: t, value: a}, {name: t, value: b}, \
                  {name: f, value: g}]}]}}";
    check(
        MutationType::ApplyConfiguration,
        object,
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', env: [Object.spec.containers.env{name: 't', \
         value: 'c'}]}]}}",
        Ok("{containers: [{name: c, env: [{name: t, value: c}, {name: f, value: g}]}]}"),
    );
    check(
        MutationType::ApplyConfiguration,
        object,
        "Object{spec: Object.spec{hostNetwork: true}}",
        Ok(
            "{hostNetwork: true, containers: [{name: c, env: [{name: t, value: a}, {name: t, value: b}, {name: f, value: g}]}]}",
        ),
    );
}

#[test]
fn an_expression_gives_what_its_mutation_takes() {
    let check = |patch: MutationType, expression: &str, expected: &str| {
        let found = patch.compile(expression, &ENV).err();
        assert_eq!(found.as_ref().map(CompileError::text), Some(expected), "{expression}");
    };
    let apply = MutationType::ApplyConfiguration;
    check(apply, "'x'", "must evaluate to Object but got string");
    check(apply, "dyn(Object{})", "must evaluate to Object but got dyn");
    check(apply, "Object.spec{}", "must evaluate to Object but got Object.spec");
    check(apply, "Object", "must evaluate to Object but got type(Object)");
    check(apply, "true ? null : Object{}", "must evaluate to Object but got null_type");
    let undefined = "program instantiation failed: reference to undefined type: Object";
    check(apply, "type(Object{}) == Object ? Object{} : Object{}", undefined);
    let no_type = "unexpected compilation error: missing type conversion to proto: ";
    check(apply, "Object{x: JSONPatch{}.nope}", no_type);
    let patch = MutationType::JsonPatch;
    check(patch, "[]", "must evaluate to list(JSONPatch) but got list(dyn)");
    check(patch, "[1]", "must evaluate to list(JSONPatch) but got list(int)");
    check(patch, "JSONPatch{}", "must evaluate to list(JSONPatch) but got JSONPatch");
    check(patch, "{'a': JSONPatch{}}", "must evaluate to list(JSONPatch) but got map(string, JSONPatch)");
    check(
        patch,
        "[JSONPatch{op: 1}]",
        "compilation failed: ERROR: <input>:1:14: expected type of field 'op' is 'string' but provided type is 'int'\n | \
         [JSONPatch{op: 1}]\n | .............^",
    );
    check(
        patch,
        "[JSONPatch{nope: 1}]",
        "compilation failed: ERROR: <input>:1:16: expected type of field 'nope' is '' but provided type is 'int'\n | \
         [JSONPatch{nope: 1}]\n | ...............^",
    );
}

#[test]
fn fields_of_objects_can_be_read() {
    let color = |expression: &str, expected: &str| {
        applies(
            &format!("Object{{spec: Object.spec{{color: {expression}}}}}"),
            &format!("{{size: 1, color: {expected}, {REST}}}"),
        );
    };
    color("Object{a: '1'}.a", "'1'");
    color("Object{a: Object.a{b: 'x'}}.a.b", "x");
    color("string(has(Object{a: '1'}.b))", "'false'");
    color("string(has(dyn(Object{a: '1'}).a))", "'false'");
    color("Object{a: '1'}.?b.orValue('d')", "d");
    color("string(Object{l: [1, 2]}.l.sum())", "'3'");
    color("string(Object{a: {'x': 1}} == Object{a: {'x': 1}})", "'true'");
    color("string(Object{a: [1]} == Object{a: [1]})", "'false'");
    color("string(Object{a: 1} == Object{a: 1u})", "'false'");
    color("string(dyn(Object{a: 1}) == 1)", "'false'");
    color("string(JSONPatch{value: 1} == JSONPatch{value: 1.0})", "'true'");
    color("string(JSONPatch{}.value == null)", "'true'");
    color("JSONPatch{}.op + 'x'", "x");
    color("JSONPatch{}.?op.orValue('q')", "q");
    color("jsonpatch.escapeKey('~/a~1')", "'~0~1a~01'");
    refuses("Object{spec: Object.spec{color: dyn(Object{a: '1'}).a}}", "no such key: a");
    refuses("Object{spec: Object.spec{color: Object{a: {1: 'x'}}.a}}", "cannot get field \"a\"");
    refuses("Object{spec: Object.spec{color: dyn(JSONPatch{}).nope}}", "unsupported indexer: nope");
    let unexpected = "unexpected type int64 for JSONPatchType 'op' field";
    refuses("Object{spec: Object.spec{color: JSONPatch{op: dyn(1)}.op}}", unexpected);
}

#[test]
fn operations_are_applied_in_order() {
    let done = |operations: &str, expected: &str| patches(operations, Ok(expected));
    done("[JSONPatch{op: 'add', path: '/spec/size', value: 5}]", &format!("{{size: 5, {REST}}}"));
    done("[JSONPatch{op: 'add', path: '/spec/size', value: 5.0}]", &format!("{{size: 5, {REST}}}"));
    done(
        "[JSONPatch{op: 'test', path: '/spec/size', value: 1}, JSONPatch{op: 'remove', path: '/spec/size'}]",
        &format!("{{{REST}}}"),
    );
    done(
        "[1].map(x, JSONPatch{op: 'add', path: '/spec/size', value: x + 6}) + [JSONPatch{op: 'copy', from: '/spec/size', path: \
         '/spec/num'}]",
        &format!("{{size: 7, num: 7, {REST}}}"),
    );
    done("[JSONPatch{op: 'add', path: '/spec', value: Object.spec{size: 7u, m: {'a': 'b'}}}]", "{size: 7, m: {a: b}}");
    done("[JSONPatch{op: 'add', path: '/spec', value: {'l': [[1], [2]], 'm': [[3]]}}]", "{l: [[1], [2]], m: [[3]]}");
    done("[JSONPatch{op: 'add', path: '/spec', value: {'b': b'abc'}}]", "{b: YWJj}");
    done("[JSONPatch{op: 'add', path: '/spec', value: {'d': duration('1h0.5s')}}]", "{d: 3600.5s}");
    done("[JSONPatch{op: 'add', path: '/spec', value: {'k': 9007199254740993}}]", "{k: '9007199254740993'}");
    done("[JSONPatch{op: 'add', path: '/spec', value: Object.spec{k: 9007199254740993}}]", "{k: 9007199254740992}");
}

#[test]
fn a_test_that_fails_changes_nothing() {
    let found = mutate(
        MutationType::JsonPatch,
        "[JSONPatch{op: 'remove', path: '/spec'}, JSONPatch{op: 'test', path: '/metadata/name', value: 'x'}]",
        &read(WIDGET),
    );
    assert_eq!(found, Ok(None));
}

#[test]
fn operations_that_do_not_apply_are_told() {
    let fails = |operation: &str, why: &str| patches(&format!("[JSONPatch{{{operation}}}]"), Err(why));
    fails("", "JSON Patch: Unexpected kind: ");
    fails("op: 'set', path: '/spec/color', value: 'y'", "JSON Patch: Unexpected kind: set");
    fails(
        "op: 'remove', path: '/spec/color'",
        "JSON Patch: error in remove for path: '/spec/color': Unable to remove nonexistent key: color: missing value",
    );
    fails(
        "op: 'replace', path: '/spec/color/x', value: 'y'",
        "JSON Patch: replace operation does not apply: doc is missing path: /spec/color/x: missing value",
    );
    fails(
        "op: 'copy', path: '/spec/color'",
        "JSON Patch: copy operation failed to decode from: operation, missing from field: missing value",
    );
    fails(
        "op: 'add', path: '/spec/a\\u007f', value: 'x'",
        "JSON Patch: add operation failed to decode path: missing value",
    );
    let marshal = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: ";
    let value = |value: &str, why: &str| {
        fails(&format!("op: 'add', path: '/spec', value: {value}"), &format!("{marshal}{why}"))
    };
    value("optional.none()", "optional.none() dereference");
    value("quantity('1Mi')", "type conversion error from 'Quantity' to '*structpb.Value'");
    value("{1: 'x'}", "unsupported type conversion from 'int' to string");
    value("JSONPatch{}", "cannot convert to native type: *structpb.Value");
    value("Object{n: null}", "proto:\u{a0}invalid type: structpb.NullValue");
    value("Object{l: [[1]]}", "proto:\u{a0}invalid type: []ref.Val");
    value("type(1)", "type conversion not supported for 'type'");
}

#[test]
fn what_a_mutation_makes_is_no_larger_than_what_is_stored() {
    let made = |expression: &str| {
        let program = MutationType::JsonPatch.compile(expression, &ENV).expect("it compiles");
        let value = program.evaluate(&[], u64::MAX).result.expect("it has a value");
        counted(|| check_value(&value))
    };
    let added = |value: &str| format!("[JSONPatch{{op: 'add', path: '/spec/any', value: {value}}}]");
    assert_eq!(made(&added("['a', 'b']")).0, Ok(()));
    // Each level holds the same list of ten items ten times.
    let tenfold = |levels: usize| {
        let ten = "[1,2,3,4,5,6,7,8,9,0]";
        added(&format!("{}{ten}{}", format!("{ten}.map(x, ").repeat(levels), ")".repeat(levels)))
    };
    assert_eq!(made(&tenfold(3)).0, Ok(()));
    let (refused, steps) = made(&tenfold(6));
    assert_eq!(refused, Err(Misread::TooLarge));
    assert!(steps <= 2 << 20, "{steps} steps");

    let object = |bytes: usize| Mutated::Patched(object! { "data" => "x".repeat(bytes).as_str() });
    assert_eq!(check_size(object(4 << 20)), Err(Misread::TooLarge));
    assert!(check_size(object((4 << 20) - 100)).is_ok());
    let numbers = Mutated::Merged(object! { "n" => Value::Array(vec![Value::Int(1); 1_000_000]) });
    assert!(check_size(numbers).is_ok(), "it has two million bytes");
    let refused = Misread::TooLarge.into_status();
    assert_eq!((refused.code, refused.message.as_str()), (500, "etcdserver: request is too large"));
}
