//! The elementary types of IEC 61131-3.

/// Elementary types whose values mean the same in every process, with the bytes that they have.
const TYPES: [(&str, u32); 25] = [
    ("BOOL", 1),
    ("SINT", 1),
    ("INT", 2),
    ("DINT", 4),
    ("LINT", 8),
    ("USINT", 1),
    ("UINT", 2),
    ("UDINT", 4),
    ("ULINT", 8),
    ("BYTE", 1),
    ("WORD", 2),
    ("DWORD", 4),
    ("LWORD", 8),
    ("REAL", 4),
    ("LREAL", 8),
    ("TIME", 16),
    ("DATE", 16),
    ("TOD", 16),
    ("DT", 16),
    ("TIME_OF_DAY", 16),
    ("DATE_AND_TIME", 16),
    ("LTIME", 8),
    ("LDATE", 8),
    ("LTOD", 8),
    ("LDT", 8),
];

/// Bytes of a value of an elementary type.
pub(super) fn size(of: &str) -> Option<u32> {
    let found = TYPES.iter().find(|(name, _)| *name == of);
    found.map(|(_, size)| *size)
}
