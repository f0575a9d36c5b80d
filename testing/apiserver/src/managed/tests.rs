use proptest::prelude::*;
use serde_json::{Value, json};

use super::field_set::FieldSet;
use super::schema::Schema;
use super::shape::fields;
use super::{Managers, Writer};
use crate::Resource;

fn foo() -> Resource {
    Resource::custom("example.com", "v1", "Foo", "foos").with_schema(json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "n": {"type": "integer"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "atoms": {"type": "array", "items": {"type": "string"}},
            "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}}},
        }},
    }}))
}

fn writer(manager: &str) -> Writer<'_> {
    Writer {
        manager,
        api_version: "example.com/v1",
        subresource: "",
        status_apart: false,
        time: "2026-01-01T00:00:00Z",
    }
}

fn owned_by(managers: &Managers, manager: &str) -> Value {
    let all = managers.to_value();
    let of = all.as_array().unwrap().iter().find(|entry| entry["manager"] == manager);
    of.map_or(json!({}), |entry| entry["fieldsV1"].clone())
}

#[test]
fn values_fall_into_fields_as_their_schema_says() {
    let resource = foo();
    for (spec, expected) in [
        (json!({"n": 1}), json!({"f:n": {}})),
        (json!({"map": {"a": "1"}}), json!({"f:map": {"f:a": {}}})),
        (json!({"map": {}}), json!({"f:map": {}})),
        (json!({"set": ["a", "b"]}), json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}})),
        (json!({"atoms": ["a"]}), json!({"f:atoms": {}})),
        (
            json!({"keyed": [{"name": "a", "v": 1}]}),
            json!({"f:keyed": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:v": {}}}}),
        ),
        (json!({"unknown": {"a": [1]}}), json!({"f:unknown": {".": {}, "f:a": {}}})),
    ] {
        let set = fields(&json!({"spec": spec}), Schema::of(&resource));
        assert_eq!(set.to_value(), json!({"f:spec": expected}), "{spec}");
        assert_eq!(FieldSet::parse(&set.to_value()), Some(set));
    }
    let free = Resource::custom("example.com", "v1", "Bar", "bars");
    let set = fields(&json!({"spec": {"list": [{"name": "a"}], "a": 1}}), Schema::of(&free));
    assert_eq!(set.to_value(), json!({"f:spec": {".": {}, "f:list": {}, "f:a": {}}}));
}

