//! `skiff fault`: adds, lists and removes faults of a running server.

use std::path::PathBuf;
use std::process::ExitCode;

use bytes::Bytes;
use clap::{Args, Subcommand, ValueEnum};
use hyper::Method;

use super::cluster::{ClusterClient, ClusterError, connect};
use super::command_error::CommandError;
use super::print::{output, tell};
use crate::value::{Map, Value, json};

const PATH: &str = "/skiff/v1/faults";

/// Have requests to a running server fail, wait or get old answers, as a test asks for it
///
/// A fault is for all requests that fit what is given of it. A request meets one fault at most: the first that was made.
#[derive(Args)]
pub struct Fault {
    #[command(subcommand)]
    command: FaultCommand,
}

#[derive(Subcommand)]
enum FaultCommand {
    Add(Box<Add>),
    List(ListFaults),
    Delete(Delete),
}

/// Which server is meant.
#[derive(Args)]
struct ServerArgs {
    /// The kubeconfig of the server, if not that of KUBECONFIG or of ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig, if not the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Add a fault, and print its id
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff fault add --verb update --resource widgets.example.com --name a --conflict --times 3\n  \
                  skiff fault add --verb list --error 429 --retry-after 2 --times 1\n  \
                  skiff fault add --verb watch --watch expired --after-events 5"
)]
struct Add {
    #[command(flatten)]
    server: ServerArgs,

    /// The verbs of the requests: get, list, watch, create, update, patch, delete, deletecollection
    #[arg(long = "verb", value_name = "VERB", value_delimiter = ',')]
    verbs: Vec<String>,

    /// Their resource, in the plural; with its group behind a dot and a subresource behind a slash, where these matter
    #[arg(long, value_name = "PLURAL[.GROUP][/SUBRESOURCE]")]
    resource: Option<String>,

    /// Their namespace
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,

    /// The name of their object
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The user that sends them
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Their path, or what it begins with before a `*`: this alone is for paths that are not resources
    #[arg(long, value_name = "PATH")]
    path: Option<String>,

    /// How many of them go by before the fault comes
    #[arg(long, value_name = "N")]
    skip: Option<u64>,

    /// How many of them meet it [default: all]
    #[arg(long, value_name = "N")]
    times: Option<u64>,

    /// How likely each of them meets it, from 0 to 1
    #[arg(long, value_name = "SHARE")]
    probability: Option<f64>,

    /// What the chances begin with: the same seed gives the same ones
    #[arg(long, value_name = "N", requires = "probability")]
    seed: Option<u64>,

    /// How long they wait, as in 250ms, before all else
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,

    /// Answer with this error, as Kubernetes would: 401, 403, 404, 409, 410, 429, 500, 503 or 504
    #[arg(long, value_name = "CODE", group = "effect")]
    error: Option<u16>,

    /// The reason of the error, where its code has several: AlreadyExists, Gone, ServerTimeout
    #[arg(long, value_name = "REASON", requires = "error")]
    reason: Option<String>,

    /// The message of the error
    #[arg(long, value_name = "TEXT", requires = "error")]
    message: Option<String>,

    /// After how many seconds the client may try again
    #[arg(long, value_name = "SECONDS", requires = "error")]
    retry_after: Option<u32>,

    /// End watches, those too that are open
    #[arg(long, value_enum, group = "effect")]
    watch: Option<WatchEndArg>,

    /// After how many objects a watch ends
    #[arg(long, value_name = "N", requires = "watch")]
    after_events: Option<u64>,

    /// After how long a watch ends
    #[arg(long, value_name = "DURATION", requires = "watch")]
    after: Option<String>,

    /// Begin lists and watches at resourceVersion=0 with the state of so many changes ago
    #[arg(long, value_name = "CHANGES", group = "effect")]
    stale: Option<u64>,

    /// Cut the connection in place of an answer: before anything is done, or after all is done
    #[arg(long, value_enum, group = "effect")]
    lose: Option<Lost>,

    /// Write the object before the request does, so that an update of what the client has read conflicts
    #[arg(long, group = "effect")]
    conflict: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum WatchEndArg {
    /// As at its time-out
    Closed,
    /// The connection breaks
    Cut,
    /// Nothing more comes
    Stalled,
    /// With an ERROR event, 410
    Expired,
}

#[derive(Clone, Copy, ValueEnum)]
enum Lost {
    /// Nothing is done
    Request,
    /// All is done
    Answer,
}

/// Show all faults, and how often each was met
#[derive(Args)]
struct ListFaults {
    #[command(flatten)]
    server: ServerArgs,
}

/// Remove faults: stalled watches go on
#[derive(Args)]
#[command(arg_required_else_help = true)]
struct Delete {
    /// The ids of the faults
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,

    /// All of them
    #[arg(long, conflicts_with = "ids")]
    all: bool,

