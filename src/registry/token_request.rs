//! `/token` of a service account: a token is issued.
//!
//! Source: `TokenREST` of Kubernetes, release 1.36.

use std::sync::Arc;

use super::admit::Admitted;
use super::decode::decode_object;
use super::sent::as_sent;
use super::{CreateRequest, Registry, Target, Warnings, store_failed};
use crate::admission::Operation;
use crate::admission::plugins::Charges;
use crate::auth::{About, Claims, NamedObject, TokenIssuer, UserInfo, new_token_id};
use crate::meta::api_version::group_version;
use crate::meta::field::{Error, Path};
use crate::meta::gate::Gate;
use crate::meta::{Status, time};
use crate::object;
use crate::store::{Collection, Stored};
use crate::value::{Value, go_quote, json};
use crate::write::metadata::{ensure_namespace, metadata_mut};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const NODE_BINDING: Gate = Gate::ServiceAccountTokenNodeBinding;

/// A token that was issued.
pub struct IssuedToken {
    /// The request with the token in its status.
    pub request: Value,
    /// The token's id in the audit log.
    pub credential_id: String,
}

impl Registry {
    /// Issues a token of the account that `target` names.
    ///
    /// Errors: 400 for a body that can't be decoded or a bound object of a kind that can't be bound to, 404 if the
    /// account or that object does not exist, 409 for a uid that is not theirs, 422 for an invalid request.
    pub async fn create_token(
        &self,
        issuer: &TokenIssuer,
        (account_target, user): (&Target, &UserInfo),
        request: &CreateRequest,
        warnings: &mut Warnings,
    ) -> Result<IssuedToken, Status> {
        let target = as_sent(account_target)?;
        let mut object = decode_object(&request.body, &target, request.field_validation, warnings)?;
        ensure_namespace(&mut object, &target.namespace)?;
        let (manager, now) = (&request.manager, self.now());
        let mut object = self.manage_fields(&target, |fields| fields.update(None, object.clone(), manager, &now)).await;
        let write = Admitted {
            operation: Operation::Create,
            target: account_target,
            name: &target.name,
            old: None,
            user,
            dry_run: request.dry_run,
            options: &request.options,
            charges: &Charges::default(),
        };
        self.admit_mutating(&write, &mut object, warnings).await?;
        check_name(&object, &target.name)?;
        let account = self.named("serviceaccounts", &target.key(), &target.name).await?;
        check_uid(&object, &target.name, &account)?;
        let moment = self.clock.now();
        complete(&mut object, &target, &account, issuer, moment);
        let errors = target.resource.strategy.validate_create(&target.version, &object);
        if !errors.is_empty() {
            return Err(Status::invalid(GROUP, KIND, "", &errors));
        }
        self.admit_validating(&write, &object, warnings).await?;
        let mut about = About { namespace: target.namespace.clone(), serviceaccount: account, ..About::default() };
        if let Some(reference) = object.at(&["spec", "boundObjectRef"]).filter(|reference| !reference.is_null()) {
            self.bind(&mut about, reference).await?;
        }
        let seconds = self.shorten(&mut object, warnings);
        let claims = self.token_claims(issuer, &target, &object, about, (moment, seconds));
        let credential_id = claims.credential_id();
        let token = issuer.issue(claims);
        let token = token.map_err(|error| Status::internal_error(&format!("failed to generate token: {error}")))?;
        let expires_at_s = moment.as_second().saturating_add(seconds);
        let expires = jiff::Timestamp::from_second(expires_at_s).map(time::format_seconds).unwrap_or_default();
        let status = object! { "token" => token, "expirationTimestamp" => expires };
        object.make_object().insert("status", status);
        Ok(IssuedToken { request: object, credential_id })
    }

