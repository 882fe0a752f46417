//! The daemon's state as `bumpless.iprp.status/1`. What there is of each session is made when it is written, one after the
//! other: all of ten thousand at once would take as much memory as the sessions (L-34).

use std::borrow::Cow;
use std::collections::BTreeMap;

use bumpless_capture::Segmentation;
use bumpless_iprp::{Discard, Ind, Mode, PathStatus, Side, TCP};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use crate::event::{self, miswired};
use crate::networks::Attachment;
use crate::snapshot::{Receiving, Sending, Snapshot};

/// What the control plane adds to what the data plane tells.
pub struct Surroundings<'a> {
    /// The host's networks.
    pub attachments: &'a [Attachment],
    /// Seconds since the start.
    pub uptime_s: f64,
    /// Control frames that were refused, by cause.
    pub refused: &'a BTreeMap<String, u64>,
    /// What is wrong at present, a sentence each.
    pub troubles: &'a [String],
    /// Sentences on other hosts and flows for which there was no room.
    pub troubles_left_out: u64,
    /// Messages of other hosts for which the data plane had no room.
    pub untold: u64,
    /// By which way captured packets come.
    pub capture: Value,
    /// Groups of the file, and who is in them.
    pub groups: Vec<Value>,
    /// Sessions, if hosts have certificates.
    pub security: Option<Value>,
}

/// All of it, to be written.
pub struct Status {
    snapshot: Box<Snapshot>,
    /// Everything but sessions and weaknesses, by its name.
    about_host: Map<String, Value>,
    /// What is wrong with no session in particular.
    weaknesses: Vec<String>,
}

impl Status {
    /// What the data plane has told, and what the control plane adds.
    pub fn new(snapshot: Box<Snapshot>, around: &Surroundings<'_>) -> Self {
        let about_host = match about_host(&snapshot, around) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Self {
            about_host,
            weaknesses: weaknesses(&snapshot, around),
            snapshot,
        }
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Snapshot {
            sending: sends,
            receiving: receives,
            ..
        } = &*self.snapshot;
        let mut all = serializer.serialize_map(Some(self.about_host.len() + 3))?;
        for (name, value) in &self.about_host {
            all.serialize_entry(name, value)?;
        }
        all.serialize_entry("sending", &Each(|| sends.iter().map(sending)))?;
        all.serialize_entry("receiving", &Each(|| receives.iter().map(receiving)))?;
        let words = || {
            let of_sessions = sends.iter().flat_map(weaknesses_of);
            let of_sessions = of_sessions
                .chain(receives.iter().flat_map(weaknesses_received))
                .map(Cow::Owned);
            let others = self.weaknesses.iter().map(|it| Cow::Borrowed(it.as_str()));
            others.chain(of_sessions)
        };
        all.serialize_entry("weaknesses", &Each(words))?;
        all.end()
    }
}

/// A list of which each item is made when it is written.
struct Each<F>(F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0())
    }
}

fn about_host(snapshot: &Snapshot, around: &Surroundings<'_>) -> Value {
    let sender = &snapshot.sender;
    let receiver = &snapshot.receiver;
    let discarded: BTreeMap<_, _> = Discard::ALL
        .iter()
        .map(|cause| (cause.name(), receiver.discarded(*cause)))
        .collect();
    json!({
        "schema": "bumpless.iprp.status/1",
        "pid": std::process::id(),
        "uptime_s": around.uptime_s,
        "capture": around.capture,
        "networks": networks(snapshot, around),
        "groups": around.groups,
        "counters": {
            "captured": snapshot.passed.captured,
            "captured_by_ring": snapshot.passed.captured_by_ring,
            "replicated": sender.replicated,
            "copies": sender.copies,
            "unreplicated": sender.unreplicated,
            "suspended": sender.suspended,
            "too_long": sender.too_long,
            "not_kept": sender.not_kept,
            "given_up": sender.given_up,
            "no_other_network": sender.no_other_network,
            "kept_at_end": sender.kept_at_end,
            "unreadable": snapshot.passed.unreadable,
            "not_released": snapshot.passed.not_released,
            "no_copy_left": snapshot.passed.no_copy_left,
            "run_too_long": snapshot.passed.run_too_long,
            "delivered": receiver.delivered,
            "not_given": snapshot.passed.not_given,
            "no_member": snapshot.passed.no_member,
            "overrun": snapshot.passed.overrun,
            "sessions_refused": sender.sessions_refused,
            "answers_refused": sender.answers_refused,
            "answers_lost": receiver.answers_lost,
            "advertised": receiver.advertised,
            "suppressed": receiver.suppressed,
            "candidates_refused": receiver.candidates_refused,
            "untold": snapshot.passed.untold + around.untold,
            "troubles_left_out": around.troubles_left_out,
            "events_lost": sender.events_lost + receiver.events_lost,
        },
        "discarded": discarded,
        "control_refused": around.refused,
        "security": around.security.clone().unwrap_or_else(|| json!({"kind": "keys"})),
    })
}

