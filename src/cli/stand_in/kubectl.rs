//! The stand-in for kubectl: runs the real one if the PATH has it, or else handles the few calls
//! that test tools make.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{self, Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use bytes::Bytes;
use hyper::Method;

use super::super::cluster::{self, ClusterClient, ClusterError};
use super::super::documents::{self, Unreadable};
use super::super::print::{note, output};
use super::file_name;
use crate::http::SERVER_VERSION;
use crate::meta::api_version::group_of;
use crate::value::{Value, json};

/// A link to the real kubectl beside this program, for callers without a PATH.
const NOTED: &str = ".kubectl";
/// Where programs are searched without a PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The environment variable with the candidates that were already tried, in the format of PATH.
const ASKED: &str = "SKIFF_KUBECTL_ASKED";
const WHAT_THIS_IS: &str = "this is skiff in place of kubectl, as the PATH has none: it answers `version`, `get ns [NAME]`, \
                            `apply -f FILE` and `create -f FILE` only";

/// Runs the real kubectl, or does what it would do.
pub async fn run(arguments: Vec<OsString>) -> ExitCode {
    let mut asked: Vec<PathBuf> = env::var_os(ASKED).map(|list| env::split_paths(&list).collect()).unwrap_or_default();
    asked.extend(env::current_exe());
    if let Some(real) = find(&asked) {
        asked.push(real.clone());
        let asked = env::join_paths(&asked).unwrap_or_default();
        let mut command = Command::new(&real);
        command.args(&arguments).env(ASKED, asked);
        return become_of(&mut command).unwrap_or_else(|error| {
            note(format_args!("{}: {error}", real.display()));
            ExitCode::FAILURE
        });
    }
    let texts: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    match answer(&texts).await {
        Ok(text) => output(text, ExitCode::SUCCESS),
        Err(error) => {
            note(error);
            ExitCode::FAILURE
        }
    }
}

/// Replaces this process by the program; returns only on failure.
#[cfg(unix)]
fn become_of(command: &mut Command) -> io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

/// Runs the program, and returns its exit code.
#[cfg(not(unix))]
fn become_of(command: &mut Command) -> io::Result<ExitCode> {
    let code = command.status()?.code();
    Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Creates a link to the real kubectl of the PATH, if there is one, in `folder`, where this program
/// has the name kubectl.
///
/// # Errors
///
/// The link can't be made.
pub fn note_real(folder: &Path) -> io::Result<()> {
    let asked: Vec<_> = env::current_exe().into_iter().chain([folder.join(file_name("kubectl"))]).collect();
    let found = env::var_os("PATH").and_then(|folders| find_in(&folders, &asked));
    let Some(real) = found else { return Ok(()) };
    let (real, link) = (path::absolute(real)?, folder.join(NOTED));
    if fs::read_link(&link).is_ok_and(|known| known == real) {
        return Ok(());
    }
    let beside = folder.join(format!("{NOTED}.{}", uuid::Uuid::new_v4()));
    link_to(&real, &beside)?;
    fs::rename(&beside, &link)
}

#[cfg(unix)]
fn link_to(real: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(real, link)
}

/// On Windows, links need a privilege that few users have; but every program gets a PATH there.
#[cfg(not(unix))]
fn link_to(_real: &Path, _link: &Path) -> io::Result<()> {
    Ok(())
}

/// The first kubectl on the PATH that was not tried yet; without a PATH, the one that the link
/// names.
fn find(asked: &[PathBuf]) -> Option<PathBuf> {
    if let Some(folders) = env::var_os("PATH") {
        return find_in(&folders, asked);
    }
    let link = env::current_exe().ok()?.with_file_name(NOTED);
    let noted = fs::read_link(link).ok().filter(|noted| is_other_program(noted, asked));
    noted.or_else(|| find_in(DEFAULT_PATH.as_ref(), asked))
}

fn find_in(folders: &OsStr, asked: &[PathBuf]) -> Option<PathBuf> {
    env::split_paths(folders).map(|folder| folder.join(file_name("kubectl"))).find(|path| is_other_program(path, asked))
}

/// Whether this is an executable file that was not tried yet.
fn is_other_program(path: &Path, asked: &[PathBuf]) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && runs(&file))
        && asked.iter().all(|known| identity(known) != identity(path))
}

