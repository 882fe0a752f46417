//! One Modbus TCP connection that comes and goes, driven by calls with a deadline. It needs a runtime around it.

use super::link::{Link, dial};
use super::refused::{FieldNote, Own};
use super::secure_dialer::{HANDSHAKE, NotDialled, SecureDialer};
use crate::{FieldErrorKind, TimeSource};
use bumpless_base::{Duration, Instant};
use bumpless_pki::DeviceName;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_modbus::client::{Client as _, Context, tcp};
use tokio_modbus::{Error as ModbusError, ExceptionCode, Request, Response, Slave};

/// How often a call has the runtime look at its sockets for a device that it does not wait for.
const LOOKS: usize = 4;
const NOT_CONNECTED: FieldErrorKind = FieldErrorKind::NotConnected(io::ErrorKind::NotConnected);

enum State {
    /// No attempt before this instant; what ended the last one.
    Waiting(Instant, FieldErrorKind),
    /// An attempt is under way. It goes on whenever the runtime runs, in any later call.
    Connecting(JoinHandle<Result<Up, NotDialled>>),
    Connected(Context),
}

/// A connection that has come up, and what this node shows on it.
struct Up(Context, Option<Own>);

/// By TLS, with whom.
#[derive(Clone, Debug)]
pub(super) struct SecureWay {
    pub(super) dialer: SecureDialer,
    /// What the device's certificate must say.
    pub(super) name: Arc<DeviceName>,
    /// What messages call the device.
    pub(super) device: Arc<str>,
    /// A connection counts as up when this has been answered: with TLS 1.3 the device judges this node's certificate after the
    /// node's handshake is complete, for longer perhaps than a call waits.
    pub(super) greeting: Request<'static>,
}

/// Where a connection leads, and how it comes up.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) address: SocketAddr,
    pub(super) unit: u8,
    /// How long one attempt to connect may take.
    pub(super) connect_timeout: Duration,
    /// Longest wait between attempts; the first is a sixty-fourth of it.
    pub(super) reconnect_max: Duration,
    /// Once the device has not answered in time, no call waits for it any more: a connection counts as up when this
    /// request has been answered on it, beside the calls.
    pub(super) probe: Option<Request<'static>>,
    /// Modbus/TCP Security; `None`: open.
    pub(super) secure: Option<SecureWay>,
}

pub(super) struct Connection<T> {
    clock: T,
    way: Way,
    wait_min: Duration,
    wait: Duration,
    /// It did not come up, or did not answer, in the time of a call.
    suspect: bool,
    /// What this node shows in TLS.
    own: Option<Own>,
    /// It was told that the device refuses something, or is refused.
    told: bool,
    state: State,
}

impl<T: TimeSource> Connection<T> {
    pub(super) fn new(way: Way, clock: T) -> Self {
        let wait_min = way.reconnect_max / 64;
        Self {
            clock,
            way,
            wait_min,
            wait: wait_min,
            suspect: false,
            own: None,
            told: false,
            state: State::Waiting(Instant::ZERO, NOT_CONNECTED),
        }
    }

    /// Whether no call waits for the device at present.
    fn is_shunned(&self) -> bool {
        self.suspect && self.way.probe.is_some()
    }

    /// Sends `request` and returns the answer to it, both before `until`.
    pub(super) async fn exchange(
        &mut self,
        request: Request<'_>,
        until: Instant,
    ) -> Result<Response, FieldErrorKind> {
        self.connect(until).await?;
        let left = time_left(&self.clock, until)?;
        let State::Connected(context) = &mut self.state else {
            return Err(NOT_CONNECTED);
        };
        let answer = tokio::time::timeout(left, context.call(request)).await;
        match answer {
            Ok(Ok(Ok(response))) => {
                self.wait = self.wait_min;
                self.tell_well();
                Ok(response)
            }
            Ok(Ok(Err(exception))) => {
                self.wait = self.wait_min;
                if exception == ExceptionCode::IllegalFunction
                    && let Some(words) = self.own.as_ref().map(Own::without_right)
                {
                    self.tell(words);
                }
                Err(FieldErrorKind::Exception(exception.into()))
            }
            Ok(Err(ModbusError::Protocol(_))) => Err(self.distrust()),
            Ok(Err(ModbusError::Transport(error))) => Err(self.broken(&error)),
            Err(_elapsed) => {
                self.suspect = true;
                self.give_up(FieldErrorKind::NotConnected(io::ErrorKind::TimedOut));
                Err(FieldErrorKind::Timeout)
            }
        }
    }

