//! What a daemon says of what happens: a line each, in words or as JSON (`bumpless.iprp.event/1`).

use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use bumpless_iprp::{EndCause, ReceiverEvent, Scope, SenderEvent};
use serde_json::{Value, json};

use crate::unanswered::{Change, Unanswered};
use crate::unheard::{self, Unheard};

/// Lines that wait to be written; more are lost, and nothing waits for them.
const WAITING: usize = 1024;

/// Where lines go.
pub struct Log {
    lines: SyncSender<String>,
    json: bool,
}

impl Log {
    /// Lines go to standard output.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn start(json: bool) -> io::Result<Self> {
        let (lines, waiting) = sync_channel::<String>(WAITING);
        // It ends with the last line: whoever reads standard output slowly holds nobody up.
        thread::Builder::new().name("log".into()).spawn(move || {
            while let Ok(line) = waiting.recv() {
                let mut out = io::stdout().lock();
                let _ = writeln!(out, "{line}").and_then(|()| out.flush());
            }
        })?;
        Ok(Self { lines, json })
    }

    /// Says what has happened: its name, what it is about, and the sentence for people.
    pub fn say(&self, event: &str, about: Value, words: &str) {
        let line = match self.json {
            false => words.to_owned(),
            true => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let time_ms = now.map_or(0, |now| now.as_millis() as u64);
                json!({
                    "schema": "bumpless.iprp.event/1",
                    "time_ms": time_ms,
                    "event": event,
                    "about": about,
                    "words": words,
                })
                .to_string()
            }
        };
        match self.lines.try_send(line) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

/// What of the sending end is told: name, content, words. Scopes by session are looked up with `scope`.
pub fn of_sender(
    event: &SenderEvent,
    scope: impl Fn(u32) -> Option<Scope>,
) -> Option<(&'static str, Value, String)> {
    let told = |session: u32| scope(session).map_or("a session".into(), |it| it.to_string());
    Some(match event {
        SenderEvent::Begun { scope, .. } => (
            "replicating",
            json!({"flow": scope.to_string()}),
            format!("{scope}: packets leave on several networks"),
        ),
        SenderEvent::Ended { scope, cause, .. } => (
            "not_replicating",
            json!({"flow": scope.to_string(), "cause": cause_name(*cause)}),
            format!(
                "{scope}: packets leave as they are again, since {}",
                cause_words(*cause)
            ),
        ),
        SenderEvent::NetworkAdded { session, ind } => (
            "network_added",
            json!({"flow": told(session.0), "ind": ind.get()}),
            format!("{}: copies leave on network {}", told(session.0), ind.get()),
        ),
        SenderEvent::NetworkRemoved { session, ind } => (
            "network_removed",
            json!({"flow": told(session.0), "ind": ind.get()}),
            format!(
                "{}: no copies leave on network {} any more",
                told(session.0),
                ind.get()
            ),
        ),
        SenderEvent::Suspended { session } => (
            "suspended",
            json!({"flow": told(session.0)}),
            format!(
                "{}: the receiver answers on no network, so packets leave as they are until it is heard",
                told(session.0)
            ),
        ),
        SenderEvent::Resumed { session } => (
            "resumed",
            json!({"flow": told(session.0)}),
            format!("{}: the receiver is heard again", told(session.0)),
        ),
        SenderEvent::Moved {
            session,
            from,
            to,
            again,
        } => (
            "moved",
            json!({"flow": told(session.0), "from": from.get(), "to": to.get(), "again": again}),
            format!(
                "{}: network {} is silent, {} carries from here on; {again} packets left again",
                told(session.0),
                from.get(),
                to.get()
            ),
        ),
        _ => return None,
    })
}

/// That a network of a session has stopped answering, or answers again.
pub fn of_network(change: &Change) -> (&'static str, Value, String) {
    let (scope, ind) = (change.scope.to_string(), change.ind.get());
    match change.begins {
        Some(it) => {
            let about = json!({"flow": scope, "ind": ind, "questions": it.questions, "lasts_ms": it.lasts.as_millis()});
            ("network_unanswered", about, unanswered(&scope, &it))
        }
        None => {
            let words = format!("{scope}: network {ind} answers again");
            ("network_answers", json!({"flow": scope, "ind": ind}), words)
        }
    }
}