#[cfg(unix)]
fn runs(file: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o111 != 0
}

/// Identifies a file, whatever its name.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).map(|file| (file.dev(), file.ino())).ok()
}

/// On these systems, the name of a file decides.
#[cfg(not(unix))]
fn runs(_file: &fs::Metadata) -> bool {
    true
}

/// Identifies a file by its length and time, as links and copies have other names.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<(u64, std::time::SystemTime)> {
    fs::metadata(path).and_then(|file| Ok((file.len(), file.modified()?))).ok()
}

/// Why a call fails, in kubectl's words.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("error: {0}: {WHAT_THIS_IS}")]
    Flag(String),
    #[error("error: {WHAT_THIS_IS}")]
    Verb,
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Input(#[from] io::Error),
    #[error(transparent)]
    Documents(#[from] Unreadable),
    #[error("error: no matches for kind {kind:?} in version {api_version:?}")]
    UnknownKind { kind: String, api_version: String },
    #[error("Error from server ({reason}): {message}")]
    Server { reason: String, message: String },
}

/// A call: its flags and words.
#[derive(Debug, Default, PartialEq, Eq)]
struct Call {
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    namespace: Option<String>,
    files: Vec<PathBuf>,
    words: Vec<String>,
}

impl Call {
    fn parse(arguments: &[String]) -> Result<Self, CallError> {
        let mut call = Call::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, value) =
                argument.split_once('=').map_or((argument.as_str(), None), |(name, value)| (name, Some(value)));
            if !name.starts_with('-') || name == "-" {
                call.words.push(argument.clone());
                continue;
            }
            let mut value = || value.or_else(|| rest.next().map(String::as_str)).unwrap_or_default().to_owned();
            match name {
                "--kubeconfig" => call.kubeconfig = Some(value().into()),
                "--context" => call.context = Some(value()),
                "-n" | "--namespace" => call.namespace = Some(value()),
                "-f" | "--filename" => call.files.push(value().into()),
                "--cache-dir" => _ = value(),
                "--server-side" | "--client" | "--force-conflicts" => {}
                _ => return Err(CallError::Flag(argument.clone())),
            }
        }
        Ok(call)
    }
}

async fn answer(arguments: &[String]) -> Result<String, CallError> {
    let call = Call::parse(arguments)?;
    let words: Vec<&str> = call.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["version"] => Ok(format!("Client Version: {SERVER_VERSION}\n{WHAT_THIS_IS}\n")),
        ["get", "ns" | "namespace" | "namespaces", names @ ..] => namespaces(&connect(&call)?, names).await,
        [verb @ ("apply" | "create")] if !call.files.is_empty() => write(&connect(&call)?, &call, verb).await,
        _ => Err(CallError::Verb),
    }
}

fn connect(call: &Call) -> Result<ClusterClient, ClusterError> {
    cluster::connect(call.kubeconfig.as_deref(), call.context.as_deref())
}

async fn namespaces(client: &ClusterClient, names: &[&str]) -> Result<String, CallError> {
    const PATH: &str = "/api/v1/namespaces";
    let mut found = Vec::new();
    match names {
        [] => found.extend_from_slice(ask(client, Method::GET, PATH, None).await?.items_at(&["items"])),
        names => {
            for name in names {
                found.push(ask(client, Method::GET, &format!("{PATH}/{name}"), None).await?);
            }
        }
    }
    let mut text = "NAME                 STATUS\n".to_owned();
    for one in found {
        text.push_str(&format!("{:<20} {}\n", one.str_at(&["metadata", "name"]), one.str_at(&["status", "phase"])));
    }
    Ok(text)
}

