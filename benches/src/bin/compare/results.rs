//! The lines of many runs, and their medians.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::{Map, Value};

use crate::line::rounded;

/// The medians of all runs of each case, by program and key.
pub(crate) struct Results {
    pub(crate) machine: Map<String, Value>,
    cases: BTreeMap<(String, String), Map<String, Value>>,
}

/// Members that tell runs of one case from each other, in place of measuring something.
const NO_FIGURES: [&str; 6] = ["n", "threads", "gomaxprocs", "keys", "handlers", "workers"];

impl Results {
    /// From lines of JSON; the first tells of the machine.
    pub(crate) fn read(lines: &str) -> anyhow::Result<Self> {
        let mut machine = Map::new();
        let mut runs: BTreeMap<_, Vec<Map<String, Value>>> = BTreeMap::new();
        for (number, line) in lines.lines().enumerate() {
            let mut line: Map<String, Value> =
                serde_json::from_str(line).with_context(|| format!("line {} is no result: {line}", number + 1))?;
            add_derived(&mut line);
            match text(&line, "impl") {
                "machine" => machine = line,
                program => runs.entry((program.to_owned(), key(&line))).or_default().push(line),
            }
        }
        let cases = runs.into_iter().map(|(name, runs)| (name, median(&runs))).collect();
        Ok(Self { machine, cases })
    }

    /// A figure of a case of a program.
    pub(crate) fn figure(&self, program: &str, case: &str, member: &str) -> Option<f64> {
        self.cases.get(&(program.to_owned(), case.to_owned()))?.get(member)?.as_f64()
    }

    /// All of it, for a file.
    pub(crate) fn to_json(&self) -> Value {
        let cases = self.cases.iter().map(|((program, key), figures)| {
            let mut case = Map::new();
            case.insert("impl".to_owned(), program.as_str().into());
            case.insert("key".to_owned(), key.as_str().into());
            case.extend(figures.clone());
            Value::Object(case)
        });
        serde_json::json!({ "machine": self.machine, "cases": cases.collect::<Vec<_>>() })
    }
}

fn text<'a>(line: &'a Map<String, Value>, name: &str) -> &'a str {
    line.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// What a list took at its peak beside what was left of it.
fn add_derived(line: &mut Map<String, Value>) {
    let figure = |name| line.get(name).and_then(Value::as_f64);
    let parts = (figure("peak_extra_bytes"), figure("heap_bytes_per_item"), figure("n"));
    if let (Some(peak), Some(result), Some(n)) = parts {
        line.insert("peak_beside_result_bytes".to_owned(), rounded(peak - result * n));
    }
}

/// The case, with what distinguishes runs of one name: `memory/json/typed-no-managed-fields`, `sync/json/packed`.
fn key(line: &Map<String, Value>) -> String {
    let (case, is) = (text(line, "case"), |name| line.get(name) == Some(&Value::Bool(true)));
    let representation = if text(line, "representation").is_empty() { "typed" } else { text(line, "representation") };
    let stripped = if is("transform") { "-no-managed-fields" } else { "" };
    match case {
        "memory" => {
            let codec = if is("protobuf") { "protobuf" } else { "json" };
            format!("memory/{codec}/{representation}{stripped}")
        }
        "sync" | "e2e" => {
            let codec = if text(line, "content_type").contains("protobuf") { "protobuf" } else { "json" };
            let how = if is("watchlist") { "/watchlist" } else { "" };
            format!("{case}/{codec}/{representation}{stripped}{how}")
        }
        _ if case.starts_with("list-decode/") => {
            let form = if case.split('/').count() == 2 { "/typed" } else { "" };
            let one = Some(&Value::from(1));
            let cores = if line.get("threads") == one || line.get("gomaxprocs") == one { "/one-core" } else { "" };
            format!("{case}{form}{cores}")
        }
        _ if text(line, "delivery") == "in-order" => format!("{case}/in-order"),
        _ => case.to_owned(),
    }
}

/// The median of each figure, and the least and most of the time.
fn median(runs: &[Map<String, Value>]) -> Map<String, Value> {
    let mut figures = Map::new();
    figures.insert("rounds".to_owned(), runs.len().into());
    for (name, value) in &runs[0] {
        let mut values: Vec<f64> = runs.iter().filter_map(|run| run.get(name)?.as_f64()).collect();
        if values.len() < runs.len() || NO_FIGURES.contains(&name.as_str()) {
            if name != "impl" {
                figures.insert(name.clone(), value.clone());
            }
            continue;
        }
        values.sort_unstable_by(f64::total_cmp);
        figures.insert(name.clone(), rounded(values[(values.len() - 1) / 2]));
        if name == "ns_per_op" {
            figures.insert("ns_per_op_min".to_owned(), rounded(values[0]));
            figures.insert("ns_per_op_max".to_owned(), rounded(values[values.len() - 1]));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_medians_and_forms_are_kept_apart() {
        let lines = r#"{"impl":"machine","cpu":"some"}
{"impl":"client-go","case":"memory","protobuf":true,"transform":true,"n":2,"heap_bytes_per_item":7,"peak_extra_bytes":20}
{"impl":"kubewire","case":"queue-cycle/uncontended","n":5,"ns_per_op":3}
{"impl":"kubewire","case":"queue-cycle/uncontended","n":5,"ns_per_op":9}
{"impl":"kubewire","case":"queue-cycle/uncontended","n":5,"ns_per_op":1}
"#;
        let results = Results::read(lines).unwrap();
        assert_eq!(results.figure("kubewire", "queue-cycle/uncontended", "ns_per_op"), Some(3.0));
        assert_eq!(results.figure("kubewire", "queue-cycle/uncontended", "ns_per_op_max"), Some(9.0));
        let key = "memory/protobuf/typed-no-managed-fields";
        assert_eq!(results.figure("client-go", key, "heap_bytes_per_item"), Some(7.0));
        assert_eq!(results.figure("client-go", key, "peak_beside_result_bytes"), Some(6.0));
        assert_eq!(results.machine["cpu"], "some");
        assert!(Results::read("nonsense").is_err());
    }
}
