//! Sections on the pair as a whole, its networks, nodes and reference points.

use super::addresses::{AddressEntry, Addresses};
use super::numbers::{Bytes, Megabits, Millis, Real, Whole};
use super::section;
use crate::model::{IN_FLIGHT_MAX, ReceptionGuard, WireVersion};
use crate::shape::{Choice, Flag, Name, ProcessorList, Text};
use bumpless_base::{Duration, Processors};

/// The shortest lease, ms.
pub(crate) const LEASE_MIN_MS: f64 = 3.0;

section! {
    /// The pair, or pool, as a whole.
    Pair = "pair", Once, [] {
        /// Name of the pair, other than `witness`, `keys` and `field`: certificates of witnesses, key servers and field
        /// devices have these where those of nodes have the pair's name. Messages of a pair with another name are not
        /// listened to.
        /// Cost: none.
        /// Hazard: two pairs of the same name on the same networks report each other as wrongly
        /// configured, and neither writes outputs.
        name: String = "name", "none", Name, required;
    }
}

section! {
    /// Failure detection and the lease of the primary role.
    ///
    /// From these follows the failover time, 2 leases (lengthened by the clock drift) plus
    /// 3 heartbeats: what expiries allow for a failover, from the primary's last state to the
    /// backup's first cycle, with a reference point reachable.
    Timing = "timing", Once, [] {
        /// Time between two heartbeats that a node sends to a partner, on each network.
        /// Cost: one packet of 100 to 350 bytes per partner and network each time.
        /// Hazard: too long delays failover; below the machines' scheduling jitter a healthy
        /// partner seems silent.
        heartbeat: Duration = "heartbeat_ms", "milliseconds", Millis { min: 0.5, max: 1000.0 }, default("2");
        /// How long a node may write outputs after the last renewal of its primary role. At least
        /// 3 heartbeats, so that two lost ones do no harm.
        /// Cost: a renewal at each reference point when two heartbeats of the last one are left, with every
        /// fourth heartbeat at least; one per heartbeat when a partner is not heard.
        /// Hazard: too short and a stall of the machine ends the primary role; too long and the
        /// process waits that much longer for the backup after a crash; longer than a witness's
        /// `--longest-lease-ms`, that witness refuses.
        lease: Duration = "lease_ms", "milliseconds", Millis { min: LEASE_MIN_MS, max: 60_000.0 }, default("10");
        /// Most that the rates of two computers' clocks differ. Whoever waits for another's lease to
        /// end waits longer by this share.
        /// Cost: this share of the lease at each failover.
        /// Hazard: less than the true difference permits two writers for that moment.
        clock_drift: u64 = "clock_drift_ppm", "parts per million", Whole { min: 0, max: 100_000 }, default("500");
        /// How long a starting node listens for a primary before it may become one. At least
        /// 2 leases, lengthened by the clock drift.
        /// Cost: that much longer until a pair that starts alone writes outputs.
        /// Hazard: shorter than the start of the network card or switch port, a node that returns
        /// asks for the primary role although the partner holds it.
        start_wait: Duration = "start_wait_ms", "milliseconds", Millis { min: 6.0, max: 600_000.0 }, default("1000");
    }
}

