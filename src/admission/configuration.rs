//! The file of `--admission-control-config-file`: the configurations of plugins, read at startup.
//!
//! Input: an AdmissionConfiguration in YAML or JSON, which contains the configuration of each plugin
//! or names a file with it. Output: these configurations by plugin name; each plugin decodes its own.
//! Source: `k8s.io/apiserver/pkg/admission/config.go`, release 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::value::{Map, Value, yaml};

const GROUP_VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
const KIND: &str = "AdmissionConfiguration";
/// The top-level field of a file in an older form, which configures a single plugin, and that
/// plugin.
const ALONE: (&str, &str) = ("podNodeSelectorPluginConfig", "PodNodeSelector");

/// Why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    #[error("unable to read admission control configuration from {:?} [{source}]", source.path.display().to_string())]
    Root { source: FileError },
    #[error("couldn't open admission plugin configuration: {0}")]
    Plugin(#[source] FileError),
    #[error("Object 'Kind' is missing in the configuration")]
    NoKind,
    #[error("no kind {kind:?} is registered for version {api_version:?}; expected {expected} of {group_version}")]
    Kind { kind: String, api_version: String, expected: String, group_version: String },
    #[error("strict decoding error: unknown field {0:?}")]
    UnknownField(String),
    #[error("{path} is not {wanted}")]
    Type { path: String, wanted: &'static str },
    #[error("{0} is too large")]
    TooLarge(String),
    /// `value` is printed as it is.
    #[error("{path}: Invalid value: {value}: {why}")]
    Invalid { path: String, value: String, why: String },
    #[error("{path}: Unsupported value: {name:?}: supported values: {known}")]
    Unsupported { path: String, name: String, known: String },
    #[error("{path}: Duplicate value: {name:?}")]
    Duplicate { path: String, name: String },
    #[error("{0}: Required value")]
    Required(String),
    #[error("[{}]", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<ConfigurationError>),
}

/// Why a file contains no configuration.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct FileError {
    path: PathBuf,
    #[source]
    fault: FileFault,
}

#[derive(Debug, thiserror::Error)]
enum FileFault {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error(transparent)]
    Yaml(#[from] yaml::YamlError),
    #[error("it is not a mapping")]
    Type,
}

/// The configurations of plugins, by plugin name.
#[derive(Clone, Debug, Default)]
pub struct Configuration(BTreeMap<String, Value>);

impl Configuration {
    /// Reads the file at `path`, and the files that it refers to.
    ///
    /// # Errors
    ///
    /// A file can't be read, or is not a valid configuration.
    pub fn read(path: &Path) -> Result<Self, ConfigurationError> {
        let root = read(path).map_err(|source| ConfigurationError::Root { source })?;
        if root.get("kind").is_none() && root.get(ALONE.0).is_some() {
            return Ok(Configuration([(ALONE.1.to_owned(), root)].into()));
        }
        check_type(&root, &GROUP_VERSIONS, KIND)?;
        check_fields(&root, "", &["apiVersion", "kind", "plugins"])?;
        let base = path.parent().unwrap_or(Path::new(""));
        let mut configurations = BTreeMap::new();
        for (at, plugin) in root.items_at(&["plugins"]).iter().enumerate() {
            check_fields(plugin, &format!("plugins[{at}]"), &["name", "path", "configuration"])?;
            let nested = plugin.get("configuration").filter(|nested| !nested.is_null());
            let configuration = match (nested, plugin.str_at(&["path"])) {
                (Some(nested), _) => nested.clone(),
                (None, "") => continue,
                (None, file) => {
                    let file = base.join(file);
                    read(&file).map_err(ConfigurationError::Plugin)?
                }
            };
            // If a plugin has several configurations, the first one counts.
            configurations.entry(plugin.str_at(&["name"]).to_owned()).or_insert(configuration);
        }
        Ok(Configuration(configurations))
    }

    /// The configuration of a plugin.
    pub fn of(&self, plugin: &str) -> Option<&Value> {
        self.0.get(plugin)
    }
}

fn read(path: &Path) -> Result<Value, FileError> {
    let failed = |fault: FileFault| FileError { path: path.to_owned(), fault };
    let text = fs::read(path).map_err(|error| failed(error.into()))?;
    let value = yaml::decode(&text).map_err(|error| failed(error.into()))?;
    if value.as_object().is_none() {
        return Err(failed(FileFault::Type));
    }
    Ok(value)
}

/// Checks the `apiVersion` and `kind` of a configuration.
///
/// # Errors
///
/// The configuration is of another type.
pub fn check_type(value: &Value, group_versions: &[&str], kind: &str) -> Result<(), ConfigurationError> {
    let (api_version, found) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
    if found.is_empty() {
        return Err(ConfigurationError::NoKind);
    }
    if found == kind && group_versions.contains(&api_version) {
        return Ok(());
    }
    Err(ConfigurationError::Kind {
        kind: found.to_owned(),
        api_version: api_version.to_owned(),
        expected: kind.to_owned(),
        group_version: group_versions[0].to_owned(),
    })
}

