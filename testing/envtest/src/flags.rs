//! What a program is started with. PURE: a list in, a list out.

/// Changes to the flags that a program is started with: the defaults stay where nothing is said. They are applied in the
/// order of the calls. A flag is named without its dashes.
///
/// ```
/// use kubewire_envtest::Flags;
///
/// let flags = Flags::new()
///     .append("disable-admission-plugins", "PodSecurity")   // beside the default, `ServiceAccount`
///     .set("service-cluster-ip-range", "10.1.0.0/24")       // in place of the default
///     .remove("allow-privileged");                          // not at all
/// # let _ = flags;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Append(String, String),
    Set(String, String),
    Remove(String),
}

impl Flags {
    /// No changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more value of this flag, beside those it has.
    #[must_use = "it changes nothing by itself"]
    pub fn append(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.changes.push(Change::Append(name.into(), value.into()));
        self
    }

    /// This value alone.
    #[must_use = "it changes nothing by itself"]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.changes.push(Change::Set(name.into(), value.into()));
        self
    }

    /// The flag is not given, so that the program's own default holds.
    #[must_use = "it changes nothing by itself"]
    pub fn remove(mut self, name: impl Into<String>) -> Self {
        self.changes.push(Change::Remove(name.into()));
        self
    }

    /// The changes of another, after these.
    pub(crate) fn extend(&mut self, other: Flags) {
        self.changes.extend(other.changes);
    }

    /// The arguments: the defaults in their order, then what is new. A value that is set anew stays in its place.
    pub(crate) fn arguments(&self, defaults: Vec<(&str, String)>) -> Vec<String> {
        let mut flags: Vec<(String, String)> =
            defaults.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        for change in &self.changes {
            match change {
                Change::Append(name, value) => flags.push((name.clone(), value.clone())),
                Change::Remove(name) => flags.retain(|(have, _)| have != name),
                Change::Set(name, value) => {
                    let at = flags.iter().position(|(have, _)| have == name);
                    flags.retain(|(have, _)| have != name);
                    // Those before the first of this name have other names: they are all still there.
                    flags.insert(at.unwrap_or(flags.len()), (name.clone(), value.clone()));
                }
            }
        }
        flags.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(flags: Flags) -> Vec<String> {
        flags.arguments(vec![("a", "1".to_owned()), ("b", "2".to_owned()), ("a", "3".to_owned())])
    }

    #[test]
    fn without_changes_the_defaults_are_given() {
        assert_eq!(with(Flags::new()), ["--a=1", "--b=2", "--a=3"]);
    }

    #[test]
    fn append_keeps_set_replaces_and_remove_takes_away_in_the_order_of_the_calls() {
        assert_eq!(with(Flags::new().append("b", "4")), ["--a=1", "--b=2", "--a=3", "--b=4"]);
        assert_eq!(with(Flags::new().set("a", "4")), ["--a=4", "--b=2"]);
        assert_eq!(with(Flags::new().set("c", "4")), ["--a=1", "--b=2", "--a=3", "--c=4"]);
        assert_eq!(with(Flags::new().remove("a")), ["--b=2"]);
        assert_eq!(with(Flags::new().remove("a").append("a", "5").set("b", "6")), ["--b=6", "--a=5"]);
        assert_eq!(with(Flags::new().append("a", "5").remove("a")), ["--b=2"]);
    }
}
