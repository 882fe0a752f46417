//! Real programs across a wide-area network: many substations at once and two control centres, while parts of the network and
//! the primary centre die (`spec/wan.md`, U-90 and further).
//!
//! | module | owns |
//! |---|---|
//! | `protocol` | what is spoken |
//! | `plan` | who takes part, and what dies |
//! | `seen` | what the centres saw |
//! | `outside` | programs that are not ours, and their script `grid.py` |
//! | `phasors` | streams of phasors, which are ours |
//! | `stage` | the network with a second way to every host |
//! | `result` | what is kept |
//! | `analysis` | what was seen, as figures |
//! | `run` | both passes, without and with iPRP |
//! | `report` | tables, drawings and the page |

mod analysis;
mod outside;
mod phasors;
mod plan;
mod protocol;
mod report;
mod result;
mod run;
mod seen;
mod stage;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bumpless_base::Instant;
use bumpless_bench::run::meter;
use bumpless_net_linux::Clock;
use bumpless_wan::Topology;
use bumpless_wan::emulation::{Line, Place, Routing};

pub use result::Programs;

use outside::Outside;
use plan::{Outage, Plan};
use protocol::Protocol;
use result::{Died, Pass, Settings, Software};
use run::Scene;
use stage::Stage;

/// What is asked for.
#[derive(Debug)]
pub struct ProgramsOptions {
    /// The program whose network and daemons are used.
    pub binary: PathBuf,
    /// The name of the network meanwhile.
    pub place: Place,
    /// The network, as it is generated.
    pub topology: Topology,
    /// Who decides where packets go in it.
    pub routing: Routing,
    /// Pairs of routers in its backbone.
    pub backbone_pairs: usize,
    /// An interpreter of Python that has the libraries.
    pub python: PathBuf,
    /// Substations at once.
    pub substations: usize,
    /// How long each outage lasts, seconds.
    pub seconds: u64,
    /// Between two orders or questions to a substation, milliseconds.
    pub every_ms: u64,
    /// Frames that each unit sends to each centre in a second.
    pub frames_each_second: u32,
    /// What the second way is like.
    pub backup: Line,
    /// What all chance is drawn from.
    pub seed: u64,
    /// Set to end it.
    pub stop: Arc<AtomicBool>,
}

/// Has the programs run, without and with iPRP, and what dies die; `told` hears what happens, for people.
///
/// # Errors
/// What is missing for it, or did not go on. Nothing of it is left.
pub fn run_programs(
    options: &ProgramsOptions,
    told: &(dyn Fn(&str) + Sync),
) -> Result<Programs, String> {
    let mut programs = Programs::begin(Settings {
        substations: options.substations,
        seconds: options.seconds,
        every_ms: options.every_ms,
        frames_each_second: options.frames_each_second,
        backup: crate::study::line_name(options.backup).to_owned(),
        seed: options.seed,
    });
    let began = crate::study::urgent(|| measure(options, told, &mut programs))?;
    programs.head.took_s = Clock.now().since(began).as_nanos() as f64 / 1e9;
    programs.promises = analysis::promises(&programs);
    Ok(programs)
}

fn measure(
    options: &ProgramsOptions,
    told: &(dyn Fn(&str) + Sync),
    programs: &mut Programs,
) -> Result<Instant, String> {
    let topology = &options.topology;
    let plan = Plan::new(topology, options.substations, options.backbone_pairs)?;
    run::urgent(run::NETWORK);
    let (binary, place) = (&options.binary, &options.place);
    let ways = (options.backup, options.routing, options.seed);
    let stage = Stage::new(binary, place, (topology, &plan), ways)?;
    let outside = Outside::new(&options.python, &stage.folder)?;
    programs.network = crate::study::network(&stage.running, topology, &stage.centres[0].name);
    programs.centres = stage.centres.iter().map(|it| it.name.clone()).collect();
    programs.software = software(&outside);
    programs.outages = died(topology, &plan);
    let has = |protocol: &Protocol| {
        let mut all = programs.software.iter();
        all.any(|it| it.protocol == *protocol && it.program.is_some())
    };
    let protocols: Vec<_> = Protocol::ALL.into_iter().filter(has).collect();
    let scene = Scene {
        options,
        plan: &plan,
        stage: &stage,
        outside: &outside,
        protocols: &protocols,
    };
    let began = Clock.now();
    let mut complete = true;
    let (passes, stood_still) = meter::beside_urgent(run::NETWORK, || {
        let one = |pass: Pass| {
            let of = match pass {
                Pass::Plain => "without iPRP",
                Pass::Protected => "with iPRP",
            };
            scene.pass(pass, &|what| told(&format!("{of}: {what} dies")))
        };
        Pass::ALL.map(one)
    });
    programs.jitter = meter::told(&stood_still, began);
    programs.overflowed = stage.overflowed();
    for passed in passes {
        let passed = passed?;
        complete &= passed.complete;
        programs.rows.extend(passed.rows);
        programs.courses.extend(passed.courses);
    }
    programs.head.complete = complete;
    Ok(began)
}

/// What speaks each protocol here.
fn software(outside: &Outside) -> Vec<Software> {
    let of = |protocol: Protocol| {
        let (program, not_run) = match outside.version(protocol) {
            Ok(program) => (Some(program), None),
            Err(why) => (None, Some(why)),
        };
        Software {
            protocol,
            program,
            not_run,
        }
    };
    Protocol::ALL.map(of).to_vec()
}

fn died(topology: &Topology, plan: &Plan) -> Vec<Died> {
    let of = |outage: Outage| Died {
        outage,
        nodes: plan.names(outage).to_vec(),
        reached: plan
            .centres
            .iter()
            .map(|&centre| {
                let reached = plan.reached(topology, outage, centre);
                reached.iter().filter(|it| **it).count()
            })
            .collect(),
    };
    Outage::ALL.map(of).to_vec()
}
