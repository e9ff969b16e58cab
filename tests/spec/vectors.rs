//! The vectors: schemas, rules and objects with the exact answers of Kubernetes 1.37.
//!
//! A file is one JSON object per line, perhaps under gzip. Each operation is one function from a case to what the case's
//! `expect` should hold. The example `vectors` runs this over files and folders; the test below over `golden/vectors`.

use std::fs;
use std::io::Read;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use kubeskiff::cel::eval::{EvalError, Value as Cel};
use kubeskiff::crd::validate::expressions::{RuleCosts, SchemaCosts};
use kubeskiff::crd::write::{self, Origin, ReadError};
use kubeskiff::crd::{self, Definition, Names, Scope, ServedVersion};
use kubeskiff::meta::field::{Error, ErrorList, ErrorType, Path};
use kubeskiff::object;
use kubeskiff::schema::correlate::Correlated;
use kubeskiff::schema::declare::declare;
use kubeskiff::schema::json_schema::{self, JsonSchema};
use kubeskiff::schema::openapi::{self, Dialect, OpenApiOptions, PublishedKind};
use kubeskiff::schema::rules::compile::{self as rules, CompiledRule, Preexisting};
use kubeskiff::schema::rules::{CostLimits, Rules};
use kubeskiff::schema::structural::{Structural, StructuralOrBool};
use kubeskiff::schema::{check, coerce, convert, default, list_type, prune, validate};
use kubeskiff::value::{Map, Value, go_quote, json};

/// A case whose answer is not the expected one.
pub struct Difference {
    pub name: String,
    pub operation: String,
    pub expected: Value,
    /// `None` where the operation is not built.
    pub actual: Option<Value>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "{} ({})", self.name, self.operation)?;
        writeln!(out, "  expected {}", json::encode_to_string(&self.expected))?;
        match &self.actual {
            Some(actual) => write!(out, "  actual   {}", json::encode_to_string(actual)),
            None => write!(out, "  actual   the operation is not built"),
        }
    }
}

/// What came of one file.
#[derive(Default)]
pub struct Tally {
    pub passed: usize,
    pub differences: Vec<Difference>,
}

type Operation = fn(&Case) -> Value;

/// What runs an operation; `None` for one that is not built.
fn operation(name: &str) -> Option<Operation> {
    Some(match name {
        "structural-errors" => structural_errors,
        "prune" => prune,
        "default" => default,
        "prune-nulls" => prune_nulls,
        "prune-defaults" => prune_defaults,
        "validate" => validate,
        "validate-update" => validate_update,
        "listtype" => list_type,
        "objectmeta-validate" => validate_object_meta,
        "objectmeta-coerce" => coerce_object_meta,
        "openapi-v2" => |case| publish(case, Dialect::V2),
        "openapi-v3" => |case| publish(case, Dialect::V3),
        "crd-schema" => create_definition,
        "compile" => compile,
        "cost" => cost,
        "eval" => evaluate,
        "cr-create" => create,
        "cr-update" => update,
        _ => return None,
    })
}

/// The files that `paths` name, with those of folders: `*.jsonl` and `*.jsonl.gz`, sorted.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut inner: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        inner.retain(|file| file.to_str().is_some_and(|name| name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")));
        inner.sort();
        files.append(&mut inner);
    }
    Ok(files)
}

/// Runs all cases of a file.
pub fn run(file: &FilePath) -> Result<Tally, String> {
    let complain = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut bytes = fs::read(file).map_err(|error| complain(&error))?;
    if file.extension().is_some_and(|extension| extension == "gz") {
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut unpacked).map_err(|error| complain(&error))?;
        bytes = unpacked;
    }
    let mut tally = Tally::default();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let case = Case(json::decode(line).map_err(|error| complain(&error))?);
        match case.judge() {
            None => tally.passed += 1,
            Some(difference) => tally.differences.push(difference),
        }
    }
    Ok(tally)
}

/// One line of a file.
struct Case(Value);

impl Case {
    fn judge(&self) -> Option<Difference> {
        let expected = self.0.get("expect").cloned().unwrap_or_default();
        let actual = operation(self.operation()).map(|operation| operation(self));
        // Where the reference walks a map of its own, any order is as good.
        let ordered = expected.get("unordered").is_none();
        let same = |actual: &Value| comparable(actual, ordered) == comparable(&expected, ordered);
        if actual.as_ref().is_some_and(same) {
            return None;
        }
        let name = self.0.str_at(&["name"]).to_owned();
        Some(Difference { name, operation: self.operation().to_owned(), expected, actual })
    }

