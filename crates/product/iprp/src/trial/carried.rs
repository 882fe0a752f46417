//! What each network carried of a stream, by the counters of a daemon's status.

use std::net::IpAddr;

use serde_json::Value;

use super::report::Came;

/// Copies that a daemon sent on a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// The network.
    pub ind: u8,
    /// The other host's address there.
    pub to: String,
    /// Copies.
    pub sent: u64,
    /// Of these, those that left again.
    pub again: u64,
}

/// The session that a stream to `port` of `host` is in, and whether copies leave in it.
pub fn session(status: &Value, port: u16, host: IpAddr) -> Option<(&Value, bool)> {
    let found =
        sessions(&status["sending"], port).find(|it| it["destination"] == host.to_string())?;
    Some((found, found["suspended"] == false))
}

/// What was sent of a stream since the status `before`.
pub fn sent(status: &Value, before: &Value, port: u16, host: IpAddr) -> Vec<Carried> {
    let networks = |status: &Value| -> Vec<Carried> {
        let session = session(status, port, host).map(|(session, _)| networks(session));
        session.into_iter().flatten().filter_map(carried).collect()
    };
    let earlier = networks(before);
    let since = |mut it: Carried| {
        if let Some(before) = earlier.iter().find(|before| before.ind == it.ind) {
            it.sent = since(it.sent, before.sent);
            it.again = since(it.again, before.again);
        }
        it
    };
    networks(status).into_iter().map(since).collect()
}

/// What has come of a stream from `source`, by network.
pub fn came(status: &Value, port: u16, source: IpAddr) -> Vec<Came> {
    let found = sessions(&status["receiving"], port).find(|it| it["source"] == source.to_string());
    found
        .into_iter()
        .flat_map(networks)
        .filter_map(arrivals)
        .collect()
}

/// What has come since `before`.
pub fn came_since(now: &[Came], before: &[Came]) -> Vec<Came> {
    let one = |it: &Came| {
        let nothing = Came::default();
        let before = before
            .iter()
            .find(|before| before.ind == it.ind)
            .unwrap_or(&nothing);
        Came {
            ind: it.ind,
            first: since(it.first, before.first),
            duplicate: since(it.duplicate, before.duplicate),
            very_late: since(it.very_late, before.very_late),
            wrong_network: since(it.wrong_network, before.wrong_network),
        }
    };
    now.iter().map(one).collect()
}

/// A session that has begun anew counts from 0.
const fn since(now: u64, before: u64) -> u64 {
    match now.checked_sub(before) {
        Some(more) => more,
        None => now,
    }
}

fn sessions(all: &Value, port: u16) -> impl Iterator<Item = &Value> {
    let all = all.as_array().into_iter().flatten();
    all.filter(move |it| {
        it["protocol"] == "udp" && it["side"] == "destination" && it["port"] == port
    })
}

fn networks(session: &Value) -> impl Iterator<Item = &Value> {
    session["networks"].as_array().into_iter().flatten()
}

fn carried(it: &Value) -> Option<Carried> {
    Some(Carried {
        ind: ind(it)?,
        to: it["to"].as_str()?.to_owned(),
        sent: it["sent"].as_u64()?,
        again: it["again"].as_u64()?,
    })
}

fn arrivals(it: &Value) -> Option<Came> {
    Some(Came {
        ind: ind(it)?,
        first: it["first"].as_u64()?,
        duplicate: it["duplicate"].as_u64()?,
        very_late: it["very_late"].as_u64()?,
        wrong_network: it["wrong_network"].as_u64()?,
    })
}

fn ind(it: &Value) -> Option<u8> {
    u8::try_from(it["ind"].as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(side: &str, first: u64) -> Value {
        json!({
            "sending": [{
                "protocol": "udp", "side": side, "port": 9, "destination": "10.0.0.2", "suspended": false,
                "networks": [{"ind": 1, "to": "10.0.0.2", "sent": first, "again": 0}],
            }],
            "receiving": [{
                "protocol": "udp", "side": side, "port": 9, "source": "10.0.0.1",
                "networks": [{"ind": 1, "first": first, "duplicate": 0, "very_late": 0, "wrong_network": 0}],
            }],
        })
    }

    #[test]
    fn counters_are_those_of_the_stream_and_of_its_time() {
        let (host, source) = (IpAddr::from([10, 0, 0, 2]), IpAddr::from([10, 0, 0, 1]));
        let (before, now) = (status("destination", 5), status("destination", 12));
        assert_eq!(sent(&now, &before, 9, host)[0].sent, 7);
        assert_eq!(
            sent(&now, &status("source", 5), 9, host)[0].sent,
            12,
            "it was not there"
        );
        // The session was another one.
        assert_eq!(sent(&before, &now, 9, host)[0].sent, 5);
        assert_eq!(sent(&now, &before, 8, host), []);
        let came_of = |status: &Value| came(status, 9, source);
        assert_eq!(came_since(&came_of(&now), &came_of(&before))[0].first, 7);
        assert_eq!(came_of(&status("source", 5)), []);
        assert_eq!(came(&now, 9, host), []);
    }
}
