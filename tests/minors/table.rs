//! The tables of `docs/minors.md` are made from what the engine knows of each minor.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use kubeskiff::author::{self, BuiltIn};
use kubeskiff::cel::env::{Env, Expressions};
use kubeskiff::cel::library;
use kubeskiff::kinds;
use kubeskiff::meta::gate::Gate;
use kubeskiff::meta::minor::Minor;
use kubeskiff::types;
use kubeskiff::value::yaml;

/// What stands in front of the tables.
const HERE: &str = "<!-- made from the data; a test holds it -->\n";

/// Functions by the minor that brought them, and those whose price changed.
fn functions() -> String {
    let mut by_minor: BTreeMap<(Minor, Minor), Vec<&str>> = BTreeMap::new();
    let mut prices: BTreeSet<(Minor, &str)> = BTreeSet::new();
    for function in library::kubernetes(Minor::NEWEST, Minor::NEWEST) {
        for overload in &function.overloads {
            let stored = overload.since.max(overload.built);
            let names = by_minor.entry((stored, overload.new_since())).or_default();
            // Macros stand in the other table.
            let is_named = !function.name.contains('@');
            if is_named && overload.new_since() > Minor::OLDEST && !names.contains(&function.name) {
                names.push(function.name);
            }
            for (before, _) in &overload.former_costs {
                prices.insert((*before, function.name));
            }
        }
    }
    let code = |names: &[&str]| {
        names.iter().map(|name| format!("`{}`", name.trim_matches('_'))).collect::<Vec<_>>().join(", ")
    };
    let mut text = "| stored rules | new rules | functions |\n|---|---|---|\n".to_owned();
    for ((stored, new), names) in by_minor.iter_mut().filter(|(_, names)| !names.is_empty()) {
        names.sort_unstable();
        let new = if *new > Minor::NEWEST { "later".to_owned() } else { new.to_string() };
        text.push_str(&format!("| {stored} | {new} | {} |\n", code(names)));
    }
    text.push_str("\n| from | functions with another price than before |\n|---|---|\n");
    for minor in Minor::all() {
        let names: Vec<&str> = prices.iter().filter(|(before, _)| *before == minor).map(|(_, name)| *name).collect();
        if !names.is_empty() {
            text.push_str(&format!("| {minor} | {} |\n", code(&names)));
        }
    }
    text
}

/// Something, and whether it is so in a minor.
type Row<'r> = (&'r str, Box<dyn Fn(Minor) -> bool>);

/// What a minor does with a definition or an expression, found out by asking.
fn features() -> String {
    let compiles = |text: &'static str| move |minor| Env::of(minor, Expressions::New).compile(text).is_ok();
    let definition = |rest: &str| {
        let text = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: as.b.c}}\nspec:\n  \
             group: b.c\n  names: {{plural: as, kind: A}}\n  scope: Cluster\n  versions:\n  - {{name: v1, served: true, \
             storage: true, {rest}}}\n"
        );
        yaml::decode(text.as_bytes()).expect("it is YAML")
    };
    let says = |rest: &str, what: fn(&author::Checked) -> bool| {
        let definition = definition(rest);
        move |minor| author::define_in(minor, &definition, None).is_ok_and(|checked| what(&checked))
    };
    let schema = |of_a: &str| format!("schema: {{openAPIV3Schema: {{type: object, properties: {{a: {of_a}}}}}}}");
    let selectable = format!("{}, selectableFields: [{{jsonPath: .a}}]", schema("{type: string}"));
    let selects = |checked: &author::Checked| format!("{:?}", checked.prepared).contains("selectableFields");
    let is_warned = |checked: &author::Checked| !checked.warnings.is_empty();
    let accepts_old = |checked: &author::Checked| checked.errors.is_empty();
    let optional =
        schema("{type: string, x-kubernetes-validations: [{rule: 'oldSelf.hasValue()', optionalOldSelf: true}]}");
    let set =
        schema("{type: array, x-kubernetes-list-type: set, items: {type: object, x-kubernetes-map-type: atomic}}");
    let rows: Vec<Row<'_>> = vec![
        ("`optionalOldSelf`", Box::new(says(&optional, accepts_old))),
        ("`selectableFields`", Box::new(says(&selectable, selects))),
        ("all(key, value, …) and its kin in new rules", Box::new(compiles("{'a': 1}.all(k, v, v > 0)"))),
        ("`sortBy` in new rules", Box::new(compiles("[2, 1].sortBy(x, x) == [1, 2]"))),
        (
            "formats `k8s-short-name` and `k8s-long-name`",
            Box::new(|minor| {
                use kubeskiff::meta::format::Format;
                !Format::effective_in(minor, "string", "k8s-short-name").is_empty()
            }),
        ),
        (
            "formats `int32`, `int64`, `float`, `double` are held against numbers",
            Box::new(|minor| {
                use kubeskiff::meta::format::Format;
                !Format::effective_in(minor, "integer", "int32").is_empty()
            }),
        ),
        ("a warning of formats that mean nothing", Box::new(says(&schema("{type: string, format: nope}"), is_warned))),
        ("the same for formats of numbers", Box::new(says(&schema("{type: integer, format: nope}"), is_warned))),
        ("a warning of sets of lists and maps", Box::new(says(&set, is_warned))),
        (
            "updates are forgiven what they leave alone",
            Box::new(|minor| minor.opens(kubeskiff::meta::gate::Gate::CrdValidationRatcheting)),
        ),
    ];
    let minors: Vec<Minor> = Minor::all().collect();
    let head: Vec<String> = minors.iter().map(Minor::to_string).collect();
    let mut text = format!("| | {} |\n|---|{}\n", head.join(" | "), "---|".repeat(minors.len()));
    for (what, holds) in rows {
        let cells: Vec<&str> = minors.iter().map(|minor| if holds(*minor) { "yes" } else { "" }).collect();
        text.push_str(&format!("| {what} | {} |\n", cells.join(" | ")));
    }
    text
}

