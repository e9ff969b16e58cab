//! Whole requests, through the router that the server has, over a database in memory.
//!
//! What other threads do for a request is not among the steps and the bytes; its instructions are counted all the same.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use crate::fuzz::targets::server::{Sent as Request, Server};
use crate::inputs::{METADATA, SCHEMA, SCHEMAS, SPECS, definition, fields, items, list, value, widget};
use crate::pass::{Pass, pass};

const SIZE: usize = 10;
/// Long enough under valgrind: no answer here is without an end.
const ANSWER_WAIT: Duration = Duration::from_secs(600);
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

thread_local! {
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
    /// How many names have been given out.
    static NAMES: Cell<usize> = const { Cell::new(0) };
}

/// A request, by its method, path, type and body. Behind the path may be a blank and the type of the answer.
type Sent = (&'static str, String, &'static str, String);

fn send((method, path, content_type, body): &Sent) -> u16 {
    let (path, accept) = path.split_once(' ').unwrap_or((path, JSON));
    let request = Request { method, path, accept, content_type, body: body.as_bytes() };
    SERVER.with_borrow_mut(|server| {
        let server = server.get_or_insert_with(|| Server::start(value(&definition(SCHEMA))));
        server.send(request, ANSWER_WAIT).expect("it is a request").0
    })
}

/// A name that nothing has yet.
fn new_name() -> String {
    NAMES.set(NAMES.get() + 1);
    format!("n{}", NAMES.get())
}

/// A pass that sends `request` after what comes before it.
fn requests(
    what: &'static str,
    shape: &'static str,
    size: usize,
    make: impl Fn(usize) -> Vec<Sent> + Send + 'static,
) -> Pass {
    let input = move |size| {
        let mut requests = make(size);
        let last = requests.pop().expect("there is one at least");
        requests.iter().for_each(|before| _ = send(before));
        last
    };
    pass(what, shape, size, input, send)
}