/// What an operator should know of a network that answers nothing.
pub fn unanswered(scope: &str, it: &Unanswered) -> String {
    format!(
        "{scope}: network {} has answered none of {} questions for {} s, while another one answers: copies that leave there may be lost, and \
         nothing is redundant; look at its cables, switches, addresses and filters, at both ends",
        it.ind.get(),
        it.questions,
        it.lasts.as_millis() / 1000
    )
}

/// That nothing of a group comes on a network, or something does again.
pub fn of_group_network(change: &unheard::Change) -> (&'static str, Value, String) {
    let (source, scope) = (change.source.to_string(), change.scope.to_string());
    let ind = change.ind.get();
    match change.begins {
        Some(it) => {
            let about = json!({"source": source, "flow": scope, "ind": ind, "copies": it.copies, "lasts_ms": it.lasts.as_millis()});
            ("network_unheard", about, unheard(&scope, &source, &it))
        }
        None => (
            "network_heard",
            json!({"source": source, "flow": scope, "ind": ind}),
            format!("{scope}, from {source}: copies come on network {ind} again"),
        ),
    }
}

/// What an operator should know of a network on which nothing of a group comes.
pub fn unheard(scope: &str, source: &str, it: &Unheard) -> String {
    format!(
        "{scope}, from {source}: nothing has come on network {} for {} s, while {} copies came on others: there is one network fewer than there could \
         be; look at its cables, switches and multicast filters, at both ends, and whether each member of the group has it: packets leave on those \
         that all have",
        it.ind.get(),
        it.lasts.as_millis() / 1000,
        it.copies
    )
}

/// As [`of_sender`], of the receiving end.
pub fn of_receiver(event: &ReceiverEvent) -> Option<(&'static str, Value, String)> {
    Some(match event {
        ReceiverEvent::Begun { source, scope, .. } => (
            "receiving",
            json!({"source": source.to_string(), "flow": scope.to_string()}),
            format!("{scope}, from {source}: packets come on several networks"),
        ),
        ReceiverEvent::Ended {
            source,
            scope,
            cause,
            ..
        } => (
            "not_receiving",
            json!({"source": source.to_string(), "flow": scope.to_string(), "cause": cause_name(*cause)}),
            format!(
                "{scope}, from {source}: nothing is expected any more, since {}",
                cause_words(*cause)
            ),
        ),
        ReceiverEvent::NoCommonNetwork { source, scope } => (
            "no_common_network",
            json!({"source": source.to_string(), "flow": scope.to_string()}),
            format!(
                "{scope}, from {source}: no network of the sender has the ind of one of this host's; give the same network the same \
                 ind in both hosts' files"
            ),
        ),
        ReceiverEvent::Miswired {
            sent_on,
            arrived_on,
            ..
        } => (
            "miswired",
            json!({"sent_on": sent_on.get(), "arrived_on": arrived_on.get()}),
            miswired(sent_on.get(), arrived_on.get()),
        ),
        _ => return None,
    })
}

/// That packets of one network come on another one.
pub fn miswired(sent_on: u8, arrived_on: u8) -> String {
    format!(
        "miswired: packets that were sent on network {sent_on} come on network {arrived_on}; cables or addresses are mixed up, or a route joins \
         the two"
    )
}

/// That a message of a host that has the key was refused.
pub fn refused(from: &[IpAddr], error: impl std::fmt::Display) -> (&'static str, Value, String) {
    let hosts: Vec<_> = from.iter().map(ToString::to_string).collect();
    let words = format!("{} says what is not taken: {error}", hosts.join(", "));
    (
        "refused",
        json!({"from": hosts, "cause": error.to_string()}),
        words,
    )
}

const fn cause_name(cause: EndCause) -> &'static str {
    match cause {
        EndCause::NotAdvertised => "not_advertised",
        EndCause::Inactive => "inactive",
        EndCause::Withdrawn => "withdrawn",
        EndCause::NoNetwork => "no_network",
        EndCause::NotMonitored => "not_monitored",
        EndCause::Disowned => "disowned",
    }
}

const fn cause_words(cause: EndCause) -> &'static str {
    match cause {
        EndCause::NotAdvertised => "the receiver has said nothing for three periods",
        EndCause::Inactive => "nothing was sent for a while",
        EndCause::Withdrawn => "the receiver has ended it",
        EndCause::NoNetwork => "no network is left that both hosts have",
        EndCause::NotMonitored => "the port is not monitored any more",
        EndCause::Disowned => "the other host's certificate was revoked",
    }
}
