//! PURE. What is listed and watched of a type: where, and which of it; from the options of the cache and of the type.

use std::collections::BTreeMap;
use std::time::Duration;

use kubewire_indexer::{FieldSelector, LabelSelector};

/// Which objects are kept, and how often handlers are told of them again. What is unset is taken from elsewhere, see
/// [`CacheOptions`](crate::CacheOptions); a selector of everything is set.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing before they are given to a cache"]
pub struct ScopeOptions {
    pub(super) labels: Option<LabelSelector>,
    pub(super) fields: Option<FieldSelector>,
    pub(super) resync_period: Option<Duration>,
    pub(super) drop_managed_fields: Option<bool>,
}

impl ScopeOptions {
    /// Everything unset.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only objects with such labels.
    pub fn labels(self, selector: LabelSelector) -> Self {
        Self { labels: Some(selector), ..self }
    }

    /// Only objects with such fields. `metadata.namespace=x` lists that namespace alone.
    pub fn fields(self, selector: FieldSelector) -> Self {
        Self { fields: Some(selector), ..self }
    }

    /// How often handlers are told of what there is; zero for never. Each informer's period is up to a tenth longer or
    /// shorter, so that not all come at once. Default: 10 hours, as controller-runtime's `SyncPeriod`.
    pub fn resync_period(self, period: Duration) -> Self {
        Self { resync_period: Some(period), ..self }
    }

    /// Leaves `metadata.managedFields` out, which often is half of an object. Default: no.
    pub fn drop_managed_fields(self, drop: bool) -> Self {
        Self { drop_managed_fields: Some(drop), ..self }
    }

    /// What is unset here is taken from there.
    pub fn or(self, other: &Self) -> Self {
        Self {
            labels: self.labels.or_else(|| other.labels.clone()),
            fields: self.fields.or_else(|| other.fields.clone()),
            resync_period: self.resync_period.or(other.resync_period),
            drop_managed_fields: self.drop_managed_fields.or(other.drop_managed_fields),
        }
    }
}

/// Options by namespace; that of the empty name is for all namespaces that are not named.
pub(super) type ByNamespace = BTreeMap<String, ScopeOptions>;

/// What the options say for one type or for all.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// `None`: unset. Empty: all namespaces.
    pub(super) namespaces: Option<ByNamespace>,
    pub(super) scope: ScopeOptions,
}

/// What one informer lists.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scope {
    /// What its objects are found by: their namespace, or empty for all that have no scope of their own.
    pub(super) namespace: String,
    /// The namespace in the request's path; empty for all.
    pub(super) listed_in: String,
    pub(super) labels: LabelSelector,
    /// All must hold.
    pub(super) fields: Vec<FieldSelector>,
    pub(super) resync_period: Duration,
    pub(super) drop_managed_fields: bool,
}

/// A type of cluster scope was given namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamespacesOfClusterScope;

/// As controller-runtime's.
const RESYNC_PERIOD: Duration = Duration::from_secs(10 * 3600);
const NAMESPACE_FIELD: &str = "metadata.namespace";

/// What the informers of a type list; one for each namespace that has options of its own.
///
/// The first that is set counts: the type's for the namespace, the type's, the default for the namespace, the default. The
/// type's namespaces stand in place of the default ones, also where they are none, which is all.
pub(super) fn scopes(
    is_namespaced: bool,
    defaults: &Settings,
    of_type: &Settings,
) -> Result<Vec<Scope>, NamespacesOfClusterScope> {
    if !is_namespaced {
        if of_type.namespaces.is_some() {
            return Err(NamespacesOfClusterScope);
        }
        return Ok(vec![scope("", &[], of_type.scope.clone().or(&defaults.scope))]);
    }
    let empty = ByNamespace::new();
    let default_namespaces = defaults.namespaces.as_ref().unwrap_or(&empty);
    let namespaces = of_type.namespaces.as_ref().unwrap_or(default_namespaces);
    let options = |namespace: &str| {
        let own = of_type.namespaces.as_ref().and_then(|own| own.get(namespace)).cloned().unwrap_or_default();
        let default = default_namespaces.get(namespace).cloned().unwrap_or_default();
        own.or(&of_type.scope).or(&default).or(&defaults.scope)
    };
    if namespaces.is_empty() {
        return Ok(vec![scope("", &[], options(""))]);
    }
    let named: Vec<&str> = namespaces.keys().map(String::as_str).filter(|name| !name.is_empty()).collect();
    Ok(namespaces.keys().map(|namespace| scope(namespace, &named, options(namespace))).collect())
}

