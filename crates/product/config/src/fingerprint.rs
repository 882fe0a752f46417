//! Hashes by which nodes notice that they run different configurations.
//!
//! The fingerprint is FNV-1a (64 bits; Fowler, Noll, Vo) over a canonical text of everything that
//! must be equal on all nodes: one line `path=value` per resolved value, times in nanoseconds, real
//! numbers as the 16 hexadecimal digits of their IEEE 754 form, in the order below. Comments,
//! formatting and whether a default is written out do not matter; the order of networks, nodes,
//! references and groups does, because their numbers go over the wire. Left out is what is local,
//! `[realtime]`, `[reception]`, `[registration]`, the paths of keys, the control sockets and the folders for states, and what only the plan reads: better knowledge of a network's
//! losses is no reason to stop a pair. With certificates, in-flight limits and bandwidths are left out, too: nodes tell each other theirs.

use std::fmt::Write;
use std::net::SocketAddr;

use crate::model::{
    Application, ApplicationKind, Bus, Config, DeviceSecurity, DriverProtocol, FieldDevice,
    FieldDevices, FieldDriver, FieldIo, Group, Input, InputFrom, ModbusDevice, ModuleEngine,
    Network, Node, OnProgramFault, OpcUaLogin, Output, OutputTo, Point, Program, QuadrupleTank,
    Reference, StateOnChange, Synthetic, Tag, Timing, Transfer, Unsent,
};
use crate::security::{Security, StateSecurity};

const FNV64_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV64_PRIME: u64 = 0x0000_0100_0000_01b3;
const FNV32_OFFSET: u32 = 0x811c_9dc5;
const FNV32_PRIME: u32 = 0x0100_0193;

impl Config {
    /// Hash of everything that must be equal on all nodes: FNV-1a, 64 bits, over
    /// [`canonical`](Self::canonical). It finds mistakes, not forgeries.
    pub fn fingerprint(&self) -> u64 {
        hash(&self.canonical())
    }

    /// Hash of the pair's name: FNV-1a, 32 bits. Heartbeats carry it, so that pairs on the same
    /// networks do not listen to each other.
    pub fn pair_id(&self) -> u32 {
        pair_id(&self.pair)
    }

    /// The text over which [`fingerprint`](Self::fingerprint) is computed.
    pub fn canonical(&self) -> String {
        // Every struct is taken apart by name, so that a field added later must be placed here.
        let Self {
            pair,
            timing,
            transfer,
            security,
            realtime: _,
            reception: _,
            registration: _,
            plan: _,
            change,
            networks,
            nodes,
            references,
            groups,
            applications,
            weaknesses: _,
        } = self;
        let mut text = Canonical("bumpless configuration 4\n".into());
        text.line("pair", format_args!("{pair:?}"));
        text.timing(timing);
        // Whoever has sessions is told of them, and the lower counts. With keys from a server packets may come before that.
        let are_exchanged =
            matches!(security, Security::Certificates(_)) && !security.has_key_servers();
        text.transfer(transfer, are_exchanged);
        text.security(security);
        networks
            .iter()
            .for_each(|network| text.network(network, are_exchanged));
        nodes.iter().for_each(|node| text.node(node));
        references
            .iter()
            .for_each(|reference| text.reference(reference));
        groups.iter().for_each(|group| text.group(group));
        applications
            .iter()
            .for_each(|application| text.application(application));
        // As usual it says nothing, so that releases which do not know the field agree with those that do.
        if change.together {
            text.line("change.together", format_args!("true"));
        }
        text.0
    }
}

impl Application {
    /// Hash of what its program is, as far as its states look alike: FNV-1a, 64 bits, over its name, its kind and
    /// the size of its state. A tuned application goes on from a state of the one before, so it has the same.
    pub fn program(&self) -> u64 {
        let Self {
            name,
            kind,
            state_max,
            security,
            ..
        } = self;
        let state_max = state_max.saturating_sub(security.overhead());
        let kind = match kind {
            ApplicationKind::QuadrupleTank(_) => "quadruple_tank".to_owned(),
            ApplicationKind::Synthetic(_) => "synthetic".to_owned(),
            ApplicationKind::Program(program) => {
                format!("{} {}", program.host.name(), program.sha256_hex())
            }
        };
        hash(&format!(
            "bumpless program 1\n{name:?}\n{kind}\n{state_max}\n"
        ))
    }
}

