//! The session with the server as it comes and goes, and what the node's orders come to on it.

use std::collections::BTreeSet;
use std::time::Duration;

use bumpless_field_driver::{Answers, Outcome, Value, now};
use opcua::types::{DataValue, StatusCode};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::fence::Fence;
use super::left;
use super::notes::{Notes, Of};
use super::session::{Session, ends_session};
use super::setting::Setting;
use super::value;

/// The wait before another session is made, doubled by each that is not, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// ServerState Running (OPC 10000-5, 12.6).
const RUNNING: i32 = 0;

enum State {
    Waiting(Instant),
    Making(JoinHandle<Result<Session, String>>),
    Up(Session),
}

pub struct Link {
    setting: Setting,
    notes: Notes,
    fence: Fence,
    state: State,
    pause: Duration,
    /// The inputs that may not be read, as they were answered last.
    denied: BTreeSet<usize>,
}

impl Link {
    pub fn new(setting: Setting, answers: Answers) -> Self {
        Self {
            setting,
            notes: Notes::new(answers),
            fence: Fence::new(),
            state: State::Waiting(Instant::now()),
            pause: PAUSE_MIN,
            denied: BTreeSet::new(),
        }
    }

    /// Waits until something becomes of the session that is not there, and goes on from that.
    pub async fn change(&mut self) {
        match &mut self.state {
            State::Waiting(until) => {
                sleep_until(*until).await;
                // A fence of its own: what an earlier connection still holds is nothing to this one.
                self.fence = Fence::new();
                let made = Session::make(self.setting.clone(), self.fence.clone());
                self.state = State::Making(tokio::spawn(made));
            }
            State::Making(making) => match making.await {
                Ok(Ok(session)) => {
                    self.state = State::Up(session);
                    self.notes.tell(Of::Session, "");
                }
                Ok(Err(why)) => self.lose(why),
                Err(_) => self.lose("the library has failed".into()),
            },
            State::Up(_) => std::future::pending().await,
        }
    }

