//! Validates the flags of the two audit backends, each only if it is enabled.
//!
//! Source: `k8s.io/apiserver/pkg/server/options/audit.go`, release 1.36.

use super::super::flags::Flags;

/// Numbers about log files.
const FILES: [&str; 3] = ["audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"];
const VERSION: &str = "audit.k8s.io/v1";
const BATCH_BYTES_MAX: i64 = 10 << 20;
const EVENT_BYTES_MAX: i64 = 100 << 10;

/// An audit backend, with the defaults of its flags.
struct Backend {
    name: &'static str,
    /// The flag that enables it.
    switch: &'static str,
    mode: &'static str,
    buffer: i64,
    batch: i64,
    is_throttled: bool,
    per_second: f64,
    burst: i64,
}

const LOG: Backend = Backend {
    name: "log",
    switch: "audit-log-path",
    mode: "blocking",
    buffer: 10_000,
    batch: 1,
    is_throttled: false,
    per_second: 0.0,
    burst: 0,
};
const WEBHOOK: Backend = Backend {
    name: "webhook",
    switch: "audit-webhook-config-file",
    mode: "batch",
    buffer: 10_000,
    batch: 400,
    is_throttled: true,
    per_second: 10.0,
    burst: 15,
};

pub fn faults(flags: &Flags) -> Vec<String> {
    let mut faults = LOG.faults(flags);
    if flags.text(LOG.switch).is_some() {
        if let Some(text) = flags.other_than("audit-log-format", &["legacy", "json"]) {
            faults.push(format!("invalid audit log format {text}, allowed formats are \"legacy,json\""));
        }
        let negative = FILES.into_iter().filter(|name| flags.is_negative(name));
        faults.extend(
            negative
                .map(|name| format!("--{name} {} can't be a negative number", flags.number(name).unwrap_or_default())),
        );
    }
    faults.extend(WEBHOOK.faults(flags));
    faults
}

impl Backend {
    fn faults(&self, flags: &Flags) -> Vec<String> {
        if flags.text(self.switch).is_none() {
            return Vec::new();
        }
        let faults = [self.batches(flags), self.truncation(flags), self.version(flags)];
        faults.into_iter().flatten().collect()
    }

    fn flag(&self, name: &str) -> String {
        format!("audit-{}-{name}", self.name)
    }

    fn number(&self, flags: &Flags, name: &str, default: i64) -> i64 {
        flags.number(&self.flag(name)).unwrap_or(default)
    }

    fn batches(&self, flags: &Flags) -> Option<String> {
        let flag = self.flag("mode");
        if let Some(text) = flags.other_than(&flag, &["batch", "blocking", "blocking-strict"]) {
            let allowed = "allowed modes are \"batch,blocking,blocking-strict\"";
            return Some(format!("invalid audit {} mode {text}, {allowed}", self.name));
        }
        if flags.text(&flag).unwrap_or(self.mode) != "batch" {
            return None;
        }
        let throttled = flags.truth(&self.flag("batch-throttle-enable")).unwrap_or(self.is_throttled);
        let per_second = flags.float(&self.flag("batch-throttle-qps")).unwrap_or(self.per_second);
        let buffer = self.number(flags, "batch-buffer-size", self.buffer);
        let batch = self.number(flags, "batch-max-size", self.batch);
        let burst = self.number(flags, "batch-throttle-burst", self.burst);
        let numbers = [
            (buffer <= 0, "buffer size", buffer.to_string()),
            (batch <= 0, "max batch size", batch.to_string()),
            (throttled && per_second <= 0.0, "throttle QPS", per_second.to_string()),
            (throttled && burst <= 0, "throttle burst", burst.to_string()),
        ];
        let (_, what, number) = numbers.into_iter().find(|(is_wrong, ..)| *is_wrong)?;
        Some(format!("invalid audit batch {} {what} {number}, must be a positive number", self.name))
    }

    fn truncation(&self, flags: &Flags) -> Option<String> {
        let event = self.number(flags, "truncate-max-event-size", EVENT_BYTES_MAX);
        let batch = self.number(flags, "truncate-max-batch-size", BATCH_BYTES_MAX);
        let fault = if event <= 0 {
            format!("max event size {event}, must be a positive number")
        } else if batch < event {
            format!("max batch size {batch}, must be greater than max event size ({event})")
        } else {
            return None;
        };
        Some(format!("invalid audit truncate {} {fault}", self.name))
    }

    fn version(&self, flags: &Flags) -> Option<String> {
        let flag = self.flag("version");
        let text = flags.other_than(&flag, &[VERSION])?;
        Some(if text.matches('/').count() > 1 {
            format!("unexpected GroupVersion string: {text}")
        } else {
            format!("invalid group version, allowed versions are [\"{VERSION}\"]")
        })
    }
}
