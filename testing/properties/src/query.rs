//! Query strings: what a server reads in them is what was asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use kubewire_listwatch::fuzzing::queries;

/// Labels, fields, version, token; the seconds and nanoseconds of a timeout.
pub type Input<'a> = (&'a str, &'a str, &'a str, &'a str, u64, u32);

/// Panics where it does not hold.
pub fn check(input: Input<'_>) {
    let (labels, fields, version, token, secs, nanos) = input;
    let timeout = Duration::new(secs, nanos % 1_000_000_000);
    let [list, watch] = queries(labels, fields, version, token, timeout);
    let list: Vec<(String, String)> = form_urlencoded::parse(list.as_bytes()).into_owned().collect();
    let watch: Vec<(String, String)> = form_urlencoded::parse(watch.as_bytes()).into_owned().collect();
    for query in [&list, &watch] {
        let by_name: BTreeMap<&str, &str> = query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(by_name.len(), query.len(), "no name twice");
        assert_eq!(by_name.get("labelSelector").copied().unwrap_or_default(), labels);
        assert_eq!(by_name.get("fieldSelector").copied().unwrap_or_default(), fields);
        let continues = by_name.get("continue").copied().unwrap_or_default();
        let seen = by_name.get("resourceVersion").copied().unwrap_or_default();
        match by_name.get("watch") {
            Some(&"true") => {
                assert_eq!((continues, seen), ("", version));
                let asked: u64 = by_name["timeoutSeconds"].parse().expect("a number");
                assert!((1..=i32::MAX as u64).contains(&asked) && (asked >= secs || asked == i32::MAX as u64));
            }
            _ if token.is_empty() => assert_eq!((continues, seen), ("", version)),
            _ => assert_eq!((continues, seen), (token, "")),
        }
        assert!(!query.iter().any(|(_, value)| value.is_empty()));
    }
}
