//! One line of output.

use serde_json::Value;

use crate::runtime::runtime;

/// A JSON object whose members keep their order.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    case: String,
    members: Members,
}

/// Name and value of each.
pub(crate) type Members = Vec<(&'static str, Value)>;

impl Line {
    pub(crate) fn new(case: impl Into<String>) -> Self {
        Self { case: case.into(), members: Vec::new() }
    }

    #[must_use = "it gives the changed line back"]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.members.push((name, value.into()));
        self
    }

    #[must_use = "it gives the changed line back"]
    pub(crate) fn with_all(mut self, members: Members) -> Self {
        self.members.extend(members);
        self
    }

    pub(crate) fn print(self) {
        let threads = runtime().metrics().num_workers();
        let mut text = format!(r#"{{"impl":"kubewire","case":"{}","threads":{threads}"#, self.case);
        for (name, value) in self.members {
            text += &format!(r#","{name}":{value}"#);
        }
        println!("{text}}}");
    }
}

/// Five digits.
pub(crate) fn rounded(number: f64) -> Value {
    format!("{number:.4e}").parse::<f64>().unwrap_or(number).into()
}

/// p50, p99 and maximum in microseconds.
pub(crate) fn percentiles(names: [&'static str; 3], nanos: &mut [i64]) -> Members {
    nanos.sort_unstable();
    let last = nanos.len().saturating_sub(1);
    let places = [nanos.len() / 2, nanos.len() * 99 / 100, last];
    let micros = |place: usize| nanos.get(place.min(last)).map(|&nanos| rounded(nanos as f64 / 1e3));
    names.into_iter().zip(places).filter_map(|(name, place)| Some((name, micros(place)?))).collect()
}
