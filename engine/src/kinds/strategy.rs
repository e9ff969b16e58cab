//! What a kind does differently: how its objects are read, prepared and checked.

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
    /// Another part, by its name: a `kinds::Part` of the kind.
    Part(&'static str),
}

impl Subresource {
    /// As paths and `managedFields` name it.
    pub const fn name(self) -> &'static str {
        match self {
            Subresource::Main => "",
            Subresource::Status => "status",
            Subresource::Scale => "scale",
            Subresource::Part(name) => name,
        }
    }
}

/// An object in the form of its version, and the paths of what was not specified.
pub struct Decoded {
    /// The object, pruned and with its defaults.
    pub object: Value,
    /// What strict clients want refused.
    pub findings: Findings,
    /// Whether Go has a type for the kind: it then reads strictly in one go, errors come in the order of the text.
    pub is_typed: bool,
}

impl Decoded {
    /// Unknown fields of a kind that is unstructured in Go, too.
    pub fn unstructured(object: Value, unknown: Vec<String>) -> Self {
        Decoded { object, findings: Findings { unknown, ..Findings::default() }, is_typed: false }
    }
}

/// A cell of a Table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A value as it is.
    Value(Value),
    /// How long ago this RFC 3339 time was; empty for a time that is not known.
    Since(String),
    /// A text, and in brackets how long ago this RFC 3339 time was: `3 (5m ago)`.
    Ago {
        /// How long ago, when the table is made.
        text: String,
        /// The time that this counts from, in RFC 3339.
        since: String,
    },
    /// So many seconds.
    Lasting(i64),
}

/// The columns of a built-in kind, and the cells of one object. What is said of the columns of names (with the format
/// `name`) and ages is the same for all kinds, and left out.
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The cells of an object, as many as there are columns.
    pub cells: fn(&Value) -> Vec<Cell>,
}

impl Table {
    /// The object's name, some columns, its age.
    pub fn named(columns: Vec<Column>, cells: fn(&Value) -> Vec<Cell>) -> Self {
        let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
        let columns = [vec![name], columns, vec![Column::string("Age", "")]].concat();
        Table { columns, cells }
    }
}

impl Cell {
    /// A cell with a text.
    pub fn text(text: &str) -> Self {
        Cell::Value(Value::from(text))
    }

    /// How many there are.
    pub fn count(count: usize) -> Self {
        Cell::Value(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
    }

    /// The cells of [`Table::named`].
    pub fn named(object: &Value, cells: Vec<Cell>) -> Vec<Cell> {
        let name = Cell::text(object.str_at(&["metadata", "name"]));
        let age = Cell::Since(object.str_at(&["metadata", "creationTimestamp"]).to_owned());
        [vec![name], cells, vec![age]].concat()
    }
}

/// A kind's own ways. Everything else is the same for all kinds and stands in the verbs' files.
pub trait Strategy: Send + Sync {
    /// Brings `object`, as a client sent it, into the form of the version it names.
    ///
    /// # Errors
    ///
    /// What Go's decoder says of a field that has another type.
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

    /// Sets what Go sets in an object that it has read.
    fn set_typed_defaults(&self, _object: &mut Value) {}

    /// What comes of an object that was read and defaulted when Go converts it to its internal type and back: fields that only
    /// the one of them has stand in annotations of the other.
    ///
    /// # Errors
    ///
    /// Go's text.
    fn internalize(&self, _object: &mut Value) -> Result<(), ReadError> {
        Ok(())
    }

    /// Under what name the reference stores objects, where that is not the resource's: messages show it.
    fn stored_as(&self) -> Option<&'static str> {
        None
    }

