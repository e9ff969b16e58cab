//! Queries and the options in them.

use std::sync::LazyLock;

use kubeskiff::crd::ServedVersion;
use kubeskiff::http::delete_options::DeleteOptions;
use kubeskiff::http::query::{GetOptions, IncludeObject, ListOptions, Query, WriteOptions, default_field_manager};
use kubeskiff::kinds;
use kubeskiff::value::json;

use super::{Linear, Target};

/// A manager that can't be printed is shown once for each character, up to a bound, and five times here.
pub const TARGET: Target = Target {
    name: "queries",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 80 << 20, per_byte: 1_000 },
};

static PODS: LazyLock<ServedVersion> =
    LazyLock::new(|| kinds::find("", "pods").expect("it is built in").served_version());

/// Setting defaults twice changes nothing, options that pass do so again, and a default manager is one that passes.
fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let query = Query::parse(&text);
    _ = (GetOptions::decode(&query), IncludeObject::decode(&query));
    _ = (WriteOptions::create(&query), WriteOptions::update(&query));
    _ = (WriteOptions::patch(&query, false), WriteOptions::patch(&query, true));
    if let Ok(mut options) = ListOptions::decode(&query)
        && options.validate(true).is_ok()
    {
        let passed = options.clone();
        assert_eq!(options.validate(true), Ok(()), "options that pass do so again");
        assert_eq!(options, passed, "defaults are set once");
    }
    let decoded = DeleteOptions::decode(&query).ok();
    let body = json::decode(data).ok().and_then(|body| DeleteOptions::from_body(&body, &PODS).ok());
    for options in [decoded, body].into_iter().flatten() {
        _ = options.validate();
    }
    let manager = default_field_manager(&text);
    assert!(manager.len() <= 128, "`{manager}` is too long for a manager");
}
