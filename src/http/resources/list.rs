//! GET of a collection.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;

use crate::audit::AuditLevel;
use crate::kinds::{self, Computed};
use crate::meta::gate::Gate;
use crate::meta::names::{is_dns1123_label, is_path_segment};
use crate::meta::selector::{FieldSelector, LabelSelector};
use crate::meta::{Revision, Status};
use crate::object;
use crate::protobuf::ItemTexts;
use crate::registry::{ListAt, ListPage, ListRequest, Target};
use crate::store::continue_token::ContinueToken;
use crate::store::{Encoded, HandOut, PartReader, Revocable, TakenBack};
use crate::value::{Map, Value};

use super::super::answer::{self, AnswerContent};
use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::list_pieces::ListPieces;
use super::super::negotiate::{AnswerFormat, Encoding, TransformKind};
use super::super::query::ListOptions;
use super::super::shape::{AnswerShape, go_type};
use super::super::table;
use super::super::typed_pieces::TypedPieces;
use super::negotiate;
use super::refusal::RequestRefusal;
use super::revision::{resource_version, revision};

/// Longer lists are sent in pieces, as their items are already in memory.
const LIST_WHOLE_BYTES_MAX: usize = 128 << 10;
/// How many copies of its text a list or an object has in memory if it is built as a whole.
pub(super) const TEXT_COPIES: usize = 2;
/// How much memory a list or an object takes if it is decoded for the answer, as a multiple of the length of its text.
pub(super) const DECODED_COPIES: usize = 12;
/// How much memory a list as protobuf takes, as a multiple of the length of its text; one item at a time is decoded
/// besides.
const SEALED_COPIES: usize = 3;

pub(super) async fn list(app: &App, exchange: &Exchange, target: &Target) -> Result<Response<Body>, RequestRefusal> {
    let (format, shape) = negotiate(app, exchange, target)?;
    let (options, mut request) = list_options(exchange, target)?;
    let narrowed = narrowed(target, &request.fields);
    let target = &*narrowed;
    request.at = list_at(&options, target, &request.fields)?;
    if takes_no_pages(&options, target, &request.fields) {
        request.limit = 0;
    }
    if takes_any_state(&options)
        && let Some(past) = past(app, exchange, target).await?
    {
        request.at = ListAt::Exact(past);
    }
    let mut page = app.registry.list(target, &request).await?;
    if let Some(reserved) = page.reserved.take() {
        exchange.hold(reserved);
    }
    answer_page(app, exchange, target, format, &shape, page).await
}

/// The revision to show if any will do and a fault asks for an old one.
pub(super) async fn past(app: &App, exchange: &Exchange, target: &Target) -> Result<Option<Revision>, Status> {
    let Some(changes) = exchange.stale_by.get() else { return Ok(None) };
    let changes = usize::try_from(*changes).unwrap_or(usize::MAX);
    app.registry.revision_before(&target.resource.collection, changes).await.map(Some)
}

pub(super) async fn list_computed(
    app: &App,
    exchange: &Exchange,
    (target, of): (&Target, Computed),
) -> Result<Response<Body>, RequestRefusal> {
    let (format, shape) = negotiate(app, exchange, target)?;
    let (options, request) = list_options(exchange, target)?;
    if matches!(of, Computed::Services(_)) {
        // It always comes whole and current; an invalid revision is still refused.
        list_at(&options, target, &request.fields)?;
    }
    let (mut objects, revision) = app.registry.computed(of).await?;
    objects.retain(|object| {
        let labels = object.at(&["metadata", "labels"]);
        let name = |_: &str| object.str_at(&["metadata", "name"]).to_owned();
        request.labels.matches(&labels) && request.fields.matches(name)
    });
    let metadata = revision.map(|revision| object! { "resourceVersion" => revision.to_string() });
    answer_items(exchange, target, format, &shape, metadata.unwrap_or_else(|| object! {}), objects)
}

