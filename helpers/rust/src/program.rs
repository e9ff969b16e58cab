//! Where the program `skiff` is.

use std::env;
use std::path::PathBuf;

use crate::Error;

/// The program that the variable `SKIFF` names, else the one on the `PATH`.
///
/// # Errors
///
/// There is none.
pub fn program() -> Result<PathBuf, Error> {
    let named = env::var_os("SKIFF").filter(|name| !name.is_empty());
    if let Some(program) = named.as_ref().map(PathBuf::from).filter(|path| path.components().count() > 1) {
        return if program.is_file() { Ok(program) } else { Err(Error::NoProgram(program.display().to_string())) };
    }
    let name = named.unwrap_or_else(|| format!("skiff{}", env::consts::EXE_SUFFIX).into());
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join(&name)).find(|program| program.is_file());
    found.ok_or_else(|| Error::NoProgram(name.to_string_lossy().into_owned()))
}
