//! Validation of the probes and the lifecycle hooks of a container.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use super::container_context::ContainerContext;
use super::ports;
use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;

/// Signals that end a container on Linux, sorted.
const LINUX_SIGNALS: [&str; 65] = [
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGRTMAX",
    "SIGRTMAX-1",
    "SIGRTMAX-10",
    "SIGRTMAX-11",
    "SIGRTMAX-12",
    "SIGRTMAX-13",
    "SIGRTMAX-14",
    "SIGRTMAX-2",
    "SIGRTMAX-3",
    "SIGRTMAX-4",
    "SIGRTMAX-5",
    "SIGRTMAX-6",
    "SIGRTMAX-7",
    "SIGRTMAX-8",
    "SIGRTMAX-9",
    "SIGRTMIN",
    "SIGRTMIN+1",
    "SIGRTMIN+10",
    "SIGRTMIN+11",
    "SIGRTMIN+12",
    "SIGRTMIN+13",
    "SIGRTMIN+14",
    "SIGRTMIN+15",
    "SIGRTMIN+2",
    "SIGRTMIN+3",
    "SIGRTMIN+4",
    "SIGRTMIN+5",
    "SIGRTMIN+6",
    "SIGRTMIN+7",
    "SIGRTMIN+8",
    "SIGRTMIN+9",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
];

/// The lifecycle and the probes of a container that runs as long as its pod.
pub fn validate_all(container: &FieldRef<'_>, context: &ContainerContext<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let lifecycle = container.field("lifecycle");
    if lifecycle.is_set() {
        errors.extend(validate_lifecycle(&lifecycle, context));
    }
    let [live, ready, start] = ["livenessProbe", "readinessProbe", "startupProbe"].map(|name| container.field(name));
    errors.extend(validate_probe(&live, context));
    errors.extend(only_one_success(&live));
    errors.extend(validate_probe(&ready, context));
    let grace = ready.field("terminationGracePeriodSeconds");
    if grace.is_set() {
        errors.push(grace.invalid("must not be set for readinessProbes"));
    }
    errors.extend(validate_probe(&start, context));
    errors.extend(only_one_success(&start));
    errors
}

fn only_one_success(probe: &FieldRef<'_>) -> Option<Error> {
    let threshold = probe.field("successThreshold");
    let is_wrong = probe.is_set() && threshold.int() != 1;
    is_wrong.then(|| Error::invalid(threshold.path(), threshold.int(), "must be 1"))
}

fn validate_probe(probe: &FieldRef<'_>, context: &ContainerContext<'_>) -> ErrorList {
    if !probe.is_set() {
        return ErrorList::new();
    }
    let mut errors = validate_handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], context);
    for name in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        errors.extend(checks::not_negative(&probe.field(name)));
    }
    let grace = probe.field("terminationGracePeriodSeconds");
    if grace.is_set() && grace.int() <= 0 {
        errors.push(grace.invalid("must be greater than 0"));
    }
    errors
}

fn validate_lifecycle(lifecycle: &FieldRef<'_>, context: &ContainerContext<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["postStart", "preStop"] {
        let handler = lifecycle.field(name);
        if handler.is_set() {
            errors.extend(validate_handler(&handler, &["exec", "httpGet", "tcpSocket", "sleep"], context));
        }
    }
    let signal = lifecycle.field("stopSignal");
    if signal.is_set() {
        errors.extend(validate_signal(&signal, context.os));
    }
    errors
}

/// Which signals there are depends on the operating system, so it must be known.
fn validate_signal(signal: &FieldRef<'_>, os: Option<&str>) -> Option<Error> {
    let supported: &[&str] = match os {
        None => return Some(signal.forbidden("may not be set for containers with empty `spec.os.name`")),
        Some("windows") => &["SIGKILL", "SIGTERM"],
        Some("linux") => &LINUX_SIGNALS,
        Some(_) => return None,
    };
    checks::one_of(signal, supported)
}

/// Validates that a handler has exactly one of its kinds.
fn validate_handler(handler: &FieldRef<'_>, ways: &[&str], context: &ContainerContext<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut count = 0;
    for name in ways {
        let way = handler.field(name);
        if !way.is_set() {
            continue;
        }
        count += 1;
        if count > 1 {
            errors.push(way.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        match *name {
            "exec" => errors.extend(checks::required_fields(&way, &["command"])),
            "httpGet" => errors.extend(validate_http_get(&way)),
            "tcpSocket" => errors.extend(ports::validate_number_or_name(&way.field("port"))),
            "grpc" => errors.extend(ports::validate_number(&way.field("port"))),
            _ => errors.extend(validate_sleep(&way, context)),
        }
    }
    if count == 0 {
        errors.push(handler.required("must specify a handler type"));
    }
    errors
}

fn validate_http_get(action: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::required_fields(action, &["path"]);
    errors.extend(ports::validate_number_or_name(&action.field("port")));
    errors.extend(checks::one_of(&action.field("scheme"), &["HTTP", "HTTPS"]));
    let headers = action.field("httpHeaders");
    for header in headers.items() {
        let name = header.field("name");
        let faults = names::is_http_header_name(name.text()).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(headers.path(), name.text(), fault)));
    }
    errors
}

/// A sleep must end before the grace period does. The errors of that period are reported elsewhere.
fn validate_sleep(sleep: &FieldRef<'_>, context: &ContainerContext<'_>) -> Option<Error> {
    let seconds = sleep.field("seconds").int();
    let grace = context.grace_seconds?;
    let (least, why) = if context.options.allow_pod_lifecycle_sleep_action_zero_value {
        (0, format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})"))
    } else {
        let why = format!("must be greater than 0 and less than terminationGracePeriodSeconds ({grace}).");
        (1, format!("{why} Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."))
    };
    (seconds < least || seconds > grace).then(|| Error::invalid(sleep.path(), seconds, why))
}
