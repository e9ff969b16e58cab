//! The order of the work: what is received, what is answered, and what is checked while nothing
//! waits.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types as lsp;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::runtime::Handle;

use super::super::cluster::{Access, Cluster, ClusterError};
use super::super::print::note;
use super::super::project::FILE;
use super::answer::AnswerSources;
use super::documents::{Documents, TEXT_BYTES_MAX};
use super::folders::{Folder, Folders};
use super::incoming::{Incoming, SharedState};
use super::uri::{name_of, uri_of};
use super::{answer, convert, files, settings, wire};
use crate::author::editor::Text;
use crate::value::Value;
use crate::work::{Broken, Ended, Meter, Oversee};

/// How often a check is restarted because of newer messages; after that it runs to its end.
const RESTARTS_MAX: u32 = 8;
/// How long a request may take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);

/// Aborts a check when a newer message arrives, and a request when it is cancelled or takes too
/// long.
enum Overseer {
    Check { shared: Arc<SharedState>, taken: u64 },
    Request { shared: Arc<SharedState>, id: RequestId, begun: Instant },
}

impl Oversee for Overseer {
    fn look(&mut self) -> Result<(), Ended> {
        match self {
            Overseer::Check { shared, taken } if shared.has_come_after(*taken) => Err(Ended::Cancelled),
            Overseer::Request { shared, id, .. } if shared.is_cancelled(id) => Err(Ended::Cancelled),
            Overseer::Request { begun, .. } if begun.elapsed() > REQUEST_TIME_MAX => Err(Ended::Deadline),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SessionState {
    New,
    Serving,
    ShutDown,
}

/// The state of the server.
pub struct LanguageServer {
    shared: Arc<SharedState>,
    sender: SyncSender<Incoming>,
    runtime: Handle,
    access: Option<Access>,
    state: SessionState,
    /// How many messages were taken.
    taken: u64,
    /// How often the current check was restarted.
    restarts: u32,
    /// Whether the client supports notifications about changed files.
    watches: bool,
    /// The definitions of a live server.
    live: Vec<Value>,
    folders: Folders,
    documents: Documents,
}

impl LanguageServer {
    pub fn new(
        shared: Arc<SharedState>,
        sender: SyncSender<Incoming>,
        runtime: Handle,
        access: Option<Access>,
    ) -> Self {
        LanguageServer {
            shared,
            sender,
            runtime,
            access,
            state: SessionState::New,
            taken: 0,
            restarts: 0,
            watches: false,
            live: Vec::new(),
            folders: Folders::new(Vec::new()),
            documents: Documents::default(),
        }
    }

    /// Serves until the end; returns whether there was a shutdown request before.
    pub fn run(mut self, receiver: &Receiver<Incoming>) -> bool {
        loop {
            let next = match (self.state == SessionState::Serving).then(|| self.documents.stale()).flatten() {
                Some(stale) => match receiver.try_recv() {
                    Err(TryRecvError::Empty) => {
                        self.check(&stale);
                        continue;
                    }
                    next => next.ok(),
                },
                None => receiver.recv().ok(),
            };
            match next {
                None | Some(Incoming::End) => return self.state == SessionState::ShutDown,
                Some(Incoming::Message(Message::Notification(exit))) if exit.method == "exit" => {
                    return self.state == SessionState::ShutDown;
                }
                Some(incoming) => self.take(incoming),
            }
        }
    }

    fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Definitions(found) => return self.take_definitions(found),
            Incoming::Malformed(answer) => send(&answer),
            Incoming::Message(Message::Request(request)) => self.request(request),
            Incoming::Message(Message::Notification(notification)) => self.notified(notification),
            // Responses to the server's own requests contain nothing of interest.
            Incoming::Message(Message::Response(_)) | Incoming::End => {}
        }
        self.taken += 1;
    }

    fn request(&mut self, Request { id, method, params }: Request) {
        let refusal = match (self.state, method.as_str()) {
            (SessionState::New, "initialize") | (SessionState::Serving, _) => None,
            (SessionState::New, _) => Some((ErrorCode::ServerNotInitialized, "initialize comes first")),
            (SessionState::ShutDown, _) => Some((ErrorCode::InvalidRequest, "it is shut down")),
        };
        let refusal =
            refusal.or_else(|| self.shared.is_cancelled(&id).then_some((ErrorCode::RequestCanceled, "cancelled")));
        if let Some((code, text)) = refusal {
            return send(&Response::new_err(id, code as i32, text.to_owned()));
        }
        match method.as_str() {
            "initialize" if self.state == SessionState::New => match serde_json::from_value(params) {
                Ok(params) => {
                    self.initialize(params);
                    send(&Response::new_ok(id, answer::capabilities()));
                }
                Err(error) => send(&Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string())),
            },
            "shutdown" => {
                self.state = SessionState::ShutDown;
                send(&Response::new_ok(id, ()));
            }
            _ => {
                let overseer =
                    Overseer::Request { shared: Arc::clone(&self.shared), id: id.clone(), begun: Instant::now() };
                let sources = AnswerSources { folders: &self.folders, documents: &self.documents };
                let answered = Meter::new(overseer).run(|| answer::answer(&sources, &method, params));
                send(&match answered {
                    Ok(Ok(result)) => Response::new_ok(id, result),
                    Ok(Err((code, text))) => Response::new_err(id, code as i32, text),
                    Err(Broken::Ended(Ended::Cancelled)) => {
                        Response::new_err(id, ErrorCode::RequestCanceled as i32, "cancelled".to_owned())
                    }
                    Err(Broken::Ended(_)) => {
                        Response::new_err(id, ErrorCode::RequestFailed as i32, "it takes too long".to_owned())
                    }
                    Err(Broken::Panicked(_)) => {
                        Response::new_err(id, ErrorCode::InternalError as i32, "a fault of skiff's own".to_owned())
                    }
                });
            }
        }
    }

