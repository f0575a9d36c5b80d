//! The script, the truth and the log, shared by all connections.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::answer::{Act, Answer, Part};
use super::asked::{Asked, Verb};
use super::object::{Thing, bookmark, event_line, status};
use super::script::{Item, Script, Token};
use super::truth::Truth;

/// A scripted server, see the [module](super). Cloning gives another handle to the same one.
#[derive(Clone)]
pub struct Server {
    state: Arc<Mutex<State>>,
    /// Says that the truth has changed.
    news: Arc<watch::Sender<()>>,
}

#[derive(Default)]
struct State {
    script: Script,
    truth: Truth,
    bytes: HashMap<String, Vec<u8>>,
    asked: Vec<Asked>,
    /// The only value of the header `Authorization` that is accepted, if there is one.
    accepted: Option<String>,
}

impl Server {
    /// A server with this script.
    ///
    /// # Panics
    ///
    /// Where the script cannot be read.
    pub fn new(script: &str) -> Self {
        let state = State { script: Script::parse(script), ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), news: Arc::new(watch::Sender::new(())) }
    }

    /// What `$name` stands for in the script.
    #[must_use]
    pub fn bytes(self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.state.lock().bytes.insert(name.to_owned(), bytes.into());
        self
    }

    /// More lines for the script.
    pub fn then(&self, script: &str) {
        self.state.lock().script.extend(Script::parse(script));
    }

    /// Ends what the script says for ever (`×∞`): from now on the truth is told.
    pub fn recover(&self) {
        self.state.lock().script.end_repeats();
    }

    /// Events that happen now; open watches tell them.
    pub fn happens(&self, events: &str) {
        let mut script = Script::parse(&format!("WATCH → {events}"));
        self.state.lock().learn(&script.next(Verb::Watch).unwrap_or_default());
        self.news.send_replace(());
    }

    /// From now on requests with another header `Authorization` than this are answered by 401.
    pub fn accepts(&self, authorization: &str) {
        self.state.lock().accepted = Some(authorization.to_owned());
    }

    /// From now on these are the objects, at this version, whatever was before; watches of before are too old.
    pub fn restored(&self, things: &[&str], version: u64) {
        self.state.lock().truth.reset_to(things.iter().map(|thing| Thing::parse(thing)).collect(), version);
    }

    /// Forgets the events so far: watches from before are answered by 410.
    pub fn compact(&self) {
        self.state.lock().truth.compact();
    }

    /// The objects that there are, such as `x@10`, in order.
    pub fn truth(&self) -> Vec<String> {
        let mut things: Vec<String> = self.state.lock().truth.things().map(Thing::to_string).collect();
        things.sort();
        things
    }

    /// The requests so far.
    pub fn log(&self) -> Vec<Asked> {
        self.state.lock().asked.clone()
    }

    /// The requests so far, in short.
    pub fn asked(&self) -> Vec<String> {
        self.state.lock().asked.iter().map(Asked::to_string).collect()
    }

    /// The answer to a request.
    pub fn answer(&self, connection: u64, method: &str, target: &str, headers: Vec<(String, String)>) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let asked = Asked {
            at: Instant::now(),
            connection,
            method: method.to_owned(),
            path: path.to_owned(),
            query: Asked::read_query(query),
            headers,
        };
        let mut state = self.state.lock();
        state.asked.push(asked.clone());
        let is_stranger =
            state.accepted.as_deref().is_some_and(|accepted| asked.header("authorization") != Some(accepted));
        let scripted = if is_stranger { Some(vec![Token::Http(401)]) } else { state.script.next(asked.verb()) };
        let (status, headers, acts) = match scripted {
            Some(tokens) => state.scripted(&asked, &tokens),
            None => (Some(200), Vec::new(), state.honest(&asked)),
        };
        Answer { status, headers, acts, server: self.clone() }
    }

    pub(crate) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    pub(crate) fn lines_after(&self, version: u64) -> (Vec<u8>, u64) {
        let state = self.state.lock();
        (state.truth.lines_after(version), state.truth.newest().max(version))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("asked", &self.asked()).finish_non_exhaustive()
    }
}

type Scripted = (Option<u16>, Vec<(String, String)>, VecDeque<Act>);

impl State {
    /// What a script says becomes true, unless it is older than what is true already.
    fn learn(&mut self, tokens: &[Token]) {
        for token in tokens {
            match token {
                Token::Event(happened, thing) => self.truth.event(*happened, thing),
                Token::Bookmark { version, .. } => self.truth.reached(version.parse().unwrap_or_default()),
                _ => {}
            }
        }
    }