fn networks(snapshot: &Snapshot, around: &Surroundings<'_>) -> Vec<Value> {
    let count = |all: &[u64], at: usize| all.get(at).copied().unwrap_or(0);
    let one = |(at, it): (usize, &Attachment)| {
        json!({
            "ind": it.ind.get(),
            "interface": it.interface,
            "address": it.address.to_string(),
            "mtu": it.mtu,
            "came": count(&snapshot.passed.came, at),
            "came_in_segments": count(&snapshot.passed.in_runs, at),
            "segments_received": segments_received(snapshot.coalesces),
            "not_taken": count(&snapshot.passed.not_taken, at),
            "segments": snapshot.segmentation.get(at).copied().map(segments),
            "in_segments": count(&snapshot.passed.in_segments, at),
            "runs_refused": count(&snapshot.passed.runs_refused, at),
        })
    };
    around.attachments.iter().enumerate().map(one).collect()
}

const fn segments(it: Segmentation) -> &'static str {
    match it {
        Segmentation::Used => "used",
        Segmentation::Unknown => "unknown",
        Segmentation::Refused => "refused",
    }
}

const fn segments_received(coalesces: bool) -> &'static str {
    match coalesces {
        true => "used",
        false => "unknown",
    }
}

fn protocol(number: u8) -> &'static str {
    match number {
        TCP => "tcp",
        _ => "udp",
    }
}

const fn side(side: Side) -> &'static str {
    match side {
        Side::Destination => "destination",
        Side::Source => "source",
    }
}

fn sending(it: &Sending) -> Value {
    json!({
        "flow": it.scope.to_string(),
        "protocol": protocol(it.scope.protocol),
        "side": side(it.scope.side),
        "port": it.scope.port,
        "destination": it.scope.destination.to_string(),
        "mode": mode(it.mode),
        "suspended": it.suspended,
        "networks": it.paths.iter().map(|path| of_path(it, path)).collect::<Vec<_>>(),
    })
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Redundant => "redundant",
        Mode::Standby => "standby",
    }
}

fn of_path(session: &Sending, it: &PathStatus) -> Value {
    let mut all = session.unanswered.iter();
    let unanswered = all.find(|unanswered| unanswered.ind == it.ind);
    json!({
        "ind": it.ind.get(),
        "to": it.to.to_string(),
        "usable": it.usable,
        "carries": it.carries,
        "silent": it.silent,
        "sent": it.departures.sent,
        "again": it.departures.again,
        "asked": it.departures.asked,
        "answered": it.departures.answered,
        "unanswered_ms": unanswered.map(|it| it.lasts.as_millis()),
        "round_trip_us": it.round_trip.map(|trip| trip.as_nanos() as f64 / 1e3),
    })
}