/// The options of a list or watch, and the selectors in them.
pub(super) fn list_options(exchange: &Exchange, target: &Target) -> Result<(ListOptions, ListRequest), RequestRefusal> {
    let mut options = ListOptions::decode(&exchange.query)?;
    let labels =
        LabelSelector::parse(&options.label_selector).map_err(|error| Status::bad_request(&error.to_string()))?;
    let fields =
        FieldSelector::parse(&options.field_selector).map_err(|error| Status::bad_request(&error.to_string()))?;
    options.validate(target.version.minor.opens(Gate::WatchList))?;
    for field in fields.fields() {
        let selectable = match field {
            "metadata.name" => true,
            "metadata.namespace" => target.resource.strategy.knows_namespace_label(target.version.is_namespaced()),
            other => target.version.selectable_fields.iter().any(|path| path.strip_prefix('.') == Some(other)),
        };
        if !selectable {
            return Err(
                Status::bad_request(&target.resource.strategy.unknown_field_label(&target.version, field)).into()
            );
        }
    }
    let fields = if target.name.is_empty() {
        fields
    } else {
        match fields.requires_exact("metadata.name") {
            None if fields.is_empty() => FieldSelector::exactly("metadata.name", &target.name),
            Some(name) if name == target.name => fields,
            _ => return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name").into()),
        }
    };
    let limit = usize::try_from(options.limit).unwrap_or_default();
    let reader = PartReader::Client(exchange.limited_user().map(Arc::from));
    Ok((options, ListRequest { at: ListAt::Newest, limit, limit_if_large: limit, reader, labels, fields }))
}

/// The target of a list in all namespaces, in the one namespace that its field selector names, if it names one.
///
/// Source: `ListPredicate` of `k8s.io/apiserver/pkg/registry/generic/registry/store.go`, release 1.37, which forgets the
/// namespace where a list goes on at a token.
fn narrowed<'t>(target: &'t Target, fields: &FieldSelector) -> Cow<'t, Target> {
    let namespace = fields.requires_exact("metadata.namespace");
    match namespace.filter(|namespace| is_dns1123_label(namespace).is_empty()) {
        Some(namespace) if target.version.is_namespaced() && target.namespace.is_empty() => {
            Cow::Owned(Target { namespace: namespace.to_owned(), ..target.clone() })
        }
        _ => Cow::Borrowed(target),
    }
}

/// Whether a list may show any state.
fn takes_any_state(options: &ListOptions) -> bool {
    options.resource_version == "0" && options.resource_version_match != "Exact"
}

/// Whether a list comes whole, whatever its limit is: the reference answers it from its cache, or reads one object.
pub(super) fn takes_no_pages(options: &ListOptions, target: &Target, fields: &FieldSelector) -> bool {
    let is_cached = !target.resource.strategy.is_read_from_store();
    (is_cached && takes_any_state(options)) || reads_one(options, target, fields)
}

/// Whether a list is read as the one object that its field selector names. In all namespaces it is not, and neither is
/// one that goes on at a token.
///
/// Source: `ListPredicate` of `k8s.io/apiserver/pkg/registry/generic/registry/store.go`, release 1.37.
fn reads_one(options: &ListOptions, target: &Target, fields: &FieldSelector) -> bool {
    let Some(name) = fields.requires_exact("metadata.name") else { return false };
    options.continue_token.is_empty()
        && !name.is_empty()
        && is_path_segment(name, false).is_empty()
        && (!target.version.is_namespaced() || !target.namespace.is_empty())
}

