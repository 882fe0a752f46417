//! QUIC by tquic in the study of failovers (`spec/wan.md`, U-58): messages on one bidirectional stream of a connection with two
//! paths, each packet on both (tquic's scheduler `redundant`). The program does nothing about outages.

mod call;
mod outgoing;
mod serve;
mod settings;

use std::process::ExitCode;

use clap::Parser;
use peer_echo::Order;

fn main() -> ExitCode {
    let order = Order::parse();
    if let Order::Version = order {
        println!("{}", env!("PEER_VERSION"));
        return ExitCode::SUCCESS;
    }
    peer_echo::end_with_input();
    let done = match order {
        Order::Version => Ok(()),
        Order::Serve(serve) => serve::serve(&serve),
        Order::Call(call) => call::call(&call),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo-tquic: {error:#}");
            ExitCode::FAILURE
        }
    }
}