    /// The Go package of the kind's internal type, where that is not the one of its group.
    fn internal_package(&self) -> Option<&'static str> {
        None
    }

    /// Annotations that stand for fields of Go's internal type.
    fn internal_annotations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Keeps in `decoded` what is empty in `sent` and would be left out, where an error will show it.
    fn keep_empty(&self, _sent: &Value, _decoded: &mut Value) {}

    /// Adds to what came empty what Go's defaults make empty because of it.
    fn infer_empty(&self, _empty: &mut Vec<Empty>) {}

    /// Takes out of a changed object what came empty and is not written: it has no owner.
    fn drop_empty(&self, _object: &mut Value) {}

    /// Sets defaults in what apply has merged; what conflicts with the schema is left for validation to tell.
    ///
    /// # Errors
    ///
    /// The version is not known, or the defaults are too many.
    fn set_defaults(&self, object: Value, versions: &[Arc<ServedVersion>]) -> Result<Decoded, ReadError> {
        self.decode(object, versions)
    }

    /// Takes what the schema does not know out of an object that webhooks have changed.
    ///
    /// # Errors
    ///
    /// What can't be converted.
    fn settle(&self, object: Value, _versions: &[Arc<ServedVersion>]) -> Result<Value, ReadError> {
        Ok(object)
    }

    /// What Go has before it reads an object of the kind: fields that it always writes. Their owner is nobody.
    fn zero(&self, version: &ServedVersion) -> Value {
        super::type_of(&version.api_version(), &version.names.kind).map_or_else(|| object! {}, Message::zero)
    }

    /// Whether a body may leave apiVersion and kind out, as typed kinds allow.
    fn may_leave_type_out(&self) -> bool {
        true
    }

    /// The object in another version of the kind, where that is more than another `apiVersion`.
    fn convert(&self, _object: &Value, _api_version: &str) -> Option<Value> {
        None
    }

    /// Warnings of a new object as it was sent, which are told even if it is refused.
    fn early_warnings(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Sets times that Go sets in an object as it reads it, where they were left out; `now` is RFC 3339. The loop of writes calls
    /// it for what was sent, before owners are computed, and for what admission gives; for subresources as well.
    fn set_times(&self, _object: &mut Value, _now: &str) {}

    /// Whether a name that is asked for gets some characters more; else it is what `generateName` says.
    fn generates_names(&self) -> bool {
        true
    }

    /// Whether the server names an object that has no name and asks for none.
    fn names_nameless(&self) -> bool {
        false
    }

    /// Brings fields in line with each other that a server settles before it validates; `old` is what is changed, if
    /// anything is. It allocates nothing.
    fn align(&self, _new: &mut Value, _old: Option<&Value>) {}

    /// Sets what a new object begins with.
    fn prepare_create(&self, _version: &ServedVersion, _object: &mut Value) {}

    /// [`Strategy::prepare_create`] of a kind that notes who makes an object: `user` gives the UserInfo of
    /// `authentication.k8s.io/v1`.
    fn prepare_create_by(&self, version: &ServedVersion, object: &mut Value, _user: &dyn Fn() -> Value) {
        self.prepare_create(version, object);
    }

    /// The errors of a new object.
    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList;

    /// [`Strategy::validate_create`] of a kind that has rules: `observe` is told each evaluation of one.
    fn validate_create_observed<'a>(
        &self,
        version: &'a ServedVersion,
        object: &'a Value,
        _observe: Observe<'_, 'a>,
    ) -> ErrorList {
        self.validate_create(version, object)
    }

    /// Sets what an update may not set, and what follows from it.
    fn prepare_update(&self, _version: &ServedVersion, _subresource: Subresource, _new: &mut Value, _old: &Value) {}

    /// [`Strategy::prepare_update`] of a kind that notes times; `now` is RFC 3339.
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

    /// What an update leaves as it is stored, where the object is written in a version that can't say all of it.
    fn leaves_alone(&self, _subresource: Subresource) -> &'static [&'static str] {
        &[]
    }

    /// The errors of an update.
    fn validate_update(&self, version: &ServedVersion, subresource: Subresource, new: &Value, old: &Value)
    -> ErrorList;

    /// [`Strategy::validate_update`] of a kind that has rules: failures that are forgiven, as `new` left the value alone, are
    /// added to `ratcheted`, and `observe` is told each evaluation.
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

    /// Warnings for the client that wrote `new`.
    fn warnings(
        &self,
        _version: &ServedVersion,
        _subresource: Subresource,
        _new: &Value,
        _old: Option<&Value>,
    ) -> Vec<String> {
        Vec::new()
    }

    /// Why nobody may delete the object `name` by itself.
    fn kept_for(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// Whether Go has a list of the fields that can be selected by, as of few kinds. Others are known by their metadata alone.
    fn lists_field_labels(&self) -> bool {
        false
    }

    /// What is said of a field selector on `field`, which can't be selected by.
    fn unknown_field_label(&self, _version: &ServedVersion, field: &str) -> String {
        if self.lists_field_labels() {
            return format!("field label not supported: {field}");
        }
        format!("{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", go_quote(field))
    }

    /// Whether `metadata.namespace` may be selected by; by default in Go even where objects have none.
    fn knows_namespace_label(&self, is_namespaced: bool) -> bool {
        is_namespaced || !self.lists_field_labels()
    }

    /// The value of a selectable field that does not stand under its own path.
    fn select(&self, _object: &Value, _field: &str) -> Option<String> {
        None
    }

    /// The columns of a Table; `None` where the version has them.
    fn table(&self) -> Option<Table> {
        None
    }

    /// How a kind that checks the preconditions of a deletion itself begins to tell of one that failed.
    fn precondition_failed(&self) -> Option<&'static str> {
        None
    }

    /// Whether `object`, if it is sent without labels, shares those of its template in Go: the one and the other name one map, to
    /// which is added what is added to it.
    fn shares_labels(&self, _object: &Value) -> bool {
        false
    }

    /// Gives an object the labels that it shares.
    fn share_labels(&self, _object: &mut Value) {}

    /// Whether an update may leave the resourceVersion out.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// Whether a PUT makes an object that is not there.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// Whether a list or a map that is sent empty counts the generation up: Go compares by `reflect.DeepEqual` there, and what is
    /// stored has no empty ones.
    fn counts_empty(&self) -> bool {
        false
    }

    /// The paths of lists and maps that Go tells from none in validation where they are empty, beside those of all pods; `*`
    /// stands for each item of a list.
    fn tells_empty(&self) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// The path of the immutable field whose bytes Go keeps as they were sent, where `*` stands for each item of a list: it has
    /// changed where they have, even if only by a space. Empty where there is none.
    fn raw_field(&self) -> &'static [&'static str] {
        &[]
    }

    /// That such a field has other bytes, though its value is the same.
    fn rewritten(&self, new: &Value) -> Option<Error> {
        let name = self.raw_field().first()?;
        let value = new.get(name).cloned().unwrap_or_default();
        Some(Error::invalid(&Path::new(name), value, "field is immutable"))
    }

    /// Sets what follows from a valid object, and is not the client's to say: as the object is to be read.
    fn complete(&self, _object: &mut Value) {}

    /// Whether a deletion answers the object that is gone, and not a status.
    fn returns_deleted(&self) -> bool {
        false
    }

    /// Whether a deletion may wait for the garbage collector.
    fn collects_garbage(&self) -> bool {
        true
    }

    /// Whether a deletion that does not say what becomes of the dependents leaves them behind.
    fn orphans_dependents(&self) -> bool {
        false
    }

    /// The warning for a deletion that does not say what becomes of the object's dependents.
    fn deletion_warning(&self) -> Option<&'static str> {
        None
    }

    /// How long an object stays after it was last written; `None` for as long as nobody deletes it.
    fn lifetime(&self) -> Option<Duration> {
        None
    }

    /// Fields that a write to `subresource` resets, which its manager therefore does not own: by default the status where it
    /// is a subresource, and there the spec.
    fn reset_fields(&self, version: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        match subresource {
            _ if !version.status => &[],
            Subresource::Status => &[&["spec"]],
            _ => &[&["status"]],
        }
    }

    /// What a row of a Table says of an object that has ended: a reason and a message.
    fn completion(&self, _object: &Value) -> Option<(&'static str, &'static str)> {
        None
    }

    /// The seconds that an object has to end once it is deleted, of which `asked` were asked for; `None` for a kind whose
    /// objects don't need any.
    fn grace_period(&self, _object: &Value, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// What the first deletion of an object does before its finalizers are looked at: an object that stays, or nothing.
    ///
    /// `now` is RFC 3339.
    fn begin_delete(&self, _object: &Value, _now: &str) -> Option<Value> {
        None
    }

    /// Whether the object, its finalizers gone, must stay for another reason (a namespace with content).
    fn must_stay(&self, _object: &Value) -> bool {
        false
    }
}

/// [`Strategy::reset_fields`] of kinds whose `/status` leaves metadata alone, too.
pub const fn reset_beside_status(subresource: Subresource) -> &'static [&'static [&'static str]] {
    match subresource {
        Subresource::Status => &[&["metadata"], &["spec"]],
        _ => &[&["status"]],
    }
}

/// The strategy of kinds that others check: reviews, by what answers them, and Scale, by the resource behind it.
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
