//! Where a channel's thread waits for an acknowledgement that another thread reads.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A place for each channel's latest acknowledgement.
#[derive(Debug, Default)]
pub struct Acknowledgements {
    channels: Vec<Place>,
}

#[derive(Debug, Default)]
struct Place {
    digest: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Acknowledgements {
    /// Places for so many channels.
    pub fn new(channels: usize) -> Self {
        let channels = (0..channels).map(|_| Place::default()).collect();
        Self { channels }
    }

    /// An acknowledgement has been read.
    pub fn put(&self, channel: usize, digest: u64) {
        if let Some(place) = self.channels.get(channel) {
            *place.digest.lock().unwrap_or_else(PoisonError::into_inner) = Some(digest);
            place.changed.notify_one();
        }
    }

    /// Waits for the acknowledgement with this digest; others are of transfers given up earlier.
    pub fn wait(&self, channel: usize, digest: u64, timeout: Duration) -> anyhow::Result<Instant> {
        let place = &self.channels[channel];
        let seen = place.digest.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut seen, _) = place
            .changed
            .wait_timeout_while(seen, timeout, |seen| *seen != Some(digest))
            .unwrap_or_else(PoisonError::into_inner);
        if seen.take() == Some(digest) {
            Ok(Instant::now())
        } else {
            anyhow::bail!(
                "no acknowledgement within {} s",
                timeout.as_secs_f64().round()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_of_another_state_is_not_taken() {
        let acknowledgements = Acknowledgements::new(2);
        acknowledgements.put(1, 5);
        assert!(
            acknowledgements
                .wait(1, 6, Duration::from_millis(1))
                .is_err()
        );
        acknowledgements.put(1, 6);
        assert!(
            acknowledgements
                .wait(1, 6, Duration::from_millis(1))
                .is_ok()
        );
        assert!(
            acknowledgements
                .wait(1, 6, Duration::from_millis(1))
                .is_err()
        );
    }
}