    fn scripted(&mut self, asked: &Asked, tokens: &[Token]) -> Scripted {
        match tokens.first() {
            Some(Token::Reset) => return (None, Vec::new(), [Act::Do(Part::Reset)].into()),
            Some(Token::Cut) => return (None, Vec::new(), [Act::Do(Part::Cut)].into()),
            Some(Token::Dead) => return (None, Vec::new(), [Act::Do(Part::Dead)].into()),
            Some(Token::Refused) => return (None, Vec::new(), [Act::Do(Part::Refused)].into()),
            _ => {}
        }
        let code = tokens.iter().find_map(|token| if let Token::Http(code) = token { Some(*code) } else { None });
        let headers = tokens.iter().filter_map(header).collect();
        let mut acts = match (code.unwrap_or(200), asked.verb()) {
            (200, Verb::List) => self.list_body(asked, tokens),
            (200, _) => self.watch_body(asked, tokens),
            (code, _) => self.failure_body(code, tokens),
        };
        acts.retain(|act| !matches!(act, Act::Do(Part::Bytes(bytes)) if bytes.is_empty()));
        (Some(code.unwrap_or(200)), headers, acts.into())
    }

    fn list_body(&mut self, asked: &Asked, tokens: &[Token]) -> Vec<Act> {
        let mut metadata = json!({});
        let (mut items, mut things, mut listed) = (Vec::new(), Vec::new(), false);
        for token in tokens {
            match token {
                Token::Items(all) => {
                    listed = true;
                    items.extend(all.iter().map(|item| self.item(item)));
                    things.extend(all.iter().filter_map(|item| match item {
                        Item::Thing(thing) => Some(thing.clone()),
                        Item::Bytes(_) => None,
                    }));
                }
                Token::ListVersion(version) => metadata["resourceVersion"] = version.as_str().into(),
                Token::ListContinue(token) => metadata["continue"] = token.as_str().into(),
                _ => {}
            }
        }
        let mut body = Vec::new();
        if listed {
            let version = metadata["resourceVersion"].as_str().and_then(|version| version.parse().ok());
            let last = metadata["continue"].as_str().unwrap_or_default().is_empty();
            if let Some(version) = version {
                self.truth.page(&things, version, asked.param("continue").is_some(), last);
            }
            body = list_text(&metadata.to_string(), &items);
        }
        self.pieces(tokens, body, true)
    }

    fn item(&self, item: &Item) -> Vec<u8> {
        match item {
            Item::Thing(thing) => thing.json().to_string().into_bytes(),
            Item::Bytes(name) => self.named(name),
        }
    }

    fn named(&self, name: &str) -> Vec<u8> {
        self.bytes.get(name).unwrap_or_else(|| panic!("the script's ${name} stands for nothing")).clone()
    }

    /// The events of a line, behind what the watcher has missed.
    fn watch_body(&mut self, asked: &Asked, tokens: &[Token]) -> Vec<Act> {
        let missed = match asked.verb() {
            Verb::Watch if !self.truth.is_too_old(asked.version()) => self.truth.lines_after(asked.version()),
            _ => Vec::new(),
        };
        self.learn(tokens);
        self.pieces(tokens, missed, false)
    }

    fn failure_body(&mut self, code: u16, tokens: &[Token]) -> Vec<Act> {
        let mut reason = "";
        for token in tokens {
            if let Token::Reason(text) = token {
                reason = text;
            }
        }
        let mut body = status(code, reason);
        for token in tokens {
            match token {
                Token::Told(seconds) => body["details"] = json!({"retryAfterSeconds": seconds}),
                Token::StatusContinue(token) => body["metadata"] = json!({"continue": token}),
                _ => {}
            }
        }
        let of_ones_own = tokens.iter().any(|token| matches!(token, Token::Bytes(_)));
        let body = if of_ones_own { Vec::new() } else { body.to_string().into_bytes() };
        self.pieces(tokens, body, true)
    }

    /// The body in the writes that the script wants, and how it ends.
    fn pieces(&self, tokens: &[Token], first: Vec<u8>, ends: bool) -> Vec<Act> {
        let mut acts = Vec::new();
        let mut bytes = first;
        let write = |bytes: &mut Vec<u8>| Act::Do(Part::Bytes(std::mem::take(bytes)));
        for token in tokens {
            match token {
                Token::Event(happened, thing) => bytes.extend(event_line(happened.as_str(), &thing.json())),
                Token::Bookmark { version, end } => bytes.extend(event_line("BOOKMARK", &bookmark(version, *end))),
                Token::Error { code, reason } => bytes.extend(event_line("ERROR", &status(*code, reason))),
                Token::Bytes(name) => bytes.extend(self.named(name)),
                Token::Border => acts.push(write(&mut bytes)),
                Token::Pause(pause) => acts.extend([write(&mut bytes), Act::Pause(*pause)]),
                Token::End => return finished(acts, bytes, Act::Do(Part::End)),
                Token::Cut => return finished(acts, bytes, Act::Do(Part::Cut)),
                Token::Reset => return finished(acts, bytes, Act::Do(Part::Reset)),
                Token::Dead => return finished(acts, bytes, Act::Do(Part::Dead)),
                Token::Open => return finished(acts, bytes, Act::Follow(self.truth.newest())),
                _ => {}
            }
        }
        let end = if ends { Act::Do(Part::End) } else { Act::Follow(self.truth.newest()) };
        finished(acts, bytes, end)
    }

