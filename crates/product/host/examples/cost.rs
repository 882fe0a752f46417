//! What a cycle of a WebAssembly program costs beyond the program, beside a built-in application.
//!
//!     cargo run --release -p bumpless-host --features wasmtime --example cost -- MODULE.wasm [INPUTS OUTPUTS]
//!
//! Medians of 100,000 cycles, in turn: the built-in controller; by each engine that is built in a module that does nothing and the one
//! given; each with its state saved as an executor does. Without numbers, a module that computes is written to the file first.

use std::error::Error;
use std::sync::Arc;

use bumpless_base::Duration;
use bumpless_controller::{Application, CycleContext, QuadrupleTank, QuadrupleTankParameters};
use bumpless_host::kit::Percentiles;
use bumpless_host::wasm::{Engine, Module, Wasm};
use bumpless_host::{Limits, Shape};
use bumpless_net_linux::Clock;

const CYCLES: u64 = 100_000;

/// A module whose cycle does nothing: its types, one function, its export, its body.
const EMPTY: &[u8] = b"\0asm\x01\0\0\0\
    \x01\x04\x01\x60\x00\x00\
    \x03\x02\x01\x00\
    \x07\x09\x01\x05cycle\x00\x00\
    \x0a\x04\x01\x02\x00\x0b";

struct Measured {
    name: String,
    application: Box<dyn Application>,
    inputs: Vec<f64>,
    outputs: Vec<f64>,
    state: Vec<u8>,
    executing: Vec<u64>,
    saving: Vec<u64>,
}

impl Measured {
    fn new(name: &str, application: Box<dyn Application>) -> Self {
        Self {
            name: name.to_owned(),
            inputs: vec![1.0; application.inputs()],
            outputs: vec![0.0; application.outputs()],
            state: vec![0; application.state_size_max()],
            application,
            executing: Vec::new(),
            saving: Vec::new(),
        }
    }

    fn cycle(&mut self, cycle: u64) -> Result<(), Box<dyn Error>> {
        let context = CycleContext {
            cycle,
            period: Duration::from_millis(10),
        };
        let began = Clock.now();
        self.application
            .execute(&context, &self.inputs, &mut self.outputs)?;
        let executed = Clock.now();
        self.application.save(&mut self.state);
        let saved = Clock.now();
        self.executing.push(executed.since(began).as_nanos());
        self.saving.push(saved.since(executed).as_nanos());
        Ok(())
    }
}

/// The module that computes.
const MATRIX: &str = include_str!("matrix.wat");

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, given, inputs, outputs) = match &arguments[..] {
        [file, inputs, outputs] => {
            let bytes = std::fs::read(file)?;
            (&file[..], bytes, inputs.parse()?, outputs.parse()?)
        }
        [file] => {
            let bytes = wat::parse_str(MATRIX)?;
            std::fs::write(file, &bytes)?;
            (&file[..], bytes, 2, 1)
        }
        _ => return Err("give MODULE.wasm INPUTS OUTPUTS, or a file to write one to".into()),
    };
    // So long that nobody is stopped because the computer had other things to do.
    let limits = Limits::within(Duration::from_secs(10));
    let shape = |inputs, outputs| Shape {
        inputs,
        outputs,
        state_max: 32 << 20,
    };
    let built_in = QuadrupleTank::new(QuadrupleTankParameters::default());
    let mut all = vec![Measured::new(
        "built-in (quadruple tank)",
        Box::new(built_in),
    )];
    for engine in Engine::ALL.into_iter().filter(|it| it.is_built_in()) {
        for (name, bytes, inputs, outputs) in
            [("empty", EMPTY, 0, 0), (name, &given[..], inputs, outputs)]
        {
            let module = Arc::new(Module::read(name, bytes, engine)?);
            let program = Wasm::new(module, shape(inputs, outputs), limits)?;
            all.push(Measured::new(
                &format!("{engine}: {name}"),
                Box::new(program),
            ));
        }
    }
    for cycle in 1..=CYCLES {
        for measured in &mut all {
            measured.cycle(cycle)?;
        }
    }
    for measured in all {
        let (executing, saving) = (
            Percentiles::of(measured.executing),
            Percentiles::of(measured.saving),
        );
        println!(
            "{:28} execute p50 {:6} ns, p99 {:6} ns; save p50 {:6} ns, p99 {:6} ns",
            measured.name, executing.p50, executing.p99, saving.p50, saving.p99
        );
    }
    Ok(())
}
