//! How a state leaves one executor and enters the next.

use crate::state::{Envelope, Progress, encode_envelope, envelope_len};
use crate::{Application, LoadError};
use bumpless_base::pieces::overlay;
use bumpless_base::{Pieces, Revision};

/// Bytes that a channel must be able to carry for `application`.
pub fn published_size_max(application: &dyn Application) -> usize {
    envelope_len(application.outputs()) + application.state_size_max()
}

/// Writes the published state; an empty one if `buffer` is too small, which no partner loads.
pub(super) fn fill(
    app: &dyn Application,
    progress: Progress,
    outputs: &[f64],
    buffer: &mut [u8],
) -> usize {
    if buffer.len() < published_size_max(app) {
        return 0;
    }
    match encode_envelope(progress, outputs, buffer) {
        Some(len) => len + app.save(&mut buffer[len..]),
        None => 0,
    }
}

/// The published state where the application's part of it can be copied in pieces.
pub(super) struct PublishedPieces<'a> {
    /// The envelope, which differs in each cycle.
    pub head: &'a [u8],
    pub application: &'a dyn Pieces,
}

impl Pieces for PublishedPieces<'_> {
    fn size(&self) -> usize {
        self.head.len() + self.application.size()
    }

    fn revision(&self) -> Option<Revision> {
        self.application.revision()
    }

    fn copy(&self, at: usize, piece: &mut [u8], held: Option<Revision>) {
        overlay(piece, at, self.head, 0);
        let begins = self.head.len();
        let skipped = begins.saturating_sub(at);
        if let Some(rest) = piece.get_mut(skipped..) {
            self.application
                .copy((at + skipped).saturating_sub(begins), rest, held);
        }
    }
}

/// Loads `state` unless the application has come as far by itself, or it lacks an output that was written;
/// returns how far it goes.
pub(super) fn load_if_newer(
    application: &mut dyn Application,
    outputs: &mut [f64],
    state: &[u8],
    (own, includes): (Option<Progress>, &dyn Fn(Progress) -> bool),
) -> Result<Option<Progress>, LoadError> {
    let envelope = Envelope::parse(state)?;
    if own.is_some_and(|own| own >= envelope.progress) || !includes(envelope.progress) {
        return Ok(None);
    }
    if envelope.output_count() != outputs.len() {
        return Err(LoadError::Value {
            field: "number of outputs",
        });
    }
    application.load(envelope.application)?;
    for (slot, value) in outputs.iter_mut().zip(envelope.outputs()) {
        *slot = value;
    }
    Ok(Some(envelope.progress))
}