    /// How long the token is valid, in seconds: a lifetime that is too long is shortened in the request.
    fn shorten(&self, request: &mut Value, warnings: &mut Warnings) -> i64 {
        let seconds = request.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64).unwrap_or_default();
        let Some(shortened) = self.lifetimes.shortened_s(seconds) else { return seconds };
        warnings.add(format!("requested expiration of {seconds} seconds shortened to {shortened} seconds"));
        request.make_object().entry("spec").make_object().insert("expirationSeconds", Value::Int(shortened));
        shortened
    }

    /// The claims of the token for a completed request. A pod's token for this server lives longer than its request
    /// says.
    fn token_claims(
        &self,
        issuer: &TokenIssuer,
        target: &Target,
        request: &Value,
        mut about: About,
        (moment, seconds): (jiff::Timestamp, i64),
    ) -> Claims {
        let (issued_at_s, audiences) = (moment.as_second(), request.items_at(&["spec", "audiences"]).iter());
        let audiences: Vec<String> = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
        let is_for_us = audiences.iter().all(|audience| issuer.api_audiences().contains(audience));
        let expires_at_s = issued_at_s.saturating_add(seconds);
        let extended_s = self.lifetimes.extended_s(seconds).filter(|_| about.pod.is_some() && is_for_us);
        about.warnafter = extended_s.map(|_| expires_at_s);
        Claims {
            audiences,
            expires_at_s: issued_at_s.saturating_add(extended_s.unwrap_or(seconds)),
            issued_at_s,
            not_before_s: issued_at_s,
            id: new_token_id(),
            subject: UserInfo::account_name(&target.namespace, &target.name),
            about,
            ..Claims::default()
        }
    }

    /// Records the object that the token is bound to: without it the token is not valid.
    async fn bind(&self, about: &mut About, reference: &Value) -> Result<(), Status> {
        let text = |name: &str| reference.str_at(&[name]);
        let (kind, name) = (text("kind"), text("name"));
        let (group, version) = group_version(text("apiVersion"));
        let bound = match (group, kind) {
            ("", "Pod") => self.bind_pod(about, name).await?,
            ("", "Secret") => {
                let key = format!("{}/{name}", about.namespace);
                about.secret.insert(self.named("secrets", &key, name).await?)
            }
            ("", "Node") if !self.definitions.minor.opens(NODE_BINDING) => {
                let message = format!(
                    "cannot bind token to a Node object as the {:?} feature-gate is disabled",
                    NODE_BINDING.name()
                );
                return Err(Status::bad_request(&message));
            }
            ("", "Node") => about.node.insert(self.named("nodes", name, name).await?),
            _ => {
                let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                return Err(Status::bad_request(&message));
            }
        };
        match text("uid") {
            uid if uid.is_empty() || uid == bound.uid => Ok(()),
            uid => {
                let why = format!(
                    "the UID in the bound object reference ({uid}) does not match the UID in record. The object might \
                     have been deleted and then recreated"
                );
                Err(Status::conflict(group, kind, name, &why))
            }
        }
    }

    /// Records a pod of the account, and the node on which it runs.
    async fn bind_pod<'a>(&self, about: &'a mut About, name: &str) -> Result<&'a NamedObject, Status> {
        let stored = self.stored_in_core("pods", &format!("{}/{name}", about.namespace), name).await?;
        let pod = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        let account = &about.serviceaccount.name;
        if pod.str_at(&["spec", "serviceAccountName"]) != account {
            let account = go_quote(account);
            return Err(Status::bad_request(&format!(
                "cannot bind token for serviceaccount {account} to pod running with different serviceaccount name."
            )));
        }
        let node = pod.str_at(&["spec", "nodeName"]);
        if !node.is_empty() {
            // If the node is missing, the token still names it.
            let unknown = NamedObject { name: node.to_owned(), uid: String::new() };
            about.node = Some(match self.named("nodes", node, node).await {
                Err(status) if status.code == 404 => unknown,
                found => found?,
            });
        }
        Ok(about.pod.insert(NamedObject { name: name.to_owned(), uid: stored.uid.to_string() }))
    }

    /// The name and uid of an object of the core group.
    async fn named(&self, plural: &str, key: &str, name: &str) -> Result<NamedObject, Status> {
        let stored = self.stored_in_core(plural, key, name).await?;
        Ok(NamedObject { name: name.to_owned(), uid: stored.uid.to_string() })
    }

    async fn stored_in_core(&self, plural: &str, key: &str, name: &str) -> Result<Arc<Stored>, Status> {
        let collection = Collection::new("", plural);
        let stored = self.storage.get(&collection, key).await;
        let stored = stored.map_err(|error| store_failed(&collection, "get", error))?;
        stored.ok_or_else(|| Status::not_found("", plural, name))
    }
}

/// The request may omit the name.
fn check_name(request: &Value, account: &str) -> Result<(), Status> {
    let name = request.str_at(&["metadata", "name"]);
    if name.is_empty() || name == account {
        return Ok(());
    }
    let path = Path::new("metadata");
    let error = Error::invalid(&path.child("name"), name, "must match the service account name if specified");
    Err(Status::invalid(GROUP, KIND, account, &error.into()))
}

/// Fills in the fields that the request omits, and those that the server sets.
fn complete(
    request: &mut Value,
    target: &Target,
    account: &NamedObject,
    issuer: &TokenIssuer,
    moment: jiff::Timestamp,
) {
    let spec = request.make_object().entry("spec").make_object();
    if spec.get("audiences").and_then(Value::as_array).is_none_or(<[Value]>::is_empty) {
        let audiences = issuer.api_audiences().iter().map(|audience| Value::from(audience.as_str()));
        spec.insert("audiences", Value::Array(audiences.collect()));
    }
    request.make_object().insert("status", object! { "token" => "", "expirationTimestamp" => Value::Null });
    let metadata = metadata_mut(request);
    metadata.insert("name", Value::from(target.name.as_str()));
    metadata.insert("namespace", Value::from(target.namespace.as_str()));
    metadata.insert("uid", Value::from(account.uid.as_str()));
    metadata.insert("creationTimestamp", Value::from(time::format_seconds(moment)));
}

/// If a request has a uid, the account must have the same.
fn check_uid(object: &Value, name: &str, account: &NamedObject) -> Result<(), Status> {
    let uid = object.str_at(&["metadata", "uid"]);
    if uid.is_empty() || uid == account.uid {
        return Ok(());
    }
    let own = &account.uid;
    let why = format!("the UID in the token request ({uid}) does not match the UID of the service account ({own})");
    Err(Status::conflict(GROUP, KIND, name, &why))
}