/// An object under a name of its own.
fn named(object: &str, name: &str) -> String {
    object.replacen(r#""name":"a""#, &format!(r#""name":"{name}""#), 1)
}

fn of(name: &str) -> String {
    format!("{WIDGETS}/{name}")
}

pub fn passes() -> Vec<Pass> {
    let mut passes = Vec::new();
    for (shape, spec) in SPECS {
        passes.extend(writes(shape, SIZE, move |size| widget("", &spec(size))));
    }
    for (shape, metadata) in METADATA {
        passes.extend(writes(shape, SIZE, move |size| widget(&metadata(size), "{}")));
    }
    for (shape, schema) in SCHEMAS {
        passes.push(requests("request to define", shape, 10, move |size| {
            let name = new_name();
            let text = definition(&schema(size)).replace("widgets", &name).replace("Widget", &format!("K{name}"));
            vec![("POST", DEFINITIONS.to_owned(), JSON, text)]
        }));
    }
    passes.extend(others("preserved fields", SIZE, |size| {
        widget("", &format!(r#"{{"any":{}}}"#, fields(size, |at| format!(r#""u{at}":{{"v":[{at}]}}"#))))
    }));
    passes.extend(reads());
    passes
}

fn writes(shape: &'static str, size: usize, object: impl Fn(usize) -> String + Send + Copy + 'static) -> Vec<Pass> {
    let created = move |size, name: &str| ("POST", WIDGETS.to_owned(), JSON, named(&object(size), name));
    let empty = |name: &str| ("POST", WIDGETS.to_owned(), JSON, named(&widget("", "{}"), name));
    vec![
        requests("request to create", shape, size, move |size| vec![created(size, &new_name())]),
        requests("request to update", shape, size, move |size| {
            let name = new_name();
            vec![empty(&name), ("PUT", of(&name), JSON, named(&object(size), &name))]
        }),
        requests("request to patch", shape, size, move |size| {
            let name = new_name();
            vec![empty(&name), ("PATCH", of(&name), MERGE_PATCH, named(&object(size), &name))]
        }),
        requests("request to apply over an object", shape, size, move |size| {
            let name = new_name();
            let path = format!("{}?fieldManager=m&force=true", of(&name));
            vec![created(size, &name), ("PATCH", path, APPLY_PATCH, named(&object(size), &name))]
        }),
    ]
}

/// What all objects go through alike.
fn others(shape: &'static str, size: usize, object: impl Fn(usize) -> String + Send + Copy + 'static) -> Vec<Pass> {
    let created = move |size, name: &str| ("POST", WIDGETS.to_owned(), JSON, named(&object(size), name));
    vec![
        requests("request to create in YAML", shape, size, move |size| {
            vec![(
                "POST",
                format!("{WIDGETS}?fieldValidation=Strict"),
                "application/yaml",
                named(&object(size), &new_name()),
            )]
        }),
        requests("request to apply", shape, size, move |size| {
            let name = new_name();
            vec![("PATCH", format!("{}?fieldManager=m", of(&name)), APPLY_PATCH, named(&object(size), &name))]
        }),
        requests("request to get in YAML", shape, size, move |size| {
            let name = new_name();
            vec![created(size, &name), ("GET", format!("{} application/yaml", of(&name)), JSON, String::new())]
        }),
        requests("request to delete", shape, size, move |size| {
            let name = new_name();
            vec![created(size, &name), ("DELETE", of(&name), JSON, String::new())]
        }),
    ]
}

/// Lists, watches and documents, each in a namespace or a group of its own.
fn reads() -> Vec<Pass> {
    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
    fn filled(size: usize, ask: &str) -> Vec<Sent> {
        let namespace = new_name();
        let widgets = format!("/apis/example.com/v1/namespaces/{namespace}/widgets");
        let one = |at| {
            let object = named(&widget(r#""labels":{"a":"b"}"#, r#"{"text":"a","list":["x"]}"#), &format!("w{at}"));
            (
                "POST",
                widgets.clone(),
                JSON,
                object.replace(r#""namespace":"default""#, &format!(r#""namespace":"{namespace}""#)),
            )
        };
        let mut requests: Vec<Sent> = (0..size).map(one).collect();
        requests.push(("GET", ask.replace('@', &widgets), JSON, String::new()));
        requests
    }
    let lists: [(&str, &str); 6] = [
        ("all", "@"),
        ("as a table", "@ application/json;as=Table;v=v1;g=meta.k8s.io"),
        ("in YAML", "@ application/yaml"),
        ("by a label", "@?labelSelector=a%3Db"),
        ("by a label that none has", "@?labelSelector=a%3Dc"),
        ("by a name", "@?fieldSelector=metadata.name%3Dw1"),
    ];
    let mut passes: Vec<Pass> = lists
        .into_iter()
        .map(|(shape, ask)| requests("request to list", shape, 10, move |size| filled(size, ask)))
        .collect();
    passes.push(requests("request to delete a collection", "many objects", 10, |size| {
        let mut requests = filled(size, "@");
        if let Some(last) = requests.last_mut() {
            last.0 = "DELETE";
        }
        requests
    }));
    passes.push(requests("request with a selector", "many requirements", SIZE, |size| {
        let selector = items(size, |at| format!("k{at}!=v")).replace(',', "%2C");
        vec![("GET", format!("{WIDGETS}?limit=1&labelSelector={selector} {TABLE}"), JSON, String::new())]
    }));
    passes.push(requests("request with options", "many in a body", SIZE, |size| {
        let dry_runs = list(size, |_| r#""All""#.to_owned());
        vec![("DELETE", of("none"), JSON, format!(r#"{{"dryRun":{dry_runs}}}"#))]
    }));
    passes.push(requests("request to a built-in kind", "a ConfigMap", SIZE, |size| {
        let data = fields(size, |at| format!(r#""k{at}":"v""#));
        let object =
            format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{data}}}"#, new_name());
        vec![("POST", "/api/v1/namespaces/default/configmaps".to_owned(), JSON, object)]
    }));
    passes
}
