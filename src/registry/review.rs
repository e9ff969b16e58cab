//! Reviews: objects that are created to be answered, and are not stored.
//!
//! The authorizer decides who may do what, the token authenticator whose token it is. Admission runs as for stored
//! objects, except policies.

use futures_util::future::BoxFuture;

use super::decode::decode_object;
use super::{CreateRequest, Registry, Target, Warnings, asked_selectors};
use crate::auth::{
    Attributes, Authorizer, NonResourceRule, ResourceAttributes, ResourceRule, Tokens, UserInfo, Verdict, bearer_token,
};
use crate::kinds::Review;
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::{Status, time};
use crate::object;
use crate::types;
use crate::value::{Map, Value, json};
use crate::write::metadata::{ensure_namespace, wipe_system_fields};

const ACCESS_GROUP: &str = "authorization.k8s.io";
/// Rules of so many bytes are listed without waiting for memory.
const FREE_RULES_BYTES: usize = 128 << 10;

/// The authorizer and token authenticator that answer reviews.
pub struct Reviewers<'a> {
    pub authorizer: &'a dyn Authorizer,
    pub tokens: &'a Tokens,
    /// Reserves memory for an answer of so many bytes.
    pub reserve: &'a (dyn Fn(usize) -> BoxFuture<'a, Result<(), Status>> + Sync),
}

impl Registry {
    /// The review with its answer. Errors: 400 if the body is not a review, 422 if it contradicts itself.
    pub async fn review(
        &self,
        (target, review): (&Target, Review),
        user: &UserInfo,
        request: &CreateRequest,
        reviewers: &Reviewers<'_>,
        warnings: &mut Warnings,
    ) -> Result<Value, Status> {
        let mut object = decode_object(&request.body, target, request.field_validation, warnings)?;
        wipe_system_fields(&mut object);
        ensure_namespace(&mut object, &target.namespace)?;
        let (manager, now) = (&request.manager, self.now());
        object = self.manage_fields(target, |fields| fields.update(None, object.clone(), manager, &now)).await;
        let name = object.str_at(&["metadata", "name"]).to_owned();
        let check = |object: &Value| check(object, review).map(|()| object.clone());
        let object = self.admit_sent((target, &name), user, request, object, check, warnings).await?;
        self.answer((target, review), user, object, reviewers).await
    }

    /// A valid review, with its answer.
    async fn answer(
        &self,
        (target, review): (&Target, Review),
        user: &UserInfo,
        mut object: Value,
        reviewers: &Reviewers<'_>,
    ) -> Result<Value, Status> {
        let status = match review {
            Review::Token => review_token(&object, reviewers.tokens).await,
            Review::SelfSubject => {
                let metadata = object! { "creationTimestamp" => time::format_seconds(self.clock.now()) };
                return Ok(question(target, metadata, object! { "userInfo" => user.encode() }));
            }
            Review::SelfSubjectRules => {
                let namespace = object.str_at(&["spec", "namespace"]);
                let bytes = reviewers.authorizer.rules_bytes(user, namespace);
                if bytes > FREE_RULES_BYTES {
                    (reviewers.reserve)(bytes).await?;
                }
                let mut answered = question(target, object! {}, rules_for(user, namespace, reviewers.authorizer));
                answered.make_object().insert("spec", object! {});
                return Ok(answered);
            }
            // It is answered elsewhere, and is not a review.
            Review::Binding => object! {},
            Review::SelfSubjectAccess => review_access(&object, user, reviewers.authorizer).await,
            Review::SubjectAccess | Review::LocalSubjectAccess => {
                review_access(&object, &asked_about(&object), reviewers.authorizer).await
            }
        };
        object.make_object().insert("status", status);
        Ok(object)
    }
}