/// Hash of a pair's name, as [`Config::pair_id`].
pub fn pair_id(name: &str) -> u32 {
    let step = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(FNV32_PRIME);
    name.bytes().fold(FNV32_OFFSET, step)
}

fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV64_PRIME);
    text.bytes().fold(FNV64_OFFSET, step)
}

struct Canonical(String);

impl Canonical {
    fn line(&mut self, path: &str, value: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{path}={value}");
    }

    fn real(&mut self, path: &str, value: f64) {
        // Negative zero is zero.
        self.line(path, format_args!("{:016x}", (value + 0.0).to_bits()));
    }

    fn timing(&mut self, timing: &Timing) {
        let Timing {
            heartbeat,
            lease,
            clock_drift_ppm,
            start_wait,
        } = timing;
        self.line("timing.heartbeat", format_args!("{}", heartbeat.as_nanos()));
        self.line("timing.lease", format_args!("{}", lease.as_nanos()));
        self.line("timing.clock_drift", format_args!("{clock_drift_ppm}"));
        self.line(
            "timing.start_wait",
            format_args!("{}", start_wait.as_nanos()),
        );
    }

    fn transfer(&mut self, transfer: &Transfer, limits_are_exchanged: bool) {
        let Transfer {
            version,
            in_flight_max,
            payload_size,
            memory_max,
        } = transfer;
        self.line("transfer.version", format_args!("{}", version.number()));
        if !limits_are_exchanged {
            self.line("transfer.in_flight_max", format_args!("{in_flight_max}"));
        }
        self.line("transfer.payload_size", format_args!("{payload_size}"));
        self.line("transfer.memory_max", format_args!("{memory_max}"));
    }

    fn security(&mut self, security: &Security) {
        let packets = match security {
            Security::Protected(_) => "protected",
            Security::Certificates(_) if security.has_key_servers() => "key servers",
            Security::Certificates(_) => "certificates",
            Security::Open => "open",
        };
        self.line("security.packets", format_args!("{packets}"));
    }

    fn network(&mut self, network: &Network, limits_are_exchanged: bool) {
        let Network {
            name,
            bandwidth,
            mtu,
            dscp,
            priority,
            ip,
            loss: _,
            round_trip_max: _,
            other_traffic: _,
            protection: _,
        } = network;
        self.line("network.name", format_args!("{name:?}"));
        if !limits_are_exchanged {
            self.line("network.bandwidth", format_args!("{bandwidth}"));
        }
        self.line("network.mtu", format_args!("{mtu}"));
        self.line("network.dscp", format_args!("{dscp}"));
        self.line("network.priority", format_args!("{priority}"));
        self.line("network.ip", format_args!("{ip}"));
    }

    fn node(&mut self, node: &Node) {
        let Node {
            name,
            addresses,
            control: _,
            control_group: _,
            state_dir: _,
        } = node;
        self.line("node.name", format_args!("{name:?}"));
        for address in addresses {
            match address {
                Some(address) => self.line("node.address", format_args!("{address}")),
                None => self.line("node.address", format_args!("none")),
            }
        }
    }

    fn reference(&mut self, reference: &Reference) {
        let Reference {
            name,
            kind,
            network,
            round_trip_max: _,
        } = reference;
        self.line("reference.name", format_args!("{name:?}"));
        match kind {
            crate::model::ReferenceKind::Witness(address) => {
                self.line("reference.witness", format_args!("{address}"));
            }
            crate::model::ReferenceKind::Ping(ip) => {
                self.line("reference.ping", format_args!("{ip}"));
            }
        }
        self.line("reference.network", format_args!("{}", network.0));
    }

    fn group(&mut self, group: &Group) {
        let Group {
            name,
            candidates,
            references,
            hot_restart,
            after_hot_restart,
        } = group;
        self.line("group.name", format_args!("{name:?}"));
        for candidate in candidates {
            self.line("group.candidate", format_args!("{}", candidate.0));
        }
        for reference in references {
            self.line("group.reference", format_args!("{reference}"));
        }
        match hot_restart {
            Some(span) => self.line("group.hot_restart", format_args!("{}", span.as_nanos())),
            None => self.line("group.hot_restart", format_args!("usual")),
        }
        self.line(
            "group.after_hot_restart",
            format_args!("{after_hot_restart:?}"),
        );
    }

