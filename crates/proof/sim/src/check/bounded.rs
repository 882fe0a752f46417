//! bounded: packets in flight and queues never exceed their limits, whatever arrives.

use super::Verdict;

/// How full a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The node.
    pub node: usize,
    /// Unacknowledged packets on the way to the partner that has most.
    pub in_flight: u32,
    /// Their limit.
    pub in_flight_max: u32,
    /// Notices that a core had no room for.
    pub notices_lost: u64,
}

/// The checker.
pub struct Bounded;

impl Bounded {
    /// A node is this full after a turn.
    pub fn load(&self, load: &Load) -> Verdict {
        if load.in_flight > load.in_flight_max {
            return Err(format!(
                "node {} has {} packets in flight, {} are allowed",
                load.node, load.in_flight, load.in_flight_max
            ));
        }
        if load.notices_lost > 0 {
            return Err(format!(
                "node {}: a core had no room for {} notices although its driver collects them",
                load.node, load.notices_lost
            ));
        }
        Ok(())
    }

    /// So many packets wait in the ring of an interface of `node`, which has `room`.
    pub fn ring(&self, node: usize, waiting: usize, room: usize) -> Verdict {
        if waiting > room {
            return Err(format!(
                "node {node} has {waiting} packets in an interface's ring, {room} are allowed"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_allowed_and_one_more_is_found() {
        let load = |in_flight, notices_lost| {
            Bounded.load(&Load {
                in_flight,
                in_flight_max: 8,
                notices_lost,
                node: 0,
            })
        };
        assert!(load(8, 0).is_ok());
        assert!(Bounded.ring(0, 8, 8).is_ok() && Bounded.ring(0, 9, 8).is_err());
        assert!(load(9, 0).is_err() && load(0, 1).is_err());
    }
}
