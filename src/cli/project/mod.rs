//! `skiff.toml`: where a project has its definitions, suites, policies and objects, for which minors of Kubernetes they are,
//! and which lints it wants.
//!
//! It is found in the folder or the nearest one above, and stands in for what an author's command is not told. What the
//! command line names goes before it. Paths in it are relative to it, and are told as seen from where the command runs.

mod read;

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::author::lint::Severity;
use crate::meta::minor::Minor;

pub use read::{KEYS, LINT_KEYS, SettingError, SettingKey, parse};

/// What the file is called.
pub const FILE: &str = "skiff.toml";

/// Why nothing is taken from a project.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("`{}` can't be read: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    /// Each fault is told on a line with its place.
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

/// What a project says of itself. Without a file, nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// The file; `None` where there is none.
    pub file: Option<PathBuf>,
    /// Files or folders with definitions.
    pub definitions: Vec<PathBuf>,
    /// Suites, or folders with suites.
    pub suites: Vec<PathBuf>,
    /// Files or folders with policies, and what they look up.
    pub policies: Vec<PathBuf>,
    /// Files or folders with objects.
    pub objects: Vec<PathBuf>,
    /// The minors of Kubernetes to answer for, in rising order; none if it says nothing.
    pub minors: Vec<Minor>,
    /// Which lints are wanted.
    pub lints: Lints,
}

/// Which lints a project wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lints {
    /// The least that is told.
    pub severity: Option<Severity>,
    /// Those that are told whatever their severity.
    pub on: Vec<String>,
    /// Those that are not told.
    pub off: Vec<String>,
}

impl Project {
    /// The project around the folder where the command runs.
    ///
    /// # Errors
    /// What is wrong with its file, each fault a line with its place.
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

    /// The project around `folder`, with whole paths if `folder` is one.
    ///
    /// # Errors
    /// As those of [`Project::here`].
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

    /// Definitions and policies, for commands that look at both.
    pub fn rules(&self) -> Vec<PathBuf> {
        let mut paths = self.definitions.clone();
        paths.extend(self.policies.iter().filter(|path| !self.definitions.contains(path)).cloned());
        paths
    }
}

/// What was named, or else what the project has; where neither says anything, that it must be named.
///
/// # Errors
/// What is wrong with the project's file, or that there is nothing.
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