    fn application(&mut self, application: &Application) {
        let Application {
            name,
            group,
            channel,
            period,
            deadline,
            expiry,
            // Follows from its group and its expiry.
            hot_restart: _,
            begins_anew: _,
            persist,
            commit,
            distribution,
            unsent,
            networks,
            retransmissions: _,
            accepted_loss_per_year: _,
            state_max,
            kind,
            field,
            security,
        } = application;
        self.line("application.name", format_args!("{name:?}"));
        self.line("application.group", format_args!("{group}"));
        self.line("application.channel", format_args!("{channel}"));
        self.line("application.period", format_args!("{}", period.as_nanos()));
        self.line(
            "application.deadline",
            format_args!("{}", deadline.as_nanos()),
        );
        self.line("application.expiry", format_args!("{}", expiry.as_nanos()));
        match persist {
            Some(every) => self.line("application.persist", format_args!("{}", every.as_nanos())),
            None => self.line("application.persist", format_args!("none")),
        }
        self.line("application.commit", format_args!("{commit:?}"));
        self.line("application.distribution", format_args!("{distribution:?}"));
        // As usual it says nothing, so that releases which do not know the field agree with those that do.
        if *unsent != Unsent::Replace {
            self.line("application.unsent", format_args!("{unsent:?}"));
        }
        self.line("application.networks", format_args!("{:08b}", networks.0));
        self.line("application.state_max", format_args!("{state_max}"));
        match kind {
            ApplicationKind::QuadrupleTank(tank) => self.quadruple_tank(tank),
            ApplicationKind::Synthetic(Synthetic {
                size,
                changed_share,
            }) => {
                self.line("synthetic.size", format_args!("{size}"));
                self.real("synthetic.changed_share", *changed_share);
            }
            ApplicationKind::Program(program) => self.program(program),
        }
        if let Some(field) = field {
            self.field(field);
        }
        if !security.is_none() {
            self.state_security(security);
        }
    }

    fn state_security(&mut self, security: &StateSecurity) {
        let StateSecurity {
            integrity,
            encryption,
            replay,
            keys,
        } = security;
        self.line("security.integrity", format_args!("{}", integrity.name()));
        self.line("security.encryption", format_args!("{}", encryption.name()));
        self.line("security.replay", format_args!("{}", replay.name()));
        self.line("security.keys", format_args!("{}", keys.name()));
    }

    fn quadruple_tank(&mut self, tank: &QuadrupleTank) {
        let QuadrupleTank {
            set_points,
            loops,
            time_scale,
        } = tank;
        self.real("tank.time_scale", *time_scale);
        for point in set_points {
            self.line("set_point.at", format_args!("{}", point.at.as_nanos()));
            self.real("set_point.tank1", point.tank1_cm);
            self.real("set_point.tank2", point.tank2_cm);
        }
        for pid in loops {
            self.real("loop.gain", pid.gain);
            self.real("loop.integral", pid.integral_s);
            self.real("loop.derivative", pid.derivative_s);
        }
    }

    fn program(&mut self, program: &Program) {
        let Program {
            host,
            // Where it lies is each node's own affair.
            file: _,
            sha256: _,
            state_max: _,
            memory_max,
            engine,
            execute_limit,
            inputs,
            outputs,
            on_fault,
            state,
        } = program;
        self.line("program.host", format_args!("{host:?}"));
        self.line("program.sha256", format_args!("{}", program.sha256_hex()));
        let limit = execute_limit.as_nanos();
        self.line("program.execute_limit", format_args!("{limit}"));
        // As long as it says nothing, a node of an earlier release has the same.
        if let Some(most) = memory_max {
            self.line("program.memory_max", format_args!("{most}"));
        }
        if *engine != ModuleEngine::default() {
            self.line("program.engine", format_args!("{}", engine.name()));
        }
        for Input { name, device, from } in inputs {
            self.line("input.name", format_args!("{name:?}"));
            self.line("input.device", format_args!("{device}"));
            match from {
                InputFrom::Registers(point, poll) => {
                    self.point(point);
                    self.line("input.poll", format_args!("{poll}"));
                }
                InputFrom::Driver(tag, poll) => {
                    self.tag(tag);
                    self.line("input.poll", format_args!("{poll}"));
                }
                InputFrom::Quality(of) => self.line("input.quality", format_args!("{of}")),
                InputFrom::Age(of) => self.line("input.age", format_args!("{of}")),
                InputFrom::Answers => self.line("input.answers", format_args!("true")),
            }
        }
        for Output { name, device, to } in outputs {
            self.line("output.name", format_args!("{name:?}"));
            self.line("output.device", format_args!("{device}"));
            match to {
                OutputTo::Registers(point) => self.point(point),
                OutputTo::Driver(tag) => self.tag(tag),
                OutputTo::Block => self.line("output.block", format_args!("true")),
            }
        }
        // Likewise.
        if *state != StateOnChange::Kept {
            self.line("program.state", format_args!("{state:?}"));
        }
        match on_fault {
            OnProgramFault::Hold => self.line("program.on_fault", format_args!("hold")),
            OnProgramFault::Safe(values) => {
                values
                    .iter()
                    .for_each(|&value| self.real("program.safe", value));
            }
        }
    }

