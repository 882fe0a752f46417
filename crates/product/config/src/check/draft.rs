//! An application while it is checked.

use bumpless_base::{ChannelId, Duration, LinkSet};

use crate::model::{Application, ApplicationKind, Commit, Distribution, FieldIo, Unsent};
use crate::reader::Place;
use crate::security::StateSecurity;

/// An application as far as it is known.
pub(crate) struct Draft {
    pub(crate) place: Place,
    pub(crate) name: Option<String>,
    pub(crate) group: Option<usize>,
    pub(crate) channel: Option<ChannelId>,
    pub(crate) period: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) expiry: Option<Duration>,
    /// Once in how long its state is written to disk, if it is.
    pub(crate) persist: Option<Option<Duration>>,
    pub(crate) commit: Option<Commit>,
    pub(crate) distribution: Option<Distribution>,
    pub(crate) unsent: Option<Unsent>,
    pub(crate) networks: Option<LinkSet>,
    pub(crate) retransmissions: Option<Option<u8>>,
    pub(crate) accepted_loss: Option<Option<f64>>,
    pub(crate) state_max: Option<u32>,
    pub(crate) kind: Option<ApplicationKind>,
    pub(crate) field: Option<Option<FieldIo>>,
    pub(crate) security: Option<StateSecurity>,
}

impl Draft {
    pub(crate) fn finish(self) -> Option<Application> {
        Some(Application {
            name: self.name?,
            group: self.group?,
            channel: self.channel?,
            period: self.period?,
            deadline: self.deadline?,
            expiry: self.expiry?,
            // Its group's word comes when all are known.
            hot_restart: Duration::ZERO,
            begins_anew: true,
            persist: self.persist?,
            commit: self.commit?,
            distribution: self.distribution?,
            unsent: self.unsent?,
            networks: self.networks?,
            retransmissions: self.retransmissions?,
            accepted_loss_per_year: self.accepted_loss?,
            state_max: self.state_max?,
            kind: self.kind?,
            field: self.field?,
            security: self.security?,
        })
    }
}