/// One scope; that of all namespaces is without the named ones.
fn scope(namespace: &str, named: &[&str], options: ScopeOptions) -> Scope {
    let fields = options.fields.unwrap_or_default();
    let asked_for = fields.required_value(NAMESPACE_FIELD).unwrap_or_default().to_owned();
    let mut fields: Vec<_> = Some(fields).filter(|fields| !fields.is_everything()).into_iter().collect();
    if namespace.is_empty() {
        fields.extend(named.iter().filter_map(|other| format!("{NAMESPACE_FIELD}!={other}").parse().ok()));
    }
    Scope {
        namespace: namespace.to_owned(),
        listed_in: if namespace.is_empty() { asked_for } else { namespace.to_owned() },
        labels: options.labels.unwrap_or_else(LabelSelector::everything),
        fields,
        resync_period: options.resync_period.unwrap_or(RESYNC_PERIOD),
        drop_managed_fields: options.drop_managed_fields.unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> ScopeOptions {
        ScopeOptions::new().labels(text.parse().unwrap())
    }

    fn named(names: &[(&str, ScopeOptions)]) -> Option<ByNamespace> {
        Some(names.iter().map(|(name, options)| ((*name).to_owned(), options.clone())).collect())
    }

    /// As `namespace:listed_in:labels:fields`.
    fn shown(is_namespaced: bool, defaults: &Settings, of_type: &Settings) -> Vec<String> {
        let all = scopes(is_namespaced, defaults, of_type).unwrap();
        let text = |scope: Scope| {
            let fields: Vec<_> = scope.fields.iter().map(ToString::to_string).collect();
            format!("{}:{}:{}:{}", scope.namespace, scope.listed_in, scope.labels, fields.join(","))
        };
        all.into_iter().map(text).collect()
    }

    #[test]
    fn without_options_a_type_is_listed_everywhere_and_told_again_every_ten_hours() {
        let all = scopes(true, &Settings::default(), &Settings::default()).unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].namespace.as_str(), all[0].listed_in.as_str()), ("", ""));
        assert_eq!(all[0].resync_period, Duration::from_secs(36_000));
        assert!(!all[0].drop_managed_fields && all[0].fields.is_empty() && all[0].labels.is_everything());
    }

    /// Six settings at four levels: the first that is set counts.
    #[test]
    fn of_each_setting_the_most_special_that_is_set_counts() {
        let level = |n: u64| {
            let fields: FieldSelector = format!("spec.n={n}").parse().unwrap();
            labels(&format!("n={n}"))
                .fields(fields)
                .resync_period(Duration::from_secs(n))
                .drop_managed_fields(n.is_multiple_of(2))
        };
        // The levels that are set, special ones first; the one that counts.
        for (set, counts) in [("1234", 1), ("234", 2), ("34", 3), ("4", 4), ("124", 1), ("24", 2), ("13", 1)] {
            let at = |n: u64| if set.contains(&n.to_string()) { level(n) } else { ScopeOptions::new() };
            let of_type = Settings { namespaces: named(&[("a", at(1))]), scope: at(2) };
            let defaults = Settings { namespaces: named(&[("a", at(3)), ("b", level(9))]), scope: at(4) };
            let all = scopes(true, &defaults, &of_type).unwrap();
            assert_eq!(all.len(), 1, "{set}: the type's namespaces stand in place of the default ones");
            let scope = &all[0];
            assert_eq!(scope.labels.to_string(), format!("n={counts}"), "{set}");
            assert_eq!(scope.fields[0].to_string(), format!("spec.n={counts}"), "{set}");
            assert_eq!(scope.resync_period, Duration::from_secs(counts), "{set}");
            assert_eq!(scope.drop_managed_fields, counts % 2 == 0, "{set}");
        }
    }

    #[test]
    fn no_namespaces_of_a_type_is_all_of_them_and_unset_is_the_default_ones() {
        let defaults = Settings { namespaces: named(&[("a", ScopeOptions::new())]), ..Settings::default() };
        assert_eq!(shown(true, &defaults, &Settings::default()), ["a:a::"]);
        let all = Settings { namespaces: named(&[]), ..Settings::default() };
        assert_eq!(shown(true, &defaults, &all), [":::"]);
    }

    #[test]
    fn the_empty_name_holds_exactly_the_rest() {
        let defaults = Settings {
            namespaces: named(&[("", labels("x=1")), ("a", ScopeOptions::new()), ("b", ScopeOptions::new())]),
            scope: ScopeOptions::new(),
        };
        assert_eq!(
            shown(true, &defaults, &Settings::default()),
            ["::x=1:metadata.namespace!=a,metadata.namespace!=b", "a:a::", "b:b::"]
        );
    }

    #[test]
    fn a_selector_of_everything_ends_the_search_for_one() {
        let defaults = Settings { scope: labels("app=web"), ..Settings::default() };
        let everything = ScopeOptions::new().labels(LabelSelector::everything());
        let of_type = Settings { scope: everything, ..Settings::default() };
        assert_eq!(shown(true, &defaults, &of_type), [":::"]);
    }

    #[test]
    fn a_type_of_cluster_scope_knows_no_namespaces_and_must_not_be_given_any() {
        let defaults = Settings { namespaces: named(&[("a", labels("x=1"))]), scope: labels("y=1") };
        assert_eq!(shown(false, &defaults, &Settings::default()), ["::y=1:"]);
        let of_type = Settings { namespaces: named(&[("a", ScopeOptions::new())]), ..Settings::default() };
        assert_eq!(scopes(false, &defaults, &of_type), Err(NamespacesOfClusterScope));
    }

    #[test]
    fn a_field_selector_of_one_namespace_lists_that_one_alone() {
        let fields: FieldSelector = "metadata.namespace=a,spec.x=1".parse().unwrap();
        let of_type = Settings { scope: ScopeOptions::new().fields(fields), ..Settings::default() };
        assert_eq!(shown(true, &Settings::default(), &of_type), [":a::metadata.namespace=a,spec.x=1"]);
    }
}