    /// The answer did not fit the request: nothing more on this connection can be trusted.
    pub(super) fn distrust(&mut self) -> FieldErrorKind {
        self.give_up(FieldErrorKind::NotConnected(io::ErrorKind::InvalidData));
        FieldErrorKind::Malformed
    }

    /// Says why TLS fails, or what it shows, once until it is well again.
    fn tell(&mut self, words: String) {
        let Some(secure) = self.way.secure.as_ref().filter(|_| !self.told) else {
            return;
        };
        self.told = true;
        secure.dialer.tell(FieldNote {
            device: secure.device.to_string(),
            refused: Some(words),
        });
    }

    fn tell_well(&mut self) {
        if let Some(secure) = self.way.secure.as_ref().filter(|_| self.told) {
            self.told = false;
            secure.dialer.tell(FieldNote {
                device: secure.device.to_string(),
                refused: None,
            });
        }
    }

    fn broken(&mut self, error: &io::Error) -> FieldErrorKind {
        if let Some(words) = self.own.as_ref().and_then(|own| own.words(error)) {
            self.tell(words);
            return self.give_up(FieldErrorKind::Refused);
        }
        if error.kind() == io::ErrorKind::InvalidData {
            return self.distrust();
        }
        // An orderly close in the middle of an exchange has no error of its own; the library
        // passes on whatever the thread's last one was.
        let kind = match error.kind() {
            kind @ (io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::TimedOut) => kind,
            _ => io::ErrorKind::UnexpectedEof,
        };
        self.give_up(FieldErrorKind::NotConnected(kind))
    }

    /// Closes the connection or attempt; the next one may start after the current wait. Returns `cause`.
    fn give_up(&mut self, cause: FieldErrorKind) -> FieldErrorKind {
        if let State::Connecting(attempt) = &self.state {
            attempt.abort();
        }
        self.state = State::Waiting(self.clock.now() + self.wait, cause);
        self.wait = (self.wait * 2).min(self.way.reconnect_max);
        cause
    }

    /// Comes up, if it is not, at most until then; where no call waits for the device, looks only whether it has.
    pub(super) async fn connect(&mut self, until: Instant) -> Result<(), FieldErrorKind> {
        if let State::Connected(_) = self.state {
            return Ok(());
        }
        if let State::Waiting(not_before, cause) = self.state {
            if self.clock.now() < not_before {
                return Err(cause);
            }
            let probe = self.way.probe.clone().filter(|_| self.suspect);
            let secure = self.way.secure.as_ref();
            let probe = probe.or_else(|| secure.map(|secure| secure.greeting.clone()));
            let attempt = open(self.way.clone(), probe);
            self.state = State::Connecting(tokio::spawn(attempt));
        }
        let shunned = self.is_shunned();
        let State::Connecting(attempt) = &mut self.state else {
            return Ok(());
        };
        if shunned {
            // Lets the runtime look at its sockets, and the attempt go on by what they say.
            for _ in 0..LOOKS {
                tokio::task::yield_now().await;
            }
            if !attempt.is_finished() {
                return Err(FieldErrorKind::NotConnected(io::ErrorKind::TimedOut));
            }
        }
        let left = time_left(&self.clock, until)?;
        let opened = tokio::time::timeout(left, attempt).await;
        match opened {
            Err(_elapsed) => {
                self.suspect = true;
                Err(FieldErrorKind::NotConnected(io::ErrorKind::TimedOut))
            }
            Ok(Ok(Ok(Up(context, own)))) => {
                self.suspect = false;
                self.own = own;
                self.state = State::Connected(context);
                Ok(())
            }
            Ok(failed) => {
                let cause = match failed {
                    Ok(Err(NotDialled::System(error))) => cause_of(&error),
                    Ok(Err(NotDialled::Refused(words))) => {
                        self.tell(words);
                        FieldErrorKind::Refused
                    }
                    _ => FieldErrorKind::NotConnected(io::ErrorKind::Other),
                };
                Err(self.give_up(cause))
            }
        }
    }
}

