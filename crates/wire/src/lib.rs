//! Wire formats: state transfer versions 1 and 2, heartbeats, witness messages.
