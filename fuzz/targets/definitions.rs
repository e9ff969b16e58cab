//! Definitions: from their text to what is served, published and said of them.

use std::sync::Arc;

use kubeskiff::author::{self, CheckOptions, DefinedKind, diff, lint};
use kubeskiff::http::discovery::{self, DiscoveredResource};
use kubeskiff::http::openapi;
use kubeskiff::meta::minor::Minor;
use kubeskiff::object;
use kubeskiff::value::{Value, json};

use super::{Linear, Target};

/// The documents have parts that every definition shares.
pub const TARGET: Target = Target {
    name: "definitions",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 16 << 20, per_byte: 20_000 },
};

/// The input is a definition, a line `---`, and the spec of an object. A definition is the same as itself; what is
/// published of it is JSON; an object that may be created may be written again.
fn run(data: &[u8]) {
    let (definition, spec) = super::parts(data);
    let Ok(definition) = json::decode(definition) else { return };
    _ = lint::lint(&definition);
    _ = author::define(&definition, Some(&definition));
    let Ok(kind) = DefinedKind::new(&definition) else { return };
    assert!(diff::diff(&kind, &kind).is_empty(), "a definition is the same as itself");
    if !kind.errors.is_empty() {
        return;
    }
    let resources: Vec<_> =
        kind.versions.iter().map(|version| DiscoveredResource::custom(Arc::clone(version), false)).collect();
    let documents = [
        json::encode(&discovery::groups(&resources)),
        json::encode(&discovery::aggregated(false, "v2", &resources)),
        openapi::v3_document(kind.versions.iter().cloned(), Minor::NEWEST),
        openapi::v2_document(kind.versions.iter().cloned(), Minor::NEWEST),
    ];
    for text in documents {
        let again = json::decode(&text).map(|document| json::encode(&document));
        assert_eq!(again, Ok(text), "what is published is JSON, and stays as it is");
    }
    if let Ok(spec) = json::decode(spec) {
        write(&kind, spec);
    }
}

fn write(kind: &DefinedKind, spec: Value) {
    let Some(version) = kind.versions.first() else { return };
    let object = object! {
        "apiVersion" => version.api_version(),
        "kind" => version.names.kind.as_str(),
        "metadata" => object! { "name" => "a", "namespace" => "default" },
        "spec" => spec,
    };
    let created = author::create(kind, &object, CheckOptions::default());
    if created.errors.is_empty() {
        let again = author::create(kind, &created.object, CheckOptions::default());
        assert_eq!(again.object, created.object, "what was decoded decodes to itself");
    }
}