    fn point(&mut self, point: &Point) {
        let Point {
            area,
            register,
            value,
            byte_order,
            word_order,
            scale,
            offset,
        } = point;
        self.line(
            "point",
            format_args!("{area:?} {register} {value:?} {byte_order:?} {word_order:?}"),
        );
        self.real("point.scale", *scale);
        self.real("point.offset", *offset);
    }

    fn tag(&mut self, tag: &Tag) {
        let Tag {
            name,
            value,
            scale,
            offset,
        } = tag;
        self.line("tag", format_args!("{name:?} {value:?}"));
        self.real("tag.scale", *scale);
        self.real("tag.offset", *offset);
    }

    fn device(&mut self, device: &FieldDevice) {
        let FieldDevice {
            name,
            address,
            required,
            bus,
        } = device;
        self.line("device.name", format_args!("{name:?}"));
        match bus {
            Bus::Modbus(modbus) => self.modbus(address, modbus, *required),
            Bus::Driver(driver) => self.driver(address, driver, *required),
        }
    }

    fn modbus(&mut self, address: &SocketAddr, device: &ModbusDevice, required: bool) {
        let ModbusDevice {
            unit,
            security,
            epoch_register,
            cycle_register,
        } = device;
        self.line("device.address", format_args!("{address} {unit}"));
        self.device_security("device", security.as_ref());
        self.line("device.required", format_args!("{required}"));
        self.line(
            "device.tells",
            format_args!("{epoch_register:?} {cycle_register:?}"),
        );
    }

    fn driver(&mut self, address: &SocketAddr, driver: &FieldDriver, required: bool) {
        let FieldDriver {
            // Where it lies is each node's own affair.
            program: _,
            arguments,
            protocol,
            max_age,
        } = driver;
        self.line("device.address", format_args!("{address}"));
        self.line("device.required", format_args!("{required}"));
        self.line("driver.arguments", format_args!("{arguments:?}"));
        match protocol {
            DriverProtocol::Own => self.line("driver.protocol", format_args!("own")),
            DriverProtocol::OpcUa {
                path,
                policy,
                files: _,
                login,
            } => {
                let policy = policy.name();
                self.line("driver.protocol", format_args!("opcua {path:?} {policy}"));
                if let Some(login) = login {
                    self.login(login);
                }
            }
        }
        if let Some(age) = max_age {
            self.line("driver.max_age", format_args!("{}", age.as_nanos()));
        }
    }

    /// Anonymous has no line, as an open connection has none.
    fn login(&mut self, login: &OpcUaLogin) {
        let OpcUaLogin {
            user,
            // Where it lies is each node's own affair.
            password_file: _,
            exposed,
        } = login;
        self.line("driver.login", format_args!("{user:?} {exposed}"));
    }

    /// An open connection has no line, so that files without a word of it keep their fingerprint.
    fn device_security(&mut self, of: &str, security: Option<&DeviceSecurity>) {
        if let Some(DeviceSecurity { server_name }) = security {
            self.line(
                &format!("{of}.security"),
                format_args!("tls {server_name:?}"),
            );
        }
    }

    fn field(&mut self, field: &FieldIo) {
        let FieldIo {
            devices,
            check_epoch,
            on_failure,
            timeout,
            round_trip_max: _,
            certificates: _,
        } = field;
        match devices {
            FieldDevices::Tank { address, security } => {
                self.line("field.address", format_args!("{address}"));
                self.device_security("field", security.as_ref());
            }
            FieldDevices::Program(devices) => devices.iter().for_each(|device| self.device(device)),
        }
        self.line("field.check_epoch", format_args!("{check_epoch}"));
        self.line("field.on_failure", format_args!("{on_failure:?}"));
        self.line("field.timeout", format_args!("{}", timeout.as_nanos()));
    }
}

#[cfg(test)]
mod tests;
