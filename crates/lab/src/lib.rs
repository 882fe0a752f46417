//! Fault-injecting drivers and the demonstration that uses them.
