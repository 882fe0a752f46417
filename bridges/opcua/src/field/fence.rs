//! The connection with the server, which sends nothing of a write after its time.
//!
//! Between the moment at which the driver looks at the clock and that at which bytes reach the system, the process may stand
//! still for any time. So the time is looked at again where the bytes are handed over.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bumpless_field_driver::now;
use opcua::client::ConnectionSource;
use opcua::client::transport::{
    Connector, RequestRecv, SecureChannelState, StreamConnection, StreamConnector, StreamTransport,
    TransportConfiguration,
};
use opcua::core::comms::tcp_codec::TcpCodec;
use opcua::types::{DecodingOptions, EndpointDescription, Error, StatusCode};
use tokio::io::{AsyncWrite, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_util::codec::FramedRead;

/// No write is under way.
const OPEN: u64 = u64::MAX;

/// Until when what is handed over may leave.
#[derive(Clone, Debug)]
pub struct Fence(Arc<AtomicU64>);

impl Fence {
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(OPEN)))
    }

    /// A write begins, of which nothing may leave after `until`.
    pub fn close(&self, until: u64) {
        self.0.store(until, Ordering::Release);
    }

    /// The write is over.
    pub fn open(&self) {
        self.close(OPEN);
    }

    fn holds(&self) -> bool {
        now() >= self.0.load(Ordering::Acquire)
    }
}

/// What is sent to the server.
pub struct Fenced<W> {
    inner: W,
    fence: Fence,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Fenced<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.fence.holds() {
            // It ends the connection, and what of the message has been handed over is taken back with it.
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Leads to the server at `address`, whatever its endpoints' URLs say.
#[derive(Clone, Debug)]
pub struct Way {
    pub address: SocketAddr,
    pub url: String,
    pub fence: Fence,
}

impl ConnectionSource for Way {
    type Builder = Self;
    fn get_connector(&self, _: &EndpointDescription) -> Result<Self, Error> {
        Ok(self.clone())
    }
}

impl Connector for Way {
    type Transport = StreamTransport<ReadHalf<TcpStream>, Fenced<WriteHalf<TcpStream>>>;

    async fn connect(
        &self,
        channel: Arc<SecureChannelState>,
        outgoing: RequestRecv,
        config: TransportConfiguration,
    ) -> Result<Self::Transport, Error> {
        let (address, fence) = (self.address, self.fence.clone());
        let connected = move |url: String, decoding: DecodingOptions| {
            let fence = fence.clone();
            async move {
                let stream = dial(address).await.map_err(|error| {
                    let status = StatusCode::BadCommunicationError;
                    Error::new(status, format!("not connected ({error})"))
                })?;
                let (reader, inner) = tokio::io::split(stream);
                let reader = FramedRead::new(reader, TcpCodec::new(decoding));
                Ok(StreamConnection::new(reader, Fenced { inner, fence }, url))
            }
        };
        let connector = StreamConnector::new(connected, self.url.clone());
        connector.connect(channel, outgoing, config).await
    }

    fn default_endpoint(&self) -> EndpointDescription {
        EndpointDescription::from(self.url.as_str())
    }
}

async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    // Closing, the end of the process too, takes back what was not delivered: else the kernel would go on sending it, and
    // a network that is mended would bring an output of long ago.
    stream.set_zero_linger()?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn nothing_of_a_write_leaves_after_its_time_and_all_else_does() {
        let fence = Fence::new();
        let mut fenced = Fenced {
            inner: Vec::new(),
            fence: fence.clone(),
        };
        fenced.write_all(b"a").await.unwrap();
        fence.close(now() + 3_600_000_000_000);
        fenced.write_all(b"b").await.unwrap();
        fence.open();
        fence.close(now());
        fenced.write_all(b"c").await.unwrap_err();
        fence.open();
        fenced.write_all(b"d").await.unwrap();
        assert_eq!(fenced.inner, b"abd");
    }
}
