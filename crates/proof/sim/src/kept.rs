//! A computer's disk as far as states are kept on it: the shipped files and the shipped judgement of them. A file is
//! written at once and whole; what survives a crash between two of its steps, tests of the real folder see.

use bumpless_base::Instant;
use bumpless_config::{Application, Config};
use bumpless_controller::retain::Table;
use bumpless_node::persist::format::encode;
use bumpless_node::persist::identity::{Identity, Saved, Versions};
use bumpless_node::persist::restore::judge;
use bumpless_node::persist::way::{Outlet, way};
use bumpless_node::persist::{Found, Keeper};
use bumpless_transfer::ChannelPlace;

/// What all computers' clocks show at the beginning of the world, nanoseconds since 1970.
const EPOCH: u64 = 1_800_000_000_000_000_000;

/// The files, by application among all that there ever are. They outlive processes and computers.
#[derive(Clone, Debug, Default)]
pub struct StateDisk(Vec<Option<Vec<u8>>>);

/// The end of an application's way to its disk.
pub struct Saver {
    identity: Identity,
    outlet: Outlet,
}

/// What a process that starts has of its disk for one application.
#[derive(Default)]
pub struct Opened {
    /// Its executor's way to the disk.
    pub keeper: Option<Keeper>,
    /// Where that ends.
    pub saver: Option<Saver>,
    /// What an earlier process has left.
    pub found: Option<Found>,
}

impl StateDisk {
    /// At true time `now`, when the computer's clock shows `local`, opens the file of the application at `index` among
    /// all, which is at `place` on its node.
    pub fn open(
        &self,
        config: &Config,
        (index, place, settings): (usize, ChannelPlace, &Application),
        (now, local): (u64, Instant),
    ) -> Opened {
        let Some(every) = settings.persist else {
            return Opened::default();
        };
        let bytes = self.0.get(index).and_then(Option::as_ref);
        let pair = config.pair_id();
        let restored = bytes.and_then(|bytes| {
            judge(bytes, (pair, settings), EPOCH + now, &|| true)
                .state
                .ok()
        });
        let restored = restored.map(|restored| {
            let until = local + restored.usable_for;
            (restored, until)
        });
        let state = restored
            .as_ref()
            .map(|(restored, until)| (&restored.state[..], *until));
        let (keeper, outlet) = way(
            settings.state_max as usize,
            every,
            state,
            &Default::default(),
        );
        let versions = Versions::default();
        versions.add(Saved {
            told_by: None,
            program: settings.program(),
            retained: Table::default(),
        });
        Opened {
            keeper: Some(keeper),
            saver: Some(Saver {
                identity: Identity::new(pair, settings, versions),
                outlet,
            }),
            found: restored.map(|(restored, usable_until)| Found {
                place,
                epoch: restored.progress.epoch,
                usable_until: Some(usable_until),
            }),
        }
    }

    /// Writes what waits at `saver` to the file of the application at `index`.
    pub fn save(&mut self, index: usize, saver: &Saver, (now, local): (u64, Instant)) {
        let Some(copy) = saver.outlet.take() else {
            return;
        };
        if self.0.len() <= index {
            self.0.resize(index + 1, None);
        }
        let mut record = Vec::new();
        let file = saver
            .identity
            .file(&copy, (local, EPOCH + now), &mut record);
        if let (Some(file), Some(place)) = (file, self.0.get_mut(index)) {
            encode(&file, place.get_or_insert_default());
        }
        saver.outlet.give_back(copy);
    }
}
