//! Flags as Go's programs parse them: `--a=b`, `--a b`, `-a=b`, a bool without a value, each any
//! number of times.
//!
//! Input: a table of names, each with the sort of its value, and arguments. Output: the values by name,
//! or the original program's error for the first invalid argument.
//! Source: `github.com/spf13/pflag` and Go's `flag`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::sorts::{self, Sort};
use crate::value::go_quote;

/// The package whose rules and error texts apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// `github.com/spf13/pflag`: kube-apiserver.
    Pflag,
    /// Go's own `flag`: etcd.
    Flag,
}

/// The flag of [`Sort::Level`].
const LEVEL: &str = "v";

/// Why an argument is invalid, in the words of the original program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    #[error("flag provided but not defined: -{0}")]
    NotDefined(String),
    #[error("unknown flag: --{0}")]
    Unknown(String),
    #[error("unknown shorthand flag: '{first}' in {argument}")]
    UnknownShorthand { first: char, argument: String },
    #[error("flag needs an argument: {0}")]
    NoValue(String),
    #[error("invalid value {} for flag -{name}: parse error", go_quote(.value))]
    Unparsable { name: String, value: String },
    #[error("invalid argument {} for \"{flag}\" flag: {fault}", go_quote(.value))]
    Invalid { flag: String, value: String, fault: String },
}

/// The flags of a program.
pub struct Table {
    manner: Manner,
    sorts: BTreeMap<&'static str, Sort>,
}

/// The given flags and arguments.
#[derive(Debug, Default)]
pub struct Flags {
    values: BTreeMap<&'static str, Vec<String>>,
    /// The arguments that are not flags.
    pub arguments: Vec<String>,
}

impl Table {
    /// Parses lines of `NAME SORT`.
    pub fn new(manner: Manner, text: &'static str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let sorts = lines.filter_map(|line| line.split_once(' ')).map(|(name, sort)| (name, Sort::parse(sort)));
        Table { manner, sorts: sorts.collect() }
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.sorts.keys().copied()
    }

    /// Parses the arguments after a program's name.
    ///
    /// # Errors
    ///
    /// The error for the first invalid argument.
    pub fn parse(&self, arguments: impl IntoIterator<Item = String>) -> Result<Flags, FlagError> {
        let mut flags = Flags::default();
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            if argument == "--" {
                flags.arguments.extend(rest);
                break;
            }
            let Some(text) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
                flags.arguments.push(argument);
                continue;
            };
            let (name, value) = match (text.split_once('='), self.level_of(&argument)) {
                (Some((name, value)), _) => (name, Some(value.to_owned())),
                (None, Some(level)) => (LEVEL, Some(level.to_owned())),
                (None, None) => (text, None),
            };
            let (known, sort) = self.find(name, &argument)?;
            let value = match (value, sort) {
                (Some(value), _) => value,
                (None, Sort::Bool) => "true".to_owned(),
                (None, _) => rest.next().ok_or_else(|| self.needs_value(name))?,
            };
            self.check(name, sort, &value)?;
            flags.values.entry(known).or_default().push(value);
        }
        Ok(flags)
    }

    /// The level that is attached to `-v`, as in `-v2`, if the argument is not a flag itself.
    fn level_of<'a>(&self, argument: &'a str) -> Option<&'a str> {
        let text =
            argument.strip_prefix('-').filter(|text| self.manner == Manner::Pflag && !self.sorts.contains_key(text))?;
        text.strip_prefix(LEVEL).filter(|level| !level.is_empty())
    }

    fn find(&self, name: &str, argument: &str) -> Result<(&'static str, Sort), FlagError> {
        let name = if name == "h" { "help" } else { name };
        if let Some((known, sort)) = self.sorts.get_key_value(name) {
            return Ok((*known, *sort));
        }
        Err(match (self.manner, name.chars().next()) {
            (Manner::Flag, _) => FlagError::NotDefined(name.to_owned()),
            (Manner::Pflag, Some(first)) if !argument.starts_with("--") => {
                FlagError::UnknownShorthand { first, argument: argument.to_owned() }
            }
            (Manner::Pflag, _) => FlagError::Unknown(name.to_owned()),
        })
    }

    fn needs_value(&self, name: &str) -> FlagError {
        FlagError::NoValue(match self.manner {
            Manner::Flag => format!("-{name}"),
            Manner::Pflag => format!("--{name}"),
        })
    }

    fn check(&self, name: &str, sort: Sort, value: &str) -> Result<(), FlagError> {
        let Some(fault) = sort.fault(value) else { return Ok(()) };
        let value = value.to_owned();
        let flag = match self.manner {
            Manner::Flag => return Err(FlagError::Unparsable { name: name.to_owned(), value }),
            Manner::Pflag if sort == Sort::Level => format!("-{name}, --{name}"),
            Manner::Pflag => format!("--{name}"),
        };
        Err(FlagError::Invalid { flag, value, fault })
    }
}

