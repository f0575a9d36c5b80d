//! The inputs that once broke something, and those that reach far: `fuzz/regressions` and `fuzz/seeds`.

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use kubewire_properties::ALL;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut entries: Vec<PathBuf> = read.map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    entries
}

#[test]
fn every_input_that_is_kept_passes() {
    let mut failed = Vec::new();
    let mut count = 0;
    for property in &ALL {
        for kind in ["regressions", "seeds"] {
            let folder = folder(kind).join(property.name);
            for input in if folder.exists() { entries(&folder) } else { Vec::new() } {
                let bytes = std::fs::read(&input).expect("it can be read");
                count += 1;
                if catch_unwind(|| property.run(&bytes)).is_err() {
                    failed.push(input);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(count > 100, "only {count} inputs were found");
}

#[test]
fn every_property_has_seeds_a_fuzz_target_and_a_place_in_the_script() {
    let names: BTreeSet<String> = ALL.iter().map(|property| property.name.to_owned()).collect();
    let of_paths = |paths: Vec<PathBuf>| -> BTreeSet<String> {
        paths.iter().filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect()
    };
    assert_eq!(of_paths(entries(&folder("fuzz_targets"))), names);
    assert_eq!(of_paths(entries(&folder("seeds"))), names);
    assert!(of_paths(entries(&folder("regressions"))).iter().all(|name| names.contains(name) || name == "README"));
    let script = std::fs::read_to_string(folder("run")).expect("the script");
    for name in &names {
        assert!(script.contains(name.as_str()), "fuzz/run lacks {name}");
    }
}
