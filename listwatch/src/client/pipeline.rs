//! Reads the pieces of a body in order: on its own task, and by batches on other threads where there are cores for it.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking, yield_now};

use crate::{ErrorClass, RequestError};

/// How a piece (an item, an event) is read; told is which one of the body it is, from 0.
pub(crate) type Read<T> = Arc<dyn Fn(&[u8], u64) -> T + Send + Sync>;

/// Where what was read goes, in order.
pub(crate) type Sink<'a, T> = &'a mut (dyn FnMut(T) + Send);

/// Bytes of a body that are read on its own task, piece by piece, before others help: most bodies are shorter.
const SMALL_LEN: usize = 1 << 20;
/// A batch is full with so many bytes, or so many pieces. It is also what a task reads before other tasks have a turn.
const BATCH_LEN: usize = 256 << 10;
const BATCH_PIECES: usize = 1024;
/// Room of a batch, the piece that fills it included unless that is a long one.
const KEPT_LEN: usize = BATCH_LEN + (64 << 10);
/// More threads than this have nothing to do: one task splits a body no faster. It also bounds the memory.
const HELPERS_MAX: usize = 7;

/// Threads that help: one for each core but the first, up to `HELPERS_MAX`, in the whole process. With one core there are none, and nothing
/// is ever put into batches.
#[derive(Clone)]
pub(crate) struct Helpers {
    free: Arc<Semaphore>,
    count: usize,
}

impl Helpers {
    fn new(count: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(count)), count }
    }

    /// Those of the process.
    fn of_process() -> Self {
        static HELPERS: LazyLock<Helpers> = LazyLock::new(|| {
            Helpers::new(available_parallelism().map_or(0, |cores| (cores.get() - 1).min(HELPERS_MAX)))
        });
        HELPERS.clone()
    }

    fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }
}

/// Feed it pieces with [`push`](Self::push), and [`finish`](Self::finish) it.
///
/// A full batch goes to a helper that is free, or else is read here: so helpers are never waited for while there is
/// something to do. What comes out, and in which order, does not depend on who read it.
///
/// Invariants:
/// 1. Up to `SMALL_LEN` bytes everything is handed out at once, and nothing is copied.
/// 2. Beside what was handed out, one batch that fills, one for each helper and one more are held, as bytes and as what was read.
/// 3. No more than a batch, or one piece that is longer, is read here before other tasks have a turn.
///
/// Dropped, it gives up the batches that nobody has begun; one that is being read is read to its end, and thrown away.
pub(crate) struct Pipeline<T> {
    read: Read<T>,
    helpers: Helpers,
    /// How many pieces came.
    position: u64,
    /// Bytes of the body that may still be read without a batch; `None` from the first batch on.
    small_left: Option<usize>,
    /// Bytes that were read here since other tasks had a turn.
    since_turn: usize,
    batch: Batch,
    under_way: VecDeque<Work<T>>,
    /// Batches that were read, for their buffers; until the next [`finish`](Self::finish).
    spare: Vec<Batch>,
}

enum Work<T> {
    Done(Vec<T>),
    /// The batch comes back, emptied.
    Begun(JoinHandle<(Vec<T>, Batch)>),
}

