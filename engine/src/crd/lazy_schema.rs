//! Schemas that are made structural when the first of them is needed.
//!
//! A server knows many definitions, and needs the schemas of few of them at a time. A compiled schema takes many times
//! the memory of its text, so what is not needed is not made, and what was made can be forgotten.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, OnceLock};

use crate::schema::structural::Structural;

/// Where there is no schema.
static NOTHING: LazyLock<Arc<Structural>> = LazyLock::new(Arc::default);

/// The schema of a version, made on first use together with those of the other versions.
#[derive(Clone)]
pub struct LazySchema(SchemaForm);

#[derive(Clone)]
enum SchemaForm {
    Made(Arc<Structural>),
    /// The schema of the version with this index.
    Lazy(Arc<LazySchemas>, usize),
}

/// Makes the schemas of all versions of a definition, in their order.
pub type MakeSchemas = dyn Fn() -> Vec<Arc<Structural>> + Send + Sync;

struct LazySchemas {
    made: OnceLock<Vec<Arc<Structural>>>,
    make: Arc<MakeSchemas>,
}

impl LazySchemas {
    fn of(make: &Arc<MakeSchemas>) -> Arc<Self> {
        Arc::new(LazySchemas { made: OnceLock::new(), make: Arc::clone(make) })
    }

    fn made(&self) -> &[Arc<Structural>] {
        if let Some(made) = self.made.get() {
            return made;
        }
        // Outside of the lock, as it may be ended.
        let made = (self.make)();
        self.made.get_or_init(|| made)
    }
}

impl LazySchema {
    /// The schemas of so many versions, which `make` makes.
    pub(super) fn all_of(make: &Arc<MakeSchemas>, count: usize) -> impl Iterator<Item = Self> + use<> {
        let schemas = LazySchemas::of(make);
        (0..count).map(move |at| LazySchema(SchemaForm::Lazy(Arc::clone(&schemas), at)))
    }

    /// The schema, to be shared.
    pub fn shared(&self) -> &Arc<Structural> {
        match &self.0 {
            SchemaForm::Made(made) => made,
            SchemaForm::Lazy(schemas, at) => schemas.made().get(*at).unwrap_or(&NOTHING),
        }
    }

    /// Whether it was made, and can be made again.
    pub(super) fn can_be_forgotten(&self) -> bool {
        matches!(&self.0, SchemaForm::Lazy(schemas, _) if schemas.made.get().is_some())
    }

    /// The schemas of a definition with nothing made of them; those that were made from the start stay.
    pub(super) fn forgotten<'s>(all: impl Iterator<Item = &'s Self>) -> impl Iterator<Item = Self> {
        let mut anew: Option<Arc<LazySchemas>> = None;
        all.map(move |schema| match &schema.0 {
            SchemaForm::Made(_) => schema.clone(),
            SchemaForm::Lazy(schemas, at) => {
                let anew = anew.get_or_insert_with(|| LazySchemas::of(&schemas.make));
                LazySchema(SchemaForm::Lazy(Arc::clone(anew), *at))
            }
        })
    }
}

impl Deref for LazySchema {
    type Target = Structural;

    fn deref(&self) -> &Structural {
        self.shared()
    }
}

impl From<Arc<Structural>> for LazySchema {
    fn from(made: Arc<Structural>) -> Self {
        LazySchema(SchemaForm::Made(made))
    }
}

impl Default for LazySchema {
    fn default() -> Self {
        Arc::clone(&NOTHING).into()
    }
}

impl PartialEq for LazySchema {
    fn eq(&self, other: &Self) -> bool {
        self.shared() == other.shared()
    }
}

impl fmt::Debug for LazySchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SchemaForm::Lazy(schemas, _) if schemas.made.get().is_none() => f.write_str("LazySchema"),
            _ => self.shared().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::crd::{self, Definition, definition, has_schemas, without_schemas};
    use crate::value::yaml;

    fn definition() -> Definition {
        let text = "{metadata: {name: things.example.com}, spec: {group: example.com, scope: Namespaced, \
                    names: {plural: things, kind: Thing}, versions: [{name: v1, served: true, storage: true, \
                    schema: {openAPIV3Schema: {type: object}}}, {name: v2, served: true, \
                    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}]}}";
        let value = yaml::decode(text.as_bytes()).expect("the test is YAML");
        definition::decode_in(Default::default(), &value).expect("it is a definition").0
    }

    #[test]
    fn the_schemas_of_all_versions_are_made_once_and_again_when_they_were_forgotten() {
        let definition = definition();
        let whole = crd::compile(&definition);
        let made = Arc::new(AtomicUsize::new(0));
        let make = {
            let (made, definition) = (Arc::clone(&made), definition.clone());
            move || {
                made.fetch_add(1, Ordering::Relaxed);
                crd::schemas(&definition)
            }
        };
        let outline: Vec<_> = crd::outline(&definition, Arc::new(make)).into_iter().map(Arc::new).collect();
        let often = || made.load(Ordering::Relaxed);
        assert_eq!((often(), has_schemas(&outline)), (0, false));
        assert_eq!(format!("{:?}", outline[1].structural), "LazySchema");
        assert!(outline.iter().map(|version| &**version).eq(&whole));
        assert!(outline[1].structural.properties.contains_key("spec"));
        assert_eq!((often(), has_schemas(&outline)), (1, true));
        let again = without_schemas(&outline);
        assert_eq!((often(), has_schemas(&again), has_schemas(&outline)), (1, false, true));
        assert!(again.iter().map(|version| &**version).eq(&whole));
        assert_eq!(often(), 2);
    }

    #[test]
    fn what_was_made_from_the_start_stays() {
        let versions: Vec<_> = crd::compile(&definition()).into_iter().map(Arc::new).collect();
        assert!(!has_schemas(&versions));
        assert!(Arc::ptr_eq(versions[0].structural.shared(), without_schemas(&versions)[0].structural.shared()));
    }
}
