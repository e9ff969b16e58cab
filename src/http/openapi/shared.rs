//! What all documents share: definitions and parameters from files.

use std::sync::LazyLock;

use crate::object;
use crate::packed::packed;
use crate::value::{Map, Value, json};
use crate::work;

/// Definitions and parameters that all kinds share, in the words of v3.
pub(super) struct SharedDefinitions {
    pub(super) definitions: Map,
    pub(super) parameters: Map,
    /// Which fields of a type exclude each other, by the definitions' names.
    pub(super) unions: Map,
}

pub(super) static SHARED: LazyLock<SharedDefinitions> = LazyLock::new(|| work::essential(read_shared));

fn read_shared() -> SharedDefinitions {
    let text = packed!("schemas/openapi.json").bytes();
    let document = json::decode(&text).expect("schemas/openapi.json is JSON");
    let part = |name| document.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    SharedDefinitions { definitions: part("definitions"), parameters: part("parameters"), unions: part("unions") }
}

/// Versions whose delete options and watch events only full API servers list, and not those that serve definitions
/// alone.
const OF_BUILT_IN: [(&str, &str); 7] = [
    ("admission.k8s.io", "v1"),
    ("admission.k8s.io", "v1beta1"),
    ("apiextensions.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1beta1"),
    ("apiregistration.k8s.io", "v1"),
    ("apiregistration.k8s.io", "v1beta1"),
    ("imagepolicy.k8s.io", "v1alpha1"),
];

/// The group-versions listed for the types that exist in every version: delete options and watch events.
#[derive(Clone, Copy)]
pub(super) enum WholeVersions<'a> {
    /// The ones that a server of definitions alone knows, as in its documents.
    OfDefinitions,
    /// Those of the core group and of one built-in group.
    Of { group: &'a str, version: &'a str },
    /// Of all.
    All,
}

impl WholeVersions<'_> {
    /// Lists the versions in the definition of such a type; other types have one version, and stay as they are.
    pub fn name_in(self, definition: &mut Value) {
        const NAMES: &str = "x-kubernetes-group-version-kind";
        let Some(Value::Array(known)) = definition.get(NAMES).filter(|_| !matches!(self, Self::OfDefinitions)) else {
            return;
        };
        let kind = known.first().map(|first| first.str_at(&["kind"])).unwrap_or_default().to_owned();
        if !matches!(kind.as_str(), "DeleteOptions" | "WatchEvent") {
            return;
        }
        let of_all = SHARED.definitions.get("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
        let of_all = of_all.map(|options| options.items_at(&[NAMES])).unwrap_or_default();
        let versions = of_all.iter().map(|known| (known.str_at(&["group"]), known.str_at(&["version"])));
        let mut versions: Vec<(&str, &str)> = versions.chain(OF_BUILT_IN).collect();
        if let Self::Of { group, version } = self {
            versions.retain(|one| [("", "v1"), (group, version)].contains(one));
        }
        versions.sort_unstable();
        versions.dedup();
        let named = versions.into_iter().map(|(group, version)| {
            object! { "group" => group, "kind" => kind.as_str(), "version" => version }
        });
        definition.make_object().insert(NAMES, named.collect::<Vec<_>>().into());
    }
}
