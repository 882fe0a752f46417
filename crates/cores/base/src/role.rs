//! What a node does for the applications of a group.

/// What a node does for a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// Not yet decided.
    #[default]
    Starting = 0,
    /// Receives states, ready to take over.
    Backup = 1,
    /// Executes and writes outputs.
    Primary = 2,
    /// Taken out of service.
    Stopped = 3,
}

impl Role {
    /// The role with this number on the wire (W-26), if there is one.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Starting),
            1 => Some(Self::Backup),
            2 => Some(Self::Primary),
            3 => Some(Self::Stopped),
            _ => None,
        }
    }
}
