//! States over TLS 1.3 on the kernel's TCP: frames and answers as over TCP alone, a connection for each channel.
//!
//! The receiver makes a certificate at its start, and the sender takes any: what is measured is what carrying states costs,
//! after the handshake.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use bumpless_base::Duration;
use bumpless_net_linux::Clock;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, ServerConfig, ServerConnection,
    SignatureScheme, StreamOwned,
};

use super::payload::is_whole;
use super::tcp::{HEADER, address, invalid, refused, unpack};
use super::{ChannelSender, Kind, PeerOptions, kernel_version, stream, wait_for_end};
use crate::conversation::serve::tell;
use crate::conversation::{ready, serve};

/// Whose certificate it is.
const NAME: &str = "bench";

/// Runs the receiving side.
///
/// # Errors
/// It cannot listen, or make a certificate.
pub fn receive(options: &PeerOptions) -> Result<(), String> {
    let config = Arc::new(server()?);
    let listener = stream::listen(options.kind, address(options)?)
        .map_err(|error| refused(options.kind, &error))?;
    let max_size = options.max_size as usize;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            thread::spawn(move || {
                if let Err(error) = take_states(config, stream, max_size)
                    && error.kind() == io::ErrorKind::InvalidData
                {
                    eprintln!("tcp-tls: {error}");
                    std::process::exit(1);
                }
            });
        }
    });
    let listening = ready(Kind::TcpTls.name(), &kernel_version(), "");
    tell(&mut io::stdout(), &listening).map_err(|error| error.to_string())?;
    wait_for_end();
    Ok(())
}

fn server() -> Result<ServerConfig, String> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
    let made = made.map_err(|error| format!("cannot make a certificate: {error}"))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(said)?
        .with_no_client_auth();
    let chain = vec![made.cert.der().clone()];
    config
        .with_single_cert(chain, PrivateKeyDer::Pkcs8(key))
        .map_err(said)
}

fn said(error: Error) -> String {
    format!("TLS: {error}")
}

/// Reads and answers states until the connection ends.
fn take_states(config: Arc<ServerConfig>, stream: TcpStream, max_size: usize) -> io::Result<()> {
    stream::prepare(Kind::TcpTls, &stream)?;
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let mut state = vec![0; max_size];
    loop {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header)?;
        let [channel, size] = unpack(header);
        let state = state
            .get_mut(..size as usize)
            .ok_or_else(|| invalid("a frame is longer than --max-size"))?;
        stream.read_exact(state)?;
        if !is_whole(state) {
            return Err(invalid("a state arrived that was not sent"));
        }
        stream.write_all(&channel.to_be_bytes())?;
        stream.flush()?;
    }
}

/// Runs the sending side.
///
/// # Errors
/// It cannot connect, or nobody reads what it says.
pub fn send(options: &PeerOptions) -> Result<(), String> {
    let config = Arc::new(client()?);
    let mut settings = String::new();
    let mut senders: Vec<Box<dyn ChannelSender>> = Vec::new();
    for channel in 0..options.channels {
        let (connection, said) = connect(options, &config, channel)?;
        settings = said;
        senders.push(Box::new(connection));
    }
    let mut output = io::stdout();
    let connected = ready(Kind::TcpTls.name(), &kernel_version(), &settings);
    let mut input = io::stdin().lock();
    let largest = options.max_size as usize;
    let served = serve(&connected, senders, largest, None, &mut input, &mut output);
    served.map_err(|error| error.to_string())
}

fn client() -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(said)?;
    let config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)));
    Ok(config.with_no_client_auth())
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A connection, with what was set and agreed on.
fn connect(
    options: &PeerOptions,
    config: &Arc<ClientConfig>,
    channel: u32,
) -> Result<(TlsChannel, String), String> {
    let to = address(options)?;
    let from = *options.from.first().ok_or("no address to connect from")?;
    let kind = options.kind;
    let tcp = stream::connect(kind, from, to)
        .map_err(|error| format!("cannot connect to {to}: {}", refused(kind, &error)))?;
    let failed = |error: io::Error| format!("cannot set up the connection: {error}");
    let set = stream::prepare(kind, &tcp).map_err(failed)?;
    let name = ServerName::try_from(NAME).map_err(|error| error.to_string())?;
    let connection = ClientConnection::new(Arc::clone(config), name).map_err(said)?;
    let mut stream = StreamOwned::new(connection, tcp);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(failed)?;
    }
    let suite = stream.conn.negotiated_cipher_suite();
    let suite = suite.map_or_else(String::new, |suite| format!(", {:?}", suite.suite()));
    Ok((TlsChannel { stream, channel }, set + &suite))
}

struct TlsChannel {
    stream: TlsStream,
    channel: u32,
}

impl ChannelSender for TlsChannel {
    fn transfer(&mut self, state: &[u8], timeout: Duration) -> Result<Duration, String> {
        let failed = |error: io::Error| format!("the connection failed: {error}");
        let limit = Some(timeout.to_std());
        self.stream.sock.set_read_timeout(limit).map_err(failed)?;
        self.stream.sock.set_write_timeout(limit).map_err(failed)?;
        let header = (u64::from(self.channel) << 32 | state.len() as u64).to_be_bytes();
        let began = Clock.now();
        self.stream.write_all(&header).map_err(failed)?;
        self.stream.write_all(state).map_err(failed)?;
        self.stream.flush().map_err(failed)?;
        let mut answer = [0; 4];
        self.stream.read_exact(&mut answer).map_err(failed)?;
        let took = Clock.now().since(began);
        if u32::from_be_bytes(answer) != self.channel {
            return Err("another channel was acknowledged".into());
        }
        Ok(took)
    }
}

/// Takes any certificate.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.3 alone is spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