/// Versions of built-in kinds that are not served by all minors.
fn served() -> String {
    let mut by_version: BTreeMap<(Minor, Minor, String), Vec<&str>> = BTreeMap::new();
    let mut where_asked: BTreeMap<(Minor, Minor, String), Vec<&str>> = BTreeMap::new();
    for kind in kinds::of_all_minors() {
        let is_served = |minor| BuiltIn::of_in(minor, &kind.api_version(), kind.kind).is_some();
        for (is_there, told) in [
            (&is_served as &dyn Fn(Minor) -> bool, &mut by_version),
            (&|minor| !kind.is_default && kind.is_in(minor), &mut where_asked),
        ] {
            let there: Vec<Minor> = Minor::all().filter(|minor| is_there(*minor)).collect();
            if let (Some(first), Some(last)) = (there.first(), there.last())
                && there.len() < Minor::COUNT
            {
                told.entry((*first, *last, kind.api_version())).or_default().push(kind.kind);
            }
        }
    }
    let table = |told: BTreeMap<(Minor, Minor, String), Vec<&str>>| {
        let mut text = "| from | to | version | kinds |\n|---|---|---|---|\n".to_owned();
        for ((first, last, version), mut kinds) in told {
            kinds.sort_unstable();
            kinds.dedup();
            text.push_str(&format!("| {first} | {last} | {version} | {} |\n", kinds.join(", ")));
        }
        text
    };
    format!("{}\nWhere `--runtime-config` asks for them:\n\n{}", table(by_version), table(where_asked))
}

/// What each gate that changes something here is in each minor, unless somebody sets it.
fn gates() -> String {
    let minors: Vec<Minor> = Minor::all().collect();
    let head: Vec<String> = minors.iter().map(Minor::to_string).collect();
    let mut text = format!("| | {} |\n|---|{}\n", head.join(" | "), "---|".repeat(minors.len()));
    for gate in Gate::all() {
        let cell = |minor: &Minor| match (gate.is_known_in(*minor), gate.is_open_in(*minor)) {
            (false, _) => "",
            (true, false) => "off",
            (true, true) => "on",
        };
        let cells: Vec<&str> = minors.iter().map(cell).collect();
        text.push_str(&format!("| `{}` | {} |\n", gate.name(), cells.join(" | ")));
    }
    text
}

/// Subresources that came later, with the gates that they are behind.
fn parts() -> String {
    let mut text = "| from | subresource | gate |\n|---|---|---|\n".to_owned();
    for (kind, part) in kinds::all().flat_map(|kind| kind.parts.iter().map(move |part| (kind, part))) {
        if part.since > Minor::OLDEST {
            let gate = part.gate.map_or(String::new(), |gate| format!("`{}`", gate.name()));
            text.push_str(&format!("| {} | {}/{} | {gate} |\n", part.since, kind.plural, part.name));
        }
    }
    text
}

/// Fields of built-in kinds by the minor that brought them, of versions that are neither alpha nor beta.
fn fields() -> String {
    let mut by_minor: BTreeMap<Minor, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    let is_stable = |of: &str| !of.contains("alpha") && !of.contains("beta");
    for (of, field, minor) in types::newer_fields().filter(|(of, ..)| is_stable(of)) {
        by_minor.entry(minor).or_default().entry(of).or_default().push(field);
    }
    let mut text = "| from | fields |\n|---|---|\n".to_owned();
    for (minor, types) in by_minor {
        let of_type = |(of, mut fields): (&str, Vec<&str>)| {
            fields.sort_unstable();
            format!("{of}: `{}`", fields.join("`, `"))
        };
        let types: Vec<String> = types.into_iter().map(of_type).collect();
        text.push_str(&format!("| {minor} | {} |\n", types.join("; ")));
    }
    text
}

#[test]
fn the_tables_of_the_documentation_are_those_of_the_data() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/minors.md");
    let page = fs::read_to_string(&file).expect("it is there");
    let (head, _) = page.split_once(HERE).expect("the page says where the tables begin");
    let tables = format!(
        "\n## Definitions\n\n{}\n## Functions\n\n{}\n## Feature gates\n\n{}\n## Kinds\n\n{}\n## Subresources\n\n{}\n\
         ## Fields of built-in kinds\n\n{}",
        features(),
        functions(),
        gates(),
        served(),
        parts(),
        fields()
    );
    let made = format!("{head}{HERE}{tables}");
    if std::env::var_os("SKIFF_UPDATE").is_some() {
        fs::write(&file, &made).expect("the page is writable");
    }
    assert_eq!(page, made, "SKIFF_UPDATE=1 writes it anew");
}
