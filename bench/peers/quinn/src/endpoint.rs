//! Endpoints: socket, certificate, connections.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use anyhow::Context;
use peer_certificate::{CERTIFICATE_DER, KEY_DER, NAME};
use peer_conversation::Arguments;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TokioRuntime};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use socket2::{Domain, Protocol, Socket, Type};

use crate::settings::{SOCKET_BUFFER, transport};

/// An endpoint that listens.
pub fn server(arguments: &Arguments) -> anyhow::Result<Endpoint> {
    let key = PrivateKeyDer::try_from(KEY_DER).map_err(anyhow::Error::msg)?;
    let mut config = ServerConfig::with_single_cert(vec![CERTIFICATE_DER.into()], key.clone_key())?;
    config.transport_config(Arc::new(transport(arguments)));
    endpoint(arguments.local[0], arguments.port, Some(config))
}

/// An endpoint and its connections to the receiver.
pub async fn connect(arguments: &Arguments) -> anyhow::Result<(Endpoint, Vec<Connection>)> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE_DER))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport(arguments)));
    let mut endpoint = endpoint(arguments.local[0], 0, None)?;
    endpoint.set_default_client_config(config);
    let to = SocketAddr::from((arguments.remote[0], arguments.port));
    let mut connections = Vec::new();
    for _ in 0..arguments.connection_count() {
        let connection = endpoint.connect(to, NAME)?.await;
        connections.push(connection.with_context(|| format!("cannot connect to {to}"))?);
    }
    Ok((endpoint, connections))
}

fn endpoint(
    address: Ipv4Addr,
    port: u16,
    server: Option<ServerConfig>,
) -> anyhow::Result<Endpoint> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    let address = SocketAddr::from((address, port));
    let bound = socket.bind(&address.into());
    bound.with_context(|| format!("cannot bind to {address}"))?;
    let socket = UdpSocket::from(socket);
    let runtime = Arc::new(TokioRuntime);
    let endpoint = Endpoint::new(EndpointConfig::default(), server, socket, runtime);
    endpoint.context("cannot make an endpoint")
}
