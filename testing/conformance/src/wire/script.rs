//! PURE: the notation, read.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::asked::Verb;
use super::object::Thing;
use super::truth::Happened;

/// What is answered to which request; see the [module](super) for the notation.
#[derive(Clone, Debug, Default)]
pub struct Script {
    lines: HashMap<Verb, VecDeque<Line>>,
}

#[derive(Clone, Debug)]
struct Line {
    /// How often it is still to be used; `None` for ever.
    left: Option<u32>,
    tokens: Vec<Token>,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Items(Vec<Item>),
    ListVersion(String),
    ListContinue(String),
    Event(Happened, Thing),
    Bookmark { version: String, end: bool },
    Error { code: u16, reason: String },
    Bytes(String),
    Http(u16),
    Reason(String),
    After(String),
    Told(u64),
    StatusContinue(String),
    Header(String, String),
    Border,
    Pause(Duration),
    End,
    Cut,
    Reset,
    Dead,
    Refused,
    Open,
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Thing(Thing),
    Bytes(String),
}

impl Script {
    /// Reads a script.
    ///
    /// # Panics
    ///
    /// Where it cannot be read: scripts are part of tests.
    pub fn parse(text: &str) -> Self {
        let mut script = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (verb, answer) = line.split_once('→').unwrap_or_else(|| panic!("no → in {line:?}"));
            let (verb, left) = match verb.split_once('×') {
                Some((verb, "∞ ")) => (verb, None),
                Some((verb, times)) => (verb, Some(times.trim().parse().expect("a number behind ×"))),
                None => (verb, Some(1)),
            };
            let verb = match verb.trim() {
                "LIST" => Verb::List,
                "WATCH" => Verb::Watch,
                "STREAM" => Verb::Stream,
                other => panic!("no verb: {other:?}"),
            };
            script.lines.entry(verb).or_default().push_back(Line { left, tokens: tokens(answer) });
        }
        script
    }

    /// The answer to the next request of this kind, if the script has one.
    pub(crate) fn next(&mut self, verb: Verb) -> Option<Vec<Token>> {
        let lines = self.lines.get_mut(&verb)?;
        let line = lines.front_mut()?;
        let tokens = line.tokens.clone();
        if let Some(left) = &mut line.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                lines.pop_front();
            }
        }
        Some(tokens)
    }

    /// Lines for ever end here: what was ahead of them and behind them stays.
    pub(crate) fn end_repeats(&mut self) {
        for lines in self.lines.values_mut() {
            lines.retain(|line| line.left.is_some());
        }
    }

    pub(crate) fn extend(&mut self, other: Self) {
        for (verb, lines) in other.lines {
            self.lines.entry(verb).or_default().extend(lines);
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let text = text.replace('[', " [ ").replace(']', " ] ");
    let mut words = text.split_whitespace();
    let mut tokens = Vec::new();
    while let Some(word) = words.next() {
        tokens.push(if word == "[" {
            let items = words.by_ref().take_while(|word| *word != "]");
            Token::Items(items.map(item).collect())
        } else {
            token(word)
        });
    }
    tokens
}

fn item(word: &str) -> Item {
    match word.strip_prefix('$') {
        Some(name) => Item::Bytes(name.to_owned()),
        None => Item::Thing(Thing::parse(word)),
    }
}

fn token(word: &str) -> Token {
    let own = str::to_owned;
    match word {
        "|" => return Token::Border,
        "■" => return Token::End,
        "…" => return Token::Open,
        "CUT" => return Token::Cut,
        "RST" => return Token::Reset,
        "DEAD" => return Token::Dead,
        "REFUSED" => return Token::Refused,
        _ => {}
    }
    if let Ok(code) = word.parse() {
        return Token::Http(code);
    }
    if let Some(millis) = word.strip_suffix("ms").and_then(|millis| millis.parse().ok()) {
        return Token::Pause(Duration::from_millis(millis));
    }
    if let Some(header) = word.strip_prefix("header:") {
        let (name, value) = header.split_once('=').expect("header:NAME=VALUE");
        return Token::Header(own(name), own(value));
    }
    if let Some(error) = word.strip_prefix("ERR:") {
        let (code, reason) = error.split_once(':').unwrap_or((error, ""));
        return Token::Error { code: code.parse().unwrap_or_default(), reason: own(reason) };
    }
    if let Some((name, value)) = word.split_once('=') {
        return match name {
            "rv" => Token::ListVersion(own(value)),
            "continue" => Token::ListContinue(own(value)),
            "reason" => Token::Reason(own(value)),
            "after" => Token::After(own(value)),
            "told" => Token::Told(value.parse().expect("told=SECONDS")),
            "token" => Token::StatusContinue(own(value)),
            _ => panic!("no token: {word:?}"),
        };
    }
    let thing = |text| Thing::parse(text);
    match word.split_at(word.chars().next().map_or(0, char::len_utf8)) {
        ("+", rest) => Token::Event(Happened::Added, thing(rest)),
        ("~", rest) => Token::Event(Happened::Modified, thing(rest)),
        ("-", rest) => Token::Event(Happened::Deleted, thing(rest)),
        ("$", rest) => Token::Bytes(own(rest)),
        _ => match word.split_once('@') {
            Some(("BM", version)) => Token::Bookmark { version: own(version), end: false },
            Some(("END", version)) => Token::Bookmark { version: own(version), end: true },
            _ => panic!("no token: {word:?}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_used_as_often_as_it_says_and_each_verb_by_itself() {
        let mut script = Script::parse("LIST ×2 → 500\n LIST → [x@1 $odd] rv=1\n WATCH ×∞ → ■");
        assert_eq!(script.next(Verb::List), Some(vec![Token::Http(500)]));
        assert_eq!(script.next(Verb::Watch), Some(vec![Token::End]));
        assert_eq!(script.next(Verb::List), Some(vec![Token::Http(500)]));
        let items = vec![Item::Thing(Thing::parse("x@1")), Item::Bytes("odd".into())];
        assert_eq!(script.next(Verb::List), Some(vec![Token::Items(items), Token::ListVersion("1".into())]));
        assert_eq!(script.next(Verb::List), None);
        assert_eq!(script.next(Verb::Watch), Some(vec![Token::End]));
        script.end_repeats();
        assert_eq!((script.next(Verb::Watch), script.next(Verb::Stream)), (None, None));
    }

    #[test]
    fn every_token_has_a_meaning() {
        let read = tokens("+ns2/x#u2@5 ~x@6 BM@8 END@9 ERR:410:Expired ERR::Gone $raw after=date+2 900ms | CUT");
        let thing = Thing { namespace: "ns2".into(), name: "x".into(), uid: "u2".into(), version: "5".into() };
        assert_eq!(thing.to_string(), "ns2/x#u2@5");
        let wanted = [
            Token::Event(Happened::Added, thing),
            Token::Event(Happened::Modified, Thing::parse("x@6")),
            Token::Bookmark { version: "8".into(), end: false },
            Token::Bookmark { version: "9".into(), end: true },
            Token::Error { code: 410, reason: "Expired".into() },
            Token::Error { code: 0, reason: "Gone".into() },
            Token::Bytes("raw".into()),
            Token::After("date+2".into()),
            Token::Pause(Duration::from_millis(900)),
            Token::Border,
            Token::Cut,
        ];
        assert_eq!(read, wanted);
    }
}
