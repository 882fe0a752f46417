//! The session with the server as it comes and goes, and what the node's orders come to on it.

use std::time::Duration;

use bumpless_field_driver::{Answers, Outcome, Value, now};
use opcua::types::StatusCode;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::fence::Fence;
use super::left;
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
    answers: Answers,
    fence: Fence,
    state: State,
    pause: Duration,
    /// What people were told last.
    note: String,
}

impl Link {
    pub fn new(setting: Setting, answers: Answers) -> Self {
        Self {
            setting,
            answers,
            fence: Fence::new(),
            state: State::Waiting(Instant::now()),
            pause: PAUSE_MIN,
            note: String::new(),
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
                    self.tell(String::new());
                }
                Ok(Err(why)) => self.lose(why),
                Err(_) => self.lose("the library has failed".into()),
            },
            State::Up(_) => std::future::pending().await,
        }
    }

    /// Tells people, if it is something else than before. Who does not hear it is gone.
    fn tell(&mut self, note: String) {
        if note != self.note {
            let _ = self.answers.note(&note);
            self.note = note;
        }
    }

    /// Resets the connection; another one is made after a pause.
    fn lose(&mut self, why: String) {
        self.state = State::Waiting(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        self.tell(why);
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
        let inputs = self.setting.inputs.iter().zip(due);
        let wanted: Vec<_> = { inputs }
            .filter_map(|(tag, due)| due.then(|| tag.clone()))
            .collect();
        let nodes = wanted.iter().map(|tag| tag.node.clone()).collect();
        let session = self.session()?;
        let taken_at = now();
        let (state, found) = match timeout(left, session.read(nodes)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(self.failed(error.status())),
            Err(_elapsed) => return Err(self.silent()),
        };
        self.pause = PAUSE_MIN;
        let tags = wanted.iter().zip(&found);
        Ok(match self.is_running(state) {
            true => { tags }
                .map(|(tag, found)| value::read(tag, found, taken_at))
                .collect(),
            false => { tags }
                .map(|_| value::bad(StatusCode::BadServerHalted, taken_at))
                .collect(),
        })
    }

    /// Whether the server says that it runs.
    fn is_running(&mut self, state: Option<i32>) -> bool {
        match state {
            Some(RUNNING) => {
                self.tell(String::new());
                true
            }
            None => {
                self.tell(
                    "Server/ServerStatus/State cannot be read, so its values count for nothing; have the server let anonymous users read that"
                        .to_owned(),
                );
                false
            }
            Some(state) => {
                self.tell(format!(
                    "the server is in state {state} (OPC 10000-5, 12.6), not Running; see to the server"
                ));
                false
            }
        }
    }

    /// Writes all outputs. Nothing of them leaves after `until`.
    pub async fn write(&mut self, numbers: &[f64], until: u64) -> Outcome {
        if numbers.len() != self.setting.outputs.len() {
            return Outcome::Refused(StatusCode::BadInvalidArgument.bits());
        }
        let outputs = self.setting.outputs.iter().zip(numbers);
        let values: Vec<_> = { outputs }
            .map(|(tag, number)| value::written(tag, *number))
            .collect();
        let fence = self.fence.clone();
        let session = match self.session() {
            Ok(session) => session,
            Err(outcome) => return outcome,
        };
        let Some(left) = left(until) else {
            return Outcome::Late;
        };
        fence.close(until);
        let written = timeout(left, session.write(&values)).await;
        let outcome = match written {
            Ok(Ok(None)) => Outcome::Done,
            Ok(Ok(Some(status))) => Outcome::Refused(status.bits()),
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