    /// Resets the connection; another one is made after a pause.
    fn lose(&mut self, why: String) {
        self.state = State::Waiting(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        self.denied.clear();
        self.notes.lose(why);
    }

    /// The session, if it is up.
    fn session(&mut self) -> Result<&Session, Outcome> {
        if let State::Up(session) = &self.state
            && !session.is_up()
        {
            self.lose("the connection was lost; check the server and its network".into());
        }
        match &self.state {
            State::Up(session) => Ok(session),
            _ => Err(Outcome::NotConnected),
        }
    }

    /// What an error of a request is to the node.
    fn failed(&mut self, status: StatusCode) -> Outcome {
        if !ends_session(status) {
            return Outcome::Refused(status.bits());
        }
        self.lose(format!("{status}; check the server and its network"));
        Outcome::NoAnswer
    }

    fn silent(&mut self) -> Outcome {
        self.lose(
            "it has not answered in time; check the server and its network, or raise timeout_ms"
                .into(),
        );
        Outcome::NoAnswer
    }

    /// Reads the inputs that are due.
    pub async fn read(&mut self, due: &[bool], until: u64) -> Result<Vec<Value>, Outcome> {
        let left = left(until).ok_or(Outcome::Late)?;
        let numbered = due.iter().enumerate().take(self.setting.inputs.len());
        let wanted: Vec<_> = numbered.filter_map(|(at, due)| due.then_some(at)).collect();
        let session = self.session()?;
        let nodes = { wanted.iter() }.map(|&at| session.inputs()[at].clone());
        let nodes = nodes.collect();
        let taken_at = now();
        let (state, found) = match timeout(left, session.read(nodes)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(self.failed(error.status())),
            Err(_elapsed) => return Err(self.silent()),
        };
        self.pause = PAUSE_MIN;
        if !self.is_running(state) {
            let halted = value::bad(StatusCode::BadServerHalted, taken_at);
            return Ok(vec![halted; wanted.len()]);
        }
        self.tell_denied(&wanted, &found);
        let kinds = wanted.iter().map(|&at| self.setting.inputs[at].kind);
        let values = kinds.zip(&found);
        Ok(values
            .map(|(kind, found)| value::read(kind, found, taken_at))
            .collect())
    }

    /// Tells people which of the inputs the user may not read; `wanted` were asked for, and `found` answered.
    fn tell_denied(&mut self, wanted: &[usize], found: &[DataValue]) {
        for (&at, found) in wanted.iter().zip(found) {
            match found.status() == StatusCode::BadUserAccessDenied {
                true => self.denied.insert(at),
                false => self.denied.remove(&at),
            };
        }
        let first = self.denied.first().map(|&at| &self.setting.inputs[at].name);
        let note = first.map(|name| self.denial("read", name));
        self.notes.tell(Of::Reading, note.unwrap_or_default());
    }

    /// That the server lets the user not do something with a value.
    fn denial(&self, what: &str, name: &str) -> String {
        let login = self.setting.login.as_ref();
        let user = login.map_or("anonymous users".into(), |it| {
            format!("the user {:?}", it.user)
        });
        format!(
            "it does not let {user} {what} {name:?} ({}); give that right there, or have another user",
            StatusCode::BadUserAccessDenied
        )
    }

    /// Whether the server says that it runs.
    fn is_running(&mut self, state: Option<i32>) -> bool {
        match state {
            Some(RUNNING) => {
                self.notes.tell(Of::State, "");
                true
            }
            None => {
                self.notes.tell(
                    Of::State,
                    "Server/ServerStatus/State cannot be read, so its values count for nothing; have the server let its user read that",
                );
                false
            }
            Some(state) => {
                let note = format!(
                    "the server is in state {state} (OPC 10000-5, 12.6), not Running; see to the server"
                );
                self.notes.tell(Of::State, note);
                false
            }
        }
    }

    /// Writes all outputs. Nothing of them leaves after `until`.
    pub async fn write(&mut self, numbers: &[f64], until: u64) -> Outcome {
        if numbers.len() != self.setting.outputs.len() {
            return Outcome::Refused(StatusCode::BadInvalidArgument.bits());
        }
        let kinds: Vec<_> = self.setting.outputs.iter().map(|tag| tag.kind).collect();
        let fence = self.fence.clone();
        let session = match self.session() {
            Ok(session) => session,
            Err(outcome) => return outcome,
        };
        let outputs = kinds.iter().zip(session.outputs()).zip(numbers);
        let values: Vec<_> = { outputs }
            .map(|((kind, node), number)| value::written(*kind, node, *number))
            .collect();
        let Some(left) = left(until) else {
            return Outcome::Late;
        };
        fence.close(until);
        let written = timeout(left, session.write(&values)).await;
        let outcome = match written {
            Ok(Ok(refused)) => self.written(refused),
            Ok(Err(error)) => self.failed(error.status()),
            // What has not been delivered is taken back with the connection.
            Err(_elapsed) => self.silent(),
        };
        // Of a connection that is lost it stays shut.
        if let State::Up(_) = self.state {
            fence.open();
        }
        outcome
    }

    /// What a write came to, of which the server has refused this.
    fn written(&mut self, refused: Option<(usize, StatusCode)>) -> Outcome {
        let denied = refused.filter(|(_, status)| *status == StatusCode::BadUserAccessDenied);
        let tag = denied.and_then(|(at, _)| self.setting.outputs.get(at));
        let note = tag.map(|tag| self.denial("write", &tag.name));
        self.notes.tell(Of::Writing, note.unwrap_or_default());
        match refused {
            None => Outcome::Done,
            Some((_, status)) => Outcome::Refused(status.bits()),
        }
    }

    /// Whether the server answers and runs.
    pub async fn probe(&mut self, until: u64) -> Outcome {
        let Some(left) = left(until) else {
            return Outcome::Late;
        };
        let session = match self.session() {
            Ok(session) => session,
            Err(outcome) => return outcome,
        };
        let state = match timeout(left, session.read(Vec::new())).await {
            Ok(Ok((state, _))) => state,
            Ok(Err(error)) => return self.failed(error.status()),
            Err(_elapsed) => return self.silent(),
        };
        self.pause = PAUSE_MIN;
        match self.is_running(state) {
            true => Outcome::Done,
            false => Outcome::Refused(StatusCode::BadServerHalted.bits()),
        }
    }
}