/// The revision that a list shows. Source: the table of the Kubernetes documentation, "Resource versions".
pub(super) fn list_at(options: &ListOptions, target: &Target, fields: &FieldSelector) -> Result<ListAt, Status> {
    let text = options.resource_version.as_str();
    if !options.continue_token.is_empty() {
        let prefix = if target.version.is_namespaced() && !target.namespace.is_empty() {
            format!("{}/", target.namespace)
        } else {
            String::new()
        };
        let token = ContinueToken::decode(&options.continue_token, &prefix)
            .map_err(|error| Status::bad_request(&format!("invalid continue token: {error}")))?;
        return match text {
            "" | "0" => Ok(ListAt::Continue(token)),
            _ => Err(Status::bad_request("specifying resource version is not allowed when using continue")),
        };
    }
    let given = match text {
        "" => return Ok(ListAt::Newest),
        text => resource_version(text)
            .map_err(|error| Status::bad_request(&format!("invalid resource version: {error}")))?,
    };
    Ok(match options.resource_version_match.as_str() {
        "Exact" => ListAt::Exact(revision(given)),
        "NotOlderThan" => ListAt::AtLeast(revision(given)),
        _ if given > 0 && options.limit > 0 && !reads_one(options, target, fields) => ListAt::Exact(revision(given)),
        _ => ListAt::AtLeast(revision(given)),
    })
}

pub(super) async fn answer_page(
    app: &App,
    exchange: &Exchange,
    target: &Target,
    format: AnswerFormat,
    shape: &AnswerShape,
    page: ListPage,
) -> Result<Response<Body>, RequestRefusal> {
    shape.check()?;
    let is_typed = target.resource.definition.is_none();
    let metadata = page_metadata(&page, is_typed);
    let size_bytes: usize = page.items.iter().map(|(_, encoded)| encoded.len_max()).sum();
    let is_json = format.encoding == Encoding::Json;
    let mut is_logged = false;
    exchange.observe(|observed| is_logged = observed.is_logged(AuditLevel::RequestResponse));
    let is_text = shape.is_plain() && is_json && !format.pretty && !is_logged;
    let of = HandOut {
        collection: &target.resource.collection,
        revision: page.revision,
        bytes: Some(size_bytes),
        user: exchange.limited_user(),
    };
    let hand_out = |items| app.registry.storage.hand_out(&of, items);
    let is_in_pieces = is_text && size_bytes > LIST_WHOLE_BYTES_MAX;
    if is_text && is_typed {
        let empty = empty_list(target, metadata);
        if is_in_pieces {
            // Each object is laid out by itself.
            let piece_bytes = page.items.iter().map(|(_, encoded)| encoded.len_max()).max().unwrap_or_default();
            let pieces = TypedPieces::new(&empty, hand_out(page.items));
            return Ok(answer::in_pieces(exchange, (size_bytes, piece_bytes), pieces));
        }
        exchange.reserve_answer(&app.registry.memory, size_bytes.saturating_mul(DECODED_COPIES)).await?;
        let pieces = TypedPieces::new(&empty, Revocable::own(page.items)).collect::<Result<Vec<_>, _>>();
        return Ok(answer::encoded(exchange, Encoding::Json, pieces.map_err(taken_back)?.concat()));
    }
    if is_in_pieces {
        return Ok(answer::pieces(exchange, ListPieces::new(target, &metadata, page, hand_out)));
    }
    if shape.is_plain() && !is_typed {
        let copies = if is_json && !is_logged { TEXT_COPIES } else { DECODED_COPIES };
        exchange.reserve_answer(&app.registry.memory, size_bytes.saturating_mul(copies)).await?;
        let whole = ListPieces::new(target, &metadata, page, Revocable::own).whole().map_err(taken_back)?;
        return Ok(answer::content(exchange, 200, format, AnswerContent::Json(whole)));
    }
    if format.encoding == Encoding::Protobuf
        && !is_logged
        && let Some(list) = list_without_items(target, shape, &metadata, &page)
    {
        // A schema has many fields that are written without a value: it grows.
        let has_schemas = target.resource.collection == app.registry.definitions.collection();
        let copies = if has_schemas { DECODED_COPIES } else { SEALED_COPIES };
        return sealed_page(app, exchange, &list, &page, (size_bytes, copies)).await;
    }
    exchange.reserve_answer(&app.registry.memory, size_bytes.saturating_mul(DECODED_COPIES)).await?;
    let is_shown_whole = format.encoding == Encoding::Yaml;
    let decode = if is_shown_whole { Encoded::to_whole_value } else { Encoded::to_value };
    let items = page.items.iter().map(|(stored, encoded)| decode(encoded, stored.revision));
    answer_items(exchange, target, format, shape, metadata, items)
}

