//! What tests ask of the table of built-in kinds, and the page of documentation that is made of it.

use std::fmt::Write as _;
use std::path::Path;

use kubeskiff::crd::Scope;
use kubeskiff::kinds::{self, Kind};
use kubeskiff::value::{self, yaml};
use serde_json::{Value, json};

use crate::server::Folder;

const HEAD: &str = "\
# Built-in kinds

Every built-in kind that the server knows, with its versions; the stored one is in bold. Versions that are not served by
default are asked for with `--runtime-config`, as `--runtime-config=api/all=true`; those of `scheduling.k8s.io` also need
`--feature-gates=GenericWorkload=true,CompositePodGroup=true`.

Objects of every kind are decoded with the types of Kubernetes 1.37, which is checked by unknown and doubled fields, and get
their defaults. Then the kind's own rules in `engine/src/kinds/served` check them when they are created and updated. *Questions* are
checked by what answers them, and not stored.

[What is checked](what-is-checked.md) tells by kind what these rules look at, and what is not done here.

This page is made from the table of kinds by `tests/kinds.rs`, which fails where it is out of date.
";

/// The kind's example, as JSON.
pub fn example(kind: &Kind) -> Value {
    let object = yaml::decode(kind.example.as_bytes()).expect("the example is YAML");
    let mut object: Value = serde_json::from_slice(&value::json::encode(&object)).expect("it is JSON");
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    object
}

/// Names of subresources, or a dash.
fn subresources(kind: &Kind) -> String {
    let status = kind.status.then_some("status");
    let names: Vec<&str> = status.into_iter().chain(kind.parts.iter().map(|part| part.name)).collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

/// A line of the table of a group.
fn row(kind: &Kind) -> String {
    let stored = kind.is_stored() && kind.review.is_none() && kind.can("create");
    let version = if stored { format!("**{}**", kind.version) } else { kind.version.to_owned() };
    let scope = if kind.scope == Scope::Namespaced { "namespace" } else { "cluster" };
    let default = if kind.is_default { "yes" } else { "no" };
    let checked = if kind.review.is_some() {
        "question"
    } else if !kind.can("create") {
        "never written"
    } else {
        "yes"
    };
    format!(
        "| {} | {version} | `{}` | {scope} | {default} | {} | {checked} |\n",
        kind.kind,
        kind.plural,
        subresources(kind)
    )
}

/// The page: a table for each group.
fn page() -> String {
    let mut kinds: Vec<&Kind> = kinds::all().collect();
    kinds.sort_by_key(|kind| (kind.group, kind.kind, std::cmp::Reverse(kind.is_stored()), kind.version));
    let mut page = HEAD.to_owned();
    for group in kinds.chunk_by(|a, b| a.group == b.group) {
        let name = Some(group[0].group).filter(|name| !name.is_empty()).unwrap_or("core");
        _ = write!(
            page,
            "\n## {name}\n\n| Kind | Version | Resource | Scope | Served by default | Subresources | Rules |\n"
        );
        page += "|---|---|---|---|---|---|---|\n";
        page.extend(group.iter().map(|kind| row(kind)));
    }
    page
}

#[test]
fn the_documentation_lists_every_kind() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kinds.md");
    let page = page();
    if std::fs::read_to_string(file).is_ok_and(|written| written == page) {
        return;
    }
    let folder = Folder::for_test();
    let made = folder.0.join("kinds.md");
    std::fs::write(&made, page).expect("the folder is ours");
    // It stays there, to be copied.
    std::mem::forget(folder);
    panic!("docs/kinds.md is out of date; what it should be is {}", made.display());
}
