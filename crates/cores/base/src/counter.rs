//! The one catalogue of counters. Status shows them by name; `bumpless status --all` with units and help.
//!
//! A core owns a [`Counters`] block and adds to it; a driver sums the blocks for whoever asks.

macro_rules! catalogue {
    ($( $variant:ident, $name:literal, $unit:literal, $help:literal; )*) => {
        /// Everything that the data plane counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Counter { $( #[doc = $help] $variant, )* }

        impl Counter {
            /// Every counter, in catalogue order.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant),*];
            /// Name in status: lower case, words joined by underscores, stable.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name),* }
            }
            /// Unit of the figure.
            pub const fn unit(self) -> &'static str {
                match self { $(Counter::$variant => $unit),* }
            }
            /// One sentence for people.
            pub const fn help(self) -> &'static str {
                match self { $(Counter::$variant => $help),* }
            }
        }
    };
}

catalogue! {
    DatagramsReceived, "datagrams_received", "datagrams", "Datagrams taken from any link.";
    DatagramsSent, "datagrams_sent", "datagrams", "Datagrams handed to the kernel on any link.";
    BytesReceived, "bytes_received", "bytes", "UDP payload bytes taken from any link.";
    BytesSent, "bytes_sent", "bytes", "UDP payload bytes handed to the kernel on any link.";
    SendFailures, "send_failures", "datagrams", "Datagrams that a link refused (down, unreachable, full).";
    SendNoKey, "send_no_key", "datagrams", "Datagrams that did not leave: no key is agreed upon yet with whom they are for.";
    ReceiveFailures, "receive_failures", "calls", "Receive calls that a link or an ICMP echo socket failed.";
    DiscardSocketFull, "discard_socket_full", "datagrams", "Discarded by the kernel, unseen: the receive buffer of a link's socket was full (seldom: a wrong checksum).";
    DiscardScreened, "discard_screened", "datagrams", "Discarded by the kernel, unseen, while a socket's screen let one of 64 datagrams of strangers pass; with what found its receive buffer full meanwhile.";
    PingFailures, "ping_failures", "requests", "ICMP echo requests to reference points that the system refused to send.";
    DiscardTruncated, "discard_truncated", "datagrams", "Discarded: shorter than its header says or than any header.";
    DiscardUnknownType, "discard_unknown_type", "datagrams", "Discarded: unknown message type.";
    DiscardUnknownVersion, "discard_unknown_version", "datagrams", "Discarded: known type, unknown version.";
    DiscardMalformed, "discard_malformed", "datagrams", "Discarded: a field has a value its clause forbids.";
    DiscardCorrupt, "discard_corrupt", "datagrams", "Discarded: a heartbeat or witness message with a wrong checksum.";
    DiscardUnprotected, "discard_unprotected", "datagrams", "Discarded: not protected, where messages must be.";
    DiscardProtected, "discard_protected", "datagrams", "Discarded: protected, where messages are open.";
    DiscardUnknownKey, "discard_unknown_key", "datagrams", "Discarded: sealed with a key that this node or witness does not have.";
    DiscardMisdirected, "discard_misdirected", "datagrams", "Discarded: sealed by or for somebody else, or for another link.";
    DiscardForged, "discard_forged", "datagrams", "Discarded: sealed by nobody who has the key, or changed on the way.";
    DiscardReplayed, "discard_replayed", "datagrams", "Discarded: a sealed datagram that has come before.";
    DiscardUntried, "discard_untried", "datagrams", "Discarded: of an unknown process, when too many such had come.";
    DiscardNoSource, "discard_no_source", "datagrams", "Discarded: the kernel named no address that it came from.";
    DiscardUnknownSource, "discard_unknown_source", "datagrams", "Discarded: from an address that is no partner's on this link.";
    DiscardWrongVersion, "discard_wrong_version", "datagrams", "Discarded: a wire version other than the one configured for the partner.";
    DiscardUnknownChannel, "discard_unknown_channel", "datagrams", "Discarded: for a channel that this node does not have with that partner.";
    DiscardWrongSession, "discard_wrong_session", "datagrams", "Discarded: from an earlier or foreign session.";
    DiscardWrongSize, "discard_wrong_size", "datagrams", "Discarded: sizes contradict the channel, the cycle or the sequence number.";
    DiscardOldCycle, "discard_old_cycle", "datagrams", "Discarded: of a transfer cycle that is complete or superseded.";
    DiscardDuplicate, "discard_duplicate", "datagrams", "Discarded: a copy of a packet that is already there, or a heartbeat older than one heard on its link (both normal with several links).";
    DiscardExpired, "discard_expired", "datagrams", "Discarded: its state had expired on arrival.";
    DiscardNoBuffer, "discard_no_buffer", "datagrams", "Discarded: the application still reads the only spare buffer.";
    DiscardWrongKind, "discard_wrong_kind", "datagrams", "Discarded: a message of a kind that its sender never sends, or that a witness never takes.";
    DiscardTooManyRequests, "discard_too_many_requests", "datagrams", "Discarded: a request to a witness beyond those that it answers at once; the node asks again.";
    DiscardWrongNode, "discard_wrong_node", "datagrams", "Discarded: a heartbeat or witness message not meant for this node, pair or group.";
    DiscardUnaskedEcho, "discard_unasked_echo", "replies", "Discarded: an ICMP echo reply to a request that is answered already, too old or was never sent.";
    DiscardForeignIcmp, "discard_foreign_icmp", "messages", "Discarded: an ICMP message that is no reply to this process (normal where only a raw socket is permitted).";
    DiscardStaleAck, "discard_stale_ack", "datagrams", "Discarded: an acknowledgement of another transfer cycle than the open one (normal with several links: the second copy).";
    DiscardForgedAck, "discard_forged_ack", "datagrams", "Discarded: an acknowledgement of packets that were never sent.";
    StatesPublished, "states_published", "states", "States taken over from applications for transfer.";
    StatesSafe, "states_safe", "states", "States that the backup has acknowledged whole before the deadline.";
    StatesFailed, "states_failed", "states", "States given up: the deadline could not be met, the session ended or the channel was withdrawn.";
    StatesSuperseded, "states_superseded", "states", "States replaced by a later one before their transfer started.";
    StatesDelivered, "states_delivered", "states", "States received whole.";
    StatesAbandoned, "states_abandoned", "states", "States of which a part came before a later cycle replaced them, they expired or their channel was withdrawn.";
    StatesOverdue, "states_overdue", "states", "Times that an expected state did not come in time.";
    StatesUnopened, "states_unopened", "times", "Times that a received state did not open: changed, of another key, or too old (with a security handler for states).";
    StatesWithheld, "states_withheld", "states", "States that did not leave: there was no key to seal them with.";
    PacketsFirst, "packets_first", "packets", "State packets sent for the first time on a link.";
    PacketsRetransmitted, "packets_retransmitted", "packets", "State packets sent again because they were lost.";
    PacketsProbe, "packets_probe", "packets", "State packets sent again to ask for an acknowledgement.";
    AcksSent, "acks_sent", "acks", "Acknowledgements sent, each counted once for all links.";
    AcksReceived, "acks_received", "acks", "Acknowledgements taken into account.";
    WindowStalls, "window_stalls", "times", "Times that sending paused at the in-flight limit.";
    EventsLost, "events_lost", "events", "Notices dropped because the driver did not collect them.";
    HeartbeatsSent, "heartbeats_sent", "heartbeats", "Heartbeats sent on any link.";
    HeartbeatsReceived, "heartbeats_received", "heartbeats", "Heartbeats accepted from partners.";
    WitnessRequests, "witness_requests", "requests", "Requests to reference points: sent by a node, judged by a witness.";
    WitnessReplies, "witness_replies", "replies", "Answers accepted from reference points.";
    WitnessTableFull, "witness_table_full", "requests", "Requests that a witness refused because its table has no room for another group.";
    WitnessLeaseRefused, "witness_lease_refused", "requests", "Requests that a witness refused because the lease is longer than its longest, or of no length.";
    RoleChanges, "role_changes", "times", "Changes of a group's role on this node.";
    LeaseLapses, "lease_lapses", "times", "Times that the primary's lease ran out before it was renewed.";
    CyclesExecuted, "cycles_executed", "cycles", "Application cycles executed as primary.";
    CyclesOverrun, "cycles_overrun", "cycles", "Cycles not started because the one before ran over them.";
    OutputsWritten, "outputs_written", "outputs", "Outputs accepted by field devices.";
    OutputsHeld, "outputs_held", "outputs", "Outputs not written: no lease, no valid input or no commit.";
    OutputsRejected, "outputs_rejected", "outputs", "Outputs that a field device rejected because of their epoch.";
    FieldFailures, "field_failures", "requests", "Field requests that failed or came too late.";
    ProgramFaults, "program_faults", "executions", "Executions of a program that failed: a trap, a crash, an overrun, a wrong answer.";
    FieldDriverFailures, "field_driver_failures", "processes", "Processes of field drivers that ended, hung, said what is no answer, or could not be started.";
}

