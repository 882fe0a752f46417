//! Sections on groups, applications and their inputs and outputs.

use bumpless_base::Duration;

use super::addresses::{DeviceAddress, DeviceAt, ServerName};
use super::numbers::{Bytes, Millis, Positive, Real, RealPair, Whole};
use super::section;
use crate::model::{
    AfterHotRestart, Commit, Distribution, ENVELOPE_MAX, ModuleEngine, OnFailure, StateOnChange,
    Unsent,
};
use crate::shape::{Choice, Flag, Mention, Name, Names, Text, Texts};

pub(super) const FILE: Text = Text {
    what: "a path",
    max: 4096,
};

section! {
    /// Two nodes that stand in for each other: one of them is primary for all applications of the
    /// group. Up to 16 groups; a node may be in several, primary for some and backup for others,
    /// with different partners.
    Group = "group", Many, [] {
        /// Name of the group.
        /// Cost: none.
        /// Hazard: none.
        name: String = "name", "none", Name, required;
        /// The two candidates for the primary role, the preferred one first.
        /// Cost: none.
        /// Hazard: none.
        nodes: Vec<Mention> = "nodes", "names of nodes", Names, required;
        /// The reference points of the group, at best one on each network. The nodes agree on one
        /// of them at a time, and on another when that one cannot be reached.
        /// Cost: see the reference points.
        /// Hazard: none at all needs `without_reference`, and permits two primaries.
        references: Vec<Mention> = "references", "names of reference points", Names,
            computed("must be given unless without_reference is true");
        /// Runs the group without a reference point.
        /// Cost: none.
        /// Hazard: unsafe: when all networks between the nodes fail and both live, both become
        /// primary and both write. Status says so as long as it holds.
        without_reference: bool = "without_reference", "none", Flag, default("false");
        /// For how long after the last output a node may go on from the newest state that it holds: the
        /// process-dependent maximum of a hot restart (IEC 61131-3). Longer than a failover takes.
        /// Cost: none.
        /// Hazard: too short, an outage of all networks makes the applications begin anew; too long, they go on
        /// from a state that the process has left behind.
        hot_restart: Duration = "hot_restart_ms", "milliseconds", Millis { min: 1.0, max: 86_400_000.0 },
            computed("for each application 5000, or three times its expiry if that is longer");
        /// What a node does whose state would be the newest, but is older than `hot_restart_ms`: `cold`, its
        /// applications begin anew; `stop`, it takes no role until it is started again, and says so.
        /// Cost: none.
        /// Hazard: `cold` moves the outputs to what the initial state gives; with `stop` nobody controls the
        /// process until an operator has started one of the nodes again.
        after_hot_restart: AfterHotRestart = "after_hot_restart", "none", AFTER_WORDS, default("\"cold\"");
    }
}

/// The kinds of application as the file names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindWord {
    QuadrupleTank,
    Synthetic,
    Wasm,
    Process,
    Plc,
}

/// What holds when a program has stopped, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultWord {
    Hold,
    Safe,
}

const KIND_WORDS: Choice<KindWord> = Choice(&[
    ("quadruple_tank", KindWord::QuadrupleTank),
    ("synthetic", KindWord::Synthetic),
    ("wasm", KindWord::Wasm),
    ("process", KindWord::Process),
    ("plc", KindWord::Plc),
]);
const FAULT_WORDS: Choice<FaultWord> =
    Choice(&[("hold", FaultWord::Hold), ("safe", FaultWord::Safe)]);
const ENGINE_WORDS: Choice<ModuleEngine> = Choice(&[
    ("wasmi", ModuleEngine::Wasmi),
    ("wasmtime", ModuleEngine::Wasmtime),
]);
const STATE_WORDS: Choice<StateOnChange> = Choice(&[
    ("kept", StateOnChange::Kept),
    ("partly", StateOnChange::Partly),
    ("fresh", StateOnChange::Fresh),
]);
const COMMIT_WORDS: Choice<Commit> = Choice(&[
    ("before_output", Commit::BeforeOutput),
    ("async", Commit::Async),
]);
const DISTRIBUTION_WORDS: Choice<Distribution> = Choice(&[
    ("replicate", Distribution::Replicate),
    ("spread", Distribution::Spread),
]);
const UNSENT_WORDS: Choice<Unsent> =
    Choice(&[("replace", Unsent::Replace), ("keep", Unsent::Keep)]);