    /// What a good server answers.
    fn honest(&self, asked: &Asked) -> VecDeque<Act> {
        let newest = self.truth.newest();
        let things = || self.truth.things();
        match asked.verb() {
            Verb::List => {
                let items: Vec<Vec<u8>> = things().map(|thing| thing.json().to_string().into_bytes()).collect();
                let metadata = json!({"resourceVersion": newest.to_string()}).to_string();
                [Act::Do(Part::Bytes(list_text(&metadata, &items))), Act::Do(Part::End)].into()
            }
            Verb::Watch if self.truth.is_too_old(asked.version()) => {
                [Act::Do(Part::Bytes(event_line("ERROR", &status(410, "Expired")))), Act::Do(Part::End)].into()
            }
            Verb::Watch => [Act::Follow(asked.version())].into(),
            Verb::Stream => {
                let mut body: Vec<u8> = things().flat_map(|thing| event_line("ADDED", &thing.json())).collect();
                body.extend(event_line("BOOKMARK", &bookmark(&newest.to_string(), true)));
                [Act::Do(Part::Bytes(body)), Act::Follow(newest)].into()
            }
        }
    }
}

fn finished(mut acts: Vec<Act>, bytes: Vec<u8>, end: Act) -> Vec<Act> {
    acts.extend([Act::Do(Part::Bytes(bytes)), end]);
    acts
}

fn list_text(metadata: &str, items: &[Vec<u8>]) -> Vec<u8> {
    let mut text =
        format!("{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{metadata},\"items\":[").into_bytes();
    text.extend(items.join(&b','));
    text.extend(b"]}");
    text
}

fn header(token: &Token) -> Option<(String, String)> {
    match token {
        Token::Header(name, value) => Some((name.clone(), value.clone())),
        Token::After(after) => Some(("Retry-After".to_owned(), retry_after(after))),
        _ => None,
    }
}

/// As it stands, or `date+N`: the moment in N seconds as an HTTP date.
fn retry_after(text: &str) -> String {
    match text.strip_prefix("date+") {
        Some(seconds) => {
            httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(seconds.parse().expect("date+SECONDS")))
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(answer: &mut Answer) -> String {
        let mut text = String::new();
        loop {
            match tokio::time::timeout(Duration::from_millis(1), answer.next()).await {
                Ok(Part::Bytes(bytes)) => text.push_str(&String::from_utf8(bytes).unwrap()),
                Ok(other) => return format!("{text}{other:?}"),
                Err(_) => return format!("{text}open"),
            }
        }
    }

    fn versions(text: &str) -> Vec<&str> {
        text.split("resourceVersion\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn behind_the_script_the_truth_is_told_with_all_that_was_missed() {
        let server = Server::new("LIST → [x@10] rv=10\n WATCH → +y@11 ■");
        let ask = |target: &str| server.answer(0, "GET", target, Vec::new());
        assert!(text(&mut ask("/api/v1/pods")).await.ends_with("End"));
        assert_eq!(versions(&text(&mut ask("/p?watch=true&resourceVersion=10")).await), ["11"]);
        // The same again: nothing is lost to one that asks from before.
        let mut open = ask("/p?watch=true&resourceVersion=10");
        assert_eq!(versions(&text(&mut open).await), ["11"]);
        server.happens("-x@12");
        assert_eq!(versions(&text(&mut open).await), ["12"]);
        assert_eq!(server.truth(), ["y@11"]);
        let list = text(&mut ask("/p?resourceVersion=0&limit=500")).await;
        assert_eq!(versions(&list), ["12", "11"]);
        server.compact();
        assert!(text(&mut ask("/p?watch=1&resourceVersion=11")).await.contains("Expired"));
        assert_eq!(server.asked()[3], "LIST(rv=0,limit=500)");
        assert_eq!(server.asked()[4], "WATCH(11)");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lie_about_the_past_does_not_become_the_truth() {
        let server = Server::new("LIST → [x@10] rv=10\n WATCH → ~x@15 -x@16 ~x@14 ■\n LIST → [x@10] rv=12");
        for target in ["/p", "/p?watch=true&resourceVersion=10", "/p"] {
            text(&mut server.answer(0, "GET", target, Vec::new())).await;
        }
        assert!(server.truth().is_empty());
        server.restored(&["x@5"], 7);
        assert_eq!(server.truth(), ["x@5"]);
    }

    #[tokio::test(start_paused = true)]
    async fn pages_become_true_together() {
        let server = Server::new("LIST → [a@1] rv=9 continue=t\n LIST → [b@2] rv=9");
        text(&mut server.answer(0, "GET", "/p?limit=1", Vec::new())).await;
        assert!(server.truth().is_empty());
        text(&mut server.answer(0, "GET", "/p?limit=1&continue=t", Vec::new())).await;
        assert_eq!(server.truth(), ["a@1", "b@2"]);
    }
}