fn receiving(it: &Receiving) -> Value {
    let arrivals = it.arrivals.iter().map(|(ind, came)| {
        json!({
            "ind": ind.get(),
            "first": came.first,
            "duplicate": came.duplicate,
            "very_late": came.very_late,
            "wrong_network": came.wrong_network,
        })
    });
    json!({
        "source": it.source.to_string(),
        "flow": it.scope.to_string(),
        "protocol": protocol(it.scope.protocol),
        "side": side(it.scope.side),
        "port": it.scope.port,
        "destination": it.scope.destination.to_string(),
        "replicated": it.replicated,
        "last_ms": it.ago.as_millis(),
        "networks": arrivals.collect::<Vec<_>>(),
        "unheard": it.unheard.iter().map(|it| json!({"ind": it.ind.get(), "ms": it.lasts.as_millis(), "copies": it.copies})).collect::<Vec<_>>(),
    })
}

/// What an operator should know of a session, a sentence each.
fn weaknesses_of(session: &Sending) -> impl Iterator<Item = String> {
    let usable = session.paths.iter().filter(|path| path.usable).count();
    let scope = session.scope;
    let whole = match (session.suspended, usable) {
        (true, _) => Some(format!(
            "{scope}: the receiver does not answer, packets leave as they are"
        )),
        (false, 0 | 1) => Some(format!("{scope}: copies leave on one network only")),
        (false, _) => None,
    };
    let unanswered = session.unanswered.iter().filter(|_| !session.suspended);
    let unanswered = unanswered.map(move |it| event::unanswered(&scope.to_string(), it));
    whole.into_iter().chain(unanswered)
}

/// As [`weaknesses_of`], of the receiving end.
fn weaknesses_received(session: &Receiving) -> impl Iterator<Item = String> {
    let (scope, source) = (session.scope.to_string(), session.source.to_string());
    let all = session.unheard.iter();
    all.map(move |it| event::unheard(&scope, &source, it))
}

