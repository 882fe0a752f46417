//! What sessions between hosts with certificates give: keys of frames, and who is not let in.

use std::net::{IpAddr, SocketAddr};

use bumpless_base::Instant;
use bumpless_iprp::PeerId;
use bumpless_secure::Secret;
use serde_json::json;

use super::ControlPlane;
use super::troubles::Of;
use crate::agreements::News;
use crate::closed::{HostId, Outgoing};
use crate::exchange::ToData;

impl ControlPlane {
    /// Does what sessions ask for, and has hosts called to which something is to be said.
    pub fn follow_sessions(&mut self, now: Instant) {
        while let Some(news) = self.agreements.as_ref().and_then(|it| it.news()) {
            match news {
                News::Keys {
                    host,
                    at,
                    ring,
                    reply,
                } => {
                    let secrets = ring.secrets.iter().map(|secret| Secret::new(**secret));
                    let (ports, port) = (&self.ports.control, self.config.host.control_port);
                    let emit = &mut |it: Outgoing<'_>| {
                        let _ = ports.send(it.card, it.bytes, SocketAddr::new(it.to, port));
                    };
                    let secrets = secrets.collect();
                    let set = self
                        .closed
                        .set_keys(now, (host, at), secrets, ring.seals, emit);
                    let _ = reply.try_send(set);
                }
                News::Over { host, name, why } => self.disown(host, &name, &why),
                News::Refused { at, why } => {
                    let cause = "no_session".to_owned();
                    *self.state.refused.entry(cause).or_default() += 1;
                    let words = format!("there is no session with the host at {at}: {why}");
                    self.trouble(Of::Other, &format!("session {at}"), &words);
                }
                News::Shown { at } => {
                    self.state.keyless.forget(at);
                    self.no_trouble(&format!("session {at}"));
                    self.no_trouble(&format!("keys {at}"));
                }
            }
        }
        let wanted = self.closed.take_wanted();
        if let Some(agreements) = &self.agreements {
            agreements.want(wanted);
        }
    }

    /// A frame with a key that no session has given. A host that has started again gets such ones until there is a session; one that goes on
    /// has a key file, say.
    pub fn refuse_without_session(&mut self, from: IpAddr) {
        *self.state.refused.entry("unknown_key".into()).or_default() += 1;
        if self.state.keyless.note(from) {
            let words = format!(
                "{from} seals with keys that were not agreed on with this host: give it a certificate of this group, too, or all hosts the same key file"
            );
            self.trouble(Of::Other, &format!("keys {from}"), &words);
        }
    }

    /// A host is not believed any more: nothing of it opens, and nothing is sealed for it.
    fn disown(&mut self, host: HostId, name: &str, why: &str) {
        let addresses = self.closed.forget_host(host);
        self.tell(ToData::Disown(PeerId(host.0), addresses));
        let words = format!("{name} is not let in any more: {why}");
        self.log.say("disowned", json!({"host": name}), &words);
    }
}
