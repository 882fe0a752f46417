//! Redundancy roles: heartbeats, sessions, leases, epochs and the witness, without I/O or clock.
