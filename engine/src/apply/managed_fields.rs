//! `metadata.managedFields`: who owns which fields, since when.
//!
//! Source: apimachinery 1.37, `util/managedfields/internal`.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use super::FIELDS;
use super::field_set::FieldSet;
use super::fields::OwnedFields;
use super::path::PathElementError;
use super::undecodable;
use crate::value::{Map, Value, go_quote, json};
use crate::work;

/// How many managers of updates an object keeps; older ones become one entry.
const UPDATE_MANAGERS_MAX: usize = 10;
/// The manager that older updates are put under.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// What a manager did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl Operation {
    const fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// The identity of a manager. One that applies in two versions is the same manager; one that updates in two versions is
/// two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManagerId {
    /// The name of the client.
    pub name: String,
    /// How it wrote.
    pub operation: Operation,
    /// Empty for an apply.
    pub api_version: String,
    /// Empty for the main resource.
    pub subresource: String,
}

impl ManagerId {
    /// The key under which Kubernetes keeps managers; it decides the order when managers are sorted.
    pub(super) fn sort_key(&self) -> String {
        let mut key = Vec::with_capacity(64);
        let mut field = |name: &str, value: &str| {
            if !value.is_empty() {
                key.push(if key.is_empty() { b'{' } else { b',' });
                json::encode_string(name, &mut key);
                key.push(b':');
                json::encode_string(value, &mut key);
            }
        };
        field("manager", &self.name);
        field("operation", self.operation.as_str());
        field("apiVersion", &self.api_version);
        field("subresource", &self.subresource);
        key.push(b'}');
        String::from_utf8_lossy(&key).into_owned()
    }
}

/// As conflicts name a manager: `"alpha"`, `"kubectl-edit" with subresource "status" using example.com/v1`.
impl fmt::Display for ManagerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&go_quote(&self.name))?;
        if !self.subresource.is_empty() {
            write!(out, " with subresource {}", go_quote(&self.subresource))?;
        }
        match self.operation {
            Operation::Apply => Ok(()),
            Operation::Update => write!(out, " using {}", self.api_version),
        }
    }
}

/// A point in time, in whole seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Time {
    seconds: i64,
    text: String,
}

impl Time {
    /// Reads RFC 3339.
    pub fn parse(text: &str) -> Option<Time> {
        let timestamp: Timestamp = text.parse().ok()?;
        let seconds = timestamp.as_second();
        let is_canonical = text.len() == "2006-01-02T15:04:05Z".len() && text.ends_with('Z') && text.contains('T');
        let text = if is_canonical { text.to_owned() } else { Timestamp::from_second(seconds).ok()?.to_string() };
        Some(Time { seconds, text })
    }

    /// As Go prints a time in UTC: `2026-01-02 03:04:05 +0000 UTC`.
    fn as_go_prints(&self) -> String {
        self.text.replace('T', " ").replace('Z', " +0000 UTC")
    }
}

/// What one manager owns.
#[derive(Clone, Debug)]
pub(super) struct ManagerEntry<'a> {
    pub manager: ManagerId,
    /// The version of the paths in `fields`.
    pub api_version: String,
    pub fields: OwnedFields<'a>,
    pub time: Option<Time>,
}

impl<'a> ManagerEntry<'a> {
    /// The entry at `index` of the list.
    fn decode(index: usize, raw: &RawEntry<'a>) -> Result<Self, DecodeError> {
        let operation = match raw.operation {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(DecodeError("operation must be `Apply` or `Update`".to_owned())),
        };
        if raw.api_version.is_empty() {
            return Err(DecodeError("apiVersion must not be empty".to_owned()));
        }
        match raw.fields_type {
            "FieldsV1" => {}
            "" => return Err(DecodeError(format!("missing fieldsType in managed fields entry {index}"))),
            other => {
                let other = go_quote(other);
                return Err(DecodeError(format!("invalid fieldsType {other} in managed fields entry {index}")));
            }
        }
        let api_version = match operation {
            Operation::Apply => String::new(),
            Operation::Update => raw.api_version.to_owned(),
        };
        let (name, subresource) = (raw.manager.to_owned(), raw.subresource.to_owned());
        Ok(ManagerEntry {
            manager: ManagerId { name, operation, api_version, subresource },
            api_version: raw.api_version.to_owned(),
            fields: raw
                .fields
                .map_or(Ok(OwnedFields::NONE), OwnedFields::decode)
                .map_err(|error| raw.undecodable(&error))?,
            time: raw.time.clone(),
        })
    }