    fn initialize(&mut self, params: lsp::InitializeParams) {
        #[expect(deprecated, reason = "older clients name their root so")]
        let root = params.root_uri;
        let roots = match params.workspace_folders.filter(|folders| !folders.is_empty()) {
            Some(folders) => paths_of(folders),
            None => root.iter().map(|uri| PathBuf::from(name_of(uri))).collect(),
        };
        self.folders = Folders::new(roots);
        let watched = params.capabilities.workspace.and_then(|workspace| workspace.did_change_watched_files);
        self.watches = watched.and_then(|watched| watched.dynamic_registration) == Some(true);
        let options = params.initialization_options.unwrap_or_default();
        let text = |name: &str| options.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        if text("kubeconfig").is_some() || options.get("fromCluster") == Some(&json!(true)) {
            self.access = Some(Access::new(text("kubeconfig").map(PathBuf::from), text("context")));
        }
        self.state = SessionState::Serving;
    }

    fn notified(&mut self, Notification { method, params }: Notification) {
        if self.state != SessionState::Serving {
            return;
        }
        match method.as_str() {
            "initialized" => self.begin(),
            "textDocument/didOpen" => with(params, |params| self.open(params)),
            "textDocument/didChange" => with(params, |params: lsp::DidChangeTextDocumentParams| {
                self.restarts = 0;
                self.documents.change(&name_of(&params.text_document.uri.clone()), params);
            }),
            "textDocument/didClose" => with(params, |params| self.close(params)),
            "textDocument/didSave" => with(params, |params: lsp::DidSaveTextDocumentParams| {
                if settings::is_settings(&name_of(&params.text_document.uri)) {
                    self.load();
                }
            }),
            "workspace/didChangeWatchedFiles" => with(params, |params| self.changed(params)),
            "workspace/didChangeWorkspaceFolders" => with(params, |params: lsp::DidChangeWorkspaceFoldersParams| {
                self.folders.change(&paths_of(params.event.removed), paths_of(params.event.added));
                self.load();
            }),
            _ => {}
        }
    }

    /// Reads the projects and their files, and requests what else is needed from the client and the
    /// live server.
    fn begin(&mut self) {
        if self.watches {
            let watchers =
                ["**/*.yaml", "**/*.yml", "**/*.json", "**/skiff.toml"].map(|glob| json!({"globPattern": glob}));
            let registration = json!({"id": "files", "method": "workspace/didChangeWatchedFiles", "registerOptions": {"watchers": watchers}});
            let params = json!({"registrations": [registration]});
            send(&Request::new(RequestId::from("register".to_owned()), "client/registerCapability".to_owned(), params));
        }
        self.load();
        if let Some(access) = self.access.take() {
            let sender = self.sender.clone();
            self.runtime.spawn(async move {
                let found = match Cluster::new(&access) {
                    Ok(cluster) => cluster.definitions().await.map_err(ClusterError::from),
                    Err(error) => Err(error),
                };
                _ = tokio::task::spawn_blocking(move || sender.send(Incoming::Definitions(found)).is_ok()).await;
            });
        }
    }

    /// Reads the projects and their files, and replaces the previous state.
    fn load(&mut self) {
        for folder in self.folders.all_mut() {
            let told = folder.read(&self.live, |name| self.documents.open.contains_key(name));
            if let Err(error) = told {
                message(lsp::MessageType::ERROR, &error.to_string());
            }
            tell_of_settings(folder, &self.documents);
        }
        for open in self.documents.open.values_mut() {
            open.checks = Default::default();
            open.is_stale = true;
        }
    }

    fn take_definitions(&mut self, found: Result<Vec<Value>, ClusterError>) {
        match found {
            Ok(definitions) => {
                self.folders.all_mut().for_each(|folder| folder.workspace.add_values(&definitions));
                self.live = definitions;
                self.documents.doubt_all_but("");
            }
            Err(error) => message(lsp::MessageType::WARNING, &error.to_string()),
        }
    }

