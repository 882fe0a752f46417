//! What a node is asked for.

use std::sync::mpsc::SyncSender;

/// What an operator asks for.
pub enum ChangeRequest {
    /// Prepare the change to this text.
    Apply {
        /// The configuration.
        text: String,
        /// The file that it was read from.
        file: String,
        /// The partner has sent it, and may have done so before.
        carried: bool,
        /// Where the verdict goes.
        reply: SyncSender<Result<(), String>>,
    },
    /// Give up what is prepared.
    Withdraw {
        /// Where the verdict goes.
        reply: SyncSender<Result<(), String>>,
    },
}
