//! Inputs and outputs of devices that a field driver speaks to.

use super::node_id;
use crate::file::ApplicationEntry;
use crate::model::{InputFrom, OutputTo, Tag, ValueType};
use crate::reader::{Place, Reader};
use crate::schema::{self, DeviceKindWord, InputAreaWord};

/// Whether a field driver speaks to the device; of one that is not known, what stands at `place` tells.
pub(super) fn are_driven(
    entry: &ApplicationEntry,
    device: Option<usize>,
    place: &Place,
) -> Option<bool> {
    match device.and_then(|at| entry.devices.get(at)) {
        Some(device) => Some(device.kind? != DeviceKindWord::Modbus),
        None => Some(place.has("point")),
    }
}

/// The area is none that the device has.
pub(super) fn area_of_others(reader: &mut Reader, place: &Place, driven: bool) {
    let (wrong, right) = match driven {
        true => (
            "belongs to Modbus devices",
            "leave it out, and name the value in point",
        ),
        false => (
            "belongs to devices of field drivers",
            "give an area of Modbus, or the device kind = \"opcua\" or \"driver\"",
        ),
    };
    reader.wrong(place, "area", wrong, right);
}

/// What a Modbus device has no use for.
pub(super) fn belongs_to_drivers(reader: &mut Reader, place: &Place) {
    if place.has("point") {
        let right = "remove it, or give the device kind = \"opcua\" or \"driver\"";
        reader.wrong(place, "point", "belongs to devices of field drivers", right);
    }
}

/// What a field driver has no use for.
fn belongs_to_modbus(reader: &mut Reader, place: &Place) {
    for key in ["register", "byte_order", "word_order"] {
        if place.has(key) {
            let right = "remove it, and name the value in point";
            reader.wrong(place, key, "belongs to Modbus devices", right);
        }
    }
}

/// Whether the names of its values are NodeIds.
fn speaks_opc_ua(entry: &ApplicationEntry, device: Option<usize>) -> bool {
    let device = device.and_then(|at| entry.devices.get(at));
    device.and_then(|it| it.kind) == Some(DeviceKindWord::OpcUa)
}

/// What the driver calls the value.
fn point(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    (place, given): (&Place, Option<&String>),
    device: Option<usize>,
) -> Option<String> {
    let Some(name) = given else {
        if !reader.incomplete {
            let right = "give what the driver calls the value; with opcua its NodeId";
            reader.wrong(place, "point", "is missing", right);
        }
        return None;
    };
    if speaks_opc_ua(entry, device)
        && let Err(wrong) = node_id::check(name)
    {
        let right = "give a NodeId such as \"nsu=urn:example:boiler;s=Level\" or \"ns=3;i=1012\"";
        reader.wrong(place, "point", wrong, right);
        return None;
    }
    Some(name.clone())
}

/// Says that what tells of registers has no place where there are none.
pub(super) fn needless(reader: &mut Reader, place: &Place, area: &str) {
    let keys = [
        "register",
        "type",
        "byte_order",
        "word_order",
        "scale",
        "offset",
        "poll",
    ];
    for key in keys.into_iter().filter(|key| place.has(key)) {
        let wrong = format!("means nothing with area = {area:?}");
        reader.wrong(place, key, wrong, "remove it");
    }
}

/// A number of the program is divided by it.
pub(super) fn no_zero(reader: &mut Reader, place: &Place, scale: f64) {
    if scale == 0.0 {
        let right = "give what a device's number is multiplied by";
        reader.wrong(place, "scale", "is 0", right);
    }
}

pub(super) fn input(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    given: &schema::Input,
    (device, word): (Option<usize>, InputAreaWord),
) -> Option<InputFrom> {
    let place = &given.place;
    let name = point(
        reader,
        entry,
        (place, given.point.as_ref()?.as_ref()),
        device,
    );
    match word {
        InputAreaWord::Quality | InputAreaWord::Age => {
            let quality = word == InputAreaWord::Quality;
            needless(reader, place, if quality { "quality" } else { "age" });
            let of = value_of(entry, given.device.as_deref()?, &name?);
            if of.is_none() && some_value_is_wrong(entry, (device, given.device.as_deref())) {
                return None;
            }
            let Some(of) = of else {
                let right = "give the point of an input of the same device with area = \"value\"";
                reader.wrong(place, "point", "is read by no input of the device", right);
                return None;
            };
            Some(match quality {
                true => InputFrom::Quality(of),
                false => InputFrom::Age(of),
            })
        }
        _ => {
            belongs_to_modbus(reader, place);
            let tag = Tag {
                name: name?,
                value: given.value?.unwrap_or(ValueType::F64),
                scale: given.scale?,
                offset: given.offset?,
            };
            Some(InputFrom::Driver(tag, u32::try_from(given.poll?).ok()?))
        }
    }
}

/// The input that reads the value which the driver of `device` calls `point`, by position.
fn value_of(entry: &ApplicationEntry, device: &str, point: &str) -> Option<usize> {
    let is_it = |given: &schema::Input| {
        let value = matches!(given.area, Some(None | Some(InputAreaWord::Value)));
        let named = given.point.as_ref().and_then(Option::as_deref) == Some(point);
        value && named && given.device.as_deref() == Some(device)
    };
    entry.inputs.iter().position(is_it)
}

/// Whether an input of the device has no point that could be the one that another asks for, which is told of that input.
fn some_value_is_wrong(
    entry: &ApplicationEntry,
    (at, device): (Option<usize>, Option<&str>),
) -> bool {
    let node_ids = speaks_opc_ua(entry, at);
    let mut values = entry.inputs.iter().filter(|it| {
        let value = matches!(it.area, Some(None | Some(InputAreaWord::Value)));
        value && it.device.as_deref() == device
    });
    values.any(|it| match it.point.as_ref().and_then(Option::as_ref) {
        Some(name) => node_ids && node_id::check(name).is_err(),
        None => true,
    })
}

pub(super) fn output(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    given: &schema::Output,
    device: Option<usize>,
) -> Option<OutputTo> {
    let place = &given.place;
    let name = point(
        reader,
        entry,
        (place, given.point.as_ref()?.as_ref()),
        device,
    );
    belongs_to_modbus(reader, place);
    let scale = given.scale?;
    no_zero(reader, place, scale);
    Some(OutputTo::Driver(Tag {
        name: name?,
        value: given.value?.unwrap_or(ValueType::F64),
        scale,
        offset: given.offset?,
    }))
}
