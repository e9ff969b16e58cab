//! What is known about the sizes of values: from literals, from the schema, from the values of variables.

use super::Coster;
use crate::cel::ast::{Comprehension, Constant, Expr, ExprId, ExprKind};
use crate::cel::cost::path::Path;
use crate::cel::cost::range::Range;
use crate::cel::declared::DeclShape;
use crate::cel::types::{Scalar, Type};
use crate::meta::minor::Minor;

/// The sizes of the keys and the values of a map, or of the indices and elements of a list.
#[derive(Clone, Copy, Debug)]
pub struct EntrySizes {
    /// Whether the keys are indices.
    pub of_list: bool,
    /// The size of the key.
    pub key: Range,
    /// The size of the value.
    pub value: Range,
}

/// A variable of a comprehension.
pub(super) struct Local<'e> {
    pub name: &'e str,
    pub path: Path<'e>,
    pub size: Option<Range>,
    pub entry: Option<EntrySizes>,
}

/// The version of Kubernetes that added sizes of elements, and of the contents of accumulators.
const ENTRIES_SINCE: Minor = Minor::of(33);
/// Before this one, messages had the size 0.
const MESSAGES_UNSIZED_SINCE: Minor = Minor::of(31);

impl EntrySizes {
    pub(super) fn union(self, other: EntrySizes) -> EntrySizes {
        EntrySizes { of_list: self.of_list, key: self.key.union(other.key), value: self.value.union(other.value) }
    }
}

impl<'e> Coster<'e> {
    pub(super) fn size_or_unknown(&mut self, expr: &'e Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    /// The size of the value of `expr`. A path takes precedence over the type: numbers in an object have their declared
    /// size, 0.
    pub(super) fn size(&mut self, expr: &'e Expr) -> Option<Range> {
        if let Some(size) = get(&self.sizes, expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(Range::fixed(size));
        }
        if matches!(expr.kind, ExprKind::Struct(_)) && self.checked.minor < MESSAGES_UNSIZED_SINCE {
            return Some(Range::fixed(0));
        }
        if let Some(size) = self.declared_size(&self.path(expr)) {
            set(&mut self.sizes, expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.ty(expr.id)) {
            return Some(Range::fixed(1));
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    /// Whether sizes of elements are tracked.
    pub(super) fn knows_entries(&self) -> bool {
        self.checked.minor >= ENTRIES_SINCE
    }

    pub(super) fn note_entry(&mut self, id: ExprId, entry: EntrySizes) {
        if self.knows_entries() {
            set(&mut self.entries, id, entry);
        }
    }

    pub(super) fn entry(&self, expr: &Expr) -> Option<EntrySizes> {
        if let Some(entry) = get(&self.entries, expr.id) {
            return Some(*entry);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.entry,
            _ => None,
        }
    }

    pub(super) fn path(&self, expr: &Expr) -> Path<'e> {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        get(&self.paths, expr.id).cloned().unwrap_or_default()
    }

    /// The size by the declared type at the end of `path`; the first step is a variable.
    pub(super) fn declared_size(&self, path: &Path<'e>) -> Option<Range> {
        path.read(|steps| {
            let (variable, steps) = steps.split_first()?;
            let mut decl = (self.root)(variable)?;
            for step in steps {
                decl = match (*step, &decl.shape) {
                    ("@items" | "@values", _) => decl.element()?,
                    ("@keys", DeclShape::Map { key, .. }) => key,
                    ("@keys", _) => return None,
                    (name, _) => decl.field(name)?,
                };
            }
            Some(Range::new(0, decl.max_elements))
        })
    }

    pub(super) fn local(&self, name: &str) -> Option<&Local<'e>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    pub(super) fn pop_local(&mut self, name: &str) {
        if let Some(at) = self.locals.iter().rposition(|local| local.name == name) {
            self.locals.remove(at);
        }
    }

    pub(super) fn push_accumulator(&mut self, fold: &'e Comprehension) {
        if !self.knows_entries() {
            return;
        }
        let (path, entry) = (self.path(&fold.accu_init), self.entry(&fold.accu_init));
        let size = self.size(&fold.accu_init);
        self.locals.push(Local { name: &fold.accu_var, path, size, entry });
    }

    pub(super) fn pop_accumulator(&mut self, fold: &Comprehension) {
        if self.knows_entries() {
            self.pop_local(&fold.accu_var);
        }
    }

    pub(super) fn push_key(&mut self, name: &'e str, range: &'e Expr) {
        let size = self.entry(range).map(|entry| entry.key);
        let step = if self.is_list(range) { "@indices" } else { "@keys" };
        let path = self.path(range).child(step);
        self.locals.push(Local { name, path, size, entry: None });
    }

    pub(super) fn push_value(&mut self, name: &'e str, range: &'e Expr) {
        let size = self.entry(range).map(|entry| entry.value);
        let step = if self.is_list(range) { "@items" } else { "@values" };
        let path = self.path(range).child(step);
        self.locals.push(Local { name, path, size, entry: None });
    }

    pub(super) fn is_list(&self, range: &Expr) -> bool {
        match self.entry(range) {
            Some(entry) => entry.of_list,
            None => matches!(self.checked.ty(range.id), Type::List(_)),
        }
    }
}

pub(super) fn get<T>(of: &[Option<T>], id: ExprId) -> Option<&T> {
    of.get(id.0 as usize).and_then(Option::as_ref)
}

pub(super) fn set<T>(of: &mut Vec<Option<T>>, id: ExprId, value: T) {
    let at = id.0 as usize;
    if of.len() <= at {
        of.resize_with(at + 1, || None);
    }
    of[at] = Some(value);
}

fn literal_size(expr: &Expr) -> Option<u64> {
    Some(match &expr.kind {
        ExprKind::Constant(Constant::String(text)) => text.chars().count() as u64,
        ExprKind::Constant(Constant::Bytes(bytes)) => bytes.len() as u64,
        ExprKind::Constant(_) => 1,
        ExprKind::List(list) => list.elements.len() as u64,
        ExprKind::Map(entries) => entries.len() as u64,
        _ => return None,
    })
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Duration | Type::Timestamp => true,
        Type::Wrapper(of) => !matches!(of, Scalar::String | Scalar::Bytes),
        Type::Opaque(_) => ty.optional_content().is_some_and(is_scalar),
        _ => false,
    }
}
