//! The strategy of a kind: how its objects are decoded, prepared and validated.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use crate::crd::write::{Observe, ReadError};
use crate::crd::{Column, ServedVersion, write};
use crate::meta::field::{Error, ErrorList, Path};
use crate::object;
use crate::types::Message;
use crate::types::decoder::{Empty, Findings};
use crate::value::{Value, go_quote};

/// The part of an object that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// The object itself.
    Main,
    /// `status`
    Status,
    /// `scale`
    Scale,
    /// Another subresource, by its name: a `kinds::Part` of the kind.
    Part(&'static str),
}

impl Subresource {
    /// The name in paths and in `managedFields`.
    pub const fn name(self) -> &'static str {
        match self {
            Subresource::Main => "",
            Subresource::Status => "status",
            Subresource::Scale => "scale",
            Subresource::Part(name) => name,
        }
    }
}

/// An object in the form of its version, and what the decoder found.
pub struct Decoded {
    /// The object, pruned and with its defaults.
    pub object: Value,
    /// The findings that strict field validation refuses.
    pub findings: Findings,
    /// Whether Go has a type for the kind. It then decodes strictly in one pass, and errors come in the order of the
    /// text.
    pub is_typed: bool,
}

impl Decoded {
    /// Makes the result for a kind that is unstructured in Go, with its unknown fields.
    pub fn unstructured(object: Value, unknown: Vec<String>) -> Self {
        Decoded { object, findings: Findings { unknown, ..Findings::default() }, is_typed: false }
    }
}

/// A cell of a Table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A value as it is.
    Value(Value),
    /// How long ago this RFC 3339 time was; an empty time is unknown.
    Since(String),
    /// A text, and in parentheses how long ago this RFC 3339 time was: `3 (5m ago)`.
    Ago {
        /// The text before the parentheses.
        text: String,
        /// The time, in RFC 3339.
        since: String,
    },
    /// A duration in seconds.
    Lasting(i64),
}

/// The columns of a built-in kind, and the cells of one object. The descriptions of columns with names (with the format
/// `name`) and ages are the same for all kinds, and are left out.
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// Makes the cells of an object, one per column.
    pub cells: fn(&Value) -> Vec<Cell>,
}

impl Table {
    /// Makes a table with the object's name, `columns`, and its age.
    pub fn named(columns: Vec<Column>, cells: fn(&Value) -> Vec<Cell>) -> Self {
        let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
        let columns = [vec![name], columns, vec![Column::string("Age", "")]].concat();
        Table { columns, cells }
    }
}

impl Cell {
    /// Makes a cell with a text.
    pub fn text(text: &str) -> Self {
        Cell::Value(Value::from(text))
    }

    /// Makes a cell with a count.
    pub fn count(count: usize) -> Self {
        Cell::Value(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
    }

    /// Makes the cells of a row of [`Table::named`].
    pub fn named(object: &Value, cells: Vec<Cell>) -> Vec<Cell> {
        let name = Cell::text(object.str_at(&["metadata", "name"]));
        let age = Cell::Since(object.str_at(&["metadata", "creationTimestamp"]).to_owned());
        [vec![name], cells, vec![age]].concat()
    }
}

/// The behaviour in which kinds differ. What is the same for all kinds is in the files of the verbs.
pub trait Strategy: Send + Sync {
    /// Decodes `object`, as a client sent it, into the form of the version that it names.
    ///
    /// # Errors
    ///
    /// The error of Go's decoder for a field with the wrong type.
    fn decode(&self, object: Value, _versions: &[Arc<ServedVersion>]) -> Result<Decoded, ReadError> {
        let Some(message) = super::type_of(object.str_at(&["apiVersion"]), object.str_at(&["kind"])) else {
            return Ok(Decoded::unstructured(object, Vec::new()));
        };
        let (mut decoded, mut findings) = message.decode(&object)?;
        self.set_typed_defaults(&mut decoded);
        self.internalize(&mut decoded)?;
        self.keep_empty(&object, &mut decoded);
        self.infer_empty(&mut findings.empty);
        Ok(Decoded { object: decoded, findings, is_typed: true })
    }

    /// Sets the defaults that Go sets in an object that it has decoded.
    fn set_typed_defaults(&self, _object: &mut Value) {}

    /// Applies the changes that result when Go converts a decoded object with defaults to its internal type and back.
    /// Fields that only one of the two types has are kept in annotations of the other.
    ///
    /// # Errors
    ///
    /// Go's error message.
    fn internalize(&self, _object: &mut Value) -> Result<(), ReadError> {
        Ok(())
    }

