//! How packets use networks, as the file says of their ports.

use bumpless_iprp::{Mode, Monitored, Scope};

/// How packets of `scope` use networks: as the file says of this port on this side of them, or where it says nothing of that, of the port on the
/// other side. A host that names answers alone means the requests as well, which it sends.
pub fn mode_of(modes: &[(Monitored, Mode)], scope: &Scope) -> Mode {
    let is_port = |it: &Monitored| {
        it.protocol == scope.protocol && (it.first..=it.last).contains(&scope.port)
    };
    let of = |is_meant: &dyn Fn(&Monitored) -> bool| {
        let mut rules = modes.iter().filter(|(it, _)| is_port(it));
        rules.find(|(it, _)| is_meant(it)).map(|(_, mode)| *mode)
    };
    of(&|it| it.side == scope.side)
        .or_else(|| of(&|_| true))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bumpless_iprp::{Side, TCP, UDP};

    use super::*;

    const SIDES: [Side; 2] = [Side::Destination, Side::Source];

    fn rule(side: Side, mode: Mode) -> (Monitored, Mode) {
        let rule = Monitored {
            protocol: TCP,
            side,
            first: 502,
            last: 504,
        };
        (rule, mode)
    }

    fn scope(side: Side) -> Scope {
        Scope {
            protocol: TCP,
            side,
            port: 503,
            destination: [10, 0, 0, 1].into(),
        }
    }

    #[test]
    fn two_rules_of_one_port_are_each_of_their_side_in_whatever_order_they_stand() {
        let mut rules = vec![
            rule(Side::Destination, Mode::Redundant),
            rule(Side::Source, Mode::Standby),
        ];
        for _ in 0..2 {
            assert_eq!(mode_of(&rules, &scope(Side::Destination)), Mode::Redundant);
            assert_eq!(mode_of(&rules, &scope(Side::Source)), Mode::Standby);
            rules.reverse();
        }
    }

    #[test]
    fn a_rule_of_one_side_is_of_both_where_it_is_the_only_one() {
        for side in SIDES {
            let rules = [rule(side, Mode::Standby)];
            for of in SIDES {
                assert_eq!(mode_of(&rules, &scope(of)), Mode::Standby);
                let others = [
                    Scope {
                        port: 505,
                        ..scope(of)
                    },
                    Scope {
                        protocol: UDP,
                        ..scope(of)
                    },
                ];
                for other in others {
                    assert_eq!(mode_of(&rules, &other), Mode::Redundant);
                }
            }
        }
    }
}