section! {
    /// The state-transfer protocol.
    ///
    /// The payload of a packet is what the smallest MTU among the networks in use leaves after
    /// the IP header (20 or 40 bytes), UDP (8), what protects a message (39, if it is protected) and the data header
    /// (18 in version 1, 30 in 2).
    Transfer = "transfer", Once, [] {
        /// Format of data packets. Version 1 is the published one: at most 65,536 packets and
        /// 65.535 s expiry per state. Version 2 adds sessions and 32-bit numbers.
        /// Cost: version 2 has 12 more bytes in each packet.
        /// Hazard: version 1 cannot tell delayed packets of before a restart from present ones.
        wire_version: WireVersion = "wire_version", "none", Version, default("2");
        /// Unacknowledged packets that a receiver takes at a time; the sender pauses there. A fifth
        /// of it is the longest run without an acknowledgement. With certificates, nodes may differ in it, and the
        /// lower counts.
        /// Cost: that many packets of socket buffer per partner and network.
        /// Hazard: more than the receiver's queues hold loses packets in each large state; less
        /// than bandwidth times round trip slows every transfer.
        in_flight_max: u64 = "in_flight_max", "packets", Whole { min: 5, max: IN_FLIGHT_MAX as u64 }, default("512");
        /// Most memory that the state buffers of one node may take. Each state counts four times
        /// per partner of its group and twice more: double buffers on the sending and on the receiving
        /// side, and the application's own; three times more with `persist = "file"`, once more of a program of yours,
        /// once more if it is sealed by itself, and twice more per partner with `unsent = "keep"`.
        /// Cost: memory is taken at start, and kept.
        /// Hazard: more than the computer has free ends the process when it is locked, or swaps it.
        memory_max: u64 = "memory_max", "bytes", Bytes { max: 1 << 40 }, default("\"1 GiB\"");
    }
}

/// The transfer protocol's version, written as a number.
pub(crate) struct Version;

impl crate::shape::Describe for Version {
    fn accepts(&self) -> String {
        "1 or 2".into()
    }
}

impl crate::shape::Shape for Version {
    type Out = WireVersion;
    fn read(
        &self,
        item: &toml_edit::Item,
        lines: &crate::lines::Lines,
    ) -> Result<WireVersion, Vec<crate::shape::Fault>> {
        let number = Whole { min: 1, max: 2 }.read(item, lines)?;
        Ok(if number == 1 {
            WireVersion::V1
        } else {
            WireVersion::V2
        })
    }
}

section! {
    /// Real-time options of the data-plane thread. These are local: nodes may differ in them.
    /// Where the system does not permit one, the node says so once and runs without.
    Realtime = "realtime", Once, [] {
        /// SCHED_FIFO priority of the data plane; 0 leaves it with the ordinary scheduler.
        /// Cost: everything of lower priority on that processor waits.
        /// Hazard: above the kernel's own network threads it starves them, and packets arrive late.
        priority: u64 = "priority", "none", Whole { min: 0, max: 99 }, default("0");
        /// Whether to lock all memory, so that no access waits for the disk.
        /// Cost: all memory of the process stays in RAM.
        /// Hazard: needs the permission (RLIMIT_MEMLOCK) for the whole size.
        lock_memory: bool = "lock_memory", "none", Flag, default("false");
        /// Processor to which the data plane is pinned.
        /// Cost: nothing else should run there.
        /// Hazard: a processor that also takes the network card's interrupts can delay both.
        cpu: u64 = "cpu", "processor number", Whole { min: 0, max: 1023 }, computed("the scheduler chooses");
        /// How long a processor may take to wake, for as long as the node runs; with 0 none of the computer's
        /// processors sleeps. Waking threads is most of what a short state takes.
        /// Cost: power and heat; with 0 no processor of the computer ever rests.
        /// Hazard: without the permission (to write /dev/cpu_dma_latency) each wake-up can take tens of
        /// microseconds longer.
        wake_latency: u64 = "wake_latency_us", "microseconds", Whole { min: 0, max: 10_000 }, computed("the system's power management decides");
    }
}

