//! Definitions and their schemas, and what is published of them.

use std::sync::Arc;

use kubeskiff::apply::TypeSchema;
use kubeskiff::author::{self, DefinedKind, diff, explain, fix, infer, lint};
use kubeskiff::crd::{self, ServedVersion, defaults, definition as decoding, names, strategy, validate, warnings};
use kubeskiff::http::{discovery, openapi};
use kubeskiff::meta::field::Path;
use kubeskiff::meta::minor::Minor;
use kubeskiff::schema::rules::Rules;
use kubeskiff::schema::structural::Structural;
use kubeskiff::schema::{check, convert, declare, json_schema};
use kubeskiff::value::{Value, yaml};

use crate::inputs::{SCHEMAS, Shape, definition, definition_of, items, list, value};
use crate::pass::{Pass, pass};

const SIZE: usize = 6;
/// Beyond the number of properties from which they are not gone through for each object.
const INFERRED_SIZE: usize = 200;
const BUNDLE_SIZE: usize = 60;
/// The documents have parts that every definition shares: what grows is more than these.
const OPEN_API_SIZE: usize = 40;

pub fn passes() -> Vec<Pass> {
    let mut passes = Vec::new();
    for (shape, schema) in SCHEMAS {
        let document = move |size| value(&definition(&schema(size)));
        let pair = move |size| (document(size), document(size));
        let structure = move |size| structural(&schema(size));
        let kind = move |size| DefinedKind::new(&document(size)).ok();
        passes.extend([
            pass(
                "schema decode",
                shape,
                SIZE,
                move |size| value(&schema(size)),
                |schema| json_schema::decode(schema).map(|(schema, _)| schema.encode()),
            ),
            pass(
                "schema to structural",
                shape,
                SIZE,
                move |size| value(&schema(size)),
                |schema| json_schema::decode(schema).map(|(schema, _)| convert::to_structural(&schema).is_ok()),
            ),
            pass("schema check", shape, SIZE, structure, |schema| {
                schema.as_ref().map(|schema| check::validate_structural(&Path::ROOT, schema))
            }),
            pass("schema types for ownership", shape, SIZE, structure, |schema| {
                schema.as_ref().map(|schema| TypeSchema::of_custom_resource(schema, false))
            }),
            pass("schema declared for rules", shape, SIZE, structure, |schema| {
                schema.as_ref().map(|schema| declare::declare(schema, true))
            }),
            pass("rules compiled", shape, SIZE, structure, |schema| {
                schema.as_ref().map(|schema| Rules::compile(schema, true))
            }),
            pass("definition create", shape, SIZE, document, create),
            pass("definition update", shape, SIZE, pair, |(new, old)| author::define(new, Some(old)).is_ok()),
            pass("definition compile", shape, SIZE, document, DefinedKind::new),
            pass("OpenAPI v3", shape, OPEN_API_SIZE, kind, |kind| {
                kind.as_ref().map(|kind| openapi::v3_document(kind.versions.iter().cloned(), Minor::NEWEST))
            }),
            pass("OpenAPI v2", shape, OPEN_API_SIZE, kind, |kind| {
                kind.as_ref().map(|kind| openapi::v2_document(kind.versions.iter().cloned(), Minor::NEWEST))
            }),
            pass("lint", shape, SIZE, document, lint::lint),
            pass(
                "diff",
                shape,
                SIZE,
                move |size| (kind(size), kind(size.div_ceil(2))),
                |(new, old)| Some((diff::diff(old.as_ref()?, new.as_ref()?), diff::diff(new.as_ref()?, old.as_ref()?))),
            ),
            pass("explain", shape, SIZE, structure, |schema| {
                schema.as_ref().map(|schema| explain::explain(schema, "spec"))
            }),
            pass("fix", shape, SIZE, document, |document| {
                let text = yaml::encode(document);
                let findings = lint::lint(document).unwrap_or_default();
                let findings: Vec<_> = findings.iter().map(|finding| (0, finding)).collect();
                fix::fix(&text, &findings)
            }),
        ]);
    }
    passes.extend(many());
    passes.extend(inferred());
    passes.extend(bundles());
    passes
}

/// The certificates of conversion webhooks.
fn bundles() -> impl Iterator<Item = Pass> {
    let shapes: [Shape; 5] = [
        ("begins", |size| "-----BEGIN A-----\n".repeat(size) + "-----END A-----\n"),
        ("ends", |size| "-----BEGIN A-----\n".to_owned() + &"-----END B-----\n".repeat(size)),
        ("headers", |size| format!("-----BEGIN A-----\n{}\n-----END A-----\n", "k: v\n".repeat(size))),
        ("blocks of headers", |size| "-----BEGIN A-----\nk: v\n-----END A-----\n".repeat(size)),
        ("certificates", |size| "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".repeat(size)),
    ];
    shapes.into_iter().map(|(shape, bundle)| {
        pass("bundle of certificates", shape, BUNDLE_SIZE, bundle, |bundle| {
            validate::ca_bundle::fault(bundle.as_bytes())
        })
    })
}