    /// The name under which the reference stores objects, if it is not the resource's: messages show it.
    fn stored_as(&self) -> Option<&'static str> {
        None
    }

    /// The Go package of the kind's internal type, if it is not the group's.
    fn internal_package(&self) -> Option<&'static str> {
        None
    }

    /// The annotations that represent fields of Go's internal type.
    fn internal_annotations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Keeps in `decoded` what is empty in `sent` and would be left out, if an error will show it.
    fn keep_empty(&self, _sent: &Value, _decoded: &mut Value) {}

    /// Adds to the paths of what was sent empty those that Go's defaults make empty because of it.
    fn infer_empty(&self, _empty: &mut Vec<Empty>) {}

    /// Removes from a changed object what was sent empty and is not stored: it has no field manager.
    fn drop_empty(&self, _object: &mut Value) {}

    /// Sets defaults in an object that apply has merged; conflicts with the schema are left to validation.
    ///
    /// # Errors
    ///
    /// The version is unknown, or there are too many defaults.
    fn set_defaults(&self, object: Value, versions: &[Arc<ServedVersion>]) -> Result<Decoded, ReadError> {
        self.decode(object, versions)
    }

    /// Removes what the schema does not specify from an object that webhooks have changed.
    ///
    /// # Errors
    ///
    /// A value cannot be converted.
    fn settle(&self, object: Value, _versions: &[Arc<ServedVersion>]) -> Result<Value, ReadError> {
        Ok(object)
    }

    /// The value from which Go starts to decode an object of the kind: the fields that it always writes. They have no
    /// field manager.
    fn zero(&self, version: &ServedVersion) -> Value {
        let message = super::type_of(&version.api_version(), &version.names.kind);
        let mut zero = message.map_or_else(|| object! {}, Message::zero);
        super::forget_newer(version, &mut zero);
        zero
    }

    /// Whether a body may leave out apiVersion and kind, as it may for typed kinds.
    fn may_leave_type_out(&self) -> bool {
        true
    }

    /// Converts the object to another version of the kind, if that takes more than another `apiVersion`.
    fn convert(&self, _object: &Value, _api_version: &str) -> Option<Value> {
        None
    }

    /// The warnings about a new object as it was sent, which are returned even if it is refused.
    fn early_warnings(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Sets times that Go sets while it decodes an object, if they were left out; `now` is RFC 3339. The write loop
    /// calls it for what was sent, before field managers are computed, and for the result of admission; for
    /// subresources as well.
    fn set_times(&self, _object: &mut Value, _now: &str) {}

    /// Whether `generateName` is completed with random characters; else it is the name itself.
    fn generates_names(&self) -> bool {
        true
    }

    /// Whether the server names an object that has neither a name nor a `generateName`.
    fn names_nameless(&self) -> bool {
        false
    }

    /// Aligns fields with each other before validation; `old` is the object that is changed, if any. It allocates
    /// nothing.
    fn align(&self, _new: &mut Value, _old: Option<&Value>) {}

    /// Prepares a new object: sets the fields that a client cannot choose.
    fn prepare_create(&self, _version: &ServedVersion, _object: &mut Value) {}

    /// Does the same as [`Strategy::prepare_create`] for a kind that records who created an object: `user` returns the
    /// UserInfo of `authentication.k8s.io/v1`.
    fn prepare_create_by(&self, version: &ServedVersion, object: &mut Value, _user: &dyn Fn() -> Value) {
        self.prepare_create(version, object);
    }

    /// Validates a new object.
    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList;

    /// Does the same as [`Strategy::validate_create`] for a kind that has rules: `observe` is called for each
    /// evaluation of one.
    fn validate_create_observed<'a>(
        &self,
        version: &'a ServedVersion,
        object: &'a Value,
        _observe: Observe<'_, 'a>,
    ) -> ErrorList {
        self.validate_create(version, object)
    }

    /// Prepares an update: restores what it must not change, and sets what follows from the change.
    fn prepare_update(&self, _version: &ServedVersion, _subresource: Subresource, _new: &mut Value, _old: &Value) {}

    /// Does the same as [`Strategy::prepare_update`] for a kind that records times; `now` is RFC 3339.
    fn prepare_update_at(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &mut Value,
        old: &Value,
        _now: &str,
    ) {
        self.prepare_update(version, subresource, new, old);
    }

    /// The fields that an update leaves as they are stored, if the object is written in a version that cannot represent
    /// all of them.
    fn leaves_alone(&self, _subresource: Subresource) -> &'static [&'static str] {
        &[]
    }

    /// Validates an update.
    fn validate_update(&self, version: &ServedVersion, subresource: Subresource, new: &Value, old: &Value)
    -> ErrorList;

    /// Does the same as [`Strategy::validate_update`] for a kind that has rules: failures that are ignored, because
    /// `new` did not change the value, are added to `ratcheted`, and `observe` is called for each evaluation.
    fn validate_update_observed<'a>(
        &self,
        (version, subresource): (&'a ServedVersion, Subresource),
        new: &'a Value,
        old: &'a Value,
        _ratcheted: &mut Vec<Error>,
        _observe: Observe<'_, 'a>,
    ) -> ErrorList {
        self.validate_update(version, subresource, new, old)
    }

    /// The warnings for the client that wrote `new`.
    fn warnings(
        &self,
        _version: &ServedVersion,
        _subresource: Subresource,
        _new: &Value,
        _old: Option<&Value>,
    ) -> Vec<String> {
        Vec::new()
    }

    /// Why the object `name` cannot be deleted by itself, if it cannot.
    fn kept_for(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// Whether Go has a list of the kind's selectable fields, as it has for few kinds. Others can be selected by their
    /// metadata alone.
    fn lists_field_labels(&self) -> bool {
        false
    }

    /// The message for a field selector on `field`, which cannot be used in selectors.
    fn unknown_field_label(&self, _version: &ServedVersion, field: &str) -> String {
        if self.lists_field_labels() {
            return format!("field label not supported: {field}");
        }
        format!("{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", go_quote(field))
    }

    /// Whether objects can be selected by `metadata.namespace`; by default they can in Go even if they have none.
    fn knows_namespace_label(&self, is_namespaced: bool) -> bool {
        is_namespaced || !self.lists_field_labels()
    }

    /// The value of a selectable field that is not at its own path.
    fn select(&self, _object: &Value, _field: &str) -> Option<String> {
        None
    }

    /// A field that the reference's cache has an index of: a list that selects one value of it looks at no other objects.
    fn indexed_field(&self) -> Option<&'static str> {
        None
    }

    /// The columns of a Table; `None` if the version defines them.
    fn table(&self) -> Option<Table> {
        None
    }

    /// The beginning of the message for a failed precondition of a deletion, for a kind that checks them itself.
    fn precondition_failed(&self) -> Option<&'static str> {
        None
    }

    /// Whether `object`, if it is sent without labels, shares those of its template in Go: both refer to the same map,
    /// so what is added to one is added to the other.
    fn shares_labels(&self, _object: &Value) -> bool {
        false
    }

    /// Gives an object the labels that it shares with its template.
    fn share_labels(&self, _object: &mut Value) {}

    /// Whether an update may leave out the resource version.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// Whether a PUT creates an object that does not exist.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// Whether a list or a map that is sent empty increments the generation: Go compares by `reflect.DeepEqual` there,
    /// and stored objects have no empty ones.
    fn counts_empty(&self) -> bool {
        false
    }

    /// The paths of lists and maps for which validation in Go distinguishes empty from absent, beyond those of all
    /// pods; `*` stands for each item of a list or each key of a map.
    fn tells_empty(&self) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// The path of the immutable field whose bytes Go keeps as they were sent, where `*` stands for each item of a
    /// list: it counts as changed if its bytes have changed, even if only by a space. Empty if there is none.
    fn raw_field(&self) -> &'static [&'static str] {
        &[]
    }

    /// The error that such a field has different bytes, although its value is the same.
    fn rewritten(&self, new: &Value) -> Option<Error> {
        let name = self.raw_field().first()?;
        let value = new.get(name).cloned().unwrap_or_default();
        Some(Error::invalid(&Path::new(name), value, "field is immutable"))
    }

    /// Sets fields that follow from a valid object and that the client cannot choose: as the object is read.
    fn complete(&self, _object: &mut Value) {}

    /// Whether a deletion returns the deleted object instead of a Status.
    fn returns_deleted(&self) -> bool {
        false
    }

    /// Whether the OpenAPI documents say that a deletion returns the deleted object.
    fn publishes_deleted(&self) -> bool {
        self.returns_deleted()
    }

    /// Whether a deletion may wait for the garbage collector.
    fn collects_garbage(&self) -> bool {
        true
    }

    /// Whether a deletion without a propagation policy orphans the dependents.
    fn orphans_dependents(&self) -> bool {
        false
    }

    /// The warning for a deletion without a propagation policy.
    fn deletion_warning(&self) -> Option<&'static str> {
        None
    }

    /// How long an object is kept after its last write; `None` for until it is deleted.
    fn lifetime(&self) -> Option<Duration> {
        None
    }

    /// Whether lists and watches are answered by the store itself: the reference has no watch cache for what it forgets
    /// soon.
    ///
    /// Source: `DefaultWatchCacheSizes` of `pkg/kubeapiserver`.
    fn is_read_from_store(&self) -> bool {
        self.lifetime().is_some()
    }

    /// The fields that a write to `subresource` resets, and which its manager therefore does not own: by default the
    /// status if it is a subresource, and the spec in a write of the status.
    fn reset_fields(&self, version: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        match subresource {
            _ if !version.status => &[],
            Subresource::Status => &[&["spec"]],
            _ => &[&["status"]],
        }
    }

    /// The order of the rows of a Table, if it is not that of the list.
    fn row_order(&self) -> Option<fn(&Value, &Value) -> Ordering> {
        None
    }

    /// The reason and the message in a Table row for an object that has completed.
    fn completion(&self, _object: &Value) -> Option<(&'static str, &'static str)> {
        None
    }

    /// The grace period of a deleted object in seconds, given the requested one; `None` for a kind without grace
    /// periods.
    fn grace_period(&self, _object: &Value, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// Performs the first step of a deletion, before finalizers are considered. Returns the object that is kept, or
    /// `None`.
    ///
    /// `now` is RFC 3339.
    fn begin_delete(&self, _object: &Value, _now: &str) -> Option<Value> {
        None
    }

    /// Whether the object, after its finalizers are gone, must be kept for another reason (a namespace with content).
    fn must_stay(&self, _object: &Value) -> bool {
        false
    }
}

