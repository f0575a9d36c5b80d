//! PURE. `managedFields` of a pod, as a server makes them.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde_json::Value;

/// The FieldsV1 form of some fields: names, sorted, with what is owned below each.
#[derive(Default)]
pub(crate) struct FieldSet(BTreeMap<String, FieldSet>);

/// The fields of a pod that are lists with keys, and their keys; lists of any other name are owned as a whole.
fn list_keys(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "containers" | "env" | "volumes" => &["name"],
        "ports" => &["containerPort", "protocol"],
        "volumeMounts" => &["mountPath"],
        "ownerReferences" => &["uid"],
        "conditions" => &["type"],
        "podIPs" => &["ip"],
        _ => return None,
    })
}

impl FieldSet {
    /// The fields of a value whose own name is this one; an item of a list has the list's name and `[]`.
    pub(crate) fn of(name: &str, value: &Value) -> Self {
        let mut set = Self::default();
        match value {
            Value::Object(fields) if !matches!(name, "fieldRef" | "ownerReferences[]") => {
                set.0.extend(fields.iter().map(|(name, value)| (format!("f:{name}"), Self::of(name, value))));
            }
            Value::Array(items) => {
                let Some(keys) = list_keys(name) else { return set };
                let name = format!("{name}[]");
                for item in items {
                    let key: Vec<_> = keys.iter().map(|&key| format!("\"{key}\":{}", item[key])).collect();
                    set.0.insert(format!("k:{{{}}}", key.join(",")), Self::of(&name, item));
                }
            }
            _ => {}
        }
        if !set.0.is_empty() && !matches!(name, "" | "metadata" | "spec" | "status" | "containers") {
            set.0.insert(".".to_owned(), Self::default());
        }
        set
    }
}

/// As JSON.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (n, (name, below)) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(f, "{comma}\"{}\":{below}", name.replace('"', "\\\""))?;
        }
        f.write_char('}')
    }
}