section! {
    /// Floods of packets are kept from a node: its own flows have budgets that come from the plan, everything else on the networks' interfaces has
    /// a bounded one, and what is beyond is dropped at the driver (XDP), before the kernel makes a buffer of it.
    /// Networks on the loopback interface are left alone. This is local: nodes may differ in it. spec/reception.md says what is promised.
    Reception = "reception", Once, [] {
        /// Whether the interfaces of the networks are guarded: `auto`, where the system permits it (CAP_NET_ADMIN, CAP_BPF and
        /// CAP_PERFMON), and where it does not, the node's sockets drop most of a flood of strangers' datagrams; `off`, nowhere, and by
        /// no means. Status says where they are not. Where the networks are encrypted by IPsec, what comes is ESP or AH, which counts as the
        /// unknown, 500 packets a second: choose `off` there.
        /// Cost: some 50 ns of a processor's time for each packet.
        /// Hazard: `off`, and without the permission, a flood at any port takes the processor from the
        /// application.
        guard: ReceptionGuard = "guard", "none", GUARD_WORDS, default("\"auto\"");
        /// Budget of other services of the computer on these interfaces: packets a second to ports of TCP and UDP
        /// that are not the node's, on each interface. Secure shell (TCP port 22) has its own besides, 5,000.
        /// Cost: about 2 us of a processor's time for each packet that is let in.
        /// Hazard: less than other services of the computer receive on these interfaces slows them; a
        /// million lets floods through. Of two nodes on one interface, the first one guards it, and the other's packets are
        /// among these: switch the guard off there.
        other: u64 = "other_per_s", "packets a second", Whole { min: 100, max: 1_000_000 }, default("10000");
        /// What share of one processor reception is planned to take at most: `bumpless plan` says how much of a flood is borne until then.
        /// Cost: none.
        /// Hazard: it bounds nothing by itself; what budgets let in follows from the applications and `other_per_s`.
        reserve: u64 = "processor_percent", "percent", Whole { min: 1, max: 10_000 }, default("50");
        /// What a packet that is let in costs of a processor's time until its program has it. It is only reckoned with.
        /// Cost: none.
        /// Hazard: less than it does promises that more of a flood is borne than is.
        packet: u64 = "packet_ns", "nanoseconds", Whole { min: 1, max: 1_000_000 }, default("2000");
        /// What a packet that is dropped at the driver costs. It is only reckoned with.
        /// Cost: none.
        /// Hazard: as of `packet_ns`; drivers without XDP of their own (generic mode) take several times as long.
        dropped: u64 = "dropped_ns", "nanoseconds", Whole { min: 1, max: 1_000_000 }, default("150");
        /// Packets that wait in an interface's ring at most (`ethtool -g` shows it, `ethtool -G` sets it). It is only reckoned with.
        /// Cost: none.
        /// Hazard: more than it holds promises that more of a flood is borne than is.
        ring: u64 = "ring", "packets", Whole { min: 16, max: 65_536 }, default("256");
        /// Processors to which interrupts of the networks' interfaces come while the node runs, and on which threads of `napi_priority`
        /// run. It takes root, or CAP_DAC_OVERRIDE, CAP_NET_ADMIN and CAP_SYS_NICE, as the next two do; what there was before is put back at the end.
        /// Cost: these processors have less time for programs.
        /// Hazard: with the data plane's own among them (`cpu` in [realtime]), both wait for each other; `bumpless check` says so.
        interrupt_cpus: Processors = "interrupt_cpus", "processor numbers", ProcessorList { may_be_none: false },
            computed("as the system has them");
        /// Processors to which the networks' interfaces hand received packets on (RPS) while the node runs; `"none"`: packets are worked off where the interrupt was.
        /// Cost: an interrupt between processors for each burst.
        /// Hazard: with the data plane's own among them, packets of other programs delay it.
        rps_cpus: Processors = "rps_cpus", "processor numbers", ProcessorList { may_be_none: true },
            computed("as the system has them");
        /// Priority (SCHED_FIFO) of threads of the interfaces' own that work packets off while the node runs (threaded NAPI); 0: ordinary ones. It is
        /// to be above that of the data plane, which waits for them.
        /// Cost: a change of threads for each burst.
        /// Hazard: above other real-time programs, floods that budgets let in delay these; below the data plane, or with an ordinary one, packets wait for
        /// whatever else runs there.
        napi_priority: u64 = "napi_priority", "none", Whole { min: 0, max: 99 }, computed("as the system has it: mostly no threads");
        /// For how long the data plane looks for packets and states without sleeping, after the last that came (busy polling); 0: not at all. Where it is
        /// permitted (CAP_NET_ADMIN), the interface itself is asked (SO_BUSY_POLL).
        /// Cost: up to a whole processor.
        /// Hazard: on a processor that it shares, the application and other programs get less of it; with a real-time priority, nothing.
        busy_poll: u64 = "busy_poll_us", "microseconds", Whole { min: 0, max: 10_000 }, default("0");
    }
}

