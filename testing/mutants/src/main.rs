//! Tries the mutants of the list and says what came of each.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kubewire_mutants::{Mutant, Scratch, TABLE, Verdict, load, root};

/// How long a test program may run before it counts as hanging: all tests of a target take less than half of this. After
/// 60 s a test program says which tests run on.
const LIMIT: Duration = Duration::from_secs(90);

const USAGE: &str = "usage: kubewire-mutants [--find] [TEXT…] | --table
  TEXT     only the mutants whose names hold one of these texts
  --find   run all tests of each mutant's package, target by target up to the first that catches it, and name those
  --table  write MUTANTS.md anew from the list";

fn main() -> ExitCode {
    match begin() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn begin() -> io::Result<ExitCode> {
    let mut texts: Vec<String> = std::env::args().skip(1).collect();
    let mut flag = |name: &str| {
        let before = texts.len();
        texts.retain(|text| text != name);
        texts.len() < before
    };
    let (find, table) = (flag("--find"), flag("--table"));
    if texts.iter().any(|text| text.starts_with('-')) {
        eprintln!("{USAGE}");
        return Ok(ExitCode::from(2));
    }
    let mutants = load(&root())?;
    if table {
        std::fs::write(root().join(TABLE), kubewire_mutants::table(&mutants))?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_meant = |mutant: &&Mutant| texts.is_empty() || texts.iter().any(|text| mutant.name.contains(text));
    try_all(&mutants.iter().filter(is_meant).collect::<Vec<_>>(), find)
}

fn try_all(mutants: &[&Mutant], find: bool) -> io::Result<ExitCode> {
    let (begun, mut caught) = (Instant::now(), 0);
    let scratch = Scratch::new(&root(), LIMIT)?;
    for mutant in mutants {
        let verdict = scratch.trial(mutant, find)?;
        caught += usize::from(verdict.is_caught());
        println!("{}", line(mutant, &verdict, find));
        io::stdout().flush()?;
    }
    let (tried, seconds) = (mutants.len(), begun.elapsed().as_secs());
    println!("{caught} of {tried} caught, {} not, in {seconds} s", tried - caught);
    Ok(if caught == tried && tried > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(mutant: &Mutant, verdict: &Verdict, find: bool) -> String {
    let name = &mutant.name;
    match verdict {
        Verdict::Caught(by) if find => format!("caught          {name} by {}: {}", by.target, by.tests.join(" ")),
        Verdict::Caught(_) => format!("caught          {name} by {}", mutant.test),
        Verdict::Hangs(by) if find => format!("caught (hangs)  {name} by {}: {}", by.target, by.tests.join(" ")),
        Verdict::Hangs(_) => format!("caught (hangs)  {name} by {}", mutant.test),
        Verdict::Survived => format!("SURVIVED        {name}: {}", mutant.harm),
        Verdict::DoesNotApply(why) => format!("DOES NOT APPLY  {name}: {why}"),
        Verdict::DoesNotBuild(said) => format!("DOES NOT BUILD  {name}:\n{said}"),
        Verdict::NoSuchTest => format!("NO SUCH TEST    {name}: {} of {}", mutant.test, mutant.package),
    }
}
