//! The server: each stream comes back.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use peer_certificate::{CERTIFICATE_DER, KEY_DER};
use peer_echo::{MESSAGE, Serve};
use quinn::congestion::CubicConfig;
use quinn::{Endpoint, Incoming, RecvStream, SendStream, ServerConfig, TransportConfig};
use rustls::pki_types::PrivateKeyDer;

/// Listens, says so, and serves for ever.
pub async fn serve(serve: &Serve) -> anyhow::Result<()> {
    let key = PrivateKeyDer::try_from(KEY_DER).map_err(anyhow::Error::msg)?;
    let mut config = ServerConfig::with_single_cert(vec![CERTIFICATE_DER.into()], key.clone_key())?;
    config.transport_config(Arc::new(transport()));
    let port = serve.port;
    let listen = |address: Ipv4Addr| {
        let endpoint = Endpoint::server(config.clone(), SocketAddr::from((address, port)));
        endpoint.with_context(|| format!("cannot listen at {address}:{port}"))
    };
    let [network, backup] = [listen(serve.address)?, listen(serve.backup)?];
    peer_echo::say_listening();
    tokio::join!(accept(&network), accept(&backup));
    Ok(())
}

async fn accept(endpoint: &Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(connection(incoming));
    }
}

/// Cubic, as the paper's table I has it, and quinn's defaults.
pub fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
    transport
}

/// What goes wrong with a connection is its client's to notice.
async fn connection(incoming: Incoming) -> anyhow::Result<()> {
    // What comes with the first packets is answered before the handshake is over.
    let connection = match incoming.accept()?.into_0rtt() {
        Ok((connection, _)) => connection,
        Err(connecting) => connecting.await?,
    };
    loop {
        let (send, receive) = connection.accept_bi().await?;
        tokio::spawn(echo(send, receive));
    }
}

async fn echo(mut send: SendStream, mut receive: RecvStream) -> anyhow::Result<()> {
    let mut chunk = [0; 4 * MESSAGE];
    while let Some(len) = receive.read(&mut chunk).await? {
        send.write_all(&chunk[..len]).await?;
    }
    Ok(())
}
