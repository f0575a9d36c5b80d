//! What must hold for the list without a single build.

use std::collections::BTreeSet;

use kubewire_mutants::{TABLE, load, root, table};

/// A change of a file that a mutant names has to bring the mutant along.
#[test]
fn each_mutant_applies_once_and_names_a_test_that_is_there() {
    let mut problems = Vec::new();
    for mutant in load(&root()).expect("the list can be read") {
        problems.extend(mutant.problems(&root()).into_iter().map(|problem| format!("{}: {problem}", mutant.name)));
    }
    assert!(problems.is_empty(), "correct testing/mutants/mutants.toml:\n{}", problems.join("\n"));
}

#[test]
fn there_are_at_least_sixty_mutants_and_no_name_is_used_twice() {
    let mutants = load(&root()).expect("the list can be read");
    let names: BTreeSet<_> = mutants.iter().map(|mutant| &mutant.name).collect();
    assert_eq!(names.len(), mutants.len());
    assert!(mutants.len() >= 60, "{}", mutants.len());
}

#[test]
fn the_table_for_people_is_that_of_the_list() {
    let mutants = load(&root()).expect("the list can be read");
    let written = std::fs::read_to_string(root().join(TABLE)).unwrap_or_default();
    assert!(written == table(&mutants), "run `cargo run -p kubewire-mutants -- --table`");
}
