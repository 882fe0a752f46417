//! QUIC by quinn in the study of failovers (`spec/wan.md`, U-58): messages on one bidirectional stream; a client that misses an
//! answer begins anew over its backup, with 0-RTT, and sends again what has no answer.

mod call;
mod serve;

use std::process::ExitCode;

fn main() -> ExitCode {
    peer_echo::run(
        env!("PEER_VERSION"),
        |order| on_this_thread(serve::serve(order)),
        |order| on_this_thread(call::call(order)),
    )
}

fn on_this_thread(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build()?.block_on(work)
}
