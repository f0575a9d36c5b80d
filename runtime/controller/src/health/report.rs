//! PURE. What is asked of checks, and how their results are told.

use std::collections::{BTreeMap, BTreeSet};

/// What a query asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) verbose: bool,
    /// Names of checks that are not to be run.
    pub(super) exclude: BTreeSet<String>,
}

impl Asked {
    /// From the query of a request: `verbose`, with any value or none, and `exclude=name`, any number of times.
    pub(super) fn parse(query: &str) -> Self {
        let mut asked = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "verbose" => asked.verbose = true,
                "exclude" => drop(asked.exclude.insert(value.into_owned())),
                _ => {}
            }
        }
        asked
    }
}

/// Whether all is well, and the text that says so. `results` has `None` for a check that was not run.
///
/// The text of an error is withheld: this is open to anybody. It stands in the log, and behind the check's own path.
pub(super) fn report(endpoint: &str, asked: &Asked, results: &BTreeMap<String, Option<bool>>) -> (bool, String) {
    let ok = results.values().all(|result| *result != Some(false));
    let unknown: Vec<_> = asked.exclude.iter().filter(|name| !results.contains_key(*name)).collect();
    if ok && !asked.verbose {
        return (true, "ok".to_owned());
    }
    let mut text = String::new();
    for (name, result) in results {
        text.push_str(&match result {
            Some(true) => format!("[+]{name} ok\n"),
            Some(false) => format!("[-]{name} failed: reason withheld\n"),
            None => format!("[+]{name} excluded: ok\n"),
        });
    }
    if !unknown.is_empty() {
        let names: Vec<_> = unknown.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(",");
        text.push_str(&format!("warn: some health checks cannot be excluded: no matches for {names}\n"));
    }
    text.push_str(&format!("{endpoint} check {}\n", if ok { "passed" } else { "failed" }));
    (ok, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_asks_for_detail_and_leaves_checks_out() {
        // query, verbose, excluded
        for (query, verbose, excluded) in [
            ("", false, ""),
            ("verbose", true, ""),
            ("verbose=1&exclude=b&exclude=a", true, "a b"),
            ("exclude=a%20b&timeout=3", false, "a b"),
        ] {
            let asked = Asked::parse(query);
            assert_eq!(asked.verbose, verbose, "{query}");
            assert_eq!(asked.exclude.into_iter().collect::<Vec<_>>().join(" "), excluded, "{query}");
        }
    }

    #[test]
    fn a_report_has_a_line_for_each_check_sorted_and_only_where_it_is_wanted_or_one_fails() {
        let results = |results: &[(&str, Option<bool>)]| {
            results.iter().map(|(name, result)| ((*name).to_owned(), *result)).collect::<BTreeMap<_, _>>()
        };
        let plain = Asked::default();
        let good = results(&[("ping", Some(true)), ("caches", Some(true))]);
        assert_eq!(report("readyz", &plain, &good), (true, "ok".to_owned()));

        let verbose = Asked::parse("verbose");
        let all = "[+]caches ok\n[+]ping ok\nreadyz check passed\n";
        assert_eq!(report("readyz", &verbose, &good), (true, all.to_owned()));

        let bad = results(&[("ping", Some(true)), ("caches", Some(false))]);
        let all = "[-]caches failed: reason withheld\n[+]ping ok\nreadyz check failed\n";
        assert_eq!(report("readyz", &plain, &bad), (false, all.to_owned()));

        let asked = Asked::parse("exclude=caches&exclude=x&exclude=w&verbose");
        let all = "[+]caches excluded: ok\n[+]ping ok\n\
                   warn: some health checks cannot be excluded: no matches for \"w\",\"x\"\nreadyz check passed\n";
        let left_out = results(&[("ping", Some(true)), ("caches", None)]);
        assert_eq!(report("readyz", &asked, &left_out), (true, all.to_owned()));
    }
}
