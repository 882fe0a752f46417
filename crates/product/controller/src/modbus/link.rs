//! What carries requests to a device and answers back: a TCP connection, or TLS over one.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Kilobytes that are looked at of what a device said before it ended a connection: an alert stands in the first.
const LAST_WORDS: usize = 20;

/// A connection to a device.
#[derive(Debug)]
pub(super) enum Link {
    Open(TcpStream),
    Secure(Box<Secure>),
}

/// Connects to the device at `address`.
pub(super) async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    // Closing takes back what was not delivered. Else the kernel would go on sending a request that
    // was given up, and a mended network would bring an output of long ago.
    stream.set_zero_linger()?;
    Ok(stream)
}

/// TLS over a connection. The handshake is made in another thread than the one that asks the device.
#[derive(Debug)]
pub(super) struct Secure {
    stream: TlsStream<Portable>,
    /// The device's certificate was revoked since the handshake.
    revoked: Arc<AtomicBool>,
}

impl Secure {
    /// Whose handshake is complete. It is not tied to a thread until [`Secure::attach`].
    pub(super) fn detached(
        mut stream: TlsStream<Portable>,
        revoked: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        stream.get_mut().0.detach()?;
        Ok(Self { stream, revoked })
    }

    /// Goes on in the runtime around this call.
    pub(super) fn attach(&mut self) -> io::Result<()> {
        self.stream.get_mut().0.attach()
    }

    fn judge(&self) -> io::Result<()> {
        match self.revoked.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    /// What the device said in TLS before it ended the connection, if that tells more than `error`, with which a write failed.
    fn last_words(&mut self, error: io::Error) -> io::Error {
        let (socket, session) = self.stream.get_mut();
        let mut chunk = [0; 1024];
        // The executor's thread is in here: who goes on talking is not listened to.
        for _ in 0..LAST_WORDS {
            let Some(read @ 1..) = socket.try_read(&mut chunk) else {
                break;
            };
            let fed = session.read_tls(&mut &chunk[..read]);
            match session.process_new_packets() {
                Err(said) => return io::Error::new(io::ErrorKind::InvalidData, said),
                Ok(_) if fed.is_ok() => {}
                Ok(_) => break,
            }
        }
        error
    }
}

impl AsyncRead for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Open(stream) => Pin::new(stream).poll_read(context, into),
            Self::Secure(secure) => {
                secure.judge()?;
                Pin::new(&mut secure.stream).poll_read(context, into)
            }
        }
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Open(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Secure(secure) => {
                secure.judge()?;
                let written = ready!(Pin::new(&mut secure.stream).poll_write(context, bytes));
                Poll::Ready(written.map_err(|error| secure.last_words(error)))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Open(stream) => Pin::new(stream).poll_flush(context),
            Self::Secure(secure) => {
                let flushed = ready!(Pin::new(&mut secure.stream).poll_flush(context));
                Poll::Ready(flushed.map_err(|error| secure.last_words(error)))
            }
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Open(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secure(secure) => Pin::new(&mut secure.stream).poll_shutdown(context),
        }
    }
}

/// A TCP connection that can go from one runtime to another.
#[derive(Debug)]
pub(super) enum Portable {
    Here(TcpStream),
    Between(std::net::TcpStream),
    Lost,
}

impl Portable {
    fn detach(&mut self) -> io::Result<()> {
        if let Self::Here(stream) = std::mem::replace(self, Self::Lost) {
            *self = Self::Between(stream.into_std()?);
        }
        Ok(())
    }

    fn attach(&mut self) -> io::Result<()> {
        if let Self::Between(stream) = std::mem::replace(self, Self::Lost) {
            *self = Self::Here(TcpStream::from_std(stream)?);
        }
        Ok(())
    }

    fn here(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        match self {
            Self::Here(stream) => Ok(Pin::new(stream)),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// What can be read at once; `None`: nothing.
    fn try_read(&self, into: &mut [u8]) -> Option<usize> {
        match self {
            Self::Here(stream) => stream.try_read(into).ok(),
            _ => None,
        }
    }
}

impl AsyncRead for Portable {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().here()?.poll_read(context, into)
    }
}

impl AsyncWrite for Portable {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().here()?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().here()?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().here()?.poll_shutdown(context)
    }
}
