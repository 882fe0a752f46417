//! Who is let in at a simulated device by TLS (Modbus/TCP Security), and what they may do there.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bumpless_pki::rustls::pki_types::CertificateDer;
use bumpless_pki::rustls::{self, CommonState};
use bumpless_pki::{Certificate, Identity, IdentityPaths, Refusal, Role, explain};
use bumpless_sessions::Identities;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Who has not shown within this who it is, is given up.
const HANDSHAKE: Duration = Duration::from_secs(3);
/// Most that are showing it at a time, of the connections that a device has.
const STRANGERS_MAX: usize = 32;

/// Which roles may do what. Without any, whoever is let in may do everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Roles that may read.
    pub read: Vec<Role>,
    /// Roles that may read and write.
    pub write: Vec<Role>,
}

/// What a client may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Right {
    pub(super) read: bool,
    pub(super) write: bool,
}

impl Rights {
    fn of(&self, role: Option<&Role>) -> Right {
        if self.read.is_empty() && self.write.is_empty() {
            return Right {
                read: true,
                write: true,
            };
        }
        let among = |roles: &[Role]| role.is_some_and(|role| roles.contains(role));
        let write = among(&self.write);
        Right {
            read: write || among(&self.read),
            write,
        }
    }
}

/// What a device shows of itself, whom it lets in, and where it says whom it does not.
pub struct DoorSettings {
    /// Where its identity is read again.
    pub paths: IdentityPaths,
    /// Its identity.
    pub identity: Identity,
    /// What clients may do.
    pub rights: Rights,
    /// Hears who was refused what.
    pub refused: Box<dyn Fn(&Refused) + Send + Sync>,
}

/// A client that was refused, or what it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Where the client is.
    pub from: SocketAddr,
    /// Why, and what to do.
    pub why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {} is refused: {}", self.from, self.why)
    }
}

/// The door of one device.
pub(super) struct Door {
    identities: Mutex<Identities>,
    paths: IdentityPaths,
    rights: Rights,
    refused: Box<dyn Fn(&Refused) + Send + Sync>,
    strangers: AtomicUsize,
    inside: Mutex<Vec<(Weak<Guest>, Arc<Identity>)>>,
}

/// A client.
pub(super) struct Guest {
    from: SocketAddr,
    door: Arc<Door>,
    /// Once it has shown who it is.
    known: OnceLock<Known>,
    revoked: AtomicBool,
    told: AtomicBool,
}

struct Known {
    right: Right,
    role: Option<Role>,
    shown: Vec<CertificateDer<'static>>,
}

impl Guest {
    /// What it may do; nothing before it has shown who it is.
    pub(super) fn right(&self) -> Right {
        self.known.get().map(|it| it.right).unwrap_or_default()
    }

    /// Says once for each connection that the client has no right to `what`.
    pub(super) fn note_without_right(&self, what: &str) {
        if self.told.swap(true, Ordering::Relaxed) {
            return;
        }
        let role = self.known.get().and_then(|it| it.role.as_ref());
        let role = role.map_or_else(|| "no role".into(), |role| format!("role {role}"));
        self.tell(format!(
            "its certificate has {role}, which may not {what} here; issue it another one with `bumpless pki issue NODE.PAIR \
             --role ROLE`, or give that role the right (--may-read, --may-write)"
        ));
    }

    fn tell(&self, why: String) {
        let from = self.from;
        (self.door.refused)(&Refused { from, why });
    }
}

impl Door {
    pub(super) fn new(settings: DoorSettings) -> Self {
        let DoorSettings {
            paths,
            identity,
            rights,
            refused,
        } = settings;
        Self {
            identities: Mutex::new(Identities::new(paths.clone(), identity, now())),
            paths,
            rights,
            refused,
            strangers: AtomicUsize::new(0),
            inside: Mutex::default(),
        }
    }