/// The same as [`Strategy::reset_fields`] for kinds whose `/status` resets the metadata, too.
pub const fn reset_beside_status(subresource: Subresource) -> &'static [&'static [&'static str]] {
    match subresource {
        Subresource::Status => &[&["metadata"], &["spec"]],
        _ => &[&["status"]],
    }
}

/// The strategy of kinds that are validated elsewhere: reviews, where they are answered, and Scale, by the resource
/// behind it.
pub struct Unchecked;

impl Strategy for Unchecked {
    fn validate_create(&self, _: &ServedVersion, _: &Value) -> ErrorList {
        ErrorList::new()
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, _: &Value, _: &Value) -> ErrorList {
        ErrorList::new()
    }
}

/// The strategy of every custom resource.
pub struct Custom;

impl Strategy for Custom {
    fn decode(&self, mut object: Value, versions: &[Arc<ServedVersion>]) -> Result<Decoded, ReadError> {
        let unknown_fields = write::decode(&mut object, versions, write::Origin::Request)?;
        Ok(Decoded::unstructured(object, unknown_fields))
    }

    fn set_defaults(&self, mut object: Value, versions: &[Arc<ServedVersion>]) -> Result<Decoded, ReadError> {
        write::set_defaults(&mut object, versions)?;
        Ok(Decoded::unstructured(object, Vec::new()))
    }

