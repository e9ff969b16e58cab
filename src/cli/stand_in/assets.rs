//! `skiff assets`: a folder that contains this program under the names of others.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::super::print::{output, tell};
use super::archive::{Archive, folder_of};
use super::{StandIn, file_name, kubectl};
use crate::meta::minor::Minor;

/// Print a folder with kube-apiserver, etcd and kubectl, for envtest
///
/// Each is this program, which acts by the name it is called by. The folder is made where it is missing.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  export KUBEBUILDER_ASSETS=$(skiff assets)\n  go test ./..."
)]
pub struct Assets {
    /// The minor version of Kubernetes to speak for; the newest one unless it is given
    #[arg(long, value_name = "MINOR", value_parser = Minor::parse)]
    kubernetes_version: Option<Minor>,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Archive(Archive),
}

impl Assets {
    /// Prints the folder. Exit codes: 0, or 2 if the folder or the archive can't be made.
    pub fn run(self) -> ExitCode {
        if let Some(Command::Archive(archive)) = self.command {
            return archive.run();
        }
        let made =
            make(&home(), self.kubernetes_version).and_then(|folder| kubectl::note_real(&folder).map(|()| folder));
        match made {
            Ok(folder) => output(format!("{}\n", folder.display()), ExitCode::SUCCESS),
            Err(error) => {
                tell(format_args!("the folder of assets can't be made: {error}"));
                ExitCode::from(2)
            }
        }
    }
}

/// The folder that contains the folders of all builds.
fn home() -> PathBuf {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = named("SKIFF_ASSETS_DIR") {
        return folder;
    }
    let user = env::home_dir().filter(|home| !home.as_os_str().is_empty()).unwrap_or_else(env::temp_dir);
    let cache = named("XDG_CACHE_HOME")
        .unwrap_or_else(|| if cfg!(target_os = "macos") { user.join("Library/Caches") } else { user.join(".cache") });
    cache.join("skiff/assets")
}

/// The folder for this program in `home`, which is created if necessary. Another build has another
/// folder. A folder for a minor version is named as by setup-envtest; the program reads the minor
/// version from it.
///
/// # Errors
///
/// The folder can neither be found nor made.
fn make(home: &Path, minor: Option<Minor>) -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let build = name_of(&program)?;
    let (home, name) = match minor {
        None => (home.to_owned(), build),
        Some(minor) => (home.join(format!("{build}.minors/k8s")), folder_of(minor)),
    };
    let folder = home.join(name);
    if is_whole(&folder) {
        return folder.canonicalize();
    }
    fs::create_dir_all(&home)?;
    let beside = home.join(format!(".{}", uuid::Uuid::new_v4()));
    let made = fill(&program, &beside).and_then(|()| put(&beside, &folder));
    // If another process was faster, its folder is just as good.
    _ = fs::remove_dir_all(&beside);
    if is_whole(&folder) {
        return folder.canonicalize();
    }
    made.and_then(|()| Err(io::Error::other(format!("{} lacks its programs", folder.display()))))
}

/// Moves a folder to its place, even if an incomplete one is there.
fn put(from: &Path, to: &Path) -> io::Result<()> {
    if fs::rename(from, to).is_ok() || is_whole(to) {
        return Ok(());
    }
    let aside = from.with_extension("old");
    _ = fs::rename(to, &aside);
    _ = fs::remove_dir_all(&aside);
    fs::rename(from, to)
}

fn is_whole(folder: &Path) -> bool {
    let is_program =
        |name: &str| fs::metadata(folder.join(file_name(name))).is_ok_and(|file| file.is_file() && file.len() > 0);
    StandIn::NAMES.iter().all(|(name, _)| is_program(name))
}

/// A name for the program that changes with every build.
fn name_of(program: &Path) -> io::Result<String> {
    let file = fs::metadata(program)?;
    let made = Timestamp::try_from(file.modified()?).map_err(io::Error::other)?;
    let facts = format!("{} {made}", file.len());
    let digest = Sha256::digest(facts);
    let digits: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{}-{digits}", env!("CARGO_PKG_VERSION")))
}

/// Creates `folder` with the program under every name: as hard links if the file system supports
/// them, else as copies.
fn fill(program: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (name, _) in StandIn::NAMES {
        let file = folder.join(file_name(name));
        if fs::hard_link(program, &file).is_err() {
            fs::copy(program, &file)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_who_ask_at_once_get_one_folder() {
        let home = env::temp_dir().join(format!("kubeskiff-assets-{}", std::process::id()));
        let made: Vec<_> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(|| make(&home, None).expect("it can be made"))).collect();
            asking.into_iter().map(|one| one.join().expect("nothing panics")).collect()
        });
        assert!(made.iter().all(|folder| folder == &made[0]), "{made:?}");
        assert!(is_whole(&made[0]));
        fs::remove_file(made[0].join("etcd")).expect("it is there");
        assert_eq!(make(&home, None).expect("it is made whole"), made[0]);
        assert!(is_whole(&made[0]));
        assert_eq!(fs::read_dir(&home).expect("it is there").count(), 1, "nothing is left beside it");
        fs::remove_dir_all(&home).expect("it is ours");
    }
}
