//! Flags as Go's: `-name=value`, `-name value`, or `-name` for true.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use anyhow::Context;

/// The flags that a sub-command knows, with their defaults.
pub(crate) type Defaults = &'static [(&'static str, &'static str)];

/// The flags of one run.
#[derive(Clone, Debug)]
pub(crate) struct Flags(BTreeMap<&'static str, String>);

impl Flags {
    pub(crate) fn parse(defaults: Defaults, arguments: impl IntoIterator<Item = String>) -> anyhow::Result<Self> {
        let mut flags: BTreeMap<_, _> = defaults.iter().map(|&(name, value)| (name, value.to_owned())).collect();
        let known =
            || defaults.iter().map(|(name, value)| format!("  -{name} (default {value:?})\n")).collect::<String>();
        let mut arguments = arguments.into_iter().peekable();
        while let Some(argument) = arguments.next() {
            let argument = argument.trim_start_matches('-');
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (argument, arguments.next_if(|next| !next.starts_with('-')).unwrap_or("true".to_owned())),
            };
            match flags.get_mut(name) {
                Some(place) => *place = value,
                None => anyhow::bail!("no flag -{name}; there are\n{}", known()),
            }
        }
        Ok(Self(flags))
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(crate) fn get<T: FromStr<Err: Display>>(&self, name: &str) -> anyhow::Result<T> {
        let text = self.text(name);
        text.parse().map_err(|error| anyhow::anyhow!("bad value for -{name}: {text:?}: {error}"))
    }

    /// A list, separated by commas.
    pub(crate) fn list(&self, name: &str) -> anyhow::Result<Vec<usize>> {
        let numbers = self.text(name).split(',').map(str::parse).collect::<Result<_, _>>();
        numbers.with_context(|| format!("bad value for -{name}: {:?}", self.text(name)))
    }

    /// The flag `keys`, and where it is 0 the flag `n`.
    pub(crate) fn keys(&self) -> anyhow::Result<usize> {
        match self.get("keys")? {
            0 => self.get("n"),
            keys => Ok(keys),
        }
    }
}
