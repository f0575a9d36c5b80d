//! How long things may take. PURE: texts in, durations out.

use std::time::Duration;

/// How long an etcd or an API server may take to be ready, and to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeouts {
    pub(crate) start: Duration,
    pub(crate) stop: Duration,
}

impl Default for Timeouts {
    /// As controller-runtime's envtest.
    fn default() -> Self {
        Self { start: Duration::from_secs(20), stop: Duration::from_secs(20) }
    }
}

impl Timeouts {
    /// The defaults, unless the variables of controller-runtime's envtest say otherwise. What they say is ignored where it is
    /// no duration.
    pub(crate) fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let default = Self::default();
        let read = |name: &str| variable(name).and_then(|text| parse(&text));
        Self {
            start: read("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT").unwrap_or(default.start),
            stop: read("KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT").unwrap_or(default.stop),
        }
    }
}

/// A duration in Go's form: `1m30s`, `500ms`, `1.5h`.
fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        seconds += number
            * match &rest[..unit] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 0.001,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_gos_form() {
        let seconds = |text| parse(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("20s"), Some(20.0));
        assert_eq!(seconds("1m30s"), Some(90.0));
        assert_eq!(seconds("500ms"), Some(0.5));
        assert_eq!(seconds("1.5h"), Some(5400.0));
        for wrong in ["", "20", "s", "20 s", "-1s", "1d", "ss", "1.2.3s"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_variables_of_envtest_change_the_defaults_and_nonsense_does_not() {
        let start = |name: &str| (name == "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT").then(|| "1m".to_owned());
        assert_eq!(Timeouts::of(start), Timeouts { start: Duration::from_secs(60), stop: Duration::from_secs(20) });
        assert_eq!(Timeouts::of(|_| Some("soon".to_owned())), Timeouts::default());
    }
}