    /// The operation that the case names, or that the format of its file implies.
    fn operation(&self) -> &str {
        match self.0.str_at(&["op"]) {
            "" if self.0.get("crd").is_some() => "compile",
            "" if self.0.get("object").is_some() => "eval",
            "" => "cost",
            operation => operation,
        }
    }

    fn json_schema(&self) -> JsonSchema {
        let schema = self.0.get("schema").cloned().unwrap_or_default();
        json_schema::decode(&schema).expect("the schema of a case decodes").0
    }

    fn schema(&self) -> Structural {
        convert::to_structural(&self.json_schema()).expect("the schema of a case is structural")
    }

    fn input(&self) -> Value {
        self.0.get("input").cloned().unwrap_or_default()
    }

    fn option(&self, name: &str) -> bool {
        self.0.at(&["options", name]).and_then(Value::as_bool).unwrap_or_default()
    }
}

/// `answer` with what may differ without being different made equal: empty lists are left out, errors are sorted unless
/// `ordered`, and values are as they read back from JSON.
fn comparable(answer: &Value, ordered: bool) -> Value {
    let mut answer = json::decode(&json::encode(answer)).expect("what was encoded decodes");
    if let Some(fields) = answer.as_object_mut() {
        fields.remove("unordered");
        for name in ["errors", "warnings", "unknownFields"] {
            if fields.get(name).and_then(Value::as_array).is_some_and(<[Value]>::is_empty) {
                fields.remove(name);
            }
        }
        if let (Some(Value::Array(errors)), false) = (fields.get_mut("errors"), ordered) {
            errors.sort_by(|one, other| one.str_at(&["text"]).cmp(other.str_at(&["text"])));
        }
    }
    answer
}

fn strings(texts: Vec<String>) -> Value {
    texts.into_iter().map(Value::from).collect::<Vec<_>>().into()
}

fn errors(errors: ErrorList) -> Value {
    object! { "errors" => errors.iter().map(error).collect::<Vec<_>>() }
}

fn error(error: &Error) -> Value {
    let mut fields = Map::new();
    fields.insert("type", error.kind.reason().into());
    fields.insert("field", error.field.as_str().into());
    fields.insert("detail", timeless(&error.detail).into());
    fields.insert("text", timeless(&error.to_string()).into());
    match error.kind {
        ErrorType::Required | ErrorType::Forbidden => {}
        // A Go error, which is no JSON.
        ErrorType::Internal => drop(fields.insert("badValue", object! {})),
        _ => {
            if let Some(value) = &error.bad_value {
                fields.insert("badValue", value.clone());
            }
        }
    }
    fields.into()
}

/// `text` with the name of the type of `self` as the cases have it, without a moment.
fn timeless(text: &str) -> String {
    text.replace(rules::SELF_TYPE, "selfType")
}

fn structural_errors(case: &Case) -> Value {
    let spec = Path::new("spec");
    let validation = spec.child("validation");
    match convert::to_structural(&case.json_schema()) {
        Ok(schema) => errors(check::validate_structural(&validation.child("openAPIV3Schema"), &schema)),
        Err(error) => object! { "convertError" => error.to_string() },
    }
}

fn prune(case: &Case) -> Value {
    let mut value = case.input();
    let unknown = prune::prune(&mut value, &case.schema(), case.option("isResourceRoot"));
    object! { "result" => value, "unknownFields" => strings(unknown) }
}

fn default(case: &Case) -> Value {
    let mut value = case.input();
    default::apply(&mut value, &case.schema()).expect("the defaults are few");
    object! { "result" => value }
}

fn prune_nulls(case: &Case) -> Value {
    let mut value = case.input();
    default::prune_non_nullable_nulls(&mut value, &case.schema());
    object! { "result" => value }
}

fn prune_defaults(case: &Case) -> Value {
    let mut schema = case.schema();
    default::prune_defaults(&mut schema);
    let mut document = case.0.get("schema").cloned().unwrap_or_default();
    write_defaults(&mut document, &schema);
    object! { "result" => document }
}

/// Writes the defaults of `schema` into the document that it was made from.
fn write_defaults(document: &mut Value, schema: &Structural) {
    if let (Some(written), Some(default)) = (document.get_mut("default"), &schema.generic.default) {
        *written = Value::clone(default);
    }
    if let (Some(items), Some(schema)) = (document.get_mut("items"), &schema.items) {
        write_defaults(items, schema);
    }
    let values = schema.additional_properties.as_ref().and_then(StructuralOrBool::structural);
    if let (Some(document), Some(schema)) = (document.get_mut("additionalProperties"), values) {
        write_defaults(document, schema);
    }
    for (name, property) in schema.properties.iter() {
        if let Some(document) = document.at_mut(&["properties", name]) {
            write_defaults(document, property);
        }
    }
}

