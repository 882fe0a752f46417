//! The receiver: a server with one method.

use std::ffi::{CString, c_void};
use std::ptr;
use std::slice;
use std::thread::{self, JoinHandle};

use anyhow::ensure;
use open62541_sys::{
    UA_Argument, UA_Argument_init, UA_Array_delete, UA_Array_new, UA_ByteString,
    UA_MethodAttributes_default, UA_NODEID_NUMERIC, UA_NS0ID_HASCOMPONENT, UA_NS0ID_OBJECTSFOLDER,
    UA_NodeId, UA_QUALIFIEDNAME, UA_STATUSCODE_BADINVALIDARGUMENT, UA_Server,
    UA_Server_addMethodNode, UA_Server_newWithConfig, UA_Server_run_iterate, UA_Server_run_startup,
    UA_ServerConfig, UA_ServerConfig_setMinimal, UA_StatusCode, UA_String, UA_String_fromChars,
    UA_TYPES_BYTESTRING, UA_TYPES_STRING, UA_TYPES_UINT64, UA_Variant, UA_Variant_setScalarCopy,
};
use peer_conversation::{Arguments, digest};

use crate::{METHOD, check, data_type, log};

/// A value that is not an array.
const SCALAR: i32 = -1;

/// A server that runs in a thread of its own until the program ends.
pub struct Server {
    _thread: JoinHandle<()>,
}

/// The server, on its way to its thread.
struct Handle(*mut UA_Server);

// SAFETY: the server is used by the thread that runs it only, once it has been handed over.
unsafe impl Send for Handle {}

impl Server {
    /// Starts a server at the first own address.
    pub fn start(arguments: &Arguments) -> anyhow::Result<Self> {
        let mut config = configuration(arguments)?;
        // SAFETY: the configuration is complete; the server takes over what it owns.
        let server = unsafe { UA_Server_newWithConfig(&raw mut config) };
        ensure!(!server.is_null(), "cannot make a server");
        add_method(server)?;
        // SAFETY: the server was made above.
        check("cannot listen", unsafe { UA_Server_run_startup(server) })?;
        let handle = Handle(server);
        let thread = thread::spawn(move || {
            let handle = handle;
            loop {
                // SAFETY: no other thread uses the server.
                unsafe { UA_Server_run_iterate(handle.0, true) };
            }
        });
        Ok(Self { _thread: thread })
    }
}

fn configuration(arguments: &Arguments) -> anyhow::Result<UA_ServerConfig> {
    let url = CString::new(format!(
        "opc.tcp://{}:{}",
        arguments.local[0], arguments.port
    ))?;
    // SAFETY: open62541 asks for a configuration of zeros to begin with.
    let mut config: UA_ServerConfig = unsafe { std::mem::zeroed() };
    config.logging = log::logger();
    let port = arguments.port;
    // SAFETY: the configuration lives through the call; no certificate is allowed.
    let status = unsafe { UA_ServerConfig_setMinimal(&raw mut config, port, ptr::null()) };
    check("cannot configure the server", status)?;
    // SAFETY: the array is open62541's own, with the size beside it; the new one has one element.
    unsafe {
        let strings = data_type(UA_TYPES_STRING);
        UA_Array_delete(config.serverUrls.cast(), config.serverUrlsSize, strings);
        config.serverUrls = UA_Array_new(1, strings).cast::<UA_String>();
        config.serverUrlsSize = 1;
        *config.serverUrls = UA_String_fromChars(url.as_ptr());
    }
    config.maxSessions = u16::try_from(arguments.channels + 100).unwrap_or(u16::MAX);
    config.maxSecureChannels = config.maxSessions;
    Ok(config)
}

fn add_method(server: *mut UA_Server) -> anyhow::Result<()> {
    let name = CString::new("transfer")?;
    let argument = |kind: u32| {
        // SAFETY: `UA_Argument` is plain data; the type's description stays.
        unsafe {
            let mut argument: UA_Argument = std::mem::zeroed();
            UA_Argument_init(&raw mut argument);
            // Built-in types have numbers in namespace 0: nothing that is owned twice by the copy.
            argument.dataType = ptr::read(&raw const (*data_type(kind)).typeId);
            argument.valueRank = SCALAR;
            argument
        }
    };
    let (input, output) = (argument(UA_TYPES_BYTESTRING), argument(UA_TYPES_UINT64));
    // SAFETY: the constant is plain data.
    let mut attributes = unsafe { ptr::read(&raw const UA_MethodAttributes_default) };
    attributes.executable = true;
    attributes.userExecutable = true;
    // SAFETY: everything that is passed lives through the call; open62541 copies it.
    let status = unsafe {
        UA_Server_addMethodNode(
            server,
            UA_NODEID_NUMERIC(METHOD.0, METHOD.1),
            UA_NODEID_NUMERIC(0, UA_NS0ID_OBJECTSFOLDER),
            UA_NODEID_NUMERIC(0, UA_NS0ID_HASCOMPONENT),
            UA_QUALIFIEDNAME(METHOD.0, name.as_ptr().cast_mut()),
            attributes,
            Some(transfer),
            1,
            &raw const input,
            1,
            &raw const output,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    check("cannot add the method", status)
}

/// The method: takes a state, returns its digest.
unsafe extern "C" fn transfer(
    _server: *mut UA_Server,
    _session: *const UA_NodeId,
    _session_context: *mut c_void,
    _method: *const UA_NodeId,
    _method_context: *mut c_void,
    _object: *const UA_NodeId,
    _object_context: *mut c_void,
    inputs: usize,
    input: *const UA_Variant,
    outputs: usize,
    output: *mut UA_Variant,
) -> UA_StatusCode {
    if inputs != 1 || outputs != 1 {
        return UA_STATUSCODE_BADINVALIDARGUMENT;
    }
    // SAFETY: open62541 has checked that the one input is a scalar of the declared type.
    let state = unsafe { &*(*input).data.cast::<UA_ByteString>() };
    let bytes = if state.length == 0 {
        &[]
    } else {
        // SAFETY: a byte string that is not empty has `length` bytes at `data`.
        unsafe { slice::from_raw_parts(state.data, state.length) }
    };
    let digest = digest(bytes);
    // SAFETY: the output is there to be filled, and the value has the type that is given.
    unsafe {
        UA_Variant_setScalarCopy(
            output,
            (&raw const digest).cast(),
            data_type(UA_TYPES_UINT64),
        )
    }
}