/// What an operator should know besides, a sentence each.
fn weaknesses(snapshot: &Snapshot, around: &Surroundings<'_>) -> Vec<String> {
    let mut all = around.troubles.to_vec();
    let notes = around
        .security
        .iter()
        .filter_map(|it| it["notes"].as_array());
    all.extend(
        notes
            .flatten()
            .filter_map(|it| Some(it.as_str()?.to_owned())),
    );
    if around.attachments.len() < 2 {
        all.push(
            "this host is on one network: nothing is redundant; name a second one with [[network]], or bring its interface up"
                .into(),
        );
    }
    let routes = snapshot.receiver.routes.iter().enumerate();
    for (sent_on, row) in routes {
        let wrong = row
            .iter()
            .enumerate()
            .filter(|(at, count)| *at != sent_on && **count > 0);
        for (arrived_on, count) in wrong {
            let [sent_on, arrived_on] =
                [sent_on, arrived_on].map(|it| Ind::new(it as u8).map_or(0, Ind::get));
            all.push(format!(
                "{} ({count} so far)",
                miswired(sent_on, arrived_on)
            ));
        }
    }
    if snapshot.sender.events_lost > 0 {
        all.push(format!(
            "{} events of sessions were lost, so packets of sessions may leave as they are, and packets without one be captured: restart this daemon",
            snapshot.sender.events_lost
        ));
    }
    if snapshot.sender.too_long > 0 {
        all.push(format!(
            "{} packets were too long for a copy of {} bytes and left as they were: let applications send shorter ones, or raise the MTU of the \
             networks",
            snapshot.sender.too_long, snapshot.room
        ));
    }
    if snapshot.sender.not_kept > 0 {
        all.push(format!(
            "{} packets of standby flows were not kept, so what of them a network loses does not leave again: there was no place left, or they \
             were longer than a copy could be when this daemon began; give flows that send so much mode = \"redundant\", or restart this \
             daemon if the MTU of its networks has been raised",
            snapshot.sender.not_kept
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            room: 1_400,
            segmentation: Vec::new(),
            coalesces: false,
            sending: Vec::new(),
            receiving: Vec::new(),
            sender: Default::default(),
            receiver: Default::default(),
            passed: Default::default(),
        }
    }

    /// A counter, and whether a weakness has these words.
    fn shown(snapshot: &Snapshot, counter: &str, words: &str) -> (Option<u64>, bool) {
        let around = Surroundings {
            attachments: &[],
            uptime_s: 1.0,
            refused: &BTreeMap::new(),
            troubles: &[],
            troubles_left_out: 0,
            untold: 0,
            capture: Value::Null,
            groups: Vec::new(),
            security: None,
        };
        let status = Status::new(Box::new(snapshot.clone()), &around);
        let status = serde_json::to_value(status).unwrap();
        let weaknesses = status["weaknesses"].as_array().unwrap();
        let is_named = weaknesses
            .iter()
            .any(|it| it.as_str().unwrap().contains(words));
        (status["counters"][counter].as_u64(), is_named)
    }

    #[test]
    fn an_event_that_was_lost_is_counted_and_at_the_sending_end_a_weakness() {
        let mut snapshot = snapshot();
        let shown = |snapshot: &Snapshot| shown(snapshot, "events_lost", "events of sessions");
        assert_eq!(shown(&snapshot), (Some(0), false));
        snapshot.receiver.events_lost = 2;
        assert_eq!(shown(&snapshot), (Some(2), false));
        snapshot.sender.events_lost = 3;
        assert_eq!(shown(&snapshot), (Some(5), true));
    }

    #[test]
    fn a_network_that_answers_nothing_is_a_weakness_with_session_network_and_time() {
        use bumpless_base::Duration;
        use bumpless_iprp::{Departures, Scope};

        let [one, other] = [10, 11].map(|number| Ind::new(number).unwrap());
        let path = |ind| PathStatus {
            ind,
            to: [10, 0, 0, 2].into(),
            usable: true,
            carries: false,
            silent: false,
            departures: Departures::default(),
            round_trip: None,
        };
        let mut session = Sending {
            scope: Scope {
                protocol: TCP,
                side: Side::Source,
                port: 502,
                destination: [10, 0, 0, 2].into(),
            },
            mode: Mode::Redundant,
            suspended: false,
            paths: vec![path(one), path(other)],
            unanswered: Vec::new(),
        };
        assert_eq!(weaknesses_of(&session).count(), 0);
        session.unanswered.push(crate::unanswered::Unanswered {
            ind: other,
            lasts: Duration::from_secs(12),
            questions: 48,
        });
        let words: Vec<_> = weaknesses_of(&session).collect();
        let told = [&session.scope.to_string(), "network 11", "48", "12 s"];
        assert_eq!(words.len(), 1);
        told.iter()
            .for_each(|it| assert!(words[0].contains(it), "{words:?}"));
        let shown = sending(&session);
        assert_eq!(shown["networks"][0]["unanswered_ms"], Value::Null);
        assert_eq!(shown["networks"][1]["unanswered_ms"], 12_000);
        // Then it is the receiver's.
        session.suspended = true;
        assert_eq!(weaknesses_of(&session).count(), 1);
        assert!(!weaknesses_of(&session).any(|it| it.contains("network 11")));
    }

    #[test]
    fn a_standby_packet_that_was_not_kept_is_counted_and_a_weakness_and_a_lost_answer_is_counted() {
        let mut snapshot = snapshot();
        let kept = |snapshot: &Snapshot| shown(snapshot, "not_kept", "were not kept");
        assert_eq!(kept(&snapshot), (Some(0), false));
        snapshot.sender.not_kept = 4;
        snapshot.receiver.answers_lost = 5;
        assert_eq!(kept(&snapshot), (Some(4), true));
        assert_eq!(shown(&snapshot, "answers_lost", "").0, Some(5));
        let sender = &mut snapshot.sender;
        (sender.given_up, sender.no_other_network, sender.kept_at_end) = (6, 7, 8);
        let counts = ["given_up", "no_other_network", "kept_at_end"];
        let counts = counts.map(|name| shown(&snapshot, name, "").0);
        assert_eq!(counts, [Some(6), Some(7), Some(8)]);
    }
}