fn validate(case: &Case) -> Value {
    errors(validate::validate(&Path::ROOT, &case.input(), &case.schema()))
}

fn validate_update(case: &Case) -> Value {
    let old = case.0.get("oldInput").cloned().unwrap_or_default();
    errors(validate::validate_update(&Path::ROOT, &case.input(), &old, &case.schema()))
}

fn list_type(case: &Case) -> Value {
    errors(list_type::validate(&Path::ROOT, &case.input(), &case.schema()))
}

fn validate_object_meta(case: &Case) -> Value {
    let root = case.option("isResourceRoot");
    errors(coerce::validate_embedded(&Path::ROOT, &case.input(), &case.schema(), root))
}

fn coerce_object_meta(case: &Case) -> Value {
    let mut value = case.input();
    let (root, drop_invalid) = (case.option("isResourceRoot"), case.option("dropInvalidFields"));
    match coerce::coerce(&Path::ROOT, &mut value, &case.schema(), root, drop_invalid) {
        Ok(unknown) => object! { "result" => value, "unknownFields" => strings(unknown) },
        Err(error) => object! { "error" => error.to_string() },
    }
}

fn publish(case: &Case, dialect: Dialect) -> Value {
    let kind = PublishedKind {
        group: "vec.example.com",
        version: "v1",
        kind: "Widget",
        list_kind: "WidgetList",
        plural: "widgets",
        selectable_fields: &[],
    };
    let options = OpenApiOptions {
        dialect,
        strip_value_validation: case.option("stripValueValidation"),
        strip_nullable: case.option("stripNullable"),
    };
    object! { "result" => openapi::publish(Some(&case.schema()), &kind, false, options) }
}

/// A definition of the kind with the schema of the case.
fn create_definition(case: &Case) -> Value {
    let mut version = object! {
        "name" => "v1",
        "served" => true,
        "storage" => true,
        "schema" => object! { "openAPIV3Schema" => case.0.get("schema").cloned().unwrap_or_default() },
    };
    if let (true, Some(fields)) = (case.option("statusSubresource"), version.as_object_mut()) {
        fields.insert("subresources", object! { "status" => object! {} });
    }
    let definition = object! {
        "metadata" => object! { "name" => "widgets.vec.example.com" },
        "spec" => object! {
            "group" => "vec.example.com",
            "scope" => "Namespaced",
            "names" => object! { "plural" => "widgets", "kind" => "Widget" },
            "versions" => vec![version],
        },
    };
    let definition = new_definition(&definition);
    with_warnings(crd::validate::create(&definition), crd::warnings::create(&definition))
}

fn with_warnings(found: ErrorList, warnings: Vec<String>) -> Value {
    let mut answer = errors(found);
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("warnings", strings(warnings));
    }
    answer
}

/// A definition as it comes to be stored.
fn new_definition(value: &Value) -> Definition {
    let mut definition = crd::definition::decode(value).expect("the definition of a case decodes").0;
    crd::defaults::set_defaults(&mut definition);
    crd::strategy::prepare_create(&mut definition);
    definition
}

fn compile(case: &Case) -> Value {
    let value = case.0.get("crd").cloned().unwrap_or_default();
    let new = new_definition(&value);
    let (mut answer, costs) = match case.0.get("oldCrd") {
        None => {
            let (found, costs) = crd::validate::create_with_costs(&new);
            (with_warnings(found, crd::warnings::create(&new)), costs)
        }
        Some(old) => {
            let old = new_definition(old);
            let mut new = new;
            crd::strategy::prepare_update(&mut new, &old);
            let (found, costs) = crd::validate::update_with_costs(&new, &old);
            (with_warnings(found, crd::warnings::update(&new, &old)), costs)
        }
    };
    if let Some(fields) = answer.as_object_mut() {
        write_costs(fields, &costs);
    }
    answer
}