    /// Begins to let a client in; `None`: too many are being let in already.
    pub(super) fn open(self: &Arc<Self>, stream: TcpStream, from: SocketAddr) -> Option<Entry> {
        if self.strangers.fetch_add(1, Ordering::Relaxed) >= STRANGERS_MAX {
            self.strangers.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let guest = Arc::new(Guest {
            from,
            door: Arc::clone(self),
            known: OnceLock::new(),
            revoked: AtomicBool::new(false),
            told: AtomicBool::new(false),
        });
        let stranger = Stranger(Arc::clone(self));
        // What a handshake reckons, others' requests do not wait for.
        let (door, runtime) = (Arc::clone(self), Handle::current());
        let accept = move || runtime.block_on(door.accept(stream, stranger));
        Some(Entry {
            guest,
            state: State::Knocking(tokio::task::spawn_blocking(accept)),
        })
    }

    async fn accept(&self, stream: TcpStream, _stranger: Stranger) -> Accepted {
        let identity = {
            let mut identities = self
                .identities
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            identities.fresh(now())
        };
        let config = identity.field_server_config().map_err(io::Error::other)?;
        let accept = TlsAcceptor::from(config).accept(stream);
        let accepted = tokio::time::timeout(HANDSHAKE, accept).await;
        let accepted = accepted.map_err(|_elapsed| io::Error::from(io::ErrorKind::TimedOut))?;
        Ok((Box::new(accepted?), identity))
    }

    /// Looks whether the certificate of somebody inside was revoked.
    pub(super) fn look_again(&self) {
        let mut identities = self
            .identities
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        identities.changed(now());
        let identity = identities.current();
        drop(identities);
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.retain_mut(|(guest, judge)| {
            let Some(guest) = guest.upgrade() else {
                return false;
            };
            if !Arc::ptr_eq(judge, &identity) {
                *judge = Arc::clone(&identity);
                let shown = guest.known.get().map(|it| &it.shown[..]);
                let revoked = identity.has_revoked(shown.unwrap_or_default());
                guest.revoked.fetch_or(revoked, Ordering::Relaxed);
            }
            true
        });
    }

    fn words(&self, error: &io::Error) -> String {
        let inner = error
            .get_ref()
            .and_then(|it| it.downcast_ref::<rustls::Error>());
        let Some(refusal) = inner.map(explain) else {
            return format!(
                "it has not finished the TLS handshake ({error}); look whether it speaks Modbus/TCP Security"
            );
        };
        match refusal {
            Refusal::Partner(fault) => {
                let file = match &fault {
                    bumpless_pki::CertificateFault::Revoked => self.paths.revoked.as_ref(),
                    _ => None,
                };
                let file = file.unwrap_or(&self.paths.authorities).display();
                format!("its certificate, judged by {file}, {}; {}", fault.wrong(), fault.remedy())
            }
            Refusal::NoCertificate => "it shows no certificate; issue it one: `bumpless pki issue NODE.PAIR`".into(),
            Refusal::Garbled(what) => format!(
                "what it says is no TLS ({what}); write security = \"tls\" for this device in its configuration"
            ),
            Refusal::ByPartner(why) => format!(
                "it does not believe the certificate in {}: {why}; compare names and authorities",
                self.paths.certificate.display()
            ),
            Refusal::Protocol => {
                "it has no version or cipher of TLS in common with this device; have it speak TLS 1.3 or 1.2".into()
            }
            Refusal::Other(what) => format!("TLS failed: {what}; look at its log, too"),
        }
    }
}

/// When this is, for how often files are looked at.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}

/// Somebody who has not shown yet who it is; counted as long.
struct Stranger(Arc<Door>);

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.strangers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that is being let in, and carries requests afterwards. The handshake goes on in a thread of its
/// own, so that nobody else waits for it.
pub(super) struct Entry {
    guest: Arc<Guest>,
    state: State,
}

/// What became of a handshake, and by which identity the client was judged.
type Accepted = io::Result<(Box<TlsStream<TcpStream>>, Arc<Identity>)>;

enum State {
    Knocking(JoinHandle<Accepted>),
    Inside(Box<TlsStream<TcpStream>>),
    Refused,
}

impl Entry {
    /// Who is at the other end.
    pub(super) fn guest(&self) -> Arc<Guest> {
        Arc::clone(&self.guest)
    }

    fn poll_inside(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Pin<&mut TlsStream<TcpStream>>>> {
        if let State::Knocking(knocking) = &mut self.state {
            let accepted = ready!(Pin::new(knocking).poll(context));
            self.state = match accepted.unwrap_or_else(|ended| Err(io::Error::other(ended))) {
                Ok((stream, identity)) => {
                    self.recognise(stream.get_ref().1, identity);
                    State::Inside(stream)
                }
                Err(error) => {
                    self.guest.tell(self.guest.door.words(&error));
                    State::Refused
                }
            };
        }
        match &mut self.state {
            State::Inside(stream) if !self.guest.revoked.load(Ordering::Relaxed) => {
                Poll::Ready(Ok(Pin::new(stream.as_mut())))
            }
            _ => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
        }
    }

    fn recognise(&self, session: &CommonState, identity: Arc<Identity>) {
        let shown = session.peer_certificates().unwrap_or_default();
        let read = shown.first().and_then(|it| Certificate::read(it).ok());
        let role = read.and_then(|it| it.role);
        let door = &self.guest.door;
        let known = Known {
            right: door.rights.of(role.as_ref()),
            role,
            shown: shown.to_vec(),
        };
        // Set once: this is the only place, and a connection comes here once.
        let _ = self.guest.known.set(known);
        let mut inside = door.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.push((Arc::downgrade(&self.guest), identity));
    }
}

impl AsyncRead for Entry {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.get_mut().poll_inside(context))?.poll_read(context, into)
    }
}

impl AsyncWrite for Entry {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.get_mut().poll_inside(context))?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.get_mut().poll_inside(context))?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().state {
            State::Inside(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
            _ => Poll::Ready(Ok(())),
        }
    }
}
