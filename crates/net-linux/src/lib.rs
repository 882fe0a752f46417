//! Linux drivers: batched UDP links, pacing, wake-up, real-time threads and ICMP.