    pub fn encode(self) -> Value {
        let mut fields = Map::with_capacity(7);
        fields.insert("apiVersion", Value::String(self.api_version));
        fields.insert("fieldsType", Value::from("FieldsV1"));
        fields.insert(FIELDS, self.fields.encode());
        if !self.manager.name.is_empty() {
            fields.insert("manager", Value::String(self.manager.name));
        }
        fields.insert("operation", Value::from(self.manager.operation.as_str()));
        if !self.manager.subresource.is_empty() {
            fields.insert("subresource", Value::String(self.manager.subresource));
        }
        if let Some(time) = self.time {
            fields.insert("time", Value::String(time.text));
        }
        Value::Object(fields)
    }

    fn seconds(&self) -> i64 {
        self.time.as_ref().map_or(0, |time| time.seconds)
    }
}

/// All managers of an object, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers<'a> {
    pub entries: BTreeMap<ManagerId, ManagerEntry<'a>>,
}

/// Why managedFields can't be used; the text is Kubernetes'.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

/// Whether nobody owns this field of an object's metadata: it identifies the object, or only the server sets it.
pub(super) fn is_identity(name: &str) -> bool {
    matches!(
        name,
        "name"
            | "namespace"
            | "creationTimestamp"
            | "selfLink"
            | "uid"
            | "clusterName"
            | "generation"
            | "managedFields"
            | "resourceVersion"
    )
}

/// Removes fields that identify the object or that only the server sets: nobody owns them.
pub(super) fn without_identity(mut set: FieldSet) -> FieldSet {
    set.change_below("metadata", |metadata| metadata.remove_members(is_identity));
    set.remove_members(|name| matches!(name, "apiVersion" | "kind" | "metadata"));
    set
}

/// An item of `metadata.managedFields` before decoding.
#[derive(Default)]
pub(super) struct RawEntry<'a> {
    manager: &'a str,
    operation: &'a str,
    api_version: &'a str,
    time: Option<Time>,
    fields_type: &'a str,
    fields: Option<&'a Value>,
    subresource: &'a str,
}

impl<'a> RawEntry<'a> {
    fn read(item: &'a Value) -> Option<RawEntry<'a>> {
        let fields = item.as_object()?;
        let mut entry = RawEntry::default();
        for (name, value) in fields.iter() {
            let text = match value {
                Value::Null => Some(""),
                _ => value.as_str(),
            };
            match name {
                "manager" => entry.manager = text?,
                "operation" => entry.operation = text?,
                "apiVersion" => entry.api_version = text?,
                "fieldsType" => entry.fields_type = text?,
                "subresource" => entry.subresource = text?,
                FIELDS => entry.fields = Some(value).filter(|fields| !fields.is_null()),
                "time" if value.is_null() => {}
                "time" => entry.time = Some(Time::parse(text?)?),
                _ => {}
            }
        }
        Some(entry)
    }

    /// The error of `fieldsV1` that can't be read, which shows the whole entry as Go shows a struct.
    fn undecodable(&self, error: &PathElementError) -> DecodeError {
        let fields = self.fields.unwrap_or(&Value::Null);
        let text =
            fields.as_object().and_then(Map::json_text).map_or_else(|| json::encode_to_string(fields), str::to_owned);
        let fault = undecodable::fault(&text).unwrap_or_else(|| match error {
            PathElementError::Malformed(reason) => reason.clone(),
            PathElementError::UnknownKind => "unknown path element type".to_owned(),
        });
        let time = self.time.as_ref().map_or_else(|| "<nil>".to_owned(), Time::as_go_prints);
        let RawEntry { manager, operation, api_version, fields_type, subresource, .. } = self;
        DecodeError(format!(
            "error decoding versioned set from {{{manager} {operation} {api_version} {time} {fields_type} {text} {subresource}}}: \
             error decoding set: {fault}"
        ))
    }

    fn is_empty(&self) -> bool {
        let texts = [self.manager, self.operation, self.api_version, self.fields_type, self.subresource];
        texts.iter().all(|text| text.is_empty()) && self.time.is_none() && self.fields.is_none()
    }
}

/// The items of a `managedFields` list; `None` if it is absent or not well formed.
pub(super) fn read(list: Option<&Value>) -> Option<Vec<RawEntry<'_>>> {
    list?.as_array()?.iter().map(RawEntry::read).collect()
}

