//! Which controllers run: those of kube-controller-manager that are here are switched as there.

use std::fmt;

/// A controller that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Objects without owners are collected.
    Garbage,
    /// Namespaces that are being deleted are emptied.
    Namespaces,
    /// Namespaces have an account `default`.
    Accounts,
    /// Namespaces have `kube-root-ca.crt`.
    Authority,
    /// Cluster roles gather the rules of others.
    Aggregation,
}

/// Each controller with its name, and an earlier one that means the same.
const NAMES: [(Controller, [&str; 2]); 5] = [
    (Controller::Garbage, ["garbage-collector-controller", "garbagecollector"]),
    (Controller::Namespaces, ["namespace-controller", "namespace"]),
    (Controller::Accounts, ["serviceaccount-controller", "serviceaccount"]),
    (Controller::Authority, ["root-ca-certificate-publisher-controller", "root-ca-cert-publisher"]),
    (Controller::Aggregation, ["clusterrole-aggregation-controller", "clusterrole-aggregation"]),
];

/// Which of the controllers run, in the order of [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches([bool; NAMES.len()]);

/// A name that no controller has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownController(String);

impl fmt::Display for UnknownController {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = NAMES.map(|(_, [name, _])| name).join(", ");
        write!(out, "{:?} is not in the list of known controllers: {known}", self.0)
    }
}

impl Switches {
    /// None of them runs.
    pub const NONE: Self = Switches([false; NAMES.len()]);

    /// All of them run.
    pub const ALL: Self = Switches([true; NAMES.len()]);

    /// Whether `controller` runs.
    pub fn is_on(self, controller: Controller) -> bool {
        NAMES.iter().zip(self.0).any(|((known, _), is_on)| *known == controller && is_on)
    }

    /// Reads a list of `*` for all, `name`, and `-name` for all but that; the first that is about a controller decides.
    ///
    /// An empty list is none, and so is `-*`. Source: the flag `--controllers` of kube-controller-manager 1.37.
    pub fn parse(list: &[String]) -> Result<Self, UnknownController> {
        let list: Vec<_> = list.iter().filter(|item| !item.is_empty() && *item != "-*").collect();
        for item in &list {
            let name = item.strip_prefix('-').unwrap_or(item);
            let is_known = NAMES.iter().any(|(_, names)| names.contains(&name));
            if *item != "*" && !is_known {
                return Err(UnknownController(name.to_owned()));
            }
        }
        Ok(Switches(NAMES.map(|(_, names)| {
            let about = |item: &&&String| names.contains(&item.strip_prefix('-').unwrap_or(item));
            match list.iter().find(about) {
                Some(item) => !item.starts_with('-'),
                None => list.iter().any(|item| *item == "*"),
            }
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Garbage, namespaces, accounts, authority, aggregation.
    fn check(list: &str, expect: Result<[bool; 5], &str>) {
        let list: Vec<_> = list.split(',').map(str::to_owned).collect();
        let switches = Switches::parse(&list);
        let got = switches.map(|Switches(found)| found);
        assert_eq!(got, expect.map_err(|name| UnknownController(name.to_owned())), "{list:?}");
    }

    #[test]
    fn controllers_are_switched_by_their_names() {
        check("*", Ok([true; 5]));
        assert_eq!(Switches::parse(&["*".to_owned()]), Ok(Switches::ALL));
        check("*,-garbage-collector-controller", Ok([false, true, true, true, true]));
        check("-garbagecollector,*,-namespace", Ok([false, false, true, true, true]));
        check("serviceaccount", Ok([false, false, true, false, false]));
        check("-root-ca-cert-publisher,root-ca-cert-publisher", Ok([false; 5]));
        check("*,-garbage", Err("garbage"));
        check("", Ok([false; 5]));
        check("-*", Ok([false; 5]));
        check("-*,namespace", Ok([false, true, false, false, false]));
    }
}
