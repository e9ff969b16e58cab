//! The folders of an editor's workspace; each is a project of its own.
//!
//! Input: their paths. Output: for a file name the folder that it belongs to, with the project's
//! settings, its kinds and its policies. The innermost folder counts; a file outside of all folders
//! belongs to the first one.

use std::path::{Path, PathBuf};

use super::super::policies::Given;
use super::super::project::{Project, ProjectError};
use super::files;
use crate::author::editor::Workspace;
use crate::author::editor::workspace::LintChoice;
use crate::meta::minor::Minor;
use crate::value::Value;

/// How many folders are used; the others are ignored.
const FOLDERS_MAX: usize = 100;

/// A folder with its project.
pub struct Folder {
    /// `None` if the editor has no folder open.
    pub root: Option<PathBuf>,
    pub project: Project,
    pub workspace: Workspace,
}

/// All folders; there is at least one.
pub struct Folders(Vec<Folder>);

impl Folders {
    /// Folders that are not read yet.
    pub fn new(roots: Vec<PathBuf>) -> Folders {
        let mut folders: Vec<Folder> =
            roots.into_iter().take(FOLDERS_MAX).map(|root| Folder::unread(Some(root))).collect();
        if folders.is_empty() {
            folders.push(Folder::unread(None));
        }
        Folders(folders)
    }

    /// Removes folders, and adds others.
    pub fn change(&mut self, removed: &[PathBuf], added: Vec<PathBuf>) {
        let kept = self.0.iter().filter_map(|folder| folder.root.clone()).filter(|root| !removed.contains(root));
        let mut roots: Vec<PathBuf> = kept.collect();
        for root in added {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        *self = Folders::new(roots);
    }

    /// The folder that a file belongs to.
    pub fn of(&self, name: &str) -> &Folder {
        &self.0[self.index(name)]
    }

    /// The folder that a file belongs to, mutable.
    pub fn of_mut(&mut self, name: &str) -> &mut Folder {
        let index = self.index(name);
        &mut self.0[index]
    }

    /// All folders, mutable.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Folder> {
        self.0.iter_mut()
    }

    /// A stamp of what all kinds and policies were built from.
    pub fn stamp(&self) -> u64 {
        self.0.iter().fold(0, |sum, folder| sum.wrapping_add(folder.workspace.stamp_of_all()))
    }

    fn index(&self, name: &str) -> usize {
        let depth = |folder: &Folder| {
            let root = folder.root.as_deref().filter(|root| Path::new(name).starts_with(root))?;
            Some(root.components().count())
        };
        let holding = self.0.iter().enumerate().filter_map(|(at, folder)| Some((depth(folder)?, at)));
        holding.max().map_or(0, |(_, at)| at)
    }
}

impl Folder {
    fn unread(root: Option<PathBuf>) -> Folder {
        Folder { root, project: Project::default(), workspace: empty_workspace(&[]) }
    }

    /// Reads the project and its files, except for those that are open, and replaces the previous
    /// state. `live` are definitions that are not in files.
    ///
    /// # Errors
    ///
    /// What is wrong with the project's file; the folder is then read as if it had none.
    pub fn read(&mut self, live: &[Value], is_open: impl Fn(&str) -> bool) -> Result<(), ProjectError> {
        let project = self.root.as_deref().map_or_else(|| Ok(Project::default()), Project::around);
        let (project, told) = match project {
            Ok(project) => (project, Ok(())),
            Err(error) => (Project::default(), Err(error)),
        };
        self.project = project;
        self.workspace = empty_workspace(&self.project.minors);
        self.workspace.add_values(live);
        let (default, lints) = (LintChoice::default(), &self.project.lints);
        self.workspace.lints =
            LintChoice { least: lints.severity.unwrap_or(default.least), on: lints.on.clone(), off: lints.off.clone() };
        for (name, text) in files::read(&self.project, self.root.as_deref()) {
            if !is_open(&name) {
                self.workspace.add(&name, &text);
            }
        }
        told
    }
}

/// A workspace without definitions for some minor versions of Kubernetes; users have the
/// permissions of the default roles.
fn empty_workspace(minors: &[Minor]) -> Workspace {
    let given = Given::new(Minor::NEWEST, [].into_iter());
    Workspace::of_minors(Box::new(move |user| given.request_user(user)), minors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_innermost_folder() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let mut folders = Folders::new(paths(&["/a", "/a/b", "/c"]));
        let root = |folders: &Folders, name: &str| folders.of(name).root.clone().unwrap_or_default();
        for (name, expected) in [("/a/x.yaml", "/a"), ("/a/b/x.yaml", "/a/b"), ("/a/bc/x", "/a"), ("/elsewhere", "/a")]
        {
            assert_eq!(root(&folders, name), PathBuf::from(expected), "{name}");
        }
        folders.change(&paths(&["/a"]), paths(&["/d", "/c"]));
        assert_eq!(root(&folders, "/a/x.yaml"), PathBuf::from("/a/b"));
        assert_eq!(root(&folders, "/d/x.yaml"), PathBuf::from("/d"));
        assert_eq!(folders.all_mut().count(), 3);
        folders.change(&paths(&["/a/b", "/c", "/d"]), Vec::new());
        assert_eq!(folders.of("/x").root, None);
    }
}
