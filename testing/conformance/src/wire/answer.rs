//! What the server answers, part by part.

use std::collections::VecDeque;
use std::time::Duration;

use super::server::Server;

/// The next thing that the answer does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Writes these bytes, by themselves.
    Bytes(Vec<u8>),
    /// Ends in good order.
    End,
    /// Closes the connection without the last chunk.
    Cut,
    /// Resets the connection.
    Reset,
    /// Says nothing any more, and keeps the connection.
    Dead,
    /// As if nobody listened (in process).
    Refused,
}

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Do(Part),
    Pause(Duration),
    /// Tells what happens after a version, for ever.
    Follow(u64),
}

/// An answer, to be written part by part.
#[derive(Debug)]
pub struct Answer {
    /// `None`: the connection ends, or goes silent, before any head.
    pub status: Option<u16>,
    /// The headers but those of the framing.
    pub headers: Vec<(String, String)>,
    pub(crate) acts: VecDeque<Act>,
    pub(crate) server: Server,
}

impl Answer {
    /// The next part. After the last one, silence. Cancel-safe.
    pub async fn next(&mut self) -> Part {
        loop {
            let follow = match self.acts.front() {
                None => return Part::Dead,
                Some(Act::Do(part)) => {
                    let part = part.clone();
                    self.acts.pop_front();
                    return part;
                }
                Some(Act::Pause(pause)) => {
                    tokio::time::sleep(*pause).await;
                    self.acts.pop_front();
                    continue;
                }
                Some(Act::Follow(version)) => *version,
            };
            let mut news = self.server.news();
            let (lines, newest) = self.server.lines_after(follow);
            self.acts[0] = Act::Follow(newest);
            if !lines.is_empty() {
                return Part::Bytes(lines);
            }
            // The server itself holds the other end.
            let _ = news.changed().await;
        }
    }
}