/// The errors of a review.
fn check(object: &Value, review: Review) -> Result<(), Status> {
    let is_missing = |field: &str| object.str_at(&["spec", field]).is_empty();
    match review {
        Review::Token if is_missing("token") => {
            Err(Status::bad_request("token is required for TokenReview in authentication"))
        }
        Review::SelfSubjectRules if is_missing("namespace") => Err(Status::bad_request("no namespace on request")),
        Review::Token | Review::SelfSubjectRules | Review::SelfSubject | Review::Binding => Ok(()),
        Review::SelfSubjectAccess | Review::SubjectAccess | Review::LocalSubjectAccess => {
            refuse(validate_access(object, review))
        }
    }
}

/// An answer without the spec of the review.
fn question(target: &Target, metadata: Value, status: Value) -> Value {
    object! {
        "apiVersion" => target.version.api_version(),
        "kind" => target.version.names.kind.as_str(),
        "metadata" => metadata,
        "status" => status,
    }
}

fn refuse(errors: ErrorList) -> Result<(), Status> {
    // The reference no longer knows the kind at this point.
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(ACCESS_GROUP, "", "", &errors)) }
}

fn validate_access(object: &Value, review: Review) -> ErrorList {
    let spec = Path::new("spec");
    let mut errors = ErrorList::new();
    let of = |name: &str| object.at(&["spec", name]);
    match (of("resourceAttributes"), of("nonResourceAttributes")) {
        (Some(_), Some(path)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            let error = Error::invalid(&spec.child("nonResourceAttributes"), Value::Null, why);
            errors.push(error.shown_as(show_path(path)));
        }
        (None, None) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(Error::invalid(&spec.child("resourceAttributes"), Value::Null, why));
        }
        _ => {}
    }
    let is_own = review == Review::SelfSubjectAccess;
    let groups = of("groups").and_then(Value::as_array).unwrap_or_default();
    if !is_own && object.str_at(&["spec", "user"]).is_empty() && groups.is_empty() {
        errors.push(Error::invalid(&spec.child("user"), "", "at least one of user or group must be specified"));
    }
    errors.extend(asked_selectors::validate(object));
    let is_local = review == Review::LocalSubjectAccess;
    let mut metadata = object.at(&["metadata"]).and_then(Value::as_object).cloned().unwrap_or_default();
    let all = metadata.clone();
    metadata.remove("managedFields");
    if is_local {
        metadata.remove("namespace");
    }
    if !metadata.is_empty() {
        let why = if is_local { "must be empty except for namespace" } else { "must be empty" };
        let shown = json::encode_as(&Value::Object(all), types::object_meta().layout());
        let error = Error::invalid(&Path::new("metadata"), Value::Null, why);
        errors.push(error.shown_as(String::from_utf8_lossy(&shown).into_owned()));
    }
    if is_local {
        let namespace = object.str_at(&["spec", "resourceAttributes", "namespace"]);
        if of("resourceAttributes").is_some() && namespace != object.str_at(&["metadata", "namespace"]) {
            let at = Path::new("spec.resourceAttributes.namespace");
            errors.push(Error::invalid(&at, namespace, "must match metadata.namespace"));
        }
        if let Some(path) = of("nonResourceAttributes") {
            let at = Path::new("spec.nonResourceAttributes");
            let error = Error::invalid(&at, Value::Null, "disallowed on this kind of request");
            errors.push(error.shown_as(show_path(path)));
        }
    }
    errors
}