/// One total stands alone, several stand with their schemas.
fn write_costs(fields: &mut Map, costs: &[SchemaCosts]) {
    let mut rules: Vec<&RuleCosts> = costs.iter().flat_map(|costs| &costs.rules).collect();
    rules.sort_by_key(|rule| rule.path.rsplit_once('[').map(|(node, _)| node));
    fields.insert("rules", rules.into_iter().map(rule_costs).collect::<Vec<_>>().into());
    fields.insert("totalEstimatedCost", Value::Null);
    match costs {
        [] => {}
        [one] => drop(fields.insert("totalEstimatedCost", unsigned(one.total))),
        several => {
            let total = |costs: &SchemaCosts| {
                object! { "path" => costs.path.as_str(), "total" => unsigned(costs.total) }
            };
            fields.insert("totals", several.iter().map(total).collect::<Vec<_>>().into());
        }
    }
}

fn rule_costs(costs: &RuleCosts) -> Value {
    let mut answer = compiled_rule(&costs.compiled, costs.request_cardinality);
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("path", costs.path.as_str().into());
        fields.insert("rule", costs.rule.rule.as_str().into());
        fields.insert("schemaMaxCardinality", costs.schema_cardinality.map_or(Value::Null, unsigned));
        fields.insert("expressionCost", unsigned(costs.cost));
        match &costs.compiled.message {
            Some(Ok(message)) => drop(fields.insert("messageExpressionCost", unsigned(message.cost_max))),
            Some(Err(error)) => drop(fields.insert("messageExpressionError", timeless(&error.to_string()).into())),
            None => {}
        }
        if !costs.compiled.field_path.is_empty() {
            fields.insert("normalizedFieldPath", costs.compiled.field_path.as_str().into());
        }
    }
    answer
}

fn compiled_rule(rule: &CompiledRule, cardinality: u64) -> Value {
    let mut answer = object! {
        "estimatedCost" => unsigned(rule.cost_max()),
        "ruleMaxCardinality" => unsigned(if rule.expression.is_some() { cardinality } else { 0 }),
        "usesOldSelf" => rule.uses_old_self,
    };
    if let (Some(fields), Some(error)) = (answer.as_object_mut(), &rule.error) {
        fields.insert("error", timeless(&error.to_string()).into());
    }
    answer
}

/// As JSON reads the number: one that is not an int64 is a float.
fn unsigned(number: u64) -> Value {
    i64::try_from(number).map_or_else(|_| Value::Float(number as f64), Value::Int)
}

/// The rules of a schema's top node, whatever else is wrong with it.
fn cost(case: &Case) -> Value {
    let schema = case.schema();
    let is_root = case.0.get("isResourceRoot").and_then(Value::as_bool).unwrap_or_default();
    let rules = declare(&schema, is_root).map_or_else(Vec::new, |decl| {
        let origin = rules::ExpressionOrigin::Written(&Preexisting::default());
        let compiled = rules::compile(&schema.validations, &schema, &decl, origin);
        let cardinality = rules::cardinality_max(&decl);
        compiled.iter().map(|rule| compiled_rule(rule, cardinality)).collect()
    });
    object! { "rules" => rules }
}

/// Rules over an object, and over the object that it was.
fn evaluate(case: &Case) -> Value {
    let schema = case.schema();
    let flag = |name: &str| case.0.get(name).and_then(Value::as_bool).unwrap_or_default();
    let mut object = case.0.get("object").cloned().unwrap_or_default();
    let mut old = case.0.get("oldObject").cloned();
    if flag("default") {
        for object in std::iter::once(&mut object).chain(&mut old) {
            default::prune_non_nullable_nulls(object, &schema);
            default::apply(object, &schema).expect("the defaults are few");
        }
    }
    let number = |name: &str, default: i64| case.0.get(name).and_then(Value::as_i64).unwrap_or(default);
    let limits =
        CostLimits { call: number("perCallLimit", 1_000_000).cast_unsigned(), object: number("budget", 10_000_000) };
    let path = match case.0.get("fieldPath").and_then(Value::as_str) {
        Some(path) => Path::new(path),
        None => Path::ROOT,
    };
    let correlated = old.as_ref().filter(|_| flag("ratcheting")).map(|old| Correlated::new(&object, old, &schema));
    let rules = Rules::compile(&schema, flag("isResourceRoot"));
    let mut runs = Vec::new();
    let findings = rules.evaluate(&path, &object, old.as_ref(), correlated.as_ref(), limits, &mut |run| {
        runs.push(object! {
            "path" => if run.is_message { "messageExpression".to_owned() } else { run.path.to_string() },
            "index" => if run.is_message { -1 } else { run.index as i64 },
            "cost" => unsigned(run.cost),
            "result" => show(run.result),
        });
    });
    let mut answer = errors(findings.errors);
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("warnings", strings(findings.ratcheted.iter().map(ToString::to_string).collect()));
        fields.insert("runtimeCost", findings.left.map_or(Value::Null, |left| Value::Int(limits.object - left)));
        if findings.left.is_none() {
            fields.insert("exhausted", true.into());
        }
        if !runs.is_empty() {
            fields.insert("ruleCosts", runs.into());
        }
    }
    answer
}

