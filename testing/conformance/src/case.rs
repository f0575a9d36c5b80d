//! One recorded case, as its file has it.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

/// A case: what to build, what to do, and what client-go answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The file's name, to tell it in reports.
    #[serde(skip)]
    pub file: String,
    /// The kind of case, which says what is driven.
    pub area: String,
    /// The case's own name.
    pub name: String,
    /// Of no use in a replay.
    #[serde(default, rename = "seed")]
    _seed: Option<Value>,
    /// What the case is after, in words.
    #[serde(default)]
    pub about: String,
    /// Abilities that an implementation may lack.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What to build.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// What to do, in order.
    pub steps: Vec<Step>,
}

/// One operation and its answer.
#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    /// The operation.
    pub op: String,
    /// The answer of the reference.
    #[serde(default)]
    pub expect: Map<String, Value>,
    /// The operation's input: all other fields.
    #[serde(flatten)]
    pub input: Map<String, Value>,
}

impl Case {
    /// Reads a case from the text of its file. The error says what is wrong with it.
    pub fn parse(file: &str, text: &str) -> Result<Self, String> {
        let mut case: Self = serde_json::from_str(text).map_err(|error| format!("not a trace: {error}"))?;
        file.clone_into(&mut case.file);
        if case.steps.is_empty() {
            return Err("a trace without steps".to_owned());
        }
        Ok(case)
    }
}

/// A file that is no trace.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// The file's name.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Loads every `*.json` under a folder, sorted by path.
///
/// # Errors
///
/// If a folder cannot be read; the text names it.
pub fn load(folder: &Path) -> Result<Vec<Result<Case, Unreadable>>, String> {
    let mut files = Vec::new();
    find(folder, &mut files)?;
    files.sort();
    Ok(files
        .into_iter()
        .map(|path| {
            let file = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            std::fs::read_to_string(&path)
                .map_err(|error| format!("cannot be read: {error}"))
                .and_then(|text| Case::parse(&file, &text))
                .map_err(|problem| Unreadable { file, problem })
        })
        .collect())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let fail = |error| format!("the traces' folder {} cannot be read: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}
