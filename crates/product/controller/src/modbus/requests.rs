//! Which requests a register map takes: what is next to each other goes in one.

use bumpless_config::{Area, Input, Output, Point};
use tokio_modbus::{Request, Response};

use super::registers::{READ_REGISTERS_MAX, WRITE_REGISTERS_MAX};
use super::values::{decode, decode_bit, encode, encode_bit};

/// Most bits in one read (Modbus Application Protocol V1.1b3, functions 1 and 2), and in one write (function 15).
const READ_BITS_MAX: usize = 2000;
const WRITE_BITS_MAX: usize = 1968;

/// Whose value it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Owner {
    /// The input or output at this position of the program's.
    Value(usize, Point),
    /// Epoch that the device has accepted.
    Epoch,
    /// Cycle of the last write that it has accepted.
    Cycle,
}

impl Owner {
    fn width(&self) -> u16 {
        match self {
            Self::Value(_, point) => point.value.registers(),
            Self::Epoch => 2,
            Self::Cycle => 4,
        }
    }
}

/// A value and where it begins.
#[derive(Clone, Copy, Debug)]
struct Place {
    area: Area,
    register: u16,
    poll: u32,
    owner: Owner,
}

/// Values next to each other in one area, which one request takes.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) area: Area,
    pub(super) first: u16,
    pub(super) count: u16,
    /// Once in how many periods it is read.
    pub(super) poll: u32,
    /// From the first register on, in which each begins.
    pub(super) values: Vec<(usize, Owner)>,
}

/// The reads for those of `inputs` that are at `device`; `told` are the registers of accepted epoch and cycle.
pub(super) fn reads(inputs: &[Input], device: usize, told: (Option<u16>, Option<u16>)) -> Vec<Run> {
    let own = inputs
        .iter()
        .enumerate()
        .filter(|(_, it)| it.device == device);
    let values = own.filter_map(|(at, input)| {
        let (point, poll) = input.registers()?;
        Some(Place {
            area: point.area,
            register: point.register,
            poll,
            owner: Owner::Value(at, point),
        })
    });
    let stamp = |register: Option<u16>, owner| {
        register.map(|register| Place {
            area: Area::InputRegister,
            register,
            poll: 1,
            owner,
        })
    };
    let stamps = [stamp(told.0, Owner::Epoch), stamp(told.1, Owner::Cycle)];
    let places = values.chain(stamps.into_iter().flatten());
    runs(places.collect(), (READ_BITS_MAX, READ_REGISTERS_MAX))
}

/// The writes for those of `outputs` that are at `device` and not in a block.
pub(super) fn writes(outputs: &[Output], device: usize) -> Vec<Run> {
    let own = outputs
        .iter()
        .enumerate()
        .filter(|(_, it)| it.device == device);
    let places = own.filter_map(|(at, output)| {
        let point = output.registers()?;
        Some(Place {
            area: point.area,
            register: point.register,
            poll: 1,
            owner: Owner::Value(at, point),
        })
    });
    runs(places.collect(), (WRITE_BITS_MAX, WRITE_REGISTERS_MAX))
}

fn runs(mut places: Vec<Place>, (bits_max, registers_max): (usize, usize)) -> Vec<Run> {
    places.sort_by_key(|place| (place.poll, place.area, place.register));
    let mut runs: Vec<Run> = Vec::new();
    for place in places {
        let max = match place.area {
            Area::Coil | Area::DiscreteInput => bits_max,
            Area::HoldingRegister | Area::InputRegister => registers_max,
        };
        let first = u32::from(place.register);
        let end = first + u32::from(place.owner.width());
        let last = runs.last_mut().filter(|run| {
            let begins = u32::from(run.first);
            let reaches = begins + u32::from(run.count);
            let same = (run.area, run.poll) == (place.area, place.poll);
            same && first <= reaches && (end - begins) as usize <= max
        });
        match last {
            Some(run) => {
                let begins = u32::from(run.first);
                run.count = run.count.max((end - begins) as u16);
                run.values.push(((first - begins) as usize, place.owner));
            }
            None => runs.push(Run {
                area: place.area,
                first: place.register,
                count: place.owner.width(),
                poll: place.poll,
                values: vec![(0, place.owner)],
            }),
        }
    }
    runs
}

/// What the device told of the writes that it has accepted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) epoch: Option<u32>,
    pub(crate) cycle: Option<u64>,
}