/// Where else than in memory a state is kept, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PersistWord {
    None,
    File,
}

const PERSIST_WORDS: Choice<PersistWord> =
    Choice(&[("none", PersistWord::None), ("file", PersistWord::File)]);
const AFTER_WORDS: Choice<AfterHotRestart> = Choice(&[
    ("cold", AfterHotRestart::Cold),
    ("stop", AfterHotRestart::Stop),
]);
const ON_FAILURE_WORDS: Choice<OnFailure> =
    Choice(&[("hold", OnFailure::Hold), ("fail", OnFailure::Fail)]);

section! {
    /// One cyclic application and the channel that carries its state; up to 128.
    Application = "application", Many, ["field", "security", "set_points", "input", "output"] {
        /// Name of the application.
        /// Cost: none.
        /// Hazard: none.
        name: String = "name", "none", Name, required;
        /// The group that runs it.
        /// Cost: none.
        /// Hazard: none.
        group: String = "group", "name of a group", Name, required;
        /// What it computes: `wasm`, a WebAssembly module of yours; `process`, a program of yours in any language;
        /// `plc`, a PLC program built by `bumpless program build` (`spec/program.md`); `quadruple_tank`, two PID loops
        /// on the quadruple-tank process, needs `[application.field]`; `synthetic`, a state of given size, has no
        /// inputs and outputs.
        /// Cost: none.
        /// Hazard: none.
        kind: KindWord = "kind", "none", KIND_WORDS, required;
        /// Channel number of its state, different for every application in the file. Of two
        /// states with the same deadline the lower channel goes first.
        /// Cost: none.
        /// Hazard: none.
        channel: u64 = "channel", "none", Whole { min: 1, max: 65_535 }, required;
        /// Time between two cycles.
        /// Cost: a whole state on the networks each time.
        /// Hazard: shorter than execution, transfer and input/output together, cycles overrun.
        period: Duration = "period_ms", "milliseconds", Millis { min: 1.0, max: 60_000.0 }, required;
        /// Time from the end of execution until the backup has acknowledged the state; then the
        /// transfer is given up. At most the period. With commit `before_output` the output waits
        /// at most this long.
        /// Cost: none.
        /// Hazard: shorter than the state needs on the network plus its retransmissions, transfers
        /// fail; with `before_output` close to the period, a slow transfer overruns the cycle.
        deadline: Duration = "deadline_ms", "milliseconds", Millis { min: 0.1, max: 60_000.0 },
            computed("half the period with commit before_output, the period with async");
        /// Age at which the backup must not use a state any more. At least 2 periods plus the
        /// deadline plus the failover time, or the last state expires before the backup takes over.
        /// Cost: none.
        /// Hazard: too long, a backup that was cut off may resume from an old state.
        expiry: Duration = "expiry_ms", "milliseconds", Millis { min: 1.0, max: 4_000_000.0 },
            computed("2 periods plus deadline plus failover time, rounded up to a millisecond");
        /// When outputs may be written: `before_output`, after the backup's acknowledgement or the
        /// deadline, so that the backup is never behind; `async`, at once, and the backup may be
        /// one cycle behind.
        /// Cost: `before_output` delays the output by the transfer time.
        /// Hazard: with `async` a failover may repeat the last cycle.
        commit: Commit = "commit", "none", COMMIT_WORDS, default("\"before_output\"");
        /// Where its state is kept besides the memory of both nodes: `none`, nowhere; `file`, also in a file in
        /// the `state_dir` of each node, so that it goes on from there after a power failure of both, within
        /// `hot_restart_ms`. Files are written beside the cycle, which never waits for a disk.
        /// Cost: with `file`, three more buffers of one state on each node, and a write to its disk every
        /// `persist_every_ms`.
        /// Hazard: with `file`, a pair that has lost its memory goes on from a state that is up to
        /// `persist_every_ms`, and what its disk takes, older than the last output; a process that cannot bear
        /// that must begin anew.
        persist: PersistWord = "persist", "none", PERSIST_WORDS, default("\"none\"");
        /// With `persist = "file"`: at most one file is written in so many milliseconds, the newest state at that
        /// moment. Shorter than `hot_restart_ms`.
        /// Cost: the shorter, the more the disk has to do, and the sooner a flash memory is worn out.
        /// Hazard: the longer, the older the state from which a pair goes on that has lost its memory.
        persist_every: Duration = "persist_every_ms", "milliseconds", Millis { min: 1.0, max: 3_600_000.0 },
            computed("100");
        /// Networks that carry the state.
        /// Cost: with `replicate`, the whole state on each.
        /// Hazard: with one alone, its failure ends the redundancy of this application.
        networks: Vec<Mention> = "networks", "names of networks", Names,
            computed("all on which every node of the group has an address");
        /// How packets use the networks: `replicate`, each packet on every one, and the first copy
        /// counts; `spread`, shared out by bandwidth, resent on another when one fails.
        /// Cost: `replicate` loads every network with the whole state.
        /// Hazard: `spread` loses time when a network fails in the middle of a transfer, and the
        /// remaining one may be too slow for the deadline.
        distribution: Distribution = "distribution", "none", DISTRIBUTION_WORDS, default("\"replicate\"");
        /// What becomes of a state of which nothing has been sent when the next one is there: `replace`, the next one
        /// takes its place; `keep`, both are sent, in their order and each by its own deadline. Up to four wait; of
        /// further ones each takes the place of the last.
        /// Cost: with `keep`, two more buffers of one state for each partner, and the network carries what nobody will
        /// go on from.
        /// Hazard: with `keep`, a network that is too slow for a while brings the newest state later.
        unsent: Unsent = "unsent", "none", UNSENT_WORDS, default("\"replace\"");
        /// Retransmission budget R of the plan: how many packets of one state may be lost in all, the
        /// same one again counted again, with the state still in time. With `replicate` a packet is
        /// lost when every network loses it. The transfer itself resends until the deadline.
        /// Cost: time on the networks that the plan keeps free.
        /// Hazard: too low for the network's error rate, more states are lost than the plan says.
        retransmissions: u64 = "retransmissions", "packets", Whole { min: 0, max: 100 },
            computed("the fewest with which accepted_loss_per_year is kept, with any one network missing");
        /// Plan: how many states may be lost in a year of running without a pause, because more of
        /// their packets are lost than the budget has. One in a million years by default.
        /// Cost: a larger retransmission budget.
        /// Hazard: none.
        accepted_loss_per_year: f64 = "accepted_loss_per_year", "states in a year", Positive { max: "1e9" },
            computed("1e-6 unless retransmissions is given");
        /// wasm, process, plc: the program's file, in the folder of this one unless the path says otherwise. Both nodes
        /// must have the same to the byte; one with another is refused like one with another configuration.
        /// Cost: none.
        /// Hazard: what it needs besides, libraries or an interpreter, is not compared.
        file: String = "file", "path", FILE, computed("must be given for wasm, process and plc");
        /// process: what runs the file, word by word, such as `["python3", "-u"]`; the file and the arguments come after
        /// it.
        /// Cost: none.
        /// Hazard: another version of an interpreter on the other node may compute something else.
        command: Vec<String> = "command", "texts", Texts, computed("none: the file is run itself");
        /// process: what comes after the file.
        /// Cost: none.
        /// Hazard: none.
        arguments: Vec<String> = "arguments", "texts", Texts, computed("none");
        /// wasm, process, plc: most bytes of its state. `bumpless program test FILE` tells how many it has.
        /// Cost: a copy besides the buffers of every state, and as many bytes on the networks in each period as its
        /// state has.
        /// Hazard: too few, and the program is refused or fails.
        state_max: u64 = "state_max", "bytes", Bytes { max: (u32::MAX / 2) as u64 }, computed("must be given for wasm, process and plc");
        /// wasm: most bytes of all its memories together; what it wants beyond that is a failed cycle. process, plc: most bytes
        /// of address space that its process may have: its code, what it takes, and the memory that it
        /// shares with the node. What it wants beyond that it does not get, which ends most programs: a failed cycle.
        /// Cost: of a module, as many bytes on the node, and their image.
        /// Hazard: too few, and the program does not start or fails; left out, a process that takes ever more drives others,
        /// in the end perhaps the other programs of users, out of the computer's memory before the kernel ends one.
        memory_max: u64 = "memory_max", "bytes", Bytes { max: 1 << 46 },
            computed("16 MiB for wasm; else none: as much as the system gives");
        /// wasm: what runs the module: `wasmi` interprets it; `wasmtime` compiles it, which makes a program that computes much
        /// several times as fast, and is there only in a build with `--features wasmtime`. Both give the same outputs and
        /// states, and may take each other's place by `bumpless apply`; the two nodes of a pair have the same one.
        /// Cost: with `wasmtime`, compiling when the node starts, and its code in memory.
        /// Hazard: calls may be deeper with one than with the other.
        engine: ModuleEngine = "engine", "none", ENGINE_WORDS, computed("`wasmi`");
        /// wasm, process, plc: how long an execution may take; then it is stopped and counts as failed. At most the
        /// period.
        /// Cost: none.
        /// Hazard: too short, a busy moment of the computer stops a sound program; too long, the cycle overruns.
        execute_limit: Duration = "execute_limit_ms", "milliseconds", Millis { min: 0.1, max: 60_000.0 },
            computed("half the period");
        /// wasm, process, plc: what becomes of the outputs when the program has failed on this node and on the other, or
        /// there is none: `hold`, the devices keep the last ones; `safe`, the `safe` value of each is written.
        /// Cost: none.
        /// Hazard: with `hold` a valve stays as it was however long.
        on_program_fault: FaultWord = "on_program_fault", "none", FAULT_WORDS, computed("`hold`");
        /// wasm, process, plc: what this version of the program does with the state of the one that runs when it takes that one's
        /// place (`bumpless apply`): `kept`, it goes on with it, and the change is refused where a variable of a PLC program has
        /// another type; `partly`, such a variable begins with its initial value; `fresh`, all begins anew but what both
        /// retain. `bumpless program compare OLD NEW` tells what becomes of which variable.
        /// Cost: none.
        /// Hazard: with `fresh` the outputs move to what the initial state gives, with each version until the line is removed.
        state: StateOnChange = "state", "none", STATE_WORDS, computed("`kept`");
        /// Synthetic: bytes of state; 0 is allowed.
        /// Cost: as many bytes on the networks in each period.
        /// Hazard: none.
        size: u64 = "size", "bytes", Bytes { max: (u32::MAX - ENVELOPE_MAX) as u64 }, computed("must be given for synthetic");
        /// Synthetic: share of the state's bytes that change in each cycle.
        /// Cost: execution time for these bytes.
        /// Hazard: none.
        changed_share: f64 = "changed_share", "share", Real { min: 0.0, max: 1.0 }, computed("0.1");
        /// Quadruple tank: proportional gains of the loops for tank 1 and tank 2; negative for a
        /// loop that acts in reverse.
        /// Cost: none.
        /// Hazard: gains that do not fit the process make it swing or overflow.
        gain: [f64; 2] = "gain", "V/cm", RealPair { min: -1000.0, max: 1000.0 }, computed("[1.5, 1.35]");
        /// Quadruple tank: integral times of the two loops; 0 switches the integral part off.
        /// Cost: none.
        /// Hazard: as for the gains.
        integral_s: [f64; 2] = "integral_s", "seconds", RealPair { min: 0.0, max: 1e6 }, computed("[30, 40]");
        /// Quadruple tank: derivative times of the two loops; 0 switches the derivative part off.
        /// Cost: none.
        /// Hazard: amplifies noise of the level sensors.
        derivative_s: [f64; 2] = "derivative_s", "seconds", RealPair { min: 0.0, max: 1e6 }, computed("[0, 0]");
        /// Quadruple tank: how much faster than real time the process runs, as for the plant
        /// process that simulates it.
        /// Cost: none.
        /// Hazard: other than 1 with a real process, or other than the plant's, the loops are tuned
        /// wrongly.
        time_scale: f64 = "time_scale", "process seconds per second", Real { min: 0.01, max: 1000.0 },
            computed("1");
    }
}

