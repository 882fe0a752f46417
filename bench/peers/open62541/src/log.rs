//! A logger that leaves standard output to the conversation.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use open62541_sys::{__va_list_tag, UA_LogCategory, UA_LogLevel, UA_Logger};

/// A logger that stays as long as the program.
pub fn logger() -> *mut UA_Logger {
    Box::into_raw(Box::new(UA_Logger {
        log: Some(write),
        context: ptr::null_mut(),
        clear: None,
    }))
}

/// Writes errors, without what their placeholders stand for.
unsafe extern "C" fn write(
    _context: *mut c_void,
    level: UA_LogLevel,
    _category: UA_LogCategory,
    message: *const c_char,
    _arguments: *mut __va_list_tag,
) {
    if level.0 >= UA_LogLevel::UA_LOGLEVEL_ERROR.0 {
        // SAFETY: open62541 gives a text that ends with a zero.
        let message = unsafe { CStr::from_ptr(message) };
        eprintln!("open62541: {}", message.to_string_lossy());
    }
}