section! {
    /// What programs of the computer may register with a node's guard for sockets of their own while they run, in the manner of setsockopt: capacity, period
    /// and priority. Without `group` no program may. This is local: nodes may differ in it. spec/reception.md says what is promised (V-80 and further).
    Registration = "registration", Once, [] {
        /// Members of this group may, and root; with `"root"` nobody else.
        /// Cost: none.
        /// Hazard: a member can have floods at its own ports received, up to `processor_percent`.
        group: String = "group", "name or number of a group", Text { what: "a group", max: 32 }, computed("no program may register");
        /// Path of the socket at which programs register, in a folder that the group may enter. A path that is not absolute begins at the folder of this
        /// file.
        /// Cost: none.
        /// Hazard: of two guards on one computer, programs find the one that is where they look.
        socket: String = "socket", "path", Text { what: "a path", max: 100 }, computed("/run/bumpless-guard.sock, where programs look");
        /// So many sockets may be registered at a time.
        /// Cost: a place in the kernel for each, and one more look for each packet.
        /// Hazard: none.
        flows: u64 = "flows", "sockets", Whole { min: 1, max: 256 }, default("32");
        /// What share of one processor their packets may take together, beside those of the node.
        /// Cost: that share, if programs use it.
        /// Hazard: more than the computer has left takes the processor from the applications.
        share: u64 = "processor_percent", "percent", Whole { min: 1, max: 10_000 }, default("10");
        /// The highest priority that a socket may be registered with. Status shows it; on Linux it has no effect yet.
        /// Cost: none.
        /// Hazard: none.
        priority_max: u64 = "priority_max", "none", Whole { min: 0, max: 255 }, default("99");
        /// So many packets the capacities of all registered sockets may come to together. The plan then knows what may come at once, and says how much
        /// of a flood is borne whatever programs register.
        /// Cost: programs are refused whose capacity is beyond it.
        /// Hazard: left out, status says once programs have registered whether less of a flood is borne.
        burst_max: u64 = "burst_max", "packets", Whole { min: 1, max: 8_388_608 }, computed("as many as `processor_percent` permits, and not in the plan");
    }
}

/// Whether interfaces are guarded, as a word.
const GUARD_WORDS: Choice<ReceptionGuard> =
    Choice(&[("auto", ReceptionGuard::Auto), ("off", ReceptionGuard::Off)]);

section! {
    /// Whether every state is in time: what `bumpless plan` is told of the machines, and what `bumpless
    /// run` does about its answer. spec/plan.md says how the plan is made.
    PlanSettings = "plan", Once, [] {
        /// Starts a node although the plan says that not every state can be in time. Status says so
        /// for as long as it runs.
        /// Cost: none.
        /// Hazard: states miss their deadlines under load or losses, and the backup falls behind.
        run_although_refused: bool = "run_although_refused", "none", Flag, default("false");
        /// How much later than intended a thread of a node may go on. The default covers 99.9 % of the
        /// wake-ups of a real-time thread on an ordinary kernel without other load.
        /// Cost: the plan waits this long for each sending of a state, and for each loss.
        /// Hazard: a machine that is later than this misses deadlines that the plan promises.
        jitter: Duration = "jitter_ms", "milliseconds", Millis { min: 0.0, max: 1000.0 }, default("0.25");
    }
}

