//! Tries the mutants of the list and says what came of each.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kubewire_mutants::{Mutant, Scratch, Verdict, load, rewrite, root};

/// How long a test program may run before it counts as hanging. After 60 s a test program says which tests run on.
const LIMIT: Duration = Duration::from_secs(180);

const USAGE: &str = "usage: kubewire-mutants [--find] [TEXT…] | --table
  TEXT     only the mutants whose names hold one of these texts
  --find   run all tests of each mutant's target, and name those that catch it
  --table  write the table of README.md anew from the list";

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
        std::fs::write(root().join("testing/mutants/README.md"), rewrite(&root(), &mutants)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_meant = |mutant: &&Mutant| texts.is_empty() || texts.iter().any(|text| mutant.name.contains(text));
    try_all(&mutants.iter().filter(is_meant).collect::<Vec<_>>(), find)
}

fn try_all(mutants: &[&Mutant], find: bool) -> io::Result<ExitCode> {
    let (begun, mut caught) = (Instant::now(), 0);
    let scratch = Scratch::new(root(), LIMIT)?;
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
        Verdict::Caught(tests) if find => format!("caught          {name} by {}", tests.join(" ")),
        Verdict::Caught(_) => format!("caught          {name} by {}", mutant.test),
        Verdict::Hangs(tests) if find => format!("caught (hangs)  {name} by {}", tests.join(" ")),
        Verdict::Hangs(_) => format!("caught (hangs)  {name} by {}", mutant.test),
        Verdict::Survived => format!("SURVIVED        {name}: {}", mutant.harm),
        Verdict::DoesNotApply(why) => format!("DOES NOT APPLY  {name}: {why}"),
        Verdict::DoesNotBuild(said) => format!("DOES NOT BUILD  {name}:\n{said}"),
        Verdict::NoSuchTest => format!("NO SUCH TEST    {name}: {} of {}", mutant.test, mutant.package),
    }
}
