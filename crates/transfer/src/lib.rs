//! Reliable state transfer: sender and receiver cores without I/O, clock or random source.
