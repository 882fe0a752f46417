//! The `bumpless` command: one file for each subcommand, this one routes.

mod commands;
mod local;
mod output;
mod screen;
mod stop;

use std::env;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

/// Two ordinary computers as one redundant industrial controller.
///
/// Try `bumpless demo` first. Exit status: 0 done, 1 not as promised or refused, 2 wrong usage or
/// configuration.
#[derive(Debug, Parser)]
#[command(name = "bumpless", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(commands::demo::Demo),
    Run(commands::run::Run),
    Status(commands::status::Status),
    Values(commands::values::Values),
    Switchover(commands::switchover::Switchover),
    Apply(commands::apply::Apply),
    Witness(commands::witness::Witness),
    Plant(commands::plant::Plant),
    Key(commands::key::Key),
    KeyServer(commands::key_server::KeyServer),
    Pki(commands::pki::Pki),
    Iprp(commands::iprp::Iprp),
    Guard(commands::guard::Guard),
    Check(commands::check::Check),
    Plan(commands::plan::Plan),
    Program(commands::program::Program),
    Sim(commands::sim::Sim),
    Impact(Box<commands::impact::Impact>),
    Torture(commands::torture::Torture),
    Bench(Box<commands::bench::Bench>),
    Wan(commands::wan::Wan),
    #[command(hide = true)]
    CalibrationEnd(commands::plan::calibrate::CalibrationEnd),
    #[command(hide = true)]
    DemoNode(commands::demo::DemoNode),
    #[command(hide = true)]
    DemoDevice(commands::demo::DemoDevice),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return output::finish(refused(&error)),
    };
    let result = match arguments.command {
        Command::Demo(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Status(command) => command.run(),
        Command::Values(command) => command.run(),
        Command::Switchover(command) => command.run(),
        Command::Apply(command) => command.run(),
        Command::Witness(command) => command.run(),
        Command::Plant(command) => command.run(),
        Command::Key(command) => command.run(),
        Command::KeyServer(command) => command.run(),
        Command::Pki(command) => command.run(),
        Command::Iprp(command) => command.run(),
        Command::Guard(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Plan(command) => command.run(),
        Command::Program(command) => command.run(),
        Command::Sim(command) => command.run(),
        Command::Impact(command) => command.run(),
        Command::Torture(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Wan(command) => command.run(),
        Command::CalibrationEnd(command) => command.run(),
        Command::DemoNode(command) => command.run(),
        Command::DemoDevice(command) => command.run(),
    };
    output::finish(result.unwrap_or_else(|failure| failure.report()))
}

/// Prints what is wrong with the arguments, or the help or version that they ask for.
fn refused(error: &clap::Error) -> ExitCode {
    let asked = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    let mut words = env::args_os().skip(1).take_while(|word| word != "--");
    if !asked && words.any(|word| word == "--json") {
        let said = error.render().to_string();
        output::print_error(said.strip_prefix("error: ").unwrap_or(&said).trim_end());
    }
    let _ = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