/// The fields of a part of a configuration, after checking that all of them are `known`; `path` is
/// the part's field path.
///
/// # Errors
///
/// A field is unknown, or the part is not a mapping.
pub fn check_fields<'v>(value: &'v Value, path: &str, known: &[&str]) -> Result<&'v Map, ConfigurationError> {
    let within = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let Some(fields) = value.as_object() else {
        return Err(ConfigurationError::Type { path: path.to_owned(), wanted: "a mapping" });
    };
    match fields.keys().find(|name| !known.contains(name)) {
        Some(unknown) => Err(ConfigurationError::UnknownField(within(unknown))),
        None => Ok(fields),
    }
}

/// Decodes a list of unique texts; `check` returns what is wrong with one of them.
///
/// # Errors
///
/// The value is not a list of texts, or a text is invalid or a duplicate.
pub fn names(
    value: Option<&Value>,
    path: &str,
    check: impl Fn(&str) -> Vec<String>,
) -> Result<BTreeSet<String>, ConfigurationError> {
    let mut names = BTreeSet::new();
    let items = match value {
        None | Some(Value::Null) => return Ok(names),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(ConfigurationError::Type { path: path.to_owned(), wanted: "a list" }),
    };
    for (at, item) in items.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let Some(name) = item.as_str() else { return Err(ConfigurationError::Type { path, wanted: "a text" }) };
        let faults = check(name);
        if !faults.is_empty() {
            return Err(ConfigurationError::Invalid { path, value: format!("{name:?}"), why: faults.join(", ") });
        }
        if !names.insert(name.to_owned()) {
            return Err(ConfigurationError::Duplicate { path, name: name.to_owned() });
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_folder(name: &str, files: &[(&str, &str)]) -> Result<Configuration, String> {
        let folder = std::env::temp_dir().join(format!("skiff-admission-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("the folder is made");
        for (file, text) in files {
            fs::write(folder.join(file), text).expect("it is written");
        }
        let read = Configuration::read(&folder.join(files[0].0));
        fs::remove_dir_all(&folder).expect("it is there");
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn a_configuration_stands_in_the_file_or_in_one_beside_it() {
        let root = "{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [\
                    {name: A, configuration: {a: 1}}, {name: B, path: b.yaml}, {name: C}]}";
        let read = in_folder("beside", &[("root.yaml", root), ("b.yaml", "b: 2")]).expect("it is valid");
        let told = |plugin: &str| read.of(plugin).map(crate::value::json::encode_to_string);
        assert_eq!(told("A").as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(told("B").as_deref(), Some(r#"{"b":2}"#));
        assert_eq!(told("C"), None);
    }

    #[test]
    fn a_file_of_one_plugin_alone_is_taken() {
        let read = in_folder("alone", &[("root.yaml", "podNodeSelectorPluginConfig: {n: a=b}")]).expect("it is valid");
        assert!(read.of("PodNodeSelector").is_some());
    }

    #[test]
    fn what_is_not_a_configuration_is_refused() {
        for (name, text, expected) in [
            ("kind", "{apiVersion: v1, kind: Pod}", "no kind \"Pod\" is registered for version \"v1\""),
            ("missing", "{plugins: []}", "Object 'Kind' is missing"),
            (
                "field",
                "{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugin: []}",
                "unknown field \"plugin\"",
            ),
            (
                "inner",
                "{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{nam: a}]}",
                "unknown field \"plugins[0].nam\"",
            ),
            ("list", "[]", "it is not a mapping"),
        ] {
            let error = in_folder(name, &[("root.yaml", text)]).expect_err("it is refused");
            assert!(error.contains(expected), "{error}");
        }
        assert!(Configuration::read(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn names_are_texts_that_stand_there_once() {
        let names_of = |text: &str| {
            let value = yaml::decode(text.as_bytes()).expect("the test is YAML");
            let check = |name: &str| if name.is_empty() { vec!["must not be empty".to_owned()] } else { Vec::new() };
            names(Some(&value), "a", check).map(|names| names.len()).map_err(|error| error.to_string())
        };
        assert_eq!(names_of("[a, b]"), Ok(2));
        assert_eq!(names_of("[a, a]"), Err("a[1]: Duplicate value: \"a\"".to_owned()));
        assert_eq!(names_of("['']"), Err("a[0]: Invalid value: \"\": must not be empty".to_owned()));
        assert_eq!(names_of("[1]"), Err("a[0] is not a text".to_owned()));
        assert_eq!(names_of("a"), Err("a is not a list".to_owned()));
    }
}
