//! A thread that makes TLS connections to field devices (Modbus/TCP Security), for an application whose own thread has
//! neither the time for handshakes nor for reading certificates.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use bumpless_base::Duration;
use bumpless_config::DeviceSecurity;
use bumpless_pki::rustls::pki_types::CertificateDer;
use bumpless_pki::{DeviceName, Identity, IdentityPaths};
use bumpless_sessions::Identities;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::link::{Portable, Secure, dial};
use super::refused::{FieldNote, Own};
use super::runtime;

/// Orders that wait. A device has one at a time.
const ORDERS: usize = 256;
/// How long a handshake may take: small devices reckon for a second or two.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(3);
/// How often the list of what is revoked is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Makes connections in a thread of its own, which ends when this and all its copies are gone.
#[derive(Clone, Debug)]
pub struct SecureDialer {
    orders: mpsc::Sender<Order>,
    site: Arc<str>,
}

enum Order {
    Dial(SocketAddr, Arc<DeviceName>, oneshot::Sender<Dialled>),
    Tell(FieldNote),
}

/// What became of an order to connect.
pub(super) type Dialled = Result<(Secure, Own), NotDialled>;

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum NotDialled {
    System(io::Error),
    /// TLS failed; why.
    Refused(String),
}

impl SecureDialer {
    /// Shows `identity`, which is read again from `paths` when it changes. What is to be told of devices goes to `tell`.
    ///
    /// # Errors
    /// The system gives no thread or event queue.
    pub fn start(
        paths: IdentityPaths,
        identity: Identity,
        tell: impl Fn(FieldNote) + Send + 'static,
    ) -> io::Result<Self> {
        let site = identity.name().site().into();
        let (orders, taken) = mpsc::channel(ORDERS);
        let runtime = runtime()?;
        let work = move || runtime.block_on(work(taken, (paths, identity), tell));
        thread::Builder::new()
            .name("field tls".into())
            .spawn(work)?;
        Ok(Self { orders, site })
    }

    /// What the device at `address` is called in its certificate.
    ///
    /// # Errors
    /// It is no name that a certificate can have.
    pub fn name_of(
        &self,
        security: &DeviceSecurity,
        address: SocketAddr,
    ) -> io::Result<DeviceName> {
        let name = DeviceName::new(security.server_name.as_deref(), address.ip(), &self.site);
        name.map_err(|error| io::Error::other(error.to_string()))
    }

    /// Connects to the device at `address`, which must be called `name`. Dropping this gives it up.
    pub(super) async fn dial(&self, address: SocketAddr, name: Arc<DeviceName>) -> Dialled {
        let (reply, made) = oneshot::channel();
        let busy = || NotDialled::System(io::ErrorKind::WouldBlock.into());
        let order = Order::Dial(address, name, reply);
        self.orders.try_send(order).map_err(|_| busy())?;
        made.await.unwrap_or_else(|_| Err(busy()))
    }

    /// Has something told of a device, if there is room.
    pub(super) fn tell(&self, note: FieldNote) {
        let _ = self.orders.try_send(Order::Tell(note));
    }
}

/// A connection that was made, as long as it is in use.
struct InUse {
    revoked: Weak<AtomicBool>,
    shown: Vec<CertificateDer<'static>>,
    /// By whose lists it was judged last.
    judge: Arc<Identity>,
}

type AllInUse = Arc<Mutex<Vec<InUse>>>;

async fn work(
    mut orders: mpsc::Receiver<Order>,
    (paths, identity): (IdentityPaths, Identity),
    tell: impl Fn(FieldNote),
) {
    let mut identities = Identities::new(paths.clone(), identity, now());
    let in_use = AllInUse::default();
    let mut looks = tokio::time::interval(LOOK.to_std());
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let order = tokio::select! {
            order = orders.recv() => order,
            _ = looks.tick() => {
                identities.changed(now());
                judge_again(&in_use, &identities.current());
                continue;
            }
        };
        match order {
            None => return,
            Some(Order::Tell(note)) => tell(note),
            Some(Order::Dial(address, name, reply)) => {
                let identity = identities.fresh(now());
                let own = Own::new(&paths, identity.certificate().role.clone());
                tokio::spawn(attempt(
                    (address, name),
                    (identity, own),
                    in_use.clone(),
                    reply,
                ));
            }
        }
    }
}

/// When this is, for how often files are looked at.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}

/// Marks connections with devices whose certificate was revoked since.
fn judge_again(in_use: &AllInUse, identity: &Arc<Identity>) {
    let mut in_use = in_use.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.retain_mut(|it| {
        let Some(revoked) = it.revoked.upgrade() else {
            return false;
        };
        if !Arc::ptr_eq(&it.judge, identity) {
            it.judge = Arc::clone(identity);
            revoked.fetch_or(identity.has_revoked(&it.shown), Ordering::Relaxed);
        }
        true
    });
}

/// Connects, unless nobody waits for it any more.
async fn attempt(
    (address, name): (SocketAddr, Arc<DeviceName>),
    (identity, own): (Arc<Identity>, Own),
    in_use: AllInUse,
    mut reply: oneshot::Sender<Dialled>,
) {
    let made = tokio::select! {
        made = connect((address, &name), (&identity, &own), &in_use) => made,
        () = reply.closed() => return,
    };
    // Who waited may have gone meanwhile.
    let _ = reply.send(made.map(|secure| (secure, own)));
}

async fn connect(
    (address, name): (SocketAddr, &DeviceName),
    (identity, own): (&Arc<Identity>, &Own),
    in_use: &AllInUse,
) -> Result<Secure, NotDialled> {
    let config = identity.field_client_config(name);
    let config = config.map_err(|error| NotDialled::Refused(error.to_string()))?;
    let stream = dial(address).await.map_err(NotDialled::System)?;
    let connector = TlsConnector::from(config);
    let made = connector.connect(name.server_name(), Portable::Here(stream));
    let made = tokio::time::timeout(HANDSHAKE.to_std(), made).await;
    let made = made.map_err(|_elapsed| NotDialled::Refused(Own::SILENT.into()))?;
    let stream = made.map_err(|error| {
        let unfinished = || Own::unfinished(&error).map(str::to_owned);
        match own.words(&error).or_else(unfinished) {
            Some(words) => NotDialled::Refused(words),
            None => NotDialled::System(error),
        }
    })?;
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let revoked = Arc::new(AtomicBool::new(false));
    let entry = InUse {
        revoked: Arc::downgrade(&revoked),
        shown: shown.to_vec(),
        judge: Arc::clone(identity),
    };
    let mut all = in_use.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|it| it.revoked.strong_count() > 0);
    all.push(entry);
    drop(all);
    Secure::detached(stream, revoked).map_err(NotDialled::System)
}
