//! The sender: clients, one for each connection.
//!
//! A client that one channel uses calls synchronously, as open62541's tutorials do. One that several
//! channels share calls asynchronously, so that a channel's call need not wait for another's answer; a
//! thread of its own then takes the answers.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{bail, ensure};
use bytes::Bytes;
use open62541_sys::{
    UA_Array_delete, UA_ByteString, UA_CallResponse, UA_Client, UA_Client_call,
    UA_Client_call_async, UA_Client_connect, UA_Client_newWithConfig, UA_Client_run_iterate,
    UA_ClientConfig, UA_ClientConfig_setDefault, UA_NODEID_NUMERIC, UA_NS0ID_OBJECTSFOLDER,
    UA_TYPES_BYTESTRING, UA_TYPES_UINT64, UA_TYPES_VARIANT, UA_UInt32, UA_Variant,
    UA_Variant_setScalar,
};
use peer_conversation::{
    Acknowledgements, Arguments, Connections, TIMEOUT, Timing, Transfer, digest,
};

use crate::{METHOD, check, data_type, log};

/// Milliseconds after which a secure channel is renewed: later than a measurement ends.
const CHANNEL_LIFE: u32 = 24 * 60 * 60 * 1000;
/// Milliseconds for which the thread of a shared client waits at once.
const WAIT: u32 = 1000;

/// What sends.
pub enum Clients {
    /// A client for each channel.
    Own(Vec<Mutex<Client>>),
    /// One client for all channels, and where their answers come.
    Shared(Client, &'static [Place]),
}

/// An open62541 client.
#[derive(Clone, Copy)]
pub struct Client(*mut UA_Client);

// SAFETY: open62541 is built with its own locks (UA_MULTITHREADING 100), so that a client may be called from
// several threads.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

/// Where the answers of one channel's asynchronous calls come.
pub struct Place {
    channel: usize,
    acknowledgements: &'static Acknowledgements,
}

impl Clients {
    /// Connects to the first address of the receiver.
    pub fn connect(arguments: &Arguments) -> anyhow::Result<Self> {
        if arguments.connections == Connections::Many || arguments.channels == 1 {
            let clients =
                (0..arguments.channels).map(|_| Client::connect(arguments).map(Mutex::new));
            return Ok(Self::Own(clients.collect::<anyhow::Result<_>>()?));
        }
        let client = Client::connect(arguments)?;
        let acknowledgements: &'static _ =
            Box::leak(Box::new(Acknowledgements::new(arguments.channels)));
        let places = (0..arguments.channels).map(|channel| Place {
            channel,
            acknowledgements,
        });
        let places = Vec::leak(places.collect());
        thread::spawn(move || {
            // SAFETY: the client lives as long as the program, and only this thread runs it.
            while check("the connection", unsafe { client.iterate() }).is_ok() {}
            eprintln!("open62541: the connection has ended");
        });
        Ok(Self::Shared(client, places))
    }
}

impl Transfer for Clients {
    fn transfer(&self, channel: usize, state: &Bytes) -> anyhow::Result<Timing> {
        match self {
            Self::Own(clients) => {
                let client = clients[channel]
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                client.call(state)
            }
            Self::Shared(client, places) => client.call_asynchronously(&places[channel], state),
        }
    }
}

impl Client {
    fn connect(arguments: &Arguments) -> anyhow::Result<Self> {
        let url = CString::new(format!(
            "opc.tcp://{}:{}",
            arguments.remote[0], arguments.port
        ))?;
        // SAFETY: open62541 asks for a configuration of zeros to begin with.
        let mut config: UA_ClientConfig = unsafe { std::mem::zeroed() };
        config.logging = log::logger();
        config.timeout = u32::try_from(TIMEOUT.as_millis())?;
        config.secureChannelLifeTime = CHANNEL_LIFE;
        // SAFETY: the configuration lives through the call.
        check("cannot configure the client", unsafe {
            UA_ClientConfig_setDefault(&raw mut config)
        })?;
        // SAFETY: the configuration is complete; the client takes over what it owns.
        let client = unsafe { UA_Client_newWithConfig(&raw const config) };
        ensure!(!client.is_null(), "cannot make a client");
        // SAFETY: the client was made above; the text lives through the call.
        let status = unsafe { UA_Client_connect(client, url.as_ptr()) };
        check(
            &format!("cannot connect to {}", url.to_string_lossy()),
            status,
        )?;
        Ok(Self(client))
    }

