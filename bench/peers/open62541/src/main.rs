//! OPC UA by open62541: the sender is a client, the receiver a server; a transfer is a method call with a
//! `ByteString` that returns the digest.

mod client;
mod log;
mod server;

use std::ffi::CStr;
use std::process::ExitCode;

use anyhow::ensure;
use open62541_sys::{
    UA_DataType, UA_OPEN62541_VERSION, UA_StatusCode, UA_StatusCode_name, UA_TYPES,
};
use peer_conversation::{Arguments, Connections, Peer};

/// The receiver's method: namespace and number of its node.
const METHOD: (u16, u32) = (1, 62541);

fn main() -> ExitCode {
    peer_conversation::run::<Open62541>()
}

struct Open62541;

impl Peer for Open62541 {
    type Receiver = server::Server;
    type Sender = client::Clients;

    fn version() -> String {
        let version = CStr::from_bytes_with_nul(UA_OPEN62541_VERSION).unwrap_or_default();
        version.to_string_lossy().trim_start_matches('v').to_owned()
    }

    fn settings(arguments: &Arguments) -> String {
        let calls = match arguments.connections {
            Connections::Single if arguments.channels > 1 => "asynchronous",
            _ => "synchronous",
        };
        let note = arguments.one_network_note();
        format!(
            "opc.tcp, security policy None, {calls} method calls with a ByteString, chunks of 64 KiB{note}"
        )
    }

    fn receive(arguments: &Arguments) -> anyhow::Result<Self::Receiver> {
        server::Server::start(arguments)
    }

    fn connect(arguments: &Arguments) -> anyhow::Result<Self::Sender> {
        client::Clients::connect(arguments)
    }
}

/// Turns a status into an error.
fn check(what: &str, status: UA_StatusCode) -> anyhow::Result<()> {
    // SAFETY: the function returns a constant text for every code.
    let name = unsafe { CStr::from_ptr(UA_StatusCode_name(status)) };
    ensure!(
        status == UA_StatusCode::default(),
        "{what}: {}",
        name.to_string_lossy()
    );
    Ok(())
}

/// A type's description.
fn data_type(index: u32) -> *const UA_DataType {
    // SAFETY: the table is constant once the program runs; only its address is taken.
    unsafe {
        (&raw const UA_TYPES)
            .cast::<UA_DataType>()
            .add(index as usize)
    }
}
