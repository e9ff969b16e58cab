//! The custom resources that were read from their definitions so far.

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use imbl::HashMap;

use super::resource::Resource;

type ByName = HashMap<Arc<str>, Arc<Resource>>;

/// The pause between two times at which schemas are forgotten: what was forgotten is given back to the system meanwhile,
/// and memory is measured again.
const PAUSE: Duration = Duration::from_millis(100);

/// Resources, by the names of their definitions. A copy costs nothing, and has the compiled schemas in common with its
/// origin: they are there until both have forgotten them.
#[derive(Default)]
pub struct KnownResources {
    by_name: RwLock<ByName>,
    /// When schemas were forgotten last.
    forgotten: Mutex<Option<Instant>>,
}

impl KnownResources {
    fn read(&self) -> RwLockReadGuard<'_, ByName> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ByName> {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The resource of a definition.
    pub fn get(&self, name: &str) -> Option<Arc<Resource>> {
        self.read().get(name).cloned()
    }

    pub fn insert(&self, name: Arc<str>, resource: Arc<Resource>) {
        self.write().insert(name, resource);
    }

    pub fn remove(&self, name: &str) {
        if self.read().contains_key(name) {
            self.write().remove(name);
        }
    }

    /// Drops the resources of definitions that are not stored any more, if there are more than so many.
    pub fn retain(&self, count: usize, is_stored: impl Fn(&str) -> bool) {
        if self.read().len() > count {
            self.write().retain(|name, _| is_stored(name));
        }
    }

    /// Forgets the compiled schemas of half of the resources, those that were not used for longest; at most once in a
    /// while.
    pub fn forget_schemas(&self) {
        {
            let mut forgotten = self.forgotten.lock().unwrap_or_else(PoisonError::into_inner);
            if forgotten.is_some_and(|last| last.elapsed() < PAUSE) {
                return;
            }
            *forgotten = Some(Instant::now());
        }
        self.forget_half();
    }

    fn forget_half(&self) {
        let with_schemas = |(_, resource): &(&Arc<str>, &Arc<Resource>)| resource.has_schemas();
        let mut compiled: Vec<(Arc<str>, Arc<Resource>)> =
            self.read().iter().filter(with_schemas).map(|(name, it)| (Arc::clone(name), Arc::clone(it))).collect();
        compiled.sort_by_key(|(_, resource)| resource.last_used());
        compiled.truncate(compiled.len() / 2);
        // Others wait for the lock, so what takes long is done without it.
        for (name, resource) in compiled {
            let bare = Arc::new(resource.without_schemas());
            let mut known = self.write();
            if let Some(known) = known.get_mut(&name).filter(|known| Arc::ptr_eq(known, &resource)) {
                *known = bare;
            }
        }
    }
}

impl Clone for KnownResources {
    fn clone(&self) -> Self {
        KnownResources { by_name: RwLock::new(self.read().clone()), forgotten: Mutex::default() }
    }
}

#[cfg(test)]
mod tests {
    use crate::registry::Registry;
    use crate::registry::fixture;
    use crate::store::Encoded;
    use crate::value::yaml;

    async fn define(registry: &Registry, plural: &str) {
        let names = format!("{{plural: {plural}, singular: {plural}, kind: K{plural}, listKind: L{plural}}}");
        let text = format!(
            "{{metadata: {{name: {plural}.example.com}}, spec: {{group: example.com, scope: Namespaced, names: {names}, \
             versions: [{{name: v1, served: true, storage: true, \
             schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object}}}}}}}}}}]}}, \
             status: {{acceptedNames: {names}, conditions: [{{type: Established, status: 'True'}}]}}}}"
        );
        let definition = yaml::decode(text.as_bytes()).expect("the test is YAML");
        let (definitions, name) = (registry.definitions.collection(), format!("{plural}.example.com"));
        fixture::store(&registry.storage, &definitions, (&name, plural), Encoded::of(&definition)).await;
    }

    #[tokio::test]
    async fn schemas_are_made_on_first_use_and_forgotten_where_nothing_uses_them() {
        let registry = fixture::registry().await;
        let plurals = ["as", "bs", "cs", "ds"];
        for plural in plurals {
            define(&registry, plural).await;
        }
        let known = &registry.definitions.known;
        let with_schemas = || {
            let has = |plural: &&str| known.read()[format!("{plural}.example.com").as_str()].has_schemas();
            plurals.into_iter().filter(has).collect::<String>()
        };
        registry.resources().await.expect("the store works");
        assert_eq!(with_schemas(), "");
        for plural in plurals {
            let resource =
                registry.resolve("example.com", plural).await.expect("the store works").expect("it is there");
            assert!(resource.first().structural.properties.contains_key("spec"));
        }
        // Discovery asks for all of them, and uses none.
        registry.resources().await.expect("the store works");
        registry.resolve("example.com", "bs").await.expect("the store works");
        assert_eq!(with_schemas(), "asbscsds");
        known.forget_half();
        assert_eq!(with_schemas(), "bsds");
        known.forget_schemas();
        known.forget_schemas();
        assert_eq!(with_schemas(), "bs", "not twice in a moment");
        known.forget_half();
        assert_eq!(with_schemas(), "bs", "the last one stays");
        let again = registry.resolve("example.com", "as").await.expect("the store works").expect("it is there");
        assert!(again.first().structural.properties.contains_key("spec"));
    }
}
