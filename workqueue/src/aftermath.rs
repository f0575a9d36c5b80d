//! What an operation has to do once it has let the lock go.

use std::task::Waker;

use crate::metrics::{QueueMetrics, Report};

/// Gathered under the lock; done when dropped, which is to be after the lock was let go. Mostly there is nothing to do,
/// and then it costs a few comparisons in line.
pub(crate) struct Aftermath<'a> {
    /// Whom to wake: mostly one, which allocates nothing.
    first: Option<Waker>,
    more: Vec<Waker>,
    metrics: Option<(&'a dyn QueueMetrics, Report)>,
}

impl<'a> Aftermath<'a> {
    #[inline(always)]
    pub(crate) fn new(metrics: Option<&'a dyn QueueMetrics>) -> Self {
        Self { first: None, more: Vec::new(), metrics: metrics.map(|metrics| (metrics, Report::default())) }
    }

    /// What is told to the metrics, where there are any.
    #[inline(always)]
    pub(crate) fn report(&mut self) -> Option<&mut Report> {
        self.metrics.as_mut().map(|(_, report)| report)
    }

    /// Wakes these too.
    pub(crate) fn wake(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        for waker in wakers {
            match &mut self.first {
                Some(_) => self.more.push(waker),
                first => *first = Some(waker),
            }
        }
    }

    #[inline(never)]
    fn wake_them(&mut self) {
        self.first.take().into_iter().for_each(Waker::wake);
        std::mem::take(&mut self.more).into_iter().for_each(Waker::wake);
    }

    #[inline(never)]
    fn tell(&mut self) {
        if let Some((metrics, report)) = self.metrics.take() {
            report.tell(metrics);
        }
    }
}

impl Drop for Aftermath<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.first.is_some() {
            self.wake_them();
        }
        if self.metrics.is_some() {
            self.tell();
        }
    }
}
