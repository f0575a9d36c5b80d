//! A request, as the server saw it.

use std::fmt;

use tokio::time::Instant;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// A list, or a page of one.
    List,
    /// A watch.
    Watch,
    /// A watch that asks for the initial events.
    Stream,
}

/// A request in the server's log.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When it came.
    pub at: Instant,
    /// The number of the connection that it came by, from 0; 0 in process.
    pub connection: u64,
    /// Such as `GET`.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query, decoded, in order.
    pub query: Vec<(String, String)>,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Asked {
    /// The value of a parameter of the query.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// What it asks for.
    pub fn verb(&self) -> Verb {
        let is_true = |name| matches!(self.param(name), Some("true" | "1"));
        match (is_true("watch"), is_true("sendInitialEvents")) {
            (false, _) => Verb::List,
            (true, false) => Verb::Watch,
            (true, true) => Verb::Stream,
        }
    }

    /// The version that a watch begins at.
    pub(crate) fn version(&self) -> u64 {
        self.param("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or_default()
    }

    /// Splits a query, and decodes what is escaped in it.
    pub(crate) fn read_query(query: &str) -> Vec<(String, String)> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(n, v)| (unescape(n), unescape(v))).collect()
    }
}

/// In short: `LIST(rv=0,limit=500)`, `LIST(limit=500,continue=t1)`, `WATCH(11)`, `STREAM()`.
impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.param("resourceVersion");
        match self.verb() {
            Verb::Watch => write!(f, "WATCH({})", version.unwrap_or_default()),
            Verb::Stream => write!(f, "STREAM({})", version.unwrap_or_default()),
            Verb::List => {
                let names = [
                    ("rv", "resourceVersion"),
                    ("match", "resourceVersionMatch"),
                    ("limit", "limit"),
                    ("continue", "continue"),
                ];
                let parts = names.iter().filter_map(|(short, name)| Some(format!("{short}={}", self.param(name)?)));
                write!(f, "LIST({})", parts.collect::<Vec<_>>().join(","))
            }
        }
    }
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let escaped = || {
            let mut ahead = rest.clone();
            let digits = [ahead.next()?, ahead.next()?];
            let byte = u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?;
            Some((byte, ahead))
        };
        match (byte, if byte == b'%' { escaped() } else { None }) {
            (_, Some((byte, ahead))) => {
                bytes.push(byte);
                rest = ahead;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