    #[command(flatten)]
    server: ServerArgs,
}

impl Fault {
    /// Runs the subcommand. Exit codes: 0 if done, 1 for a failure.
    pub async fn run(self) -> ExitCode {
        let done = match self.command {
            FaultCommand::Add(add) => add.run().await,
            FaultCommand::List(list) => list.run().await,
            FaultCommand::Delete(delete) => delete.run().await,
        };
        match done {
            Ok(text) => output(text, ExitCode::SUCCESS),
            Err(why) => {
                tell(why);
                ExitCode::FAILURE
            }
        }
    }
}

impl ServerArgs {
    fn client(&self) -> Result<ClusterClient, ClusterError> {
        connect(self.kubeconfig.as_deref(), self.context.as_deref())
    }
}

impl Add {
    async fn run(self) -> Result<String, CommandError> {
        let body = Bytes::from(json::encode(&self.to_value()));
        let made = ask(&self.server.client()?, Method::POST, PATH, Some(body)).await?;
        Ok(format!("{}\n", made.str_at(&["id"])))
    }

    /// Encodes the fault for the request.
    fn to_value(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("match", self.matching());
        insert(&mut fields, "skip", self.skip);
        insert(&mut fields, "times", self.times);
        insert(&mut fields, "seed", self.seed);
        fields.insert("probability", self.probability.map_or(Value::Null, Value::Float));
        fields.insert("delay", text(self.delay.as_deref()));
        if let Some(code) = self.error {
            let mut error = Map::new();
            error.insert("code", Value::Int(code.into()));
            error.insert("reason", text(self.reason.as_deref()));
            error.insert("message", text(self.message.as_deref()));
            insert(&mut error, "retryAfterSeconds", self.retry_after.map(u64::from));
            fields.insert("error", Value::Object(error));
        }
        if let Some(end) = self.watch {
            let mut watch = Map::new();
            watch.insert("end", word(end));
            insert(&mut watch, "afterEvents", self.after_events);
            watch.insert("after", text(self.after.as_deref()));
            fields.insert("watch", Value::Object(watch));
        }
        insert(&mut fields, "stale", self.stale);
        fields.insert("lose", self.lose.map_or(Value::Null, word));
        fields.insert("conflict", if self.conflict { Value::Bool(true) } else { Value::Null });
        Value::Object(fields)
    }

    fn matching(&self) -> Value {
        let mut fields = Map::new();
        let verbs = self.verbs.iter().map(|verb| Value::from(verb.as_str()));
        fields.insert("verbs", Value::Array(verbs.collect()));
        if let Some(resource) = &self.resource {
            let (resource, subresource) = match resource.split_once('/') {
                Some((resource, subresource)) => (resource, Some(subresource)),
                None => (resource.as_str(), None),
            };
            let (plural, group) = match resource.split_once('.') {
                Some((plural, group)) => (plural, Some(group)),
                None => (resource, None),
            };
            fields.insert("resource", Value::from(plural));
            fields.insert("group", text(group));
            fields.insert("subresource", text(subresource));
        }
        fields.insert("namespace", text(self.namespace.as_deref()));
        fields.insert("name", text(self.name.as_deref()));
        fields.insert("user", text(self.user.as_deref()));
        fields.insert("path", text(self.path.as_deref()));
        Value::Object(fields)
    }
}

impl ListFaults {
    async fn run(self) -> Result<String, CommandError> {
        let all = ask(&self.server.client()?, Method::GET, PATH, None).await?;
        let rows = all.items_at(&["items"]).iter().map(|fault| {
            let mut fault = fault.clone();
            let hits = fault.get("hits").and_then(Value::as_i64).unwrap_or_default();
            let id = fault.str_at(&["id"]).to_owned();
            let fields = fault.make_object();
            fields.remove("hits");
            fields.remove("id");
            format!("{id:<4}  {hits:>4}  {}\n", json::encode_to_string(&fault))
        });
        let rows: String = rows.collect();
        Ok(if rows.is_empty() { "no faults\n".to_owned() } else { format!("ID    HITS  FAULT\n{rows}") })
    }
}

impl Delete {
    async fn run(self) -> Result<String, CommandError> {
        let client = self.server.client()?;
        if self.all {
            let removed = ask(&client, Method::DELETE, PATH, None).await?;
            return Ok(format!("{} removed\n", removed.items_at(&["items"]).len()));
        }
        for id in &self.ids {
            ask(&client, Method::DELETE, &format!("{PATH}/{id}"), None).await?;
        }
        Ok(format!("{} removed\n", self.ids.len()))
    }
}

/// Sends a request, and decodes the response of the server.
async fn ask(client: &ClusterClient, method: Method, path: &str, body: Option<Bytes>) -> Result<Value, CommandError> {
    let content = body.map(|body| ("application/json", body));
    let (code, answer) = client.call(method, path, content).await?;
    let answered = json::decode(&answer);
    let url = client.url();
    Err(CommandError::Said(match (code, answered) {
        (200 | 201, Ok(answered)) => return Ok(answered),
        (404, _) if path == PATH => format!("`{url}` takes no faults"),
        (code, Ok(status)) => format!("`{url}` answered {code}: {}", status.str_at(&["message"])),
        (code, Err(_)) => format!("`{url}` answered {code}"),
    }))
}

fn insert(fields: &mut Map, name: &str, number: Option<u64>) {
    fields.insert(name, number.map_or(Value::Null, |number| Value::Int(i64::try_from(number).unwrap_or(i64::MAX))));
}

fn text(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::from)
}

fn word(value: impl ValueEnum) -> Value {
    value.to_possible_value().map_or(Value::Null, |value| Value::from(value.get_name()))
}