impl Run {
    /// What is asked to read it.
    pub(super) fn read(&self) -> Request<'static> {
        match self.area {
            Area::Coil => Request::ReadCoils(self.first, self.count),
            Area::DiscreteInput => Request::ReadDiscreteInputs(self.first, self.count),
            Area::HoldingRegister => Request::ReadHoldingRegisters(self.first, self.count),
            Area::InputRegister => Request::ReadInputRegisters(self.first, self.count),
        }
    }

    /// Takes the values out of the answer to that: into `inputs`, and `told`. `None`: it does not fit.
    pub(super) fn take(
        &self,
        answer: &Response,
        inputs: &mut [f64],
        told: &mut Told,
    ) -> Option<()> {
        let count = usize::from(self.count);
        match (self.area, answer) {
            // Bits come in whole bytes.
            (Area::Coil, Response::ReadCoils(bits))
            | (Area::DiscreteInput, Response::ReadDiscreteInputs(bits))
                if bits.len() >= count =>
            {
                self.take_bits(bits, inputs)
            }
            (Area::HoldingRegister, Response::ReadHoldingRegisters(registers))
            | (Area::InputRegister, Response::ReadInputRegisters(registers))
                if registers.len() == count =>
            {
                self.take_registers(registers, inputs, told)
            }
            _ => None,
        }
    }

    /// Whether it has the registers of the accepted epoch or cycle.
    pub(super) fn tells_of_writes(&self) -> bool {
        let stamp = |(_, owner): &(usize, Owner)| matches!(owner, Owner::Epoch | Owner::Cycle);
        self.values.iter().any(stamp)
    }

    /// As [`take`](Self::take), but for the values of the program. `None`: the answer does not fit.
    pub(super) fn take_told(&self, answer: &Response, told: &mut Told) -> Option<()> {
        let count = usize::from(self.count);
        let registers = match (self.area, answer) {
            (Area::Coil, Response::ReadCoils(bits))
            | (Area::DiscreteInput, Response::ReadDiscreteInputs(bits)) => {
                return (bits.len() >= count).then_some(());
            }
            (Area::HoldingRegister, Response::ReadHoldingRegisters(registers))
            | (Area::InputRegister, Response::ReadInputRegisters(registers)) => registers,
            _ => return None,
        };
        for (at, owner) in &self.values {
            match owner {
                Owner::Epoch => told.epoch = Some(super::registers::get_u32(registers, *at)?),
                Owner::Cycle => told.cycle = Some(super::registers::get_u64(registers, *at)?),
                Owner::Value(..) => {}
            }
        }
        (registers.len() == count).then_some(())
    }

    fn take_bits(&self, bits: &[bool], inputs: &mut [f64]) -> Option<()> {
        for (at, owner) in &self.values {
            if let Owner::Value(input, point) = owner {
                *inputs.get_mut(*input)? = decode_bit(point, *bits.get(*at)?);
            }
        }
        Some(())
    }

    fn take_registers(&self, registers: &[u16], inputs: &mut [f64], told: &mut Told) -> Option<()> {
        for (at, owner) in &self.values {
            let own = registers.get(*at..*at + usize::from(owner.width()))?;
            match owner {
                Owner::Value(input, point) => *inputs.get_mut(*input)? = decode(point, own),
                Owner::Epoch => told.epoch = super::registers::get_u32(own, 0),
                Owner::Cycle => told.cycle = super::registers::get_u64(own, 0),
            }
        }
        Some(())
    }

    /// What is asked to write it.
    pub(super) fn write(&self, outputs: &[f64]) -> Request<'static> {
        let values = self.values.iter().filter_map(|(_, owner)| match owner {
            Owner::Value(output, point) => Some((point, *outputs.get(*output)?)),
            _ => None,
        });
        if self.area == Area::Coil {
            let bits: Vec<bool> = values
                .map(|(point, value)| encode_bit(point, value))
                .collect();
            return match bits[..] {
                [bit] => Request::WriteSingleCoil(self.first, bit),
                _ => Request::WriteMultipleCoils(self.first, bits.into()),
            };
        }
        let mut registers = Vec::with_capacity(self.count.into());
        values.for_each(|(point, value)| encode(point, value, &mut registers));
        match registers[..] {
            [register] => Request::WriteSingleRegister(self.first, register),
            _ => Request::WriteMultipleRegisters(self.first, registers.into()),
        }
    }

    /// Whether `answer` says that it was written.
    pub(super) fn is_written(&self, answer: &Response) -> bool {
        match *answer {
            Response::WriteSingleCoil(first, _) | Response::WriteSingleRegister(first, _) => {
                first == self.first && self.count == 1
            }
            Response::WriteMultipleCoils(first, count)
            | Response::WriteMultipleRegisters(first, count) => {
                (first, count) == (self.first, self.count)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_config::{InputFrom, Order, ValueType};
    use proptest::prelude::*;

    fn input(device: usize, area: Area, register: u16, value: ValueType, poll: u32) -> Input {
        let point = Point {
            area,
            register,
            value,
            byte_order: Order::Big,
            word_order: Order::Big,
            scale: 1.0,
            offset: 0.0,
        };
        Input {
            name: String::new(),
            device,
            from: InputFrom::Registers(point, poll),
        }
    }

    fn shown(runs: &[Run]) -> Vec<(Area, u16, u16)> {
        runs.iter()
            .map(|run| (run.area, run.first, run.count))
            .collect()
    }

    #[test]
    fn what_is_next_to_each_other_in_one_area_and_group_is_one_request() {
        use Area::{DiscreteInput, HoldingRegister, InputRegister};
        let inputs = [
            input(0, HoldingRegister, 12, ValueType::F64, 1),
            input(0, HoldingRegister, 10, ValueType::F32, 1),
            input(0, HoldingRegister, 17, ValueType::U16, 1),
            input(0, InputRegister, 16, ValueType::U16, 1),
            input(0, HoldingRegister, 16, ValueType::U16, 5),
            input(1, HoldingRegister, 16, ValueType::U16, 1),
            input(0, DiscreteInput, 0, ValueType::Bool, 1),
            // Overlapping is next to each other, too.
            input(0, HoldingRegister, 13, ValueType::U16, 1),
        ];
        let expected = [
            (DiscreteInput, 0, 1),
            (HoldingRegister, 10, 6),
            (HoldingRegister, 17, 1),
            (InputRegister, 16, 1),
            (HoldingRegister, 16, 1),
        ];
        assert_eq!(shown(&reads(&inputs, 0, (None, None))), expected);
        assert_eq!(
            shown(&reads(&inputs, 1, (None, None))),
            [(HoldingRegister, 16, 1)]
        );
    }

    #[test]
    fn a_hundred_registers_are_one_request_and_a_value_is_never_cut() {
        let doubles = |count: u16| {
            let at = |n| input(0, Area::InputRegister, 4 * n, ValueType::F64, 1);
            let inputs: Vec<_> = (0..count).map(at).collect();
            shown(&reads(&inputs, 0, (None, None)))
        };
        assert_eq!(doubles(25), [(Area::InputRegister, 0, 100)]);
        let expected = [(Area::InputRegister, 0, 124), (Area::InputRegister, 124, 4)];
        assert_eq!(doubles(32), expected);
    }

    proptest! {
        #[test]
        fn every_value_is_in_exactly_one_request_where_it_is_in_the_device(
            places in proptest::collection::vec((0..4usize, 0..300u16, 0..7usize, 1..3u32), 0..80),
        ) {
            let areas = [Area::Coil, Area::DiscreteInput, Area::HoldingRegister, Area::InputRegister];
            let types = [
                ValueType::Bool, ValueType::U16, ValueType::I16, ValueType::U32, ValueType::I32,
                ValueType::F32, ValueType::F64,
            ];
            let inputs: Vec<_> = places
                .iter()
                .map(|&(area, register, value, poll)| {
                    let value = if area < 2 { ValueType::Bool } else { types[value] };
                    input(0, areas[area], register, value, poll)
                })
                .collect();
            let runs = reads(&inputs, 0, (None, None));
            let mut found = vec![0; inputs.len()];
            for run in &runs {
                let bits = run.area < Area::HoldingRegister;
                let most = if bits { 2000 } else { 125 };
                prop_assert!(run.count <= most);
                for (at, owner) in &run.values {
                    let Owner::Value(input, point) = owner else { continue };
                    found[*input] += 1;
                    prop_assert_eq!(usize::from(run.first) + at, usize::from(point.register));
                    prop_assert!(at + usize::from(point.value.registers()) <= usize::from(run.count));
                    prop_assert_eq!(run.area, point.area);
                }
            }
            prop_assert!(found.iter().all(|&count| count == 1));
        }
    }
}
