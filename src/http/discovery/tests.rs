//! What discovery lists, in both forms.

use super::*;
use crate::crd::{Names, Scale, Scope};

fn foo(version: &str, storage: bool) -> DiscoveredResource {
    let names = Names {
        plural: "foos".into(),
        singular: "foo".into(),
        kind: "Foo".into(),
        list_kind: "FooList".into(),
        short_names: vec!["f".into()],
        categories: Vec::new(),
    };
    let version = ServedVersion {
        group: "discovery-group.example.com".into(),
        version: version.into(),
        names: names.into(),
        scope: Scope::Namespaced,
        schema_generation: 1,
        served: true,
        storage,
        structural: Default::default(),
        rules: Default::default(),
        preserve_unknown_fields: false,
        status: true,
        scale: Some(Scale::default()),
        columns: Vec::new(),
        selectable_fields: Vec::new(),
        deprecation_warning: None,
        minor: Default::default(),
    };
    DiscoveredResource::custom(Arc::new(version), false)
}

#[test]
fn versions_sort_by_stability_then_number() {
    let mut versions = ["foo1", "v1beta1", "v10", "v2", "v11alpha2", "v1beta10", "bar"];
    versions.sort_by(|left, right| compare_versions(left, right));
    assert_eq!(versions, ["v10", "v2", "v1beta10", "v1beta1", "v11alpha2", "bar", "foo1"]);
}

#[test]
fn a_group_prefers_its_best_version() {
    let resources = [foo("v1beta1", false), foo("v2", false), foo("v1", true)];
    let group = group("discovery-group.example.com", &resources).expect("it is served");
    assert_eq!(group.str_at(&["preferredVersion", "version"]), "v2");
    assert_eq!(super::group("other.example.com", &resources), None);
}

#[test]
fn resources_are_listed_with_their_subresources() {
    let resources = [foo("v1beta1", true)];
    let list = group_version("discovery-group.example.com", "v1beta1", &resources).expect("it is served");
    let resources = list.get("resources").and_then(Value::as_array).expect("a list");
    let names: Vec<&str> = resources.iter().map(|resource| resource.str_at(&["name"])).collect();
    assert_eq!(names, ["foos", "foos/status", "foos/scale"]);
    assert_eq!(resources[2].str_at(&["group"]), "autoscaling");
}

#[test]
fn the_client_chooses_aggregated_discovery() {
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let wanted = |accept: &str| wants_aggregated(accept, Minor::NEWEST);
    let form = |encoding| Some(AggregatedForm { version: "v2", encoding, pretty: false });
    assert_eq!(wanted(aggregated), form(Encoding::Json));
    assert_eq!([wanted("application/json"), wanted("*/*"), wanted("")], [None; 3]);
    let older = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    assert_eq!(wanted(older), None);
    assert_eq!(wants_aggregated(older, Minor::of(32)).map(|form| form.version), Some("v2beta1"));
    // Recorded from kube-apiserver 1.36: the plain form does not win over the aggregated one, wherever it stands in the
    // header.
    for (accept, encoding) in [
        ("application/json,application/vnd.kubernetes.protobuf", Encoding::Protobuf),
        ("application/yaml", Encoding::Yaml),
        ("application/json;q=1,application/vnd.kubernetes.protobuf;q=0.5", Encoding::Protobuf),
        ("text/html,*/*", Encoding::Json),
    ] {
        let accept = format!("{accept};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
        assert_eq!(wanted(&accept), form(encoding), "{accept}");
    }
}

#[test]
fn the_core_group_and_other_groups_are_aggregated_apart() {
    let resources = [foo("v1", true)];
    let groups = aggregated(false, "v2", &resources);
    let items = groups.get("items").and_then(Value::as_array).expect("a list");
    assert_eq!(items.len(), 1);
    assert_eq!(aggregated(true, "v2", &resources).get("items"), Some(&Vec::new().into()));
}

/// This many versions, each in a group of its own if `apart`.
fn many(count: usize, apart: bool) -> Vec<DiscoveredResource> {
    let one = |at: usize| {
        let mut resource = foo(&format!("v{}", at + 1), at == 0);
        let version = Arc::make_mut(&mut resource.version);
        if apart {
            version.group = format!("g{at}.example.com");
        }
        resource
    };
    (0..count).map(one).collect()
}

#[test]
fn ten_times_the_resources_take_ten_times_the_steps() {
    type Document = fn(&[DiscoveredResource]) -> Option<Value>;
    let documents: [Document; 4] = [
        |resources| Some(groups(resources)),
        |resources| Some(aggregated(false, "v2", resources)),
        |resources| group("discovery-group.example.com", resources).or_else(|| group("g7.example.com", resources)),
        |resources| group_version("discovery-group.example.com", "v1", resources).or_else(|| Some(object! {})),
    ];
    for (document, apart) in documents.iter().flat_map(|document| [(document, false), (document, true)]) {
        let size = |count| {
            let resources = many(count, apart);
            let (made, steps) = work::counted(|| document(&resources));
            (crate::value::json::encode(&made.expect("it is served")).len(), steps)
        };
        let (small, large) = (size(100), size(1000));
        assert!(large.0 < 13 * small.0 && large.1 < 13 * small.1, "{small:?} {large:?}");
    }
}