/// Why an attempt to connect failed.
fn cause_of(error: &io::Error) -> FieldErrorKind {
    // Linux numbers; the standard library has no kind for them.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    match error.raw_os_error() {
        Some(ENFILE | EMFILE) => FieldErrorKind::OutOfFiles,
        _ => FieldErrorKind::NotConnected(error.kind()),
    }
}

/// How long the runtime's timer may wait. It rounds up to whole milliseconds, so a wait of more
/// than two is cut by one: it then ends before its deadline, not after.
fn time_left(
    clock: &impl TimeSource,
    until: Instant,
) -> Result<std::time::Duration, FieldErrorKind> {
    let tick = Duration::from_millis(1);
    match until.since(clock.now()) {
        Duration::ZERO => Err(FieldErrorKind::Timeout),
        left if left > tick * 2 => Ok((left - tick).to_std()),
        left => Ok(left.to_std()),
    }
}

/// Comes up within the time for that, an answer to `probe` included.
async fn open(way: Way, probe: Option<Request<'static>>) -> Result<Up, NotDialled> {
    let handshake = way.secure.as_ref().map_or(Duration::ZERO, |_| HANDSHAKE);
    let timeout = (way.connect_timeout + handshake).to_std();
    let attempt = tokio::time::timeout(timeout, async {
        let (link, own) = link(&way).await?;
        let mut context = tcp::attach_slave(link, Slave(way.unit));
        if let Some(probe) = probe {
            // An exception is an answer, too.
            match context.call(probe).await {
                Err(ModbusError::Transport(error)) => {
                    let words = own.as_ref().and_then(|own| own.words(&error));
                    return Err(words.map_or(NotDialled::System(error), NotDialled::Refused));
                }
                answered => {
                    let answered = answered.map(drop).map_err(io::Error::other);
                    answered.map_err(NotDialled::System)?;
                }
            }
        }
        Ok(Up(context, own))
    });
    let opened = attempt.await;
    opened.map_err(|_elapsed| NotDialled::System(io::ErrorKind::TimedOut.into()))?
}

/// A connection to the device, and what this node shows on it.
async fn link(way: &Way) -> Result<(Link, Option<Own>), NotDialled> {
    let Some(secure) = &way.secure else {
        let stream = dial(way.address).await.map_err(NotDialled::System)?;
        return Ok((Link::Open(stream), None));
    };
    let dialled = secure.dialer.dial(way.address, Arc::clone(&secure.name));
    let (mut link, own) = dialled.await?;
    link.attach().map_err(NotDialled::System)?;
    Ok((Link::Secure(Box::new(link)), Some(own)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldError;

    #[test]
    fn a_process_without_files_left_is_not_told_to_look_at_its_device() {
        let kind = cause_of(&io::Error::from_raw_os_error(24));
        let place = "10.0.0.1:502".into();
        let told = FieldError { kind, place }.to_string();
        assert!(
            told.contains("too many open files") && told.contains("ulimit -n"),
            "{told}"
        );
        let refused = cause_of(&io::ErrorKind::ConnectionRefused.into());
        assert_eq!(
            refused,
            FieldErrorKind::NotConnected(io::ErrorKind::ConnectionRefused)
        );
    }
}