impl Flags {
    /// The last value of a flag, if it is not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str).filter(|text| !text.is_empty())
    }

    /// The last value of a flag, if it is neither empty nor one of `known`.
    pub fn other_than(&self, name: &str, known: &[&str]) -> Option<&str> {
        self.text(name).filter(|text| !known.contains(text))
    }

    /// All values of a flag, unchanged.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.values.get(name).cloned().unwrap_or_default()
    }

    /// All values of a flag, split at commas, without empty parts.
    pub fn list(&self, name: &str) -> Vec<String> {
        let values = self.values.get(name).into_iter().flatten();
        let texts = values.flat_map(|value| value.split(',')).filter(|text| !text.is_empty());
        texts.map(|text| text.trim().to_owned()).collect()
    }

    pub fn truth(&self, name: &str) -> Option<bool> {
        sorts::truth(self.text(name)?)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        sorts::integer(self.text(name)?).ok()
    }

    pub fn float(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok()
    }

    pub fn level(&self, name: &str) -> Option<u64> {
        sorts::level(self.text(name)?).ok()
    }

    pub fn address(&self, name: &str) -> Option<IpAddr> {
        sorts::address(self.text(name)?)
    }

    /// The value as a duration; `None` for a negative one as well.
    pub fn duration(&self, name: &str) -> Option<Duration> {
        sorts::duration(self.text(name)?)
    }

    /// Whether a number or a duration is negative.
    pub fn is_negative(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| text.starts_with('-'))
    }

    /// The names of the given flags.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.values.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# of tests\naudit-log-path text\nhelp bool\nissuer list\nport int\nprofiling bool\nrequest-timeout duration\nv level\n";

    fn parse(manner: Manner, arguments: &[&str]) -> Result<Flags, FlagError> {
        Table::new(manner, TABLE).parse(arguments.iter().map(|text| (*text).to_owned()))
    }

    #[test]
    fn flags_are_given_in_many_ways() {
        let arguments = ["-issuer", "a", "--issuer=b,c", "--profiling", "--v", "2", "-request-timeout=1m30s", "-h"];
        let flags = parse(Manner::Pflag, &arguments).expect("they are taken");
        assert_eq!(flags.list("issuer"), ["a", "b", "c"]);
        assert_eq!(flags.texts("issuer"), ["a", "b,c"]);
        assert_eq!(
            (flags.truth("profiling"), flags.number("v"), flags.truth("help")),
            (Some(true), Some(2), Some(true))
        );
        assert_eq!(flags.duration("request-timeout"), Some(Duration::from_secs(90)));
        assert_eq!(flags.text("audit-log-path"), None);
        assert_eq!(flags.names().collect::<Vec<_>>(), ["help", "issuer", "profiling", "request-timeout", "v"]);
    }

    #[test]
    fn what_is_not_taken_is_told_as_there() {
        let check = |manner, arguments: &[&str], expected: &str| {
            let told = parse(manner, arguments).map_err(|error| error.to_string()).err();
            assert_eq!(told.as_deref(), Some(expected), "{arguments:?}");
        };
        check(Manner::Pflag, &["--nosuch=1"], "unknown flag: --nosuch");
        check(Manner::Pflag, &["-secure-port=1"], "unknown shorthand flag: 's' in -secure-port=1");
        check(Manner::Pflag, &["--v"], "flag needs an argument: --v");
        let parse_int = "invalid argument \"x\" for \"--port\" flag: strconv.ParseInt: parsing \"x\": invalid syntax";
        check(Manner::Pflag, &["--port=x"], parse_int);
        let parse_level =
            "invalid argument \"x\" for \"-v, --v\" flag: strconv.ParseUint: parsing \"x\": invalid syntax";
        check(Manner::Pflag, &["--v=x"], parse_level);
        check(Manner::Pflag, &["-vx"], parse_level);
        let parse_bool =
            "invalid argument \"x\" for \"--profiling\" flag: strconv.ParseBool: parsing \"x\": invalid syntax";
        check(Manner::Pflag, &["--profiling=x"], parse_bool);
        let parse_duration =
            "invalid argument \"5x\" for \"--request-timeout\" flag: time: unknown unit \"x\" in duration \"5x\"";
        check(Manner::Pflag, &["--request-timeout", "5x"], parse_duration);
        check(Manner::Flag, &["--port=x"], "invalid value \"x\" for flag -port: parse error");
        check(Manner::Flag, &["--nosuch"], "flag provided but not defined: -nosuch");
    }

    #[test]
    fn a_level_stands_behind_its_letter() {
        for arguments in [&["-v2"][..], &["-v=2"], &["-v", "2"], &["--v=2"]] {
            let flags = parse(Manner::Pflag, arguments).expect("they are taken");
            assert_eq!(flags.level("v"), Some(2), "{arguments:?}");
        }
    }

    #[test]
    fn durations_below_zero_are_durations() {
        let flags = parse(Manner::Pflag, &["--request-timeout=-1m"]).expect("it is taken");
        assert_eq!((flags.text("request-timeout"), flags.duration("request-timeout")), (Some("-1m"), None));
        assert!(parse(Manner::Pflag, &["--request-timeout=-"]).is_err());
    }
}
