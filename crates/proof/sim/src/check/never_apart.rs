//! never apart: two configurations on the disks that let both nodes end with the same one.

use super::Verdict;
use crate::changing::Disk;

/// The checker.
pub struct NeverApart;

impl NeverApart {
    /// A node has made a change last; these are the disks, by node.
    pub fn made_last(&self, disks: &[Disk]) -> Verdict {
        let apart = disks.iter().enumerate().find_map(|(one, a)| {
            let other = disks.iter().position(|b| !reaches(*a, *b))?;
            Some((one, other))
        });
        match apart {
            Some((one, other)) => Err(format!(
                "node {one} has {:?} and node {other} {:?}",
                disks[one], disks[other]
            )),
            None => Ok(()),
        }
    }
}

/// Whether one has what the other has, or beside it.
fn reaches(a: Disk, b: Disk) -> bool {
    a.current == b.current || a.next == Some(b.current) || b.next == Some(a.current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_configurations_of_which_neither_lies_beside_the_other_are_found() {
        let disk = |current, next| Disk { current, next };
        let verdict = |disks: [Disk; 2]| NeverApart.made_last(&disks);
        assert_eq!(verdict([disk(1, None), disk(1, None)]), Ok(()));
        assert_eq!(verdict([disk(2, None), disk(1, Some(2))]), Ok(()));
        assert_eq!(verdict([disk(1, Some(2)), disk(2, Some(3))]), Ok(()));
        assert!(verdict([disk(2, None), disk(1, None)]).is_err());
        assert!(verdict([disk(2, None), disk(1, Some(3))]).is_err());
    }
}