    fn settle(&self, mut object: Value, versions: &[Arc<ServedVersion>]) -> Result<Value, ReadError> {
        write::coerce(&mut object, versions, write::Origin::Admission)?;
        Ok(object)
    }

    fn zero(&self, _: &ServedVersion) -> Value {
        object! {}
    }

    fn may_leave_type_out(&self) -> bool {
        false
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        write::prepare_create(version, object);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        write::validate_create(version, object)
    }

    fn validate_create_observed<'a>(
        &self,
        version: &'a ServedVersion,
        object: &'a Value,
        observe: Observe<'_, 'a>,
    ) -> ErrorList {
        write::validate_create_observed(version, object, observe)
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        match subresource {
            Subresource::Status => write::prepare_status_update(new, old),
            _ => write::prepare_update(version, new, old),
        }
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        self.validate_update_observed((version, subresource), new, old, &mut Vec::new(), &mut |_| {})
    }

    fn validate_update_observed<'a>(
        &self,
        (version, subresource): (&'a ServedVersion, Subresource),
        new: &'a Value,
        old: &'a Value,
        ratcheted: &mut Vec<Error>,
        observe: Observe<'_, 'a>,
    ) -> ErrorList {
        match subresource {
            Subresource::Status => write::validate_status_update_observed(version, new, old, ratcheted, observe),
            _ => write::validate_update_observed(version, new, old, ratcheted, observe),
        }
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        match subresource {
            Subresource::Status => Vec::new(),
            _ => write::warnings(new, old),
        }
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self, version: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        match subresource {
            Subresource::Main if version.status => &[&["status"]],
            Subresource::Status => &[&["metadata"], &["spec"]],
            _ => &[],
        }
    }
}
