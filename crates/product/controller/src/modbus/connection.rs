//! One Modbus TCP connection that comes and goes, driven by calls with a deadline.

use super::ModbusSettings;
use crate::{FieldErrorKind, TimeSource};
use bumpless_base::{Duration, Instant};
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_modbus::client::{Client as _, Context, tcp};
use tokio_modbus::{Error as ModbusError, Request, Response, Slave};

const NOT_CONNECTED: FieldErrorKind = FieldErrorKind::NotConnected(io::ErrorKind::NotConnected);

enum State {
    /// No attempt before this instant; what ended the last one.
    Waiting(Instant, FieldErrorKind),
    /// An attempt is under way. It goes on whenever the runtime runs, in any later call.
    Connecting(JoinHandle<io::Result<TcpStream>>),
    Connected(Context),
}

pub(super) struct Connection<T> {
    runtime: Runtime,
    clock: T,
    address: SocketAddr,
    unit: u8,
    connect_timeout: Duration,
    wait_min: Duration,
    wait_max: Duration,
    wait: Duration,
    state: State,
}

impl<T: TimeSource> Connection<T> {
    pub(super) fn new(settings: &ModbusSettings, clock: T) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let wait_min = settings.reconnect_max / 64;
        Ok(Self {
            runtime,
            clock,
            address: settings.address,
            unit: settings.unit,
            connect_timeout: settings.connect_timeout,
            wait_min,
            wait_max: settings.reconnect_max,
            wait: wait_min,
            state: State::Waiting(Instant::ZERO, NOT_CONNECTED),
        })
    }

    /// Sends `request` and returns the answer to it, both before `until`.
    pub(super) fn exchange(
        &mut self,
        request: Request<'_>,
        until: Instant,
    ) -> Result<Response, FieldErrorKind> {
        self.connect(until)?;
        let left = time_left(&self.clock, until)?;
        let State::Connected(context) = &mut self.state else {
            return Err(NOT_CONNECTED);
        };
        let answer = self
            .runtime
            .block_on(async { tokio::time::timeout(left, context.call(request)).await });
        match answer {
            Ok(Ok(Ok(response))) => {
                self.wait = self.wait_min;
                Ok(response)
            }
            Ok(Ok(Err(exception))) => {
                self.wait = self.wait_min;
                Err(FieldErrorKind::Exception(exception.into()))
            }
            Ok(Err(ModbusError::Protocol(_))) => Err(self.distrust()),
            Ok(Err(ModbusError::Transport(error))) => Err(self.broken(&error)),
            Err(_elapsed) => {
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

    fn broken(&mut self, error: &io::Error) -> FieldErrorKind {
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
        self.wait = (self.wait * 2).min(self.wait_max);
        cause
    }

    pub(super) fn connect(&mut self, until: Instant) -> Result<(), FieldErrorKind> {
        if let State::Waiting(not_before, cause) = self.state {
            if self.clock.now() < not_before {
                return Err(cause);
            }
            let attempt = open(self.address, self.connect_timeout);
            self.state = State::Connecting(self.runtime.spawn(attempt));
        }
        let State::Connecting(attempt) = &mut self.state else {
            return Ok(());
        };
        let left = time_left(&self.clock, until)?;
        let opened = self
            .runtime
            .block_on(async { tokio::time::timeout(left, attempt).await });
        match opened {
            Err(_elapsed) => Err(FieldErrorKind::NotConnected(io::ErrorKind::TimedOut)),
            Ok(Ok(Ok(stream))) => {
                let _inside = self.runtime.enter();
                self.state = State::Connected(tcp::attach_slave(stream, Slave(self.unit)));
                Ok(())
            }
            Ok(failed) => {
                let cause = match failed {
                    Ok(Err(error)) => cause_of(&error),
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

async fn open(address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let connect = TcpStream::connect(address);
    let stream = tokio::time::timeout(timeout.to_std(), connect)
        .await
        .map_err(|_elapsed| io::ErrorKind::TimedOut)??;
    stream.set_nodelay(true)?;
    // Closing takes back what was not delivered. Else the kernel would go on sending a request that
    // was given up, and a mended network would bring an output of long ago.
    stream.set_zero_linger()?;
    Ok(stream)
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