section! {
    /// How a running pair changes to this file by `bumpless apply`. What the next file says counts. spec/apply.md says what is promised.
    ChangeSettings = "change", Once, [] {
        /// Whether all applications that go on with other settings, or with another version of their program, do so at one moment, and
        /// none of them if one cannot. Otherwise they do so one after the other, in the plan's order; where there is no order that
        /// overloads no network, together all the same.
        /// Cost: each stands still until those with shorter periods have ended a cycle, most often within the time until its next one.
        /// Hazard: one that cannot change keeps all others from it.
        together: bool = "together", "none", Flag, default("false");
    }
}

section! {
    /// One independent network, 1 to 8 of them. The order must be the same on all nodes.
    Network = "network", Many, [] {
        /// Name of the network.
        /// Cost: none.
        /// Hazard: none.
        name: String = "name", "none", Name, required;
        /// Bandwidth at which the nodes send at most. Give what the slowest hop between the nodes
        /// carries, or the share that state transfer may use. 0 switches pacing off. With certificates, nodes may
        /// differ in it, and the lower counts.
        /// Cost: none.
        /// Hazard: too high, or 0, fills queues in kernel and switch: there a packet with a near
        /// deadline waits behind others, and bursts are lost.
        bandwidth: u64 = "bandwidth_mbit", "Mbit/s", Megabits { max: 1_000_000.0 }, default("1000");
        /// Largest IP packet that every hop between the nodes passes; at least 1280 with IPv6.
        /// Cost: small packets spend more of the bandwidth on headers.
        /// Hazard: larger than a hop's limit, states avoid the network, and go in short packets where all are like it.
        mtu: u64 = "mtu", "bytes", Whole { min: 576, max: 9216 }, default("1500");
        /// Differentiated-services code point of all packets; 46 is expedited forwarding.
        /// Cost: none.
        /// Hazard: switches that do not know it treat state as best effort; some remark it.
        dscp: u64 = "dscp", "none", Whole { min: 0, max: 63 }, default("46");
        /// Socket priority (SO_PRIORITY), which VLAN interfaces map to the priority code point.
        /// Cost: none.
        /// Hazard: below other traffic of the computer, state waits behind it in the card's queue.
        priority: u64 = "priority", "none", Whole { min: 0, max: 6 }, default("6");
        /// Plan: share of bits that arrive wrong; a frame with one such bit is lost. IEEE 802.3ab
        /// promises less than 1e-10 for Gigabit Ethernet; good cables in a cabinet reach 1e-12.
        /// Cost: a higher rate needs larger retransmission budgets.
        /// Hazard: lower than the network's, more states are lost than the plan says.
        bit_error_rate: f64 = "bit_error_rate", "share of bits", Real { min: 0.0, max: 0.5 },
            computed("1e-10 unless frame_loss is given");
        /// Plan: share of frames that are lost whatever their length, instead of `bit_error_rate`:
        /// for networks that lose frames for other reasons, such as radio.
        /// Cost: as for the bit error rate.
        /// Hazard: as for the bit error rate.
        frame_loss: f64 = "frame_loss", "share of frames", Real { min: 0.0, max: 0.9 },
            computed("losses follow from bit_error_rate");
        /// Plan: longest time from a packet's sending to its acknowledgement while the network is
        /// idle, with the partner's turn. The default is several times what two computers with a
        /// switch or two between them need; `bumpless status` shows what is measured.
        /// Cost: the plan waits this long for each acknowledgement, and longer for each loss.
        /// Hazard: shorter than the true one, the plan promises what cannot be kept.
        round_trip_max: Duration = "round_trip_max_ms", "milliseconds",
            Millis { min: 0.001, max: 10_000.0 }, default("0.5");
        /// Plan: longest frame of other traffic that may be on the wire when a burst of ours wants
        /// to go, in bytes on the wire with preamble and gap. 0 if the network is ours alone.
        /// Cost: that much time for each burst.
        /// Hazard: traffic of the same or a higher priority takes more than one frame's time; plan
        /// it by a lower bandwidth.
        other_traffic: u64 = "other_traffic_bytes", "bytes on the wire", Whole { min: 0, max: 65_535 },
            computed("a full frame: the MTU and 38 bytes of Ethernet");
    }
}