#[test]
fn items_stand_in_the_order_of_the_configuration_and_others_keep_their_places() {
    let resource = foo();
    for (live, config, expected) in [
        (vec!["a", "b"], vec!["c"], vec!["a", "b", "c"]),
        (vec!["a", "x", "b"], vec!["b", "a"], vec!["x", "b", "a"]),
        (vec!["a", "x", "b"], vec!["a", "c", "b"], vec!["a", "x", "c", "b"]),
        (vec![], vec!["b", "a"], vec!["b", "a"]),
    ] {
        let of = |items: &Vec<&str>| json!({"spec": {"set": items}});
        let merged = super::merge::merge(of(&live), &of(&config), Schema::of(&resource));
        let mut sorted: Vec<&str> = live.iter().chain(&config).copied().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut got: Vec<&str> = merged["spec"]["set"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(got, expected, "{live:?} {config:?}");
        got.sort_unstable();
        assert_eq!(got, sorted);
    }
}

#[test]
fn what_a_schema_does_not_allow_and_items_without_keys_are_found_where_they_are() {
    let resource = foo();
    let schema = Schema::of(&resource);
    for (spec, checked, keyless) in [
        (json!({"keyed": [{"name": "a"}, {"v": 1}]}), Ok(()), vec!["spec.keyed[1].name"]),
        (json!({"keyed": [{"name": ""}]}), Ok(()), vec!["spec.keyed[0].name"]),
        (json!({"set": ["a", "a"]}), Err(".spec.set: duplicate entries for key [=\"a\"]"), vec![]),
        (
            json!({"keyed": [{"v": 1}, {}]}),
            Err(".spec.keyed: duplicate entries for key [name=\"\"]"),
            vec!["spec.keyed[0].name", "spec.keyed[1].name"],
        ),
        (json!({"nope": 1}), Err(".spec.nope: field not declared in schema"), vec![]),
        (json!({"map": {"any": "1"}}), Ok(()), vec![]),
    ] {
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        assert_eq!(super::check(&object, schema), checked.map_err(str::to_owned), "{object}");
        assert_eq!(super::keyless(&object, schema), keyless, "{object}");
    }
}

#[test]
fn who_joins_in_what_is_there_has_no_time_until_it_changes_something() {
    let resource = foo();
    let (schema, mut managers) = (Schema::of(&resource), Managers::default());
    let config = |n: i32| json!({"spec": {"n": n}});
    let live = managers.apply(&json!({}), &config(1), schema, writer("a"), false).unwrap();
    managers.apply(&live, &config(1), schema, writer("b"), false).unwrap();
    let time =
        |managers: &Managers| managers.to_value().as_array().unwrap().iter().filter(|e| e["time"].is_string()).count();
    assert_eq!(time(&managers), 1);
    managers.apply(&live, &config(2), schema, writer("b"), true).unwrap();
    assert_eq!(managers.to_value().as_array().unwrap().len(), 1);
    assert_eq!(time(&managers), 1);
}

fn spec() -> impl Strategy<Value = Value> {
    let letter = || prop::sample::select(vec!["a", "b", "c"]);
    let map = prop::collection::btree_map(letter(), prop::sample::select(vec!["1", "2"]), 1..3);
    let set = prop::collection::btree_set(letter(), 1..3);
    let keyed = prop::collection::btree_map(letter(), prop::option::of(0..2i32), 1..3);
    let atoms = prop::collection::vec(letter(), 0..3);
    (
        prop::option::of(0..2i32),
        prop::option::of(map),
        prop::option::of(set),
        prop::option::of(keyed),
        prop::option::of(atoms),
    )
        .prop_map(|(n, map, set, keyed, atoms)| {
            let keyed = keyed.map(|keyed| {
                let item = |(name, v): (&str, Option<i32>)| match v {
                    Some(v) => json!({"name": name, "v": v}),
                    None => json!({"name": name}),
                };
                keyed.into_iter().map(item).collect::<Value>()
            });
            let mut spec = json!({"n": n, "map": map, "set": set, "keyed": keyed, "atoms": atoms});
            spec.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            spec
        })
}

/// The leaves of a spec of [`spec`], by hand: path and value.
fn leaves(object: &Value) -> std::collections::BTreeMap<String, Value> {
    let spec = &object["spec"];
    let mut leaves = std::collections::BTreeMap::new();
    for name in ["n", "atoms"] {
        leaves.extend(spec.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    for (name, value) in spec["map"].as_object().into_iter().flatten() {
        leaves.insert(format!("map {name}"), value.clone());
    }
    for item in spec["set"].as_array().into_iter().flatten() {
        leaves.insert(format!("set {item}"), json!(true));
    }
    for item in spec["keyed"].as_array().into_iter().flatten() {
        leaves.insert(format!("keyed {}", item["name"]), json!(true));
        leaves.extend(item.get("v").map(|v| (format!("keyed {} v", item["name"]), v.clone())));
    }
    leaves
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Three managers apply at will, with and without force. The oracle is a table of each manager's last configuration,
    /// leaf by leaf.
    #[test]
    fn applies_do_what_a_table_of_leaves_says(steps in prop::collection::vec((0..3usize, spec(), any::<bool>()), 1..12)) {
        let resource = foo();
        let schema = Schema::of(&resource);
        let names = ["x", "y", "z"];
        let mut owned = vec![std::collections::BTreeMap::<String, Value>::new(); 3];
        let (mut live, mut managers) = (json!({}), Managers::default());
        for (who, spec, force) in steps {
            let config = json!({"spec": spec});
            let wanted = leaves(&config);
            let present = leaves(&live);
            let disputed: Vec<&String> = wanted
                .iter()
                .filter(|(path, value)| {
                    let owned_by_others = owned.iter().enumerate().any(|(at, own)| at != who && own.contains_key(*path));
                    owned_by_others && present.get(*path) != Some(*value)
                })
                .map(|(path, _)| path)
                .collect();
            let applied = managers.apply(&live, &config, schema, writer(names[who]), force);
            // 1. A conflict for each leaf and each other manager that owns it with another value, unless it is forced.
            let Ok(new) = applied else {
                let others = |path: &String| owned.iter().enumerate().filter(|(at, own)| *at != who && own.contains_key(path)).count();
                prop_assert_eq!(applied.unwrap_err().len(), disputed.iter().map(|path| others(path)).sum::<usize>());
                prop_assert!(!force);
                continue;
            };
            prop_assert!(force || disputed.is_empty());
            let disputed: Vec<String> = disputed.into_iter().cloned().collect();
            for (_, own) in owned.iter_mut().enumerate().filter(|(at, _)| *at != who) {
                own.retain(|path, _| !disputed.contains(path));
            }
            let last = std::mem::replace(&mut owned[who], wanted.clone());
            // 2. Every leaf of the configuration is there with its value.
            let after = leaves(&new);
            for (path, value) in &wanted {
                prop_assert_eq!(after.get(path), Some(value));
            }
            // 3. What was there stays, except what only this manager owned and has dropped (an item with all in it).
            for path in present.keys().filter(|path| !wanted.contains_key(*path)) {
                let item = path.strip_suffix(" v").unwrap_or(path);
                let dropped = |path: &str| last.contains_key(path) && !owned.iter().any(|own| own.contains_key(path));
                let is_gone = dropped(path) || dropped(item);
                prop_assert_eq!(after.contains_key(path), !is_gone, "{} of {}", path, new);
            }
            for own in &mut owned {
                own.retain(|path, _| after.contains_key(path));
            }
            // 4. Each manager owns exactly its leaves.
            for (own, name) in owned.iter().zip(names) {
                let set = FieldSet::parse(&owned_by(&managers, name)).unwrap();
                let keyed_names = own.keys().filter(|path| path.starts_with("keyed ") && !path.ends_with(" v")).count();
                // An empty spec is a leaf too.
                let owned_len = set.paths().iter().filter(|path| *path != ".spec").count();
                prop_assert_eq!(owned_len, own.len() + keyed_names, "{} owns {:?}", name, set.paths());
            }
            // 5. The same again changes nothing.
            let (before, object) = (managers.clone(), new.clone());
            let again = managers.apply(&new, &config, schema, writer(names[who]), false);
            prop_assert_eq!(again.as_ref(), Ok(&object));
            prop_assert_eq!(&managers, &before);
            // 6. What is stored is read again.
            prop_assert_eq!(Managers::parse(&managers.to_value()).map(|m| m.to_value()), Some(managers.to_value()));
            live = new;
        }
    }
}