    /// Waits for answers.
    ///
    /// # Safety
    ///
    /// Only one thread at a time does this with a client.
    unsafe fn iterate(self) -> open62541_sys::UA_StatusCode {
        // SAFETY: the client lives as long as the program.
        unsafe { UA_Client_run_iterate(self.0, WAIT) }
    }

    fn call(self, state: &Bytes) -> anyhow::Result<Timing> {
        let expected = digest(state);
        let (mut outputs, mut output) = (0, ptr::null_mut());
        let start = Instant::now();
        // SAFETY: the input borrows the state, which lives through the call, and open62541 only reads it.
        let status = unsafe {
            with_input(state, |input| {
                UA_Client_call(
                    self.0,
                    UA_NODEID_NUMERIC(0, UA_NS0ID_OBJECTSFOLDER),
                    UA_NODEID_NUMERIC(METHOD.0, METHOD.1),
                    1,
                    input,
                    &raw mut outputs,
                    &raw mut output,
                )
            })
        };
        let end = Instant::now();
        check("the call failed", status)?;
        // SAFETY: after a call that succeeded the outputs are an array of ours, with the size beside it.
        let answer = unsafe {
            let answer = read_digest(outputs, output);
            UA_Array_delete(output.cast(), outputs, data_type(UA_TYPES_VARIANT));
            answer
        };
        if answer != Some(expected) {
            bail!("the acknowledgement is of another state");
        }
        Ok(Timing { start, end })
    }

    fn call_asynchronously(self, place: &'static Place, state: &Bytes) -> anyhow::Result<Timing> {
        let start = Instant::now();
        // SAFETY: open62541 encodes the input before it returns; the place lives as long as the program.
        let status = unsafe {
            with_input(state, |input| {
                UA_Client_call_async(
                    self.0,
                    UA_NODEID_NUMERIC(0, UA_NS0ID_OBJECTSFOLDER),
                    UA_NODEID_NUMERIC(METHOD.0, METHOD.1),
                    1,
                    input,
                    Some(answered),
                    ptr::from_ref(place).cast_mut().cast(),
                    ptr::null_mut(),
                )
            })
        };
        check("the call failed", status)?;
        let timeout = TIMEOUT.saturating_sub(start.elapsed());
        let end = place
            .acknowledgements
            .wait(place.channel, digest(state), timeout)?;
        Ok(Timing { start, end })
    }
}

/// The answer of an asynchronous call has come.
unsafe extern "C" fn answered(
    _client: *mut UA_Client,
    place: *mut c_void,
    _request: UA_UInt32,
    response: *mut UA_CallResponse,
) {
    // SAFETY: the place is the one that was given with the call, and lives as long as the program.
    let place = unsafe { &*place.cast::<Place>() };
    // SAFETY: open62541 gives a response that lives through this call, with its arrays' sizes.
    let digest = unsafe {
        let response = &*response;
        match response.resultsSize {
            1 => {
                let result = &*response.results;
                read_digest(result.outputArgumentsSize, result.outputArguments)
            }
            _ => None,
        }
    };
    match digest {
        Some(digest) => place.acknowledgements.put(place.channel, digest),
        None => eprintln!("open62541: a call of channel {} failed", place.channel),
    }
}

/// Gives the work a variant that borrows the state as a byte string.
///
/// # Safety
///
/// The work only reads the variant, and keeps no pointer to it.
unsafe fn with_input<R>(state: &Bytes, work: impl FnOnce(*const UA_Variant) -> R) -> R {
    let mut bytes = UA_ByteString {
        length: state.len(),
        data: state.as_ptr().cast_mut(),
    };
    // SAFETY: a variant of zeros is an empty one; it then points to a value that outlives it.
    unsafe {
        let mut input: UA_Variant = std::mem::zeroed();
        let value = (&raw mut bytes).cast();
        UA_Variant_setScalar(&raw mut input, value, data_type(UA_TYPES_BYTESTRING));
        work(&raw const input)
    }
}

/// The digest among a call's outputs.
///
/// # Safety
///
/// `outputs` points to `count` variants.
unsafe fn read_digest(count: usize, outputs: *const UA_Variant) -> Option<u64> {
    if count != 1 {
        return None;
    }
    // SAFETY: the caller's promise; a variant's data has the type that it names.
    unsafe {
        let output = &*outputs;
        (output.type_ == data_type(UA_TYPES_UINT64) && !output.data.is_null())
            .then(|| *output.data.cast::<u64>())
    }
}
