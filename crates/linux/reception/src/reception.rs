//! Filters on a host's interfaces for as long as the process lives.

mod change;

use std::fmt;
use std::io;

use bumpless_capture::interfaces;
use bumpless_guard::{Flow, FlowId, Setup};
use bumpless_net_linux::capabilities::Missing;

use crate::filter::{Counts, Filter, LoadError};
use crate::occupant::{Found, Occupant, find};
use crate::rights::{missing, remedy};
use bumpless_bpf::{Link, Mode, interface_number};
pub use change::Wanted;

/// Why a filter is not on an interface.
#[derive(Debug)]
pub enum AttachError {
    /// There is no such interface.
    Gone {
        /// Those that there are.
        others: Vec<String>,
    },
    /// Its frames have no Ethernet header: the kernel's number of its kind.
    NoEthernet(u16),
    /// Somebody else has a program there.
    Occupied(Option<Occupant>),
    /// The kernel refuses in either mode.
    Refused {
        /// What it says to native mode.
        native: io::Error,
        /// What it says to generic mode.
        generic: io::Error,
    },
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { others } => write!(
                f,
                "there is no such interface; this host has {}",
                if others.is_empty() {
                    "none but lo".to_owned()
                } else {
                    others.join(", ")
                }
            ),
            Self::NoEthernet(kind) => write!(
                f,
                "its packets come without an Ethernet header (kind {kind} in linux/if_arp.h; WireGuard, TUN, PPP and tunnels are such), so that \
                 none of them can be told from another there: name the interface that carries them instead"
            ),
            Self::Occupied(who) => {
                let who = who
                    .as_ref()
                    .map_or("a program".to_owned(), ToString::to_string);
                write!(
                    f,
                    "{who} is on it already and was left there: an interface has one program of this kind (XDP); end that one, or leave \
                     this interface out"
                )
            }
            Self::Refused { native, generic } => {
                write!(
                    f,
                    "the kernel takes no program there: native mode: {native}; generic mode: {generic}"
                )
            }
        }
    }
}

