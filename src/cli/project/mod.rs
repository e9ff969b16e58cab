//! `skiff.toml`: where a project has its definitions, suites, policies and objects, for which minor
//! versions of Kubernetes they are, and which lints it wants.
//!
//! The file is in the current folder or the nearest one above, and supplies what is missing in a
//! command's arguments; arguments take precedence. Paths in it are relative to the file, and are
//! converted to be relative to the current folder.

mod read;

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::author::lint::Severity;
use crate::meta::minor::Minor;

pub use read::{KEYS, LINT_KEYS, SettingError, SettingKey, parse};

/// The name of the file.
pub const FILE: &str = "skiff.toml";

/// Why a project can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("`{}` can't be read: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    /// Each fault is printed on a line with its place.
    #[error("{}", told(file, faults))]
    Faults { file: PathBuf, faults: Vec<SettingError> },
    #[error("name {things}: `{}` has none", file.display())]
    HasNone { things: &'static str, file: PathBuf },
    #[error("name {0}, here or in a {FILE}")]
    NotNamed(&'static str),
}

fn told(file: &Path, faults: &[SettingError]) -> String {
    let name = file.display();
    let told = |SettingError { place, text }: &SettingError| format!("{name}:{}:{}: {text}", place.line, place.column);
    faults.iter().map(told).collect::<Vec<_>>().join("\n")
}

/// The settings of a project; empty without a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// The file; `None` if there is none.
    pub file: Option<PathBuf>,
    /// Files or folders with definitions.
    pub definitions: Vec<PathBuf>,
    /// Suites, or folders with suites.
    pub suites: Vec<PathBuf>,
    /// Files or folders with policies and the objects that they look up.
    pub policies: Vec<PathBuf>,
    /// Files or folders with objects.
    pub objects: Vec<PathBuf>,
    /// The minor versions of Kubernetes to check against, in ascending order; empty if not set.
    pub minors: Vec<Minor>,
    /// Which lints are reported.
    pub lints: Lints,
}

/// Which lints a project wants to be reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lints {
    /// The least severity that is reported.
    pub severity: Option<Severity>,
    /// Lints that are reported whatever their severity.
    pub on: Vec<String>,
    /// Lints that are not reported.
    pub off: Vec<String>,
}

impl Project {
    /// The project of the current folder.
    ///
    /// # Errors
    ///
    /// What is wrong with its file, each fault on a line with its place.
    pub fn here() -> Result<Project, ProjectError> {
        let Ok(folder) = std::env::current_dir() else { return Ok(Project::default()) };
        let mut seen = PathBuf::new();
        for above in folder.ancestors() {
            if above.join(FILE).is_file() {
                return Project::read(&seen);
            }
            seen.push("..");
        }
        Ok(Project::default())
    }

    /// The project of `folder`, with absolute paths if `folder` is absolute.
    ///
    /// # Errors
    ///
    /// As for [`Project::here`].
    pub fn around(folder: &Path) -> Result<Project, ProjectError> {
        let found = folder.ancestors().find(|above| above.join(FILE).is_file());
        found.map_or_else(|| Ok(Project::default()), Project::read)
    }

    /// Reads the file in `folder`.
    fn read(folder: &Path) -> Result<Project, ProjectError> {
        let file = folder.join(FILE);
        let text = fs::read_to_string(&file).map_err(|source| ProjectError::Read { file: file.clone(), source })?;
        let mut project = parse(&text).map_err(|faults| ProjectError::Faults { file: file.clone(), faults })?;
        let lists = [&mut project.definitions, &mut project.suites, &mut project.policies, &mut project.objects];
        for path in lists.into_iter().flatten() {
            *path = folder.join(&path);
        }
        project.file = Some(file);
        Ok(project)
    }

    /// Definitions and policies, for commands that check both.
    pub fn rules(&self) -> Vec<PathBuf> {
        let mut paths = self.definitions.clone();
        paths.extend(self.policies.iter().filter(|path| !self.definitions.contains(path)).cloned());
        paths
    }
}

/// The paths that are named, or else those of the project.
///
/// # Errors
///
/// What is wrong with the project's file, or that no paths are named anywhere.
pub fn named_or(
    named: &[PathBuf],
    things: &'static str,
    of: impl Fn(&Project) -> Vec<PathBuf>,
) -> Result<Vec<PathBuf>, ProjectError> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let project = Project::here()?;
    let found = of(&project);
    match (found.is_empty(), &project.file) {
        (false, _) => Ok(found),
        (true, Some(file)) => Err(ProjectError::HasNone { things, file: file.clone() }),
        (true, None) => Err(ProjectError::NotNamed(things)),
    }
}