/// Definitions made of objects that are then held against them.
fn inferred() -> impl Iterator<Item = Pass> {
    let shapes: [Shape; 3] = [
        ("items with a field each", |size| list(size, |at| format!(r#"{{"f{at}":{at}}}"#))),
        ("items with a name each", |size| list(size, |at| format!(r#"{{"name":"n{at}"}}"#))),
        ("fields", |size| format!("{{{}}}", items(size, |at| format!(r#""f{at}":{at}"#)))),
    ];
    shapes.into_iter().map(|(shape, spec)| {
        let object = move |size| {
            let head = r#""apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}"#;
            vec![value(&format!(r#"{{{head},"spec":{{"s":{}}}}}"#, spec(size)))]
        };
        pass("infer", shape, INFERRED_SIZE, object, |objects| {
            let definition = infer::infer(objects, &infer::Hints::default()).expect("it is of one kind");
            infer::faults(&definition, objects)
        })
    })
}

fn structural(schema: &str) -> Option<Structural> {
    let (schema, _) = json_schema::decode(&value(schema)).ok()?;
    convert::to_structural(&schema).ok()
}

fn create(document: &Value) -> Option<kubeskiff::meta::field::ErrorList> {
    let (mut definition, _) = decoding::decode(document).ok()?;
    defaults::set_defaults(&mut definition);
    strategy::prepare_create(&mut definition);
    _ = (warnings::create(&definition), definition.encode());
    Some(validate::create(&definition))
}

/// Many versions, columns, names and definitions.
fn many() -> Vec<Pass> {
    fn version(name: &str, storage: bool, more: &str) -> String {
        format!(
            r#"{{"name":"{name}","served":true,"storage":{storage},"schema":{{"openAPIV3Schema":{{"type":"object"}}}}{more}}}"#
        )
    }
    let shapes: [Shape; 9] = [
        ("versions", |size| {
            definition_of("widgets", "Widget", &items(size, |at| version(&format!("v{}", at + 1), at == 0, "")))
        }),
        ("one version many times", |size| {
            definition_of("widgets", "Widget", &items(size, |_| version("v1", true, "")))
        }),
        ("columns", |size| {
            let columns = list(size, |at| format!(r#"{{"name":"c{at}","type":"string","jsonPath":".spec.c{at}"}}"#));
            definition_of(
                "widgets",
                "Widget",
                &version("v1", true, &format!(r#","additionalPrinterColumns":{columns}"#)),
            )
        }),
        ("wrong columns", |size| {
            let columns = list(size, |at| format!(r#"{{"name":"c{at}","type":"wrong","jsonPath":"["}}"#));
            definition_of(
                "widgets",
                "Widget",
                &version("v1", true, &format!(r#","additionalPrinterColumns":{columns}"#)),
            )
        }),
        ("selectable fields", |size| {
            let chosen = list(size, |at| format!(r#"{{"jsonPath":".spec.c{at}"}}"#));
            definition_of("widgets", "Widget", &version("v1", true, &format!(r#","selectableFields":{chosen}"#)))
        }),
        ("short names", |size| {
            let names = list(size, |at| format!(r#""s{at}""#));
            definition_of("widgets", "Widget", &version("v1", true, ""))
                .replace(r#""kind":"Widget","#, &format!(r#""kind":"Widget","shortNames":{names},"#))
        }),
        ("categories", |size| {
            let names = list(size, |at| format!(r#""c{at}""#));
            definition_of("widgets", "Widget", &version("v1", true, ""))
                .replace(r#""kind":"Widget","#, &format!(r#""kind":"Widget","categories":{names},"#))
        }),
        ("stored versions", |size| {
            let stored = list(size, |at| format!(r#""v{at}""#));
            let text = definition_of("widgets", "Widget", &version("v1", true, ""));
            format!(
                r#"{},"status":{{"storedVersions":{stored},"conditions":[],"acceptedNames":{{}}}}}}"#,
                &text[..text.len() - 1]
            )
        }),
        ("conditions", |size| {
            let conditions = list(size, |at| format!(r#"{{"type":"T{at}","status":"True"}}"#));
            let text = definition_of("widgets", "Widget", &version("v1", true, ""));
            format!(
                r#"{},"status":{{"storedVersions":["v1"],"conditions":{conditions},"acceptedNames":{{}}}}}}"#,
                &text[..text.len() - 1]
            )
        }),
    ];
    let mut passes = Vec::new();
    for (shape, text) in shapes {
        let document = move |size| value(&text(size));
        let pair = move |size| (document(size), document(size));
        let kind = move |size| DefinedKind::new(&document(size)).ok();
        let half = move |size| (kind(size), kind(size.div_ceil(2)));
        passes.extend([
            pass("definition create", shape, SIZE, document, create),
            pass("definition update", shape, SIZE, pair, |(new, old)| author::define(new, Some(old)).is_ok()),
            pass("definition compile", shape, SIZE, document, DefinedKind::new),
            pass("names accepted", shape, SIZE, document, |document| {
                let (definition, _) = decoding::decode(document).ok()?;
                let accepted = names::accept(&definition, [&definition.status.accepted_names], "2026-01-01T00:00:00Z")?;
                names::establish(&accepted, "2026-01-01T00:00:00Z")
            }),
            pass("lint", shape, SIZE, document, lint::lint),
            pass("diff", shape, SIZE, half, |(new, old)| {
                Some((diff::diff(old.as_ref()?, new.as_ref()?), diff::diff(new.as_ref()?, old.as_ref()?)))
            }),
            pass("discovery", shape, SIZE, kind, |kind| kind.as_ref().map(|kind| discover(&kind.versions))),
            pass("OpenAPI v2", shape, SIZE, kind, |kind| {
                kind.as_ref().map(|kind| openapi::v2_document(kind.versions.iter().cloned(), Minor::NEWEST))
            }),
            pass("OpenAPI v3", shape, SIZE, kind, |kind| {
                kind.as_ref().map(|kind| openapi::v3_document(kind.versions.iter().cloned(), Minor::NEWEST))
            }),
        ]);
    }
    let definitions = |size: usize| {
        let definition = |at| definition_of(&format!("widgets{at}"), &format!("Widget{at}"), &version("v1", true, ""));
        (0..size).map(|at| DefinedKind::new(&value(&definition(at))).expect("it is a definition")).collect::<Vec<_>>()
    };
    passes.push(pass(
        "discovery",
        "definitions of a group",
        SIZE,
        move |size| served(&definitions(size)),
        |versions| discover(versions),
    ));
    passes.push(pass(
        "discovery",
        "definitions of many groups",
        SIZE,
        move |size| {
            let in_group = |at| {
                let text = definition_of("widgets", "Widget", &version("v1", true, ""))
                    .replace("example.com", &format!("g{at}.com"));
                DefinedKind::new(&value(&text)).expect("it is a definition")
            };
            served(&(0..size).map(in_group).collect::<Vec<_>>())
        },
        |versions| discover(versions),
    ));
    passes.push(pass(
        "OpenAPI v2",
        "definitions of a group",
        SIZE,
        move |size| served(&definitions(size)),
        |versions| openapi::v2_document(versions.iter().cloned(), Minor::NEWEST),
    ));
    passes.push(pass(
        "OpenAPI v3",
        "definitions of a group",
        SIZE,
        move |size| served(&definitions(size)),
        |versions| openapi::v3_document(versions.iter().cloned(), Minor::NEWEST),
    ));
    passes.push(pass("names accepted", "definitions of a group", SIZE, definitions, |kinds| {
        let in_group = kinds.iter().map(|kind| &kind.definition.status.accepted_names);
        names::accept(&kinds[0].definition, in_group, "2026-01-01T00:00:00Z")
    }));
    passes.push(pass(
        "versions in their order",
        "many",
        SIZE,
        |size| (0..size).map(|at| format!("v{at}beta{at}")).collect::<Vec<_>>(),
        |names| {
            let mut names = names.clone();
            names.sort_by_cached_key(|name| crd::priority(name));
            names.sort_by(|left, right| discovery::compare_versions(left, right));
            names
        },
    ));
    passes
}

fn served(kinds: &[DefinedKind]) -> Vec<Arc<ServedVersion>> {
    kinds.iter().flat_map(|kind| kind.versions.iter().cloned()).collect()
}

/// All documents that tell what there is.
fn discover(versions: &[Arc<ServedVersion>]) -> Vec<Value> {
    let custom = |version: &Arc<ServedVersion>| discovery::DiscoveredResource::custom(Arc::clone(version), false);
    let resources: Vec<_> = versions.iter().map(custom).collect();
    let mut documents = vec![discovery::groups(&resources), discovery::aggregated(false, "v2", &resources)];
    documents.extend(discovery::group("example.com", &resources));
    documents.extend(discovery::group_version("example.com", "v1", &resources));
    documents
}
