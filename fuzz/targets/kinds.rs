//! Objects of the built-in kinds: what their strategies make of anything that has their type.

mod objects;

use std::hint::black_box;
use std::sync::Arc;

use kubeskiff::crd::ServedVersion;
use kubeskiff::kinds::strategy::{Strategy, Subresource};
use kubeskiff::kinds::{self, Action, Form, Kind};
use kubeskiff::object;
use kubeskiff::protobuf;
use kubeskiff::value::{Value, json};
use kubeskiff::write::{Outcome, RawFieldTexts, Write, Writer};

use super::{Linear, Target};
use objects::Source;

/// An input of any length makes objects up to a limit, some of them of all fields that their kind has.
pub const TARGET: Target = Target {
    name: "kinds",
    run,
    steps: Linear { beside: 32 << 20, per_byte: 20_000 },
    allocated_bytes: Linear { beside: 512 << 20, per_byte: 200_000 },
};

const NOW: &str = "2026-01-02T03:04:05Z";

/// The input is read as choices: a kind, whether its example or all of its fields to begin with, and changes for the new
/// object and for its update. What was decoded decodes to itself, goes over the wire, and has every other form.
fn run(data: &[u8]) {
    let source = &mut Source::new(data);
    let all: Vec<&'static Kind> = kinds::all().collect();
    let kind = all[source.below(all.len())];
    let mut sent = objects::first(kind, source);
    objects::change(&mut sent, source);
    let mut changed = sent.clone();
    objects::change(&mut changed, source);
    write(kind, &sent, changed);
}

/// Creates an object, and changes it into another one.
fn write(kind: &'static Kind, sent: &Value, changed: Value) {
    let Some(mut new) = decoded(kind, sent) else { return };
    fill(kind, &mut new);
    let version = Arc::new(kind.served_version());
    let old = create(kind, &version, sent, new);
    let Some(mut new) = decoded(kind, &changed) else { return };
    fill(kind, &mut new);
    let parts = kind.parts.iter().filter(|part| matches!(part.action, Action::Write | Action::Scale(_)));
    let parts = parts.map(|part| match part.action {
        Action::Write => Subresource::Part(part.name),
        _ => Subresource::Scale,
    });
    for subresource in [Subresource::Main, Subresource::Status].into_iter().chain(parts) {
        update(kind.strategy, &version, subresource, new.clone(), &old);
    }
    look(kind, &new);
}

/// The object as it is read, which is read again as the same; `None` for what is not of the type.
fn decoded(kind: &'static Kind, sent: &Value) -> Option<Value> {
    let versions = [Arc::new(kind.served_version())];
    let read = |object: Value| kind.strategy.decode(object, &versions).map(|decoded| decoded.object);
    let object = read(sent.clone()).ok()?;
    if kind.form == Form::Typed {
        assert_eq!(read(object.clone()).as_ref(), Ok(&object), "{}: what was decoded decodes to itself", kind.kind);
        let bytes = protobuf::encode(kind.message(), &object);
        let decoded = protobuf::decode(kind.message(), &bytes);
        assert!(decoded.is_ok(), "{}: what was encoded decodes: {:?}", kind.kind, decoded.err());
        black_box(json::encode_as(&object, kinds::layout::of(&object)));
    }
    Some(object)
}

/// Sets what the server sees to.
fn fill(kind: &Kind, object: &mut Value) {
    let metadata = object.make_object().entry("metadata").make_object();
    let mut set = |name: &str, value: &str| {
        if metadata.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
            metadata.insert(name, Value::from(value));
        }
    };
    set("name", "a");
    set("uid", "00000000-0000-4000-8000-000000000000");
    set("creationTimestamp", NOW);
    if kind.scope == kubeskiff::crd::Scope::Namespaced {
        set("namespace", "default");
    }
}

fn create(kind: &'static Kind, version: &ServedVersion, sent: &Value, new: Value) -> Value {
    black_box(kind.strategy.early_warnings(sent));
    let mut created = written(kind.strategy, version, Subresource::Main, |write| write.create(new, &mut |_| {}));
    look(kind, &created);
    kind.strategy.complete(&mut created);
    created
}

fn update(strategy: &dyn Strategy, version: &ServedVersion, subresource: Subresource, new: Value, old: &Value) {
    black_box(written(strategy, version, subresource, |write| write.update(new, old, &mut |_| {})));
}

/// The object that is written, whatever is wrong with it.
fn written(
    strategy: &dyn Strategy,
    version: &ServedVersion,
    subresource: Subresource,
    run: impl FnOnce(&Write<'_>) -> Outcome,
) -> Value {
    let user = || object! { "username" => "alice", "groups" => Value::Array(vec![Value::from("staff")]) };
    let by = Some(Writer { user: &user, now: NOW, shares_labels: false });
    let outcome = run(&Write { strategy, version, subresource, by, texts: RawFieldTexts::default() });
    outcome.errors.iter().for_each(|error| drop(black_box(error.to_string())));
    outcome.object
}

/// What is asked of an object that is there.
fn look(kind: &'static Kind, object: &Value) {
    let strategy = kind.strategy;
    if let Some(table) = strategy.table() {
        assert!((table.cells)(object).len() >= table.columns.len(), "{}: every column has a cell", kind.kind);
    }
    black_box(strategy.completion(object));
    for field in kind.selectable_fields {
        black_box(strategy.select(object, field));
        black_box(strategy.select(object, field.trim_start_matches('.')));
    }
    for asked in [None, Some(i64::MIN), Some(0), Some(i64::MAX)] {
        black_box(strategy.grace_period(object, asked));
    }
    black_box((strategy.must_stay(object), strategy.begin_delete(object, NOW)));
    for form in kind.forms() {
        black_box(strategy.convert(object, &form.api_version()));
    }
    let group = kind.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    black_box(kinds::show_internal(&format!("{group}.{}.{}", kind.version, kind.kind), object));
    let mut stored = object.clone();
    kinds::settle_stored(&mut stored);
}