/// Why nothing was started.
#[derive(Debug)]
pub enum StartError {
    /// Capabilities are missing.
    Rights(Vec<Missing>),
    /// The filter.
    Load(LoadError),
    /// An interface, by name.
    Attach(String, AttachError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rights(all) => {
                let path = std::env::current_exe().unwrap_or_default();
                let named: Vec<_> = all.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "{}; {}",
                    named.join(", "),
                    remedy(&path.display().to_string())
                )
            }
            Self::Load(error) => error.fmt(f),
            Self::Attach(name, error) => write!(f, "interface {name}: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// What is told of one interface.
#[derive(Clone, Debug)]
pub struct InterfaceReport {
    /// Its name.
    pub name: String,
    /// Where the filter is; `None`: nowhere.
    pub mode: Option<Mode>,
    /// Why it is nowhere, or not in native mode.
    pub weakness: Option<String>,
    /// What happened to the frames of each flow since the start.
    pub flows: Vec<(FlowId, Counts)>,
}

struct Guarded {
    name: String,
    filter: Filter,
    state: Result<Attached, AttachError>,
}

struct Attached {
    link: Link,
    /// The number under which the interface was found.
    number: u32,
    mode: Mode,
    /// What the kernel said to native mode.
    not_native: Option<io::Error>,
}

/// Filters on interfaces. The kernel takes them away when this is dropped, or the process ends, however it does.
pub struct Reception {
    interfaces: Vec<Guarded>,
}

impl Reception {
    /// Puts a filter of its own on each of these interfaces of the thread's namespace.
    ///
    /// # Errors
    /// Everything that is wrong; then there is no filter anywhere.
    pub fn start(setup: &Setup, names: &[String]) -> Result<Self, Vec<StartError>> {
        Self::start_with_room(setup, 0, names)
    }

    /// The same with room for so many flows behind those of the setup ([`Reception::set_flow`]).
    ///
    /// # Errors
    /// As [`Reception::start`].
    pub fn start_with_room(
        setup: &Setup,
        room: usize,
        names: &[String],
    ) -> Result<Self, Vec<StartError>> {
        let (mut held, mut errors) = (Vec::new(), Vec::new());
        for it in Self::attach_all(setup, room, names)?.interfaces {
            match it.state {
                Err(error) => errors.push(StartError::Attach(it.name, error)),
                Ok(_) => held.push(it),
            }
        }
        match errors.is_empty() {
            true => Ok(Self { interfaces: held }),
            false => Err(errors),
        }
    }

    /// Puts a filter on those of these interfaces where it can be, with room for so many flows behind those of the setup; the report says
    /// why it is not on the others, and [`Reception::look_after`] tries again there.
    ///
    /// # Errors
    /// What keeps it from all of them.
    pub fn start_where_possible(
        setup: &Setup,
        room: usize,
        names: &[String],
    ) -> Result<Self, Vec<StartError>> {
        Self::attach_all(setup, room, names)
    }

    fn attach_all(setup: &Setup, room: usize, names: &[String]) -> Result<Self, Vec<StartError>> {
        let missing = missing();
        if !missing.is_empty() {
            return Err(vec![StartError::Rights(missing)]);
        }
        let guarded = |name: &String| {
            let filter = Filter::with_room(setup, room)?;
            let state = attach(&filter, name);
            let name = name.clone();
            Ok(Guarded {
                name,
                filter,
                state,
            })
        };
        let interfaces: Result<_, LoadError> = names.iter().map(guarded).collect();
        let interfaces = interfaces.map_err(|error| vec![StartError::Load(error)])?;
        Ok(Self { interfaces })
    }

    /// Puts this filter on another interface, if none of them has this name; where it cannot be, the report says why.
    pub fn add(&mut self, filter: Filter, name: &str) {
        if self.interfaces.iter().all(|it| it.name != name) {
            let state = attach(&filter, name);
            let name = name.to_owned();
            self.interfaces.push(Guarded {
                name,
                filter,
                state,
            });
        }
    }

    /// Has the flow with number `at` be this one on all interfaces ([`Filter::set_flow`]).
    ///
    /// # Errors
    /// [`LoadError`]; then the flow is nowhere.
    pub fn set_flow(&mut self, at: u16, flow: &Flow) -> Result<(), LoadError> {
        let mut filters = self.interfaces.iter_mut().map(|it| &mut it.filter);
        let result = filters.try_for_each(|filter| filter.set_flow(at, flow.clone()));
        if result.is_err() {
            for it in &mut self.interfaces {
                // What the kernel does not take back goes with the filter.
                let _ = it.filter.set_flow(at, Flow::NONE);
            }
        }
        result
    }

    /// Has `open` pass every frame on all interfaces, in the place of what is there: no driver begins anew. An interface that has gone is
    /// passed over.
    ///
    /// # Errors
    /// The first of the kernel's if it refuses on one that is still there: then there is what was there on that one alone, and to lift
    /// again does no harm.
    pub fn lift(&self, open: &Filter) -> io::Result<()> {
        let attached = self
            .interfaces
            .iter()
            .filter_map(|it| it.state.as_ref().ok());
        let there = attached.filter(|it| it.link.holds());
        let mut refused = None;
        for attached in there {
            // One that goes at this very moment passes everything.
            let lifted = open.take_over(&attached.link);
            let lifted = lifted.or_else(|error| match attached.link.holds() {
                true => Err(error),
                false => Ok(()),
            });
            refused = refused.or(lifted.err());
        }
        refused.map_or(Ok(()), Err)
    }

    /// How many interfaces it has.
    pub fn len(&self) -> usize {
        self.interfaces.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.interfaces.is_empty()
    }

    /// Has these decide, one for each interface, in the place of what is there: no driver begins anew, and counts do.
    pub fn renew(&mut self, filters: Vec<Filter>) {
        for (it, filter) in self.interfaces.iter_mut().zip(filters) {
            it.renew(filter);
        }
    }

    /// Attaches again where an interface has come back, or another's program has gone. To be called now and then.
    pub fn look_after(&mut self) {
        for it in &mut self.interfaces {
            let holds = match &it.state {
                Ok(attached) => {
                    attached.link.holds() && interface_number(&it.name) == Some(attached.number)
                }
                Err(_) => false,
            };
            if !holds {
                it.state = attach(&it.filter, &it.name);
            }
        }
    }

    /// What there is to tell of each interface.
    ///
    /// # Errors
    /// The kernel does not give the counts.
    pub fn report(&self) -> io::Result<Vec<InterfaceReport>> {
        let one = |it: &Guarded| {
            let (mode, weakness) = match &it.state {
                Ok(attached) => (Some(attached.mode), attached.weakness()),
                Err(error) => (None, Some(error.to_string())),
            };
            Ok(InterfaceReport {
                name: it.name.clone(),
                mode,
                weakness,
                flows: it.filter.counts()?,
            })
        };
        self.interfaces.iter().map(one).collect()
    }
}

impl Guarded {
    /// Has `filter` decide in the place of what is there.
    fn renew(&mut self, filter: Filter) {
        self.filter = filter;
        let replaced = match &self.state {
            Ok(attached) => self.filter.take_over(&attached.link).is_ok(),
            Err(_) => true,
        };
        if !replaced {
            // What cannot be replaced, such as on an interface that has gone, is attached anew.
            self.state = Err(AttachError::Occupied(None));
            self.state = attach(&self.filter, &self.name);
        }
    }
}

impl Attached {
    fn weakness(&self) -> Option<String> {
        let error = self.not_native.as_ref()?;
        Some(format!(
            "its driver does not run the program itself ({error}): the kernel does, once it has made a buffer of a frame, so that a \
             dropped frame costs more"
        ))
    }
}

/// What would keep a start with these interfaces from being whole, without attaching anything.
pub fn survey(setup: &Setup, names: &[String]) -> Vec<StartError> {
    let mut errors = Vec::new();
    let missing = missing();
    if missing.is_empty() {
        errors.extend(Filter::new(setup).err().map(StartError::Load));
    } else {
        errors.push(StartError::Rights(missing));
    }
    for name in names {
        let error = vacant(name).err();
        errors.extend(error.map(|error| StartError::Attach(name.clone(), error)));
    }
    errors
}

/// The number of an interface of Ethernet on which nobody has a program.
fn vacant(name: &str) -> Result<u32, AttachError> {
    let Some(number) = interface_number(name) else {
        let others = interfaces().unwrap_or_default();
        return Err(AttachError::Gone {
            others: others.into_iter().map(|it| it.name).collect(),
        });
    };
    match find(number) {
        Ok(Some(it)) if !it.has_ethernet() => Err(AttachError::NoEthernet(it.kind)),
        // A program in the other mode would be one beside this one: the kernel refuses that only in part.
        Ok(Some(Found {
            occupant: Some(who),
            ..
        })) => Err(AttachError::Occupied(Some(who))),
        _ => Ok(number),
    }
}

/// Native mode if it is to be had, else generic mode.
fn attach(filter: &Filter, name: &str) -> Result<Attached, AttachError> {
    let number = vacant(name)?;
    let attached = |link, mode, not_native| Attached {
        link,
        number,
        mode,
        not_native,
    };
    let native = match filter.attach(number, Mode::Native) {
        Ok(link) => return Ok(attached(link, Mode::Native, None)),
        Err(error) => error,
    };
    match filter.attach(number, Mode::Generic) {
        Ok(link) => Ok(attached(link, Mode::Generic, Some(native))),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) => {
            let found = find(number).ok().flatten();
            Err(AttachError::Occupied(found.and_then(|it| it.occupant)))
        }
        Err(generic) => Err(AttachError::Refused { native, generic }),
    }
}