/// Applies or creates every object of the files.
async fn write(client: &ClusterClient, call: &Call, verb: &str) -> Result<String, CallError> {
    let mut text = String::new();
    for object in read(&call.files)? {
        let (name, kind) = (object.str_at(&["metadata", "name"]), object.str_at(&["kind"]));
        let path = place(client, call, &object).await?;
        let body = Bytes::from(json::encode(&object));
        let done = match verb {
            "create" => {
                ask(
                    client,
                    Method::POST,
                    &format!("{path}?fieldManager=kubectl-create"),
                    Some(("application/json", body)),
                )
                .await?;
                "created"
            }
            _ => {
                let path = format!("{path}/{name}?fieldManager=kubectl&force=true");
                ask(client, Method::PATCH, &path, Some(("application/apply-patch+yaml", body))).await?;
                "serverside-applied"
            }
        };
        let group = group_of(object.str_at(&["apiVersion"]));
        let separator = if group.is_empty() { "" } else { "." };
        text.push_str(&format!("{}{separator}{group}/{name} {done}\n", kind.to_lowercase()));
    }
    Ok(text)
}

fn read(files: &[PathBuf]) -> Result<Vec<Value>, CallError> {
    let mut objects = Vec::new();
    let (stdin, files): (Vec<PathBuf>, Vec<PathBuf>) = files.iter().cloned().partition(|file| file.as_os_str() == "-");
    if !stdin.is_empty() {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        let found = documents::decode(&text.into())?;
        objects.extend(found.into_iter().map(|document| document.value));
    }
    if !files.is_empty() {
        let sources = documents::read(&files)?;
        objects.extend(sources.into_iter().flat_map(|source| source.documents).map(|document| document.value));
    }
    Ok(objects.into_iter().flat_map(items).collect())
}

/// The items of a list, or the object itself.
fn items(object: Value) -> Vec<Value> {
    match object.str_at(&["kind"]) {
        "List" => object.items_at(&["items"]).to_vec(),
        _ => vec![object],
    }
}

/// The path of the collection that an object belongs to.
async fn place(client: &ClusterClient, call: &Call, object: &Value) -> Result<String, CallError> {
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let root = if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") };
    let served = ask(client, Method::GET, &root, None).await?;
    let is_it = |one: &&Value| one.str_at(&["kind"]) == kind && !one.str_at(&["name"]).contains('/');
    let found = served.items_at(&["resources"]).iter().find(is_it);
    let found =
        found.ok_or_else(|| CallError::UnknownKind { kind: kind.to_owned(), api_version: api_version.to_owned() })?;
    let plural = found.str_at(&["name"]);
    if found.at(&["namespaced"]).and_then(Value::as_bool) != Some(true) {
        return Ok(format!("{root}/{plural}"));
    }
    let own = Some(object.str_at(&["metadata", "namespace"])).filter(|name| !name.is_empty());
    let namespace = own.or(call.namespace.as_deref()).unwrap_or("default");
    Ok(format!("{root}/namespaces/{namespace}/{plural}"))
}

async fn ask(
    client: &ClusterClient,
    method: Method,
    path: &str,
    content: Option<(&'static str, Bytes)>,
) -> Result<Value, CallError> {
    let (code, body) = client.call(method, path, content).await.map_err(ClusterError::from)?;
    let answer = json::decode(&body).unwrap_or_default();
    if (200..300).contains(&code) {
        return Ok(answer);
    }
    let text = |field: &str| answer.str_at(&[field]).to_owned();
    Err(CallError::Server { reason: text("reason"), message: text("message") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_as_kubectl_reads_them() {
        let parse = |text: &str| Call::parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let call = parse("--kubeconfig=k apply -n x -f - --filename=b").expect("it is understood");
        assert_eq!(call.words, ["apply"]);
        assert_eq!((call.kubeconfig, call.namespace.as_deref()), (Some("k".into()), Some("x")));
        assert_eq!(call.files, [PathBuf::from("-"), PathBuf::from("b")]);
        assert!(parse("get pods --watch").is_err_and(|error| error.to_string().contains("in place of kubectl")));
    }
}
