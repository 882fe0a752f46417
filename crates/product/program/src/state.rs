//! States: plain data without gaps.

/// Data that any bytes are a value of, and that has no gaps.
///
/// # Safety
/// Every sequence of `size_of::<Self>()` bytes is a value, no byte is padding, and there is no pointer in it.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($number:ty),+) => {
        // SAFETY: numbers have neither gaps nor impossible values.
        $(unsafe impl Plain for $number {})+
    };
}

plain!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

// SAFETY: an array has what its items have, and no gaps between them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Makes a struct that can be a program's state: numbers, arrays of them and other such structs, without gaps.
///
/// A gap is refused by the compiler: put the larger fields first, or fill it with a field of your own.
///
/// ```
/// bumpless_program::state! {
///     /// What the controller remembers.
///     pub struct State {
///         integral: f64,
///         alarms: [u32; 4],
///     }
/// }
/// assert_eq!(size_of::<State>(), 24);
/// ```
///
/// ```compile_fail
/// bumpless_program::state! { struct Gap { small: u8, large: u64 } }
/// ```
///
/// ```compile_fail
/// bumpless_program::state! { struct Elsewhere { text: &'static str } }
/// ```
#[macro_export]
macro_rules! state {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident : $type:ty),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type),+
        }

        const _: () = {
            const fn size<T: $crate::Plain>() -> usize {
                size_of::<T>()
            }
            assert!(
                size_of::<$name>() == 0 $(+ size::<$type>())+,
                "the state has gaps between its fields: put the larger ones first, or fill them"
            );
        };

        // SAFETY: the constant above is computed only if each field is `Plain` and there is no gap.
        unsafe impl $crate::Plain for $name {}
    };
}