/// The fields in the order of Go's internal type.
fn show_path(attributes: &Value) -> String {
    let text = |name: &str| json::encode_to_string(&Value::from(attributes.str_at(&[name])));
    format!(r#"{{"Path":{},"Verb":{}}}"#, text("path"), text("verb"))
}

fn texts_of(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The user that the review is about. Nothing is known except what the review says.
fn asked_about(object: &Value) -> UserInfo {
    let extra = object.at(&["spec", "extra"]).and_then(Value::as_object);
    UserInfo {
        name: object.str_at(&["spec", "user"]).to_owned(),
        uid: object.str_at(&["spec", "uid"]).to_owned(),
        groups: texts_of(object.at(&["spec", "groups"])),
        extra: extra
            .into_iter()
            .flat_map(Map::iter)
            .map(|(key, value)| (key.to_owned(), texts_of(Some(value))))
            .collect(),
    }
}

async fn review_access(object: &Value, user: &UserInfo, authorizer: &dyn Authorizer) -> Value {
    let of = |part: &'static str, name: &str| object.str_at(&["spec", part, name]);
    let resource = |name: &str| of("resourceAttributes", name);
    let (fields, labels) = asked_selectors::read(object);
    let attributes = match object.at(&["spec", "resourceAttributes"]) {
        Some(_) => Attributes::Resource(ResourceAttributes {
            verb: resource("verb"),
            group: resource("group"),
            version: if resource("version").is_empty() { "*" } else { resource("version") },
            resource: resource("resource"),
            subresource: resource("subresource"),
            namespace: resource("namespace"),
            name: resource("name"),
            fields: fields.as_ref(),
            labels: labels.as_ref(),
        }),
        None => {
            Attributes::Path { verb: of("nonResourceAttributes", "verb"), path: of("nonResourceAttributes", "path") }
        }
    };
    let decision = authorizer.authorize(user, &attributes).await;
    let mut errors = vec![decision.error.clone(), asked_selectors::evaluation_error(object)];
    errors.retain(|error| !error.is_empty());
    let mut status = object! { "allowed" => decision.is_allowed() };
    if decision.verdict == Verdict::Deny {
        status.make_object().insert("denied", true.into());
    }
    for (name, text) in [("reason", decision.reason), ("evaluationError", errors.join("; "))] {
        if !text.is_empty() {
            status.make_object().insert(name, text.into());
        }
    }
    status
}

fn rules_for(user: &UserInfo, namespace: &str, authorizer: &dyn Authorizer) -> Value {
    let rules = authorizer.rules_for(user, namespace);
    let texts = |texts: &[String]| texts.iter().map(|text| Value::from(text.as_str())).collect::<Vec<_>>();
    let list = |fields: &[(&str, &[String])]| {
        let fields = fields.iter().filter(|(name, values)| *name == "verbs" || !values.is_empty());
        Value::Object(fields.map(|(name, values)| ((*name).to_owned(), Value::Array(texts(values)))).collect())
    };
    let of_resource = |rule: &ResourceRule| {
        list(&[
            ("verbs", &rule.verbs),
            ("apiGroups", &rule.api_groups),
            ("resources", &rule.resources),
            ("resourceNames", &rule.resource_names),
        ])
    };
    let of_path = |rule: &NonResourceRule| list(&[("verbs", &rule.verbs), ("nonResourceURLs", &rule.urls)]);
    let mut status = object! {
        "resourceRules" => rules.resource.iter().map(of_resource).collect::<Vec<_>>(),
        "nonResourceRules" => rules.non_resource.iter().map(of_path).collect::<Vec<_>>(),
        "incomplete" => rules.incomplete,
    };
    if !rules.error.is_empty() {
        status.make_object().insert("evaluationError", rules.error.into());
    }
    status
}

async fn review_token(object: &Value, tokens: &Tokens) -> Value {
    let token = object.str_at(&["spec", "token"]);
    // The token is checked as if it had been sent in a header.
    let header = format!("Bearer {token}");
    let Some(token) = bearer_token(&header) else { return object! { "user" => object! {} } };
    let audiences = texts_of(object.at(&["spec", "audiences"]));
    match tokens.authenticate(token, &audiences).await {
        Ok(found) => {
            let audiences: Vec<_> = found.audiences.into_iter().map(Value::from).collect();
            object! { "authenticated" => true, "user" => found.user.encode(), "audiences" => audiences }
        }
        Err(error) => object! { "user" => object! {}, "error" => error.to_string() },
    }
}
