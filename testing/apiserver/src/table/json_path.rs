//! PURE. The part of JSONPath that printer columns use: `.a.b`, `['a']`, `[0]`, `[*]`, `[?(@.type=="Ready")]`.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Member(String),
    /// From the end where negative.
    Index(i64),
    All,
    /// The elements whose value at the path equals the text.
    Filter(JsonPath, String),
}

impl JsonPath {
    /// `None` for what is no such path.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
        while !rest.is_empty() {
            let (step, after) = if let Some(after) = rest.strip_prefix("[?(") {
                let (filter, after) = after.split_once(")]")?;
                (Step::filter(filter)?, after)
            } else if let Some(after) = rest.strip_prefix('[') {
                let (index, after) = after.split_once(']')?;
                (Step::index(index)?, after)
            } else {
                Step::member(rest.strip_prefix('.')?)?
            };
            steps.push(step);
            rest = after;
        }
        Some(Self(steps))
    }

    /// The first value at this path.
    pub(super) fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        find(&self.0, value)
    }
}

fn find<'v>(steps: &[Step], value: &'v Value) -> Option<&'v Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        Step::Member(name) => find(rest, value.get(name)?),
        Step::Index(at) => {
            let list = value.as_array()?;
            let at = if *at < 0 { list.len().checked_sub(at.unsigned_abs() as usize)? } else { *at as usize };
            find(rest, list.get(at)?)
        }
        Step::All => match value {
            Value::Array(list) => list.iter().find_map(|item| find(rest, item)),
            Value::Object(object) => object.values().find_map(|item| find(rest, item)),
            _ => None,
        },
        Step::Filter(path, wanted) => {
            let holds = |item: &&Value| path.find(item).is_some_and(|found| plain(found) == *wanted);
            value.as_array()?.iter().filter(holds).find_map(|item| find(rest, item))
        }
    }
}

impl Step {
    /// What follows a `.`, up to the next `.` or `[`; a backslash makes a dot part of the name.
    fn member(text: &str) -> Option<(Self, &str)> {
        let mut name = String::new();
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => name.push(characters.next()?.1),
                '.' | '[' => return (!name.is_empty()).then(|| (Step::Member(name), &text[at..])),
                other => name.push(other),
            }
        }
        (!name.is_empty()).then_some((Step::Member(name), ""))
    }

    fn index(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Step::All);
        }
        unquoted(text).map(Step::Member).or_else(|| text.parse().ok().map(Step::Index))
    }

    fn filter(text: &str) -> Option<Self> {
        let (path, value) = text.split_once("==")?;
        let value = value.trim();
        let wanted = unquoted(value).unwrap_or_else(|| value.to_owned());
        Some(Step::Filter(JsonPath::parse(path.trim().strip_prefix('@')?)?, wanted))
    }
}

fn unquoted(text: &str) -> Option<String> {
    ['\'', '"'].iter().find_map(|&quote| Some(text.strip_prefix(quote)?.strip_suffix(quote)?.to_owned()))
}

/// A value as a cell shows it: a string without quotes, else JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_value_at_a_path_is_found() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "x"}},
            "spec": {"replicas": 3, "items": [{"n": 1}, {"n": 2}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
        });
        for (path, expected) in [
            (".spec.replicas", json!(3)),
            ("{.spec.replicas}", json!(3)),
            ("$.spec.replicas", json!(3)),
            (".metadata.labels['a.b/c']", json!("x")),
            (r".metadata.labels.a\.b/c", json!("x")),
            (".spec.items[1].n", json!(2)),
            (".spec.items[-1].n", json!(2)),
            (".spec.items[*].n", json!(1)),
            (r#".status.conditions[?(@.type=="Other")].status"#, json!("False")),
            (".status.conditions[?(@.type == 'Ready')].status", json!("True")),
        ] {
            let parsed = JsonPath::parse(path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(parsed.find(&object), Some(&expected), "{path}");
        }
        for path in [".spec.none", ".spec.items[2]", ".spec.items[-3]", ".spec[0]", ".spec.replicas[*]", ".a.b"] {
            assert_eq!(JsonPath::parse(path).unwrap().find(&object), None, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in ["spec", ".", ".a[", ".a[x]", ".a..b", ".a[?(@.b)]", ".a[?(@.b==1]", "[?(x=='1')]", ".a\\"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