section! {
    /// Quadruple tank: levels to hold, from a moment on. The first is at 0 s, times ascend. Without
    /// any, the levels are 12.4 cm and 12.7 cm for ever.
    SetPoint = "application.set_points", Many, [] {
        /// When the levels begin to apply, in process time since the application's first cycle.
        /// Cost: none.
        /// Hazard: none.
        at: f64 = "at_s", "seconds", Real { min: 0.0, max: 1e9 }, required;
        /// Level of tank 1.
        /// Cost: none.
        /// Hazard: the tanks are 20 cm high; a step close to that overflows.
        tank1: f64 = "tank1_cm", "cm", Real { min: 0.0, max: 20.0 }, required;
        /// Level of tank 2.
        /// Cost: none.
        /// Hazard: as for tank 1.
        tank2: f64 = "tank2_cm", "cm", Real { min: 0.0, max: 20.0 }, required;
    }
}

const FIELD_KIND: Choice<()> = Choice(&[("modbus", ())]);

/// What protects the connection to a device, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldSecurityWord {
    Open,
    Tls,
}

pub(super) const FIELD_SECURITY_WORDS: Choice<FieldSecurityWord> = Choice(&[
    ("open", FieldSecurityWord::Open),
    ("tls", FieldSecurityWord::Tls),
]);