/// A block of counters, one figure for each entry of the catalogue.
#[derive(Clone, Debug)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Default for Counters {
    fn default() -> Self {
        Self([0; Counter::ALL.len()])
    }
}

impl Counters {
    /// Adds one.
    pub const fn count(&mut self, counter: Counter) {
        self.add(counter, 1);
    }
    /// Adds `n`, stopping at the largest figure.
    pub const fn add(&mut self, counter: Counter, n: u64) {
        let slot = &mut self.0[counter as usize];
        *slot = slot.saturating_add(n);
    }
    /// The figure of `counter`.
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }
    /// Adds every figure of `other` to this block.
    pub fn merge(&mut self, other: &Self) {
        // Only figures beyond half of the range can wrap; without them all are added several at a time.
        let bits = |block: &Self| block.0.iter().fold(0, |bits, figure| bits | figure);
        let large = bits(self) | bits(other) > u64::MAX / 2;
        for (slot, &n) in self.0.iter_mut().zip(&other.0) {
            *slot = match large {
                true => slot.saturating_add(n),
                false => slot.wrapping_add(n),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_of_lower_case_letters() {
        let names: BTreeSet<_> = Counter::ALL.iter().map(|c| c.name()).collect();
        assert_eq!(names.len(), Counter::ALL.len());
        let fits = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(names.iter().all(|name| fits(name)));
    }

    #[test]
    fn figures_stop_at_the_largest_instead_of_wrapping() {
        let mut counters = Counters::default();
        counters.add(Counter::AcksSent, u64::MAX);
        counters.count(Counter::AcksSent);
        assert_eq!(counters.get(Counter::AcksSent), u64::MAX);
        let mut sum = Counters::default();
        sum.count(Counter::AcksSent);
        sum.merge(&counters);
        sum.merge(&counters);
        assert_eq!(sum.get(Counter::AcksSent), u64::MAX);
    }
}
