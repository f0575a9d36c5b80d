//! Zips and unzips the bytes of one object: a zstd frame, with a dictionary or without.

use std::fmt;

use parking_lot::Mutex;
use zstd::zstd_safe::{self, CCtx, CDict, CompressionLevel, DCtx, DDict};

/// Level 1 takes 6.5 us a pod of 5.2 kB and makes 475 bytes of it; level 3 takes 25 us and makes 461; 9 takes 188 us.
const LEVEL: CompressionLevel = 1;
/// What a dictionary of pods needs: with 8 kB a pod takes 505 bytes, with 16 kB 490, with 32 kB 475, with 64 kB 468.
const DICTIONARY_LEN: usize = 32 << 10;
/// Contexts that are kept for the next object, each of 80 to 140 kB: more threads than this seldom work at once.
const CONTEXTS_MAX: usize = 8;
/// A buffer that is longer is given back, not kept.
const BUFFER_LEN_MAX: usize = 128 << 10;

/// What objects of one kind have in common.
pub(crate) struct Dictionary {
    zip: CDict<'static>,
    unzip: DDict<'static>,
}

/// Why bytes could not be zipped or unzipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a zipped object is damaged: {0}")]
    Zstd(&'static str),
    #[error("a zipped object does not say how long it is")]
    NoLength,
    #[error("a zipped object is {len} bytes long, and may be {max}")]
    TooLong { len: u64, max: usize },
    #[error("a zipped object is {len} bytes long, and says {said}")]
    WrongLength { len: usize, said: usize },
}

impl Dictionary {
    /// Learns it from samples, one behind the other. It takes a fifth of a second for each MiB.
    pub(crate) fn train(samples: &[u8], lens: &[usize]) -> Result<Self, FrameError> {
        let mut bytes = Vec::with_capacity(DICTIONARY_LEN);
        zstd_safe::train_from_buffer(&mut bytes, samples, lens).map_err(of_zstd)?;
        let zip = CDict::try_create(&bytes, LEVEL).ok_or(OUT_OF_MEMORY)?;
        Ok(Self { zip, unzip: DDict::try_create(&bytes).ok_or(OUT_OF_MEMORY)? })
    }

    /// The bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        self.zip.sizeof() + self.unzip.sizeof()
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("size", &self.size()).finish()
    }
}

const OUT_OF_MEMORY: FrameError = FrameError::Zstd("out of memory");

fn of_zstd(code: usize) -> FrameError {
    FrameError::Zstd(zstd_safe::get_error_name(code))
}

/// What zips, and where to.
struct Zipping {
    context: CCtx<'static>,
    buffer: Vec<u8>,
}

// Those that are at rest. Only a push and a pop happen under the locks.
static ZIPPING: Mutex<Vec<Zipping>> = Mutex::new(Vec::new());
static UNZIPPING: Mutex<Vec<DCtx<'static>>> = Mutex::new(Vec::new());

/// Lends what is at rest, or a new one.
fn lend<T, R>(rest: &Mutex<Vec<T>>, new: impl FnOnce() -> Option<T>, work: impl FnOnce(&mut T) -> R) -> Option<R> {
    let at_rest = rest.lock().pop();
    let mut one = at_rest.or_else(new)?;
    let result = work(&mut one);
    let mut rest = rest.lock();
    if rest.len() < CONTEXTS_MAX {
        rest.push(one);
    } else {
        drop(rest);
        drop(one);
    }
    Some(result)
}

/// The frame of some bytes.
pub(crate) fn zip(bytes: &[u8], dictionary: Option<&Dictionary>) -> Result<Box<[u8]>, FrameError> {
    let new = || Some(Zipping { context: CCtx::try_create()?, buffer: Vec::new() });
    let zipped = lend(&ZIPPING, new, |Zipping { context, buffer }| {
        buffer.clear();
        buffer.reserve(zstd_safe::compress_bound(bytes.len()));
        let done = match dictionary {
            Some(dictionary) => context.compress_using_cdict(buffer, bytes, &dictionary.zip),
            None => context.compress(buffer, bytes, LEVEL),
        };
        let zipped = done.map(|len| Box::from(&buffer[..len])).map_err(of_zstd);
        if buffer.capacity() > BUFFER_LEN_MAX {
            *buffer = Vec::new();
        }
        zipped
    });
    zipped.unwrap_or(Err(OUT_OF_MEMORY))
}

/// How long the bytes of a frame are, as it says itself.
pub(crate) fn unzipped_len(frame: &[u8], len_max: usize) -> Result<usize, FrameError> {
    let len = zstd_safe::get_frame_content_size(frame).ok().flatten().ok_or(FrameError::NoLength)?;
    usize::try_from(len).ok().filter(|len| *len <= len_max).ok_or(FrameError::TooLong { len, max: len_max })
}

/// The bytes of a frame, no more than `len_max` of them. Nothing is allocated for a frame that says it is longer.
pub(crate) fn unzip(frame: &[u8], dictionary: Option<&Dictionary>, len_max: usize) -> Result<Vec<u8>, FrameError> {
    let said = unzipped_len(frame, len_max)?;
    let mut bytes = Vec::with_capacity(said);
    let done = lend(&UNZIPPING, DCtx::try_create, |context| match dictionary {
        Some(dictionary) => context.decompress_using_ddict(&mut bytes, frame, &dictionary.unzip),
        None => context.decompress(&mut bytes, frame),
    });
    match done.ok_or(OUT_OF_MEMORY)?.map_err(of_zstd)? {
        len if len == said => Ok(bytes),
        // Several frames, one behind the other: we write none such.
        len => Err(FrameError::WrongLength { len, said }),
    }
}