impl<T: Send + 'static> Pipeline<T> {
    pub(crate) fn new(read: Read<T>) -> Self {
        Self::with_helpers(read, Helpers::of_process())
    }

    fn with_helpers(read: Read<T>, helpers: Helpers) -> Self {
        let (batch, under_way, spare) = (Batch::default(), VecDeque::new(), Vec::new());
        Self { read, helpers, position: 0, small_left: Some(SMALL_LEN), since_turn: 0, batch, under_way, spare }
    }

    /// The next piece. What is ready by now is handed out, this one not always.
    pub(crate) async fn push(&mut self, piece: &[u8], each: Sink<'_, T>) -> Result<(), RequestError> {
        let position = self.position;
        self.position += 1;
        if self.is_read_here(piece.len()) {
            each((self.read)(piece, position));
            self.give_turn(piece.len()).await;
            return Ok(());
        }
        self.batch.push(piece, position);
        if self.batch.is_full() { self.send(each).await } else { Ok(()) }
    }

    /// Hands out all that is left.
    pub(crate) async fn finish(&mut self, each: Sink<'_, T>) -> Result<(), RequestError> {
        if !self.batch.is_empty() {
            self.send(each).await?;
        }
        self.hand_out(0, each).await?;
        self.spare = Vec::new();
        self.batch = Batch::default();
        Ok(())
    }

    /// Whether all that came was handed out.
    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.under_way.is_empty()
    }

    /// Whether a piece of this length is not put into a batch. After the first that is, all are, so that the order is kept.
    fn is_read_here(&mut self, len: usize) -> bool {
        if self.helpers.count == 0 {
            return true;
        }
        self.small_left = self.small_left.and_then(|left| left.checked_sub(len));
        self.small_left.is_some()
    }

    /// Has the batch read.
    async fn send(&mut self, each: Sink<'_, T>) -> Result<(), RequestError> {
        self.hand_out(self.helpers.count, each).await?;
        let len = self.batch.bytes.len();
        match self.helpers.try_acquire() {
            Some(permit) => {
                let next = self.spare.pop().unwrap_or_default();
                let (mut batch, read) = (std::mem::replace(&mut self.batch, next), Arc::clone(&self.read));
                self.under_way.push_back(Work::Begun(spawn_blocking(move || {
                    let _until_read = permit;
                    (batch.read_out(&*read), batch)
                })));
            }
            None => {
                self.under_way.push_back(Work::Done(self.batch.read_out(&*self.read)));
                self.give_turn(len).await;
            }
        }
        Ok(())
    }

    /// Hands out, in order, what is done; and waits until no more than so many batches are left.
    async fn hand_out(&mut self, left: usize, each: Sink<'_, T>) -> Result<(), RequestError> {
        loop {
            let waits = self.under_way.len() > left;
            let done = match self.under_way.front_mut() {
                None => return Ok(()),
                Some(Work::Done(done)) => std::mem::take(done),
                Some(Work::Begun(work)) if waits || work.is_finished() => match work.await {
                    Ok((done, batch)) => {
                        self.spare.push(batch);
                        done
                    }
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => resume_unwind(panic),
                        Err(error) => {
                            let message = "the runtime is shutting down, so that nothing more is read";
                            return Err(RequestError::new(ErrorClass::Transport, message).with_source(error));
                        }
                    },
                },
                Some(Work::Begun(_)) => return Ok(()),
            };
            self.under_way.pop_front();
            done.into_iter().for_each(&mut *each);
        }
    }

    /// Lets other tasks of this thread go on, where so much more has been read.
    async fn give_turn(&mut self, len: usize) {
        self.since_turn += len;
        if self.since_turn >= BATCH_LEN {
            self.since_turn = 0;
            yield_now().await;
        }
    }
}

impl<T> Drop for Pipeline<T> {
    fn drop(&mut self) {
        for work in &self.under_way {
            if let Work::Begun(work) = work {
                work.abort();
            }
        }
    }
}

/// Copies of pieces, one behind the other.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each piece ends.
    ends: Vec<usize>,
    /// Which piece of the body the first one is.
    first: u64,
}

impl Batch {
    fn push(&mut self, piece: &[u8], position: u64) {
        if self.ends.is_empty() {
            self.first = position;
            self.bytes.reserve(KEPT_LEN);
        }
        self.bytes.extend_from_slice(piece);
        self.ends.push(self.bytes.len());
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_LEN || self.ends.len() >= BATCH_PIECES
    }

    /// Reads all pieces, and is empty then.
    fn read_out<T>(&mut self, read: &(dyn Fn(&[u8], u64) -> T + Send + Sync)) -> Vec<T> {
        let mut done = Vec::with_capacity(self.ends.len());
        let mut start = 0;
        for (&end, position) in self.ends.iter().zip(self.first..) {
            done.push(read(&self.bytes[start..end], position));
            start = end;
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_LEN);
        self.ends.clear();
        done
    }
}

#[cfg(test)]
mod tests;
