//! PURE: names of types for people.

/// The name of a type without the paths: `Filter<Closure, Recorder>`.
pub(crate) fn short_type_name<T: ?Sized>() -> String {
    short(std::any::type_name::<T>())
}

fn short(name: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '{' | '}' | '#');
    let mut out = String::new();
    let mut rest = name;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (path, after) = rest.split_at(end);
        out.push_str(path.rsplit("::").next().unwrap_or(path));
        let others = after.find(is_part).unwrap_or(after.len());
        out.push_str(&after[..others]);
        rest = &after[others..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_are_left_out_and_nothing_else() {
        let rows = [
            ("my::Handler", "Handler"),
            ("a::Filter<a::b::{{closure}}, c::Log<alloc::sync::Arc<d::Pod>>>", "Filter<{{closure}}, Log<Arc<Pod>>>"),
            ("(a::B, &[u8])", "(B, &[u8])"),
            ("", ""),
        ];
        for (long, want) in rows {
            assert_eq!(short(long), want);
        }
    }
}