section! {
    /// Inputs and outputs of an application, over Modbus TCP or by field drivers. Every node of the group keeps a
    /// connection, the backup too, so that takeover costs no connect.
    FieldIo = "application.field", Once, ["device"] {
        /// The protocol of devices that do not say otherwise.
        /// Cost: none.
        /// Hazard: none.
        kind: () = "kind", "none", FIELD_KIND, default("\"modbus\"");
        /// Quadruple tank: address of the Modbus server, and TCP port if it is not the usual one, reachable from every node of the group. Programs
        /// have `[[application.field.device]]`.
        /// Cost: one connection from each node.
        /// Hazard: reached through one of the pair's networks, that network's failure takes the
        /// outputs with it.
        address: DeviceAt = "address", "IP address and port", DeviceAddress, computed("must be given for quadruple_tank");
        /// What protects the connections to devices that do not say otherwise: `open`, nothing, as Modbus TCP is; `tls`,
        /// Modbus/TCP Security: node and device show each other certificates, and what they say is enciphered.
        /// Cost: a handshake for each connection, in a thread of its own; some microseconds of processor time in each request.
        /// Hazard: `open`, whoever can send to a device can write its outputs, and whoever is in between can change what is read.
        security: FieldSecurityWord = "security", "none", FIELD_SECURITY_WORDS, default("\"open\"");
        /// Quadruple tank with `tls`: the name in the device's certificate. `NAME.field` is the device NAME of the node's own
        /// site, as `bumpless pki issue NAME.field` makes it.
        /// Cost: none.
        /// Hazard: none.
        server_name: String = "server_name", "name or IP address", ServerName, computed("the IP address of address");
        /// With `tls`: a folder with the certificates of nodes, each in a folder called NODE.PAIR as `bumpless pki issue` makes
        /// it; a node shows its own to devices, and believes those of the authorities in there. Local: not compared between nodes.
        /// Cost: none.
        /// Hazard: certificates end. A connection goes on; none is made any more.
        certificates: String = "certificates", "path", FILE, computed("that of [security]");
        /// Whether the device compares the epoch that each write carries, and rejects a write of an
        /// older one. Of several devices, of those whose outputs are in a `block`.
        /// Cost: none.
        /// Hazard: false leaves the lease alone to keep a delayed write of the former primary out.
        check_epoch: bool = "check_epoch", "none", Flag, default("true");
        /// What becomes of a cycle's outputs when the server does not answer in time or answers with
        /// an exception: `hold`, the last ones stay and the next cycle tries again; `fail`, the
        /// application stops on this node, which is then unfit to be primary, and the backup takes
        /// over.
        /// Cost: none.
        /// Hazard: `fail` with a server that is dead for both stops one node after the other.
        on_failure: OnFailure = "on_failure", "none", ON_FAILURE_WORDS, default("\"hold\"");
        /// How long one request may take, of several devices together. Below the period.
        /// Cost: none.
        /// Hazard: reading, waiting for the backup and writing together longer than the period, a
        /// slow server overruns the cycle.
        timeout: Duration = "timeout_ms", "milliseconds", Millis { min: 0.1, max: 60_000.0 },
            computed("a quarter of the period");
        /// Plan: longest time of one request while the network to the devices is idle, of several devices together. The
        /// default is for devices that answer at once, a switch or two away.
        /// Cost: the plan counts it twice in each cycle and in each failover, and asks for a lease that outlasts it.
        /// Hazard: shorter than the true one, the plan promises what cannot be kept, and accepts a lease that ends
        /// while inputs are read.
        round_trip_max: Duration = "round_trip_max_ms", "milliseconds",
            Millis { min: 0.001, max: 60_000.0 }, computed("0.5, or half of timeout_ms if that is less");
    }
}