/// The answer if the items are no longer held.
fn taken_back(why: TakenBack) -> Status {
    Status::internal_error(&why.to_string())
}

fn page_metadata(page: &ListPage, is_typed: bool) -> Value {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion", Value::String(page.revision.to_string()));
    if !is_typed || !page.continue_token.is_empty() {
        metadata.insert("continue", Value::from(page.continue_token.as_str()));
    }
    if let Some(remaining) = page.remaining {
        metadata.insert("remainingItemCount", Value::Int(remaining as i64));
    }
    Value::Object(metadata)
}

/// A page as protobuf, which is made of the texts of its objects; `list` has everything else.
async fn sealed_page(
    app: &App,
    exchange: &Exchange,
    list: &Value,
    page: &ListPage,
    (size_bytes, copies): (usize, usize),
) -> Result<Response<Body>, RequestRefusal> {
    let largest = page.items.iter().map(|(_, encoded)| encoded.len_max()).max().unwrap_or_default();
    let bytes = size_bytes.saturating_mul(copies);
    exchange.reserve_answer(&app.registry.memory, bytes.saturating_add(largest.saturating_mul(DECODED_COPIES))).await?;
    let write = |at: usize, text: &mut Vec<u8>| {
        let (stored, encoded) = &page.items[at];
        encoded.write_to(text, stored.revision);
    };
    let sealed = kinds::seal_list(list, ItemTexts { count: page.items.len(), size_bytes, write });
    Ok(answer::encoded(exchange, Encoding::Protobuf, sealed.unwrap_or_default()))
}

/// What surrounds the items of a list that goes out as protobuf, if that is made of the texts of objects.
fn list_without_items(target: &Target, shape: &AnswerShape, metadata: &Value, page: &ListPage) -> Option<Value> {
    let list = match shape.transform {
        None => empty_list(target, metadata.clone()),
        Some(transform) if transform.kind == TransformKind::PartialObjectMetadataList => {
            let texts = page.items.iter().map(|(_, encoded)| &**encoded.bytes());
            let is_whole = table::shows_all_metadata(&target.version, texts);
            is_whole.then(|| table::partial_list(metadata, [], transform))?
        }
        Some(_) => return None,
    };
    kinds::message_of(list.str_at(&["apiVersion"]), list.str_at(&["kind"])).map(|_| list)
}

fn empty_list(target: &Target, metadata: Value) -> Value {
    object! {
        "apiVersion" => target.version.api_version(),
        "items" => Value::Array(Vec::new()),
        "kind" => target.version.names.list_kind.as_str(),
        "metadata" => metadata,
    }
}

fn answer_items(
    exchange: &Exchange,
    target: &Target,
    format: AnswerFormat,
    shape: &AnswerShape,
    metadata: Value,
    items: impl IntoIterator<Item = Value>,
) -> Result<Response<Body>, RequestRefusal> {
    shape.check()?;
    let Some(transform) = shape.transform else {
        let without_type = |mut item: Value| {
            // Go's lists hold the type once, for all items.
            let fields = item.make_object();
            fields.remove("apiVersion");
            fields.remove("kind");
            item
        };
        let mut list = empty_list(target, metadata);
        list.make_object().insert("items", Value::Array(items.into_iter().map(without_type).collect()));
        return Ok(answer::content(exchange, 200, format, AnswerContent::Value(list)));
    };
    let shaped = match (transform.kind, &shape.columns) {
        (TransformKind::Table, Some(columns)) => {
            table::table(columns, transform, &metadata, items, shape.include, true, shape.clock.now())
        }
        (TransformKind::PartialObjectMetadata, _) => {
            let message = format!(
                "you requested PartialObjectMetadata, but the requested object is a list (*{}List)",
                go_type(target)
            );
            return Err(Status::not_acceptable(&message).into());
        }
        _ => table::partial_list(&metadata, items, transform),
    };
    Ok(answer::content(exchange, 200, format, AnswerContent::Value(shaped)))
}