/// Whether a client asks to reset ownership: with `[]` or `[{}]`.
pub(super) fn is_reset(entries: Option<&[RawEntry<'_>]>) -> bool {
    match entries {
        Some([]) => true,
        Some([entry]) => entry.is_empty(),
        _ => false,
    }
}

/// Checks `metadata.managedFields` after a webhook changed it; the message goes into the warning that the change was
/// undone.
///
/// # Errors
///
/// What can't be decoded, in the words of the reference.
pub fn validate(object: &Value) -> Result<(), DecodeError> {
    let entries = read(object.at(&["metadata", "managedFields"])).unwrap_or_default();
    Managers::decode(&entries).map(|_| ())
}

impl<'a> Managers<'a> {
    /// # Errors
    ///
    /// What can't be decoded, in the words of the reference.
    pub fn decode(entries: &[RawEntry<'a>]) -> Result<Managers<'a>, DecodeError> {
        let mut managers = Managers::default();
        for (index, raw) in entries.iter().enumerate() {
            managers.put(ManagerEntry::decode(index, raw)?);
        }
        Ok(managers)
    }

    /// The list for `metadata.managedFields`; `None` if nothing is managed.
    pub fn encode(self) -> Option<Value> {
        if self.entries.is_empty() {
            return None;
        }
        let mut entries: Vec<ManagerEntry<'_>> = self.entries.into_values().collect();
        work::steps(entries.len());
        entries.sort_by(|a, b| {
            (a.manager.operation, a.seconds(), &a.manager.name, &a.api_version, &a.manager.subresource).cmp(&(
                b.manager.operation,
                b.seconds(),
                &b.manager.name,
                &b.api_version,
                &b.manager.subresource,
            ))
        });
        Some(Value::Array(entries.into_iter().map(ManagerEntry::encode).collect()))
    }

    pub fn get(&self, manager: &ManagerId) -> Option<&ManagerEntry<'a>> {
        self.entries.get(manager)
    }

    pub fn get_mut(&mut self, manager: &ManagerId) -> Option<&mut ManagerEntry<'a>> {
        self.entries.get_mut(manager)
    }

    /// Adds `entry`, or replaces the one of the same manager.
    pub fn put(&mut self, entry: ManagerEntry<'a>) {
        work::step();
        self.entries.insert(entry.manager.clone(), entry);
    }

    pub fn take(&mut self, manager: &ManagerId) -> Option<ManagerEntry<'a>> {
        self.entries.remove(manager)
    }

    /// Merges the oldest updates of each version under one manager, so that at most ten remain.
    pub fn cap(&mut self) {
        if self.entries.len() <= UPDATE_MANAGERS_MAX {
            return;
        }
        let updates = self.updates_by_age();
        let excess = updates.len().saturating_sub(UPDATE_MANAGERS_MAX);
        // The oldest entry of each version stays on its own until a second one has to go.
        let mut versions: BTreeMap<String, Version> = BTreeMap::new();
        let mut put_together = 0;
        for manager in updates {
            if put_together == excess {
                break;
            }
            match versions.get_mut(&manager.api_version) {
                None => _ = versions.insert(manager.api_version.clone(), Version { first: manager, sets: Vec::new() }),
                Some(version) => {
                    self.put_together(version, &manager);
                    put_together += 1;
                }
            }
        }
        for (api_version, version) in versions {
            if let Some(ancient) = self.get_mut(&ancient_changes(&api_version)).filter(|_| !version.sets.is_empty()) {
                let sets = version.sets.into_iter().chain([ancient.fields.take()]);
                ancient.fields = OwnedFields::Set(FieldSet::union_of(sets.collect()));
            }
        }
    }

    /// The managers of updates, the oldest first.
    fn updates_by_age(&self) -> Vec<ManagerId> {
        let updates = self.entries.values().filter(|entry| entry.manager.operation == Operation::Update);
        let mut updates: Vec<&ManagerEntry<'_>> = updates.inspect(|_| work::step()).collect();
        updates.sort_by_cached_key(|entry| (entry.seconds(), entry.manager.sort_key()));
        updates.into_iter().map(|entry| entry.manager.clone()).collect()
    }

    /// Moves what `later` owns to the manager of ancient changes of its version, which the first becomes if there is
    /// none. The sets are merged at the end.
    fn put_together(&mut self, version: &mut Version, later: &ManagerId) {
        let Some(mut entry) = self.take(later) else { return };
        let ancient = ancient_changes(&entry.api_version);
        if *later == ancient {
            version.sets.clear();
            return;
        }
        if self.get(&ancient).is_none()
            && let Some(first) = self.take(&version.first)
        {
            self.put(ManagerEntry { manager: ancient.clone(), ..first });
        }
        if let Some(merged) = self.get_mut(&ancient) {
            version.sets.push(entry.fields.take());
            merged.time = entry.time;
        }
    }
}

/// The updates of one version that are merged.
struct Version {
    /// The manager of the oldest.
    first: ManagerId,
    sets: Vec<FieldSet>,
}

/// The manager of the merged updates of a version.
fn ancient_changes(api_version: &str) -> ManagerId {
    ManagerId {
        name: ANCIENT_CHANGES.to_owned(),
        operation: Operation::Update,
        api_version: api_version.to_owned(),
        subresource: String::new(),
    }
}