section! {
    /// One controller, 2 to 16 of them. Every node must be in a group.
    Node = "node", Many, [] {
        /// Name of the node, as `bumpless run CONFIG --node NAME` takes it.
        /// Cost: none.
        /// Hazard: two computers started under one name both report it, and neither writes.
        name: String = "name", "none", Name, required;
        /// The node's own address and UDP port on each network it is connected to. All addresses
        /// on one network are of one IP version.
        /// Cost: none.
        /// Hazard: addresses of one interface on two networks look redundant and are not.
        addresses: Vec<AddressEntry> = "addresses", "IP address and port", Addresses, required;
        /// Path of the control socket that `bumpless status` and `switchover` use. Local: not
        /// compared between nodes.
        /// Cost: none.
        /// Hazard: whoever may write to its directory can put another socket in its place.
        control: String = "control", "path", Text { what: "a path", max: 100 },
            computed("$XDG_RUNTIME_DIR/bumpless/PAIR-NODE.sock, or below /tmp/bumpless-UID/");
        /// A group of users, by name or number, whose members may ask for the node's status at the control socket.
        /// Orders (`switchover`, `apply`) are for the node's user and root alone. It takes a `control` path that the
        /// group can reach, and a node's user that is a member of it. Local: not compared between nodes.
        /// Cost: none.
        /// Hazard: status tells addresses, roles and what is weak.
        control_group: String = "control_group", "name or number of a group", Text { what: "a group", max: 32 },
            computed("none: the node's user and root alone");
        /// Folder on a disk of the node's own for the states of applications with `persist = "file"`; made at the
        /// start if it is not there. No two nodes may have the same. Local: not compared between nodes.
        /// Cost: room for two files of each such state.
        /// Hazard: on a disk that both nodes share, one disk loses both files; in memory that a power failure
        /// empties, nothing is kept; whoever may write to it may give the process another state.
        state_dir: String = "state_dir", "path", Text { what: "a path", max: 200 },
            computed("must be given where an application of the node has persist = \"file\"");
    }
}

/// The two kinds of reference point as the file names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReferenceWord {
    Witness,
    Ping,
}

const REFERENCE_WORDS: Choice<ReferenceWord> = Choice(&[
    ("witness", ReferenceWord::Witness),
    ("ping", ReferenceWord::Ping),
]);

section! {
    /// A point outside the nodes that decides who may be primary when they do not hear each other;
    /// up to 16, at best one per network.
    Reference = "reference", Many, [] {
        /// Name of the reference point.
        /// Cost: none.
        /// Hazard: none.
        name: String = "name", "none", Name, required;
        /// `witness`: a `bumpless witness` process on a third computer, which leases the primary
        /// role. `ping`: an address that answers ICMP echo, such as a managed switch.
        /// Cost: a witness needs a place to run; it holds no state.
        /// Hazard: `ping` is weaker: where the nodes do not hear each other but both reach the
        /// address, it answers both, and both write.
        kind: ReferenceWord = "kind", "none", REFERENCE_WORDS, required;
        /// The network through which it is reached.
        /// Cost: none.
        /// Hazard: all of them on one network make that network a single point of failure.
        network: String = "network", "name of a network", Name, required;
        /// Where it is: address and UDP port of a witness, address alone for ping.
        /// Cost: one request per lease renewal.
        /// Hazard: a witness that runs on one of the nodes fails together with it.
        address: String = "address", "IP address, port for a witness",
            Text { what: "an address", max: 64 }, required;
        /// Plan: longest time from a request of any node to its answer while the network is idle. Give it for a
        /// reference point that is farther away than the partner.
        /// Cost: the lease that the plan asks for is longer by it, and so is a failover.
        /// Hazard: shorter than the true one, a primary whose partner has died stops for a moment, and the plan
        /// promises failovers that take longer.
        round_trip_max: Duration = "round_trip_max_ms", "milliseconds",
            Millis { min: 0.001, max: 10_000.0 }, computed("that of its network");
    }
}
