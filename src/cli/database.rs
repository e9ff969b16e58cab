//! The arguments about databases.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use crate::registry::Definitions;
use crate::store::{Collection, Config, Location, PostgresUrl};

#[derive(Args)]
pub struct Database {
    /// Where the database and the kubeconfig are kept
    #[arg(long, value_name = "DIR", default_value = ".skiff")]
    pub data_dir: PathBuf,

    /// Where objects are stored: in a file of the data folder, in memory until the process ends, or in a Postgres that
    /// several servers may share
    #[arg(long, value_name = "sqlite|memory|postgres://…", default_value = "sqlite")]
    store: Store,

    /// Keep the objects of one resource in another database: postgres://…, sqlite:FILE or memory. `/events=…` for a resource
    /// of the core group; may be given several times
    #[arg(long = "store-override", value_name = "GROUP/RESOURCE=URL")]
    overrides: Vec<Override>,
}

#[derive(Clone)]
enum Store {
    Sqlite,
    Memory,
    Postgres(PostgresUrl),
}

impl FromStr for Store {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "sqlite" => Ok(Store::Sqlite),
            "memory" => Ok(Store::Memory),
            url if PostgresUrl::is_one(url) => Ok(Store::Postgres(PostgresUrl::new(url))),
            _ => Err("expected sqlite, memory, or a URL that begins with postgres://"),
        }
    }
}

/// A resource whose objects are stored in another database.
#[derive(Clone)]
struct Override {
    collection: Collection,
    location: Location,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected GROUP/RESOURCE=URL, or /RESOURCE=URL for the core group";
        let (resource, url) = text.split_once('=').ok_or(EXPECTED)?;
        let names = resource.split_once('/').filter(|(_, plural)| !plural.is_empty() && !plural.contains('/'));
        let (group, plural) = names.ok_or(EXPECTED)?;
        let collection = Collection::new(group, plural);
        if Definitions::guards().contains(&collection) {
            return Err(format!("`{resource}` stays in the main database, as writes of other resources depend on it"));
        }
        let location = match url.strip_prefix("sqlite:") {
            Some("") => return Err("`sqlite:` takes the path of a file".to_owned()),
            Some(path) => Location::File(PathBuf::from(path)),
            None if url == "memory" => Location::Memory,
            None if PostgresUrl::is_one(url) => Location::Postgres(PostgresUrl::new(url)),
            None => return Err("the URL of an override is postgres://…, sqlite:FILE or memory".to_owned()),
        };
        Ok(Override { collection, location })
    }
}

impl Database {
    /// The configuration of all databases; a write is synced to disk before it is acknowledged.
    pub fn config(&self) -> Config {
        let overrides = self.overrides.iter().map(|other| (other.collection.clone(), other.location.clone()));
        Config { overrides: overrides.collect(), ..Config::new(self.location()) }
    }

    fn location(&self) -> Location {
        match &self.store {
            Store::Memory => Location::Memory,
            Store::Sqlite => Location::File(self.data_dir.join("state.db")),
            Store::Postgres(url) => Location::Postgres(url.clone()),
        }
    }

    /// Every database that outlives the process, the main one first, each with the file for its
    /// copy in a snapshot `file`: the copies of overrides are beside it and have the name of the
    /// resource (`backup.db.widgets.example.com`).
    pub fn saved_in(&self, file: &Path) -> Vec<(Location, PathBuf)> {
        let config = self.config();
        let mut saved = vec![(config.location, file.to_owned())];
        let mut overrides = config.overrides;
        overrides.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (collection, location) in overrides {
            let is_new = saved.iter().all(|(known, _)| *known != location);
            if is_new && location != Location::Memory {
                let (group, plural) = collection.names();
                let name = format!("{}.{plural}.{group}", file.display());
                saved.push((location, PathBuf::from(name.trim_end_matches('.'))));
            }
        }
        saved
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        database: Database,
    }

    fn parse(arguments: &[&str]) -> Result<Database, String> {
        let parsed = Command::try_parse_from([&["skiff"], arguments].concat());
        parsed.map(|command| command.database).map_err(|error| error.to_string())
    }

    #[test]
    fn an_override_names_a_resource_and_a_place() {
        let arguments = ["/events=memory", "example.com/widgets=sqlite:w.db", "example.com/gadgets=postgres://h/x?a=b"];
        let database = parse(&arguments.map(|value| ["--store-override", value]).concat()).expect("it is understood");
        let postgres = Location::Postgres(PostgresUrl::new("postgres://h/x?a=b"));
        let expect = [
            (Collection::new("", "events"), Location::Memory),
            (Collection::new("example.com", "widgets"), Location::File("w.db".into())),
            (Collection::new("example.com", "gadgets"), postgres),
        ];
        assert_eq!(database.config().overrides, expect);
    }

    #[test]
    fn what_is_not_an_override_is_refused() {
        for text in ["events=memory", "/events", "/=memory", "a/b/c=memory", "/events=tape", "/events=sqlite:"] {
            assert!(parse(&["--store-override", text]).is_err(), "{text}");
        }
    }

    #[test]
    fn what_others_depend_on_stays_in_the_main_database() {
        for resource in ["/namespaces", "apiextensions.k8s.io/customresourcedefinitions"] {
            let refused = parse(&["--store-override", &format!("{resource}=memory")]).err().expect("it is refused");
            assert!(refused.contains("stays in the main database"), "{refused}");
        }
    }

    #[test]
    fn each_database_is_saved_once_in_a_file_of_its_own() {
        let overrides =
            ["/events=memory", "b.io/widgets=sqlite:w.db", "a.io/gadgets=sqlite:w.db", "/secrets=sqlite:s.db"];
        let database = parse(&overrides.map(|value| ["--store-override", value]).concat()).expect("it is understood");
        let files: Vec<_> = database.saved_in(Path::new("x.db")).into_iter().map(|(_, file)| file).collect();
        assert_eq!(files, ["x.db", "x.db.secrets", "x.db.gadgets.a.io"].map(PathBuf::from));
    }
}