/// A result as the vectors tell it: long strings by their length.
fn show(result: &Result<Cel<'_>, EvalError>) -> String {
    match result {
        Ok(Cel::Bool(truth)) => truth.to_string(),
        Ok(Cel::String(text)) if text.len() > 200 => format!("string of {} bytes", text.len()),
        Ok(Cel::String(text)) => go_quote(text),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("error: {error}"),
    }
}

/// The kind whose objects `cr-create` and `cr-update` write.
fn widgets(case: &Case) -> Arc<ServedVersion> {
    let mut schema = case.schema();
    default::prune_defaults(&mut schema);
    Arc::new(ServedVersion {
        group: "vec.example.com".to_owned(),
        version: "v1".to_owned(),
        names: Arc::new(Names {
            plural: "widgets".to_owned(),
            singular: "widget".to_owned(),
            kind: "Widget".to_owned(),
            list_kind: "WidgetList".to_owned(),
            ..Names::default()
        }),
        scope: Scope::Namespaced,
        schema_generation: 1,
        served: true,
        storage: true,
        structural: Arc::new(schema).into(),
        rules: Default::default(),
        preserve_unknown_fields: false,
        status: false,
        scale: None,
        columns: Vec::new(),
        selectable_fields: Vec::new(),
        deprecation_warning: None,
        minor: Default::default(),
    })
}

/// Decodes an object by the schema of the kind even if it names another: a server would leave that alone, but the cases
/// were made without looking at it.
fn decode(object: &mut Value, version: &Arc<ServedVersion>) -> Result<Vec<String>, ReadError> {
    let named = object.get("kind").cloned();
    if let (Some(fields), Some(Value::String(_))) = (object.as_object_mut(), &named) {
        fields.insert("kind", version.names.kind.as_str().into());
    }
    let unknown = write::decode(object, std::slice::from_ref(version), Origin::Request);
    if let (Some(fields), Some(Value::String(kind))) = (object.as_object_mut(), named) {
        fields.insert("kind", kind.into());
    }
    unknown
}

fn create(case: &Case) -> Value {
    let version = widgets(case);
    let mut object = case.input();
    match decode(&mut object, &version) {
        Ok(unknown) => {
            write::prepare_create(&version, &mut object);
            written(write::validate_create(&version, &object), object, unknown)
        }
        Err(error) => object! { "error" => error.to_string() },
    }
}

fn update(case: &Case) -> Value {
    let version = widgets(case);
    let mut object = case.input();
    let mut old = case.0.get("oldInput").cloned().unwrap_or_default();
    let unknown = decode(&mut old, &version).and_then(|_| decode(&mut object, &version));
    match unknown {
        Ok(unknown) => {
            write::prepare_update(&version, &mut object, &old);
            written(write::validate_update(&version, &object, &old, &mut Vec::new()), object, unknown)
        }
        Err(error) => object! { "error" => error.to_string() },
    }
}

fn written(found: ErrorList, object: Value, unknown: Vec<String>) -> Value {
    let mut answer = errors(found);
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("result", object);
        fields.insert("unknownFields", strings(unknown));
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn golden(name: &str) -> PathBuf {
        FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
    }

    /// `KNOWN-VECTORS` has a name per line, or an operation and ` *` for all of its cases; `#` opens a comment.
    #[test]
    fn all_vectors_pass_but_for_those_known_to_fail() {
        let known = fs::read_to_string(golden("KNOWN-VECTORS")).expect("the list of known failures is there");
        let known: BTreeSet<&str> = known
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default().trim())
            .filter(|line| !line.is_empty())
            .collect();
        let mut unused = known.clone();
        let mut new = Vec::new();
        for file in files(&[golden("vectors")]).expect("the folder of vectors is readable") {
            for difference in run(&file).expect("a file of vectors is readable").differences {
                let whole_operation = format!("{} *", difference.operation);
                let listed =
                    [difference.name.as_str(), whole_operation.as_str()].into_iter().find(|name| known.contains(name));
                match listed {
                    Some(name) => {
                        unused.remove(name);
                    }
                    None => new.push(difference.to_string()),
                }
            }
        }
        assert!(new.is_empty(), "these vectors fail:\n{}", new.join("\n"));
        assert!(unused.is_empty(), "these vectors pass now, take them off the list: {unused:#?}");
    }
}