    fn open(&mut self, params: lsp::DidOpenTextDocumentParams) {
        let lsp::TextDocumentItem { uri, version, text, .. } = params.text_document;
        if !self.documents.open(name_of(&uri), uri, version, text) {
            message(lsp::MessageType::WARNING, "too many files are open: this one is not looked at");
        }
    }

    fn close(&mut self, params: lsp::DidCloseTextDocumentParams) {
        let uri = params.text_document.uri;
        let name = name_of(&uri);
        self.documents.open.remove(&name);
        publish(uri, Vec::new(), None);
        self.reread(&name);
    }

    /// Reads a closed file from the disk again.
    fn reread(&mut self, name: &str) {
        let before = self.folders.stamp();
        let workspace = &mut self.folders.of_mut(name).workspace;
        match files::read_file(name.as_ref()).filter(|text| files::defines(text)) {
            Some(text) => workspace.add(name, &text),
            None => workspace.remove(name),
        }
        if self.folders.stamp() != before {
            self.documents.doubt_all_but("");
        }
    }

    fn changed(&mut self, params: lsp::DidChangeWatchedFilesParams) {
        for change in params.changes {
            let name = name_of(&change.uri);
            if settings::is_settings(&name) {
                self.load();
            } else if !self.documents.open.contains_key(&name) {
                self.reread(&name);
            }
        }
    }

    /// Checks a text and publishes its diagnostics, unless a newer message arrives meanwhile.
    fn check(&mut self, name: &str) {
        let Some(open) = self.documents.open.get_mut(name) else { return };
        if open.text.as_str().len() > TEXT_BYTES_MAX {
            open.is_stale = false;
            return;
        }
        if settings::is_settings(name) {
            open.is_stale = false;
            return publish(open.uri.clone(), settings::faults(&open.text), Some(open.version));
        }
        let before = self.folders.stamp();
        let (workspace, text, checks) = (&mut self.folders.of_mut(name).workspace, &open.text, &mut open.checks);
        let check = || workspace.check(name, text, checks);
        let found = if self.restarts < RESTARTS_MAX {
            Meter::new(Overseer::Check { shared: Arc::clone(&self.shared), taken: self.taken }).run(check)
        } else {
            Meter::new(Uninterrupted).run(check)
        };
        if matches!(found, Err(Broken::Ended(_))) {
            self.restarts += 1;
            return;
        }
        self.restarts = 0;
        open.is_stale = false;
        match found {
            Ok(found) => {
                let found = found.into_iter().map(convert::diagnostic).collect();
                publish(open.uri.clone(), found, Some(open.version));
            }
            // It is reported once; the text is checked again when it changes.
            Err(_) => note(format_args!("skiff: `{name}` could not be checked: a fault of skiff's own")),
        }
        if self.folders.stamp() != before {
            self.documents.doubt_all_but(name);
        }
    }
}

/// Publishes the errors of a folder's `skiff.toml`, unless the file is open: then it is checked
/// while it is edited.
fn tell_of_settings(folder: &Folder, documents: &Documents) {
    let mut above = folder.root.iter().flat_map(|root| root.ancestors()).map(|above| above.join(FILE));
    let Some(file) = above.find(|file| file.is_file()) else { return };
    let name = files::name_of(&file);
    let read = files::read_file(&file).filter(|_| !documents.open.contains_key(&name));
    if let (Some(uri), Some(text)) = (uri_of(&name), read) {
        publish(uri, settings::faults(&Text::from(text)), None);
    }
}

/// Lets work run to its end.
struct Uninterrupted;

impl Oversee for Uninterrupted {
    fn look(&mut self) -> Result<(), Ended> {
        Ok(())
    }
}

/// The paths of folders.
fn paths_of(folders: Vec<lsp::WorkspaceFolder>) -> Vec<PathBuf> {
    folders.iter().map(|folder| PathBuf::from(name_of(&folder.uri))).collect()
}

/// Handles the parameters of a notification; malformed ones are ignored.
fn with<P: DeserializeOwned>(params: serde_json::Value, then: impl FnOnce(P)) {
    if let Ok(params) = serde_json::from_value(params) {
        then(params);
    }
}

fn publish(uri: lsp::Uri, diagnostics: Vec<lsp::Diagnostic>, version: Option<i32>) {
    notify("textDocument/publishDiagnostics", lsp::PublishDiagnosticsParams { uri, diagnostics, version });
}

fn message(typ: lsp::MessageType, text: &str) {
    notify("window/showMessage", lsp::ShowMessageParams { typ, message: text.to_owned() });
}

fn notify(method: &str, params: impl serde::Serialize) {
    send(&Notification::new(method.to_owned(), params));
}

/// Sends a message. Errors are ignored: if the client does not read any more, the end of stdin ends
/// the server.
fn send(message: &impl serde::Serialize) {
    _ = wire::write(&mut std::io::stdout().lock(), message);
}
