//! Which controllers run: those of kube-controller-manager that are here are switched as there.

use std::fmt;

/// Whether each of the controllers runs that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Objects without owners are collected.
    pub garbage: bool,
    /// Namespaces that are being deleted are emptied.
    pub namespaces: bool,
    /// Namespaces have an account `default`.
    pub accounts: bool,
    /// Namespaces have `kube-root-ca.crt`.
    pub authority: bool,
    /// Cluster roles gather the rules of others.
    pub aggregation: bool,
}

/// The names of a controller, and an earlier one that goes as well.
type Names = [&'static str; 2];

const GARBAGE: Names = ["garbage-collector-controller", "garbagecollector"];
const NAMESPACES: Names = ["namespace-controller", "namespace"];
const ACCOUNTS: Names = ["serviceaccount-controller", "serviceaccount"];
const AUTHORITY: Names = ["root-ca-certificate-publisher-controller", "root-ca-cert-publisher"];
const AGGREGATION: Names = ["clusterrole-aggregation-controller", "clusterrole-aggregation"];
const ALL: [Names; 5] = [GARBAGE, NAMESPACES, ACCOUNTS, AUTHORITY, AGGREGATION];

/// A name that no controller has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownController(String);

impl fmt::Display for UnknownController {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = ALL.map(|[name, _]| name).join(", ");
        write!(out, "{:?} is not in the list of known controllers: {known}", self.0)
    }
}

impl Switches {
    /// None of them runs.
    pub const NONE: Self =
        Switches { garbage: false, namespaces: false, accounts: false, authority: false, aggregation: false };

    /// All of them run.
    pub const ALL: Self =
        Switches { garbage: true, namespaces: true, accounts: true, authority: true, aggregation: true };

    /// Reads a list of `*` for all, `name`, and `-name` for all but that; the first that is about a controller decides.
    ///
    /// An empty list is none, and so is `-*`. Source: the flag `--controllers` of kube-controller-manager 1.37.
    pub fn parse(list: &[String]) -> Result<Self, UnknownController> {
        let list: Vec<_> = list.iter().filter(|item| !item.is_empty() && *item != "-*").collect();
        for item in &list {
            let name = item.strip_prefix('-').unwrap_or(item);
            let is_known = ALL.iter().any(|names| names.contains(&name));
            if *item != "*" && !is_known {
                return Err(UnknownController(name.to_owned()));
            }
        }
        let is_on = |names: Names| {
            let about = |item: &&&String| names.contains(&item.strip_prefix('-').unwrap_or(item));
            match list.iter().find(about) {
                Some(item) => !item.starts_with('-'),
                None => list.iter().any(|item| *item == "*"),
            }
        };
        Ok(Switches {
            garbage: is_on(GARBAGE),
            namespaces: is_on(NAMESPACES),
            accounts: is_on(ACCOUNTS),
            authority: is_on(AUTHORITY),
            aggregation: is_on(AGGREGATION),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Garbage, namespaces, accounts, authority, aggregation.
    fn check(list: &str, expect: Result<[bool; 5], &str>) {
        let list: Vec<_> = list.split(',').map(str::to_owned).collect();
        let switches = Switches::parse(&list);
        let got =
            switches.map(|found| [found.garbage, found.namespaces, found.accounts, found.authority, found.aggregation]);
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
