//! Changes for which the partner asks: handed to the thread for changes, and answered when that has judged them.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, sync_channel};
use std::thread::Thread;

use super::request::ChangeRequest;

/// What a partner asks for. It has one at a time: a later one takes the place of an earlier one.
pub struct Proposals {
    changes: (Sender<ChangeRequest>, Thread),
    waits: Option<Receiver<Result<(), String>>>,
}

impl Proposals {
    /// Proposals to the thread of `changes`.
    pub const fn new(changes: (Sender<ChangeRequest>, Thread)) -> Self {
        Self {
            changes,
            waits: None,
        }
    }

    /// The partner `from` asks for the change to the configuration `text`.
    pub fn take(&mut self, text: String, from: &str) {
        let (reply, answer) = sync_channel(1);
        self.ask(ChangeRequest::Apply {
            text,
            file: format!("the configuration from '{from}'"),
            carried: true,
            reply,
        });
        self.waits = Some(answer);
    }

    /// The partner asks to give up what is prepared.
    pub fn withdraw(&mut self) {
        // What came of it, it sees in the heartbeats.
        let (reply, _) = sync_channel(1);
        self.ask(ChangeRequest::Withdraw { reply });
    }

    /// What came of what was asked for last, told once.
    pub fn answer(&mut self) -> Option<Result<(), String>> {
        let answer = match self.waits.as_ref()?.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err("the node is about to end".into()),
        };
        self.waits = None;
        Some(answer)
    }

    fn ask(&self, request: ChangeRequest) {
        let (requests, thread) = &self.changes;
        let _ = requests.send(request);
        thread.unpark();
    }
}
