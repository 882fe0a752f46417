//! Beginning from the initial state, with the retained variables of what was there before (K-17, K-18).

use bumpless_base::{Counters, Instant};

use super::CycleMachine;
use crate::Application;
use crate::executor::{CycleReport, OutputGate, Replication, RetainedFrom, RetainedReport};
use crate::retain::Record;
use crate::state::{Envelope, Progress};

/// Memory for what is retained.
pub(super) struct Retention {
    /// A saved state.
    state: Box<[u8]>,
    /// The record of the state in memory that has come furthest, also of one that was given up since.
    record: Vec<u8>,
    /// How far that had come.
    from: Option<Progress>,
}

impl Retention {
    /// Memory for what `application` retains, if it retains anything.
    pub(super) fn of(application: &dyn Application) -> Option<Self> {
        let table = application.retained().filter(|table| !table.is_empty())?;
        Some(Self {
            state: vec![0; application.state_size_max()].into_boxed_slice(),
            record: Vec::with_capacity(table.record_len()),
            from: None,
        })
    }

    /// The same, of a program that takes the place of the one that these values are of.
    pub(super) fn after(mut self, before: Option<Self>) -> Self {
        if let Some(before) = before {
            (self.record, self.from) = (before.record, before.from);
        }
        self
    }

    /// Keeps the values of the application's state, which has come as far as `progress`, unless one that had come
    /// further was seen.
    fn keep(&mut self, application: &dyn Application, progress: Progress) {
        if Some(progress) < self.from {
            return;
        }
        let len = application.save(&mut self.state).min(self.state.len());
        if let Some(table) = application.retained() {
            self.record.clear();
            table.cut(&self.state[..len], &mut self.record);
            self.from = Some(progress);
        }
    }

    /// Gives the application, which is in its initial state, the values of `record`.
    fn give(
        &mut self,
        application: &mut dyn Application,
        record: Record<'_>,
        (from, progress): (RetainedFrom, Progress),
    ) -> Option<RetainedReport> {
        let len = application.save(&mut self.state).min(self.state.len());
        let state = &mut self.state[..len];
        let applied = application.retained()?.apply(record, state);
        application.load(state).ok()?;
        Some(RetainedReport {
            from,
            progress,
            applied,
        })
    }
}

impl<R, G, O> CycleMachine<R, G, O>
where
    R: Replication,
    G: OutputGate,
    O: FnMut(&CycleReport, &Counters),
{
    /// Returns to the initial state, and keeps the retained variables of the state that has come furthest: the one here,
    /// which has come as far as `own`, one of the partner's, or the one whose record is on disk. None of them may be
    /// gone on from as a whole.
    pub(super) fn begin_anew(&mut self, own: Option<Progress>) {
        self.progress = None;
        let mut retention = self.retention.take();
        if let Some(retention) = &mut retention {
            self.keep_from_memory(retention, own);
        }
        self.application.reset();
        self.outputs.fill(0.0);
        if let Some(retention) = &mut retention {
            self.report.retained = self.give_back(retention);
        }
        self.retention = retention;
    }

    fn keep_from_memory(&mut self, retention: &mut Retention, own: Option<Progress>) {
        let application = &mut self.application;
        if let Some(own) = own {
            // What a failed execution has left is half made; the state before it is whole.
            let whole = self.committed.as_ref();
            let restored = whole.map(|it| it.restore(application.as_mut(), &mut self.outputs));
            if restored.is_none_or(|it| it.is_ok()) {
                retention.keep(application.as_ref(), own);
            }
        }
        // However old it is: of that its age says nothing.
        self.replication
            .read_latest(Instant::ZERO, &mut |state, _| {
                let Ok(envelope) = Envelope::parse(state) else {
                    return;
                };
                let further = Some(envelope.progress) > own;
                if further && application.load(envelope.application).is_ok() {
                    retention.keep(application.as_ref(), envelope.progress);
                }
            });
    }

    fn give_back(&mut self, retention: &mut Retention) -> Option<RetainedReport> {
        let application = &mut self.application;
        let (memory, mut report) = (retention.from, None);
        self.replication.read_retained(&mut |progress, record| {
            if Some(progress) > memory {
                let from = (RetainedFrom::Disk, progress);
                report = retention.give(application.as_mut(), record, from);
            }
        });
        if report.is_some() {
            return report;
        }
        let bytes = std::mem::take(&mut retention.record);
        if let (Some(progress), Some(record)) = (memory, Record::parse(&bytes)) {
            let from = (RetainedFrom::Memory, progress);
            report = retention.give(application.as_mut(), record, from);
        }
        retention.record = bytes;
        report
    }
}
