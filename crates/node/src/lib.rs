//! The daemon of one controller: data-plane thread, executors, status and control.
