//! QUIC by quinn in the study of failovers (`spec/wan.md`, U-58): messages on one bidirectional stream; a client that misses an
//! answer begins anew over its backup, with 0-RTT, and sends again what has no answer.

mod call;
mod serve;

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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        runtime.block_on(async {
            match order {
                Order::Version => Ok(()),
                Order::Serve(serve) => serve::serve(&serve).await,
                Order::Call(call) => call::call(&call).await,
            }
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo-quinn: {error:#}");
            ExitCode::FAILURE
        }
    }
}
