//! What the tests share: an informer over a scripted server, what its handlers heard, and the assertions that
//! hold after every fault.

mod heard;
mod in_process;
mod rotated_file;
mod run;

pub(crate) use heard::Heard;
pub(crate) use in_process::in_process;
pub(crate) use rotated_file::RotatedFile;
pub(crate) use run::{Options, Run, alive_tasks, over_socket, quick, quick_backoff, until, until_or, within};
