//! Integer arithmetic. The processor computes it with the shadow's flags, so undefined flags get the values that this
//! processor gives them.

use super::state::{CARRY, OVERFLOW, PARITY, SIGN, ZERO};
use core::arch::asm;

/// `add` to `cmp` in the order of the encoding, and `test`.
pub(super) const CMP: u8 = 7;
pub(super) const TEST: u8 = 8;

/// Sets the flags from `rax`, runs an instruction, and saves the flags to `rax`.
macro_rules! with_flags {
    ($instruction:expr, $flags:ident, $($operands:tt)*) => {
        asm!("add al, 0x7f", "sahf", $instruction, "lahf", "seto al", $($operands)*, inout("rax") $flags,
             options(nomem, nostack))
    };
}

macro_rules! two {
    ($name:ident, $ins:literal) => {
        fn $name(size: u8, a: u64, b: u64, flags: u64) -> (u64, u64) {
            let mut f = flags;
            // SAFETY: the assembly changes only its operands and flags, which it returns.
            let result = unsafe {
                match size {
                    0 => {
                        let mut x = a as u8;
                        with_flags!(concat!($ins, " {x}, {y}"), f, x = inout(reg_byte) x, y = in(reg_byte) b as u8);
                        u64::from(x)
                    }
                    1 => {
                        let mut x = a;
                        with_flags!(concat!($ins, " {x:x}, {y:x}"), f, x = inout(reg) x, y = in(reg) b);
                        x & 0xffff
                    }
                    2 => {
                        let mut x = a;
                        with_flags!(concat!($ins, " {x:e}, {y:e}"), f, x = inout(reg) x, y = in(reg) b);
                        x & 0xffff_ffff
                    }
                    _ => {
                        let mut x = a;
                        with_flags!(concat!($ins, " {x:r}, {y:r}"), f, x = inout(reg) x, y = in(reg) b);
                        x
                    }
                }
            };
            (result, f)
        }
    };
}

/// Defines an operation on one register; `more` is an optional second operand.
macro_rules! one {
    ($name:ident, $ins:literal $(, $more:literal)?) => {
        fn $name(size: u8, a: u64, flags: u64) -> (u64, u64) {
            let mut f = flags;
            // SAFETY: the assembly changes only its operands and flags, which it returns.
            let result = unsafe {
                match size {
                    0 => {
                        let mut x = a as u8;
                        with_flags!(concat!($ins, " {x}" $(, $more)?), f, x = inout(reg_byte) x);
                        u64::from(x)
                    }
                    1 => {
                        let mut x = a;
                        with_flags!(concat!($ins, " {x:x}" $(, $more)?), f, x = inout(reg) x);
                        x & 0xffff
                    }
                    2 => {
                        let mut x = a;
                        with_flags!(concat!($ins, " {x:e}" $(, $more)?), f, x = inout(reg) x);
                        x & 0xffff_ffff
                    }
                    _ => {
                        let mut x = a;
                        with_flags!(concat!($ins, " {x:r}" $(, $more)?), f, x = inout(reg) x);
                        x
                    }
                }
            };
            (result, f)
        }
    };
}

macro_rules! shift {
    ($name:ident, $ins:literal) => {
        fn $name(size: u8, a: u64, count: u64, flags: u64) -> (u64, u64) {
            let mut f = flags;
            let count = count as u8;
            // SAFETY: the assembly changes only its operands and flags, which it returns.
            let result = unsafe {
                match size {
                    0 => {
                        let mut x = a as u8;
                        with_flags!(concat!($ins, " {x}, cl"), f, x = inout(reg_byte) x, in("cl") count);
                        u64::from(x)
                    }
                    1 => {
                        let mut x = a;
                        with_flags!(concat!($ins, " {x:x}, cl"), f, x = inout(reg) x, in("cl") count);
                        x & 0xffff
                    }
                    2 => {
                        let mut x = a;
                        with_flags!(concat!($ins, " {x:e}, cl"), f, x = inout(reg) x, in("cl") count);
                        x & 0xffff_ffff
                    }
                    _ => {
                        let mut x = a;
                        with_flags!(concat!($ins, " {x:r}, cl"), f, x = inout(reg) x, in("cl") count);
                        x
                    }
                }
            };
            (result, f)
        }
    };
}

two!(add, "add");
two!(or, "or");
two!(adc, "adc");
two!(sbb, "sbb");
two!(and, "and");
two!(sub, "sub");
two!(xor, "xor");
one!(inc, "inc");
one!(dec, "dec");
one!(not, "not");
one!(neg, "neg");
shift!(rol, "rol");
shift!(ror, "ror");
one!(rol_by_two, "rol", ", 2");
one!(ror_by_two, "ror", ", 2");
shift!(rcl, "rcl");
shift!(rcr, "rcr");
shift!(shl, "shl");
shift!(shr, "shr");
shift!(sar, "sar");

/// Result and flags. The result of `cmp` and `test` must not be written to the destination.
#[inline(always)]
pub(super) fn binary(op: u8, size: u8, a: u64, b: u64, flags: u64) -> (u64, u64) {
    match op {
        0 => add(size, a, b, flags),
        1 => or(size, a, b, flags),
        2 => adc(size, a, b, flags),
        3 => sbb(size, a, b, flags),
        4 | TEST => and(size, a, b, flags),
        5 | CMP => sub(size, a, b, flags),
        _ => xor(size, a, b, flags),
    }
}

/// `inc`, `dec`, `not`, `neg`.
pub(super) fn unary(op: u8, size: u8, a: u64, flags: u64) -> (u64, u64) {
    match op {
        0 => inc(size, a, flags),
        1 => dec(size, a, flags),
        2 => not(size, a, flags),
        _ => neg(size, a, flags),
    }
}

/// `rol` and `ror` by a constant. Some processors set the overflow flag only if the count is in `cl`.
pub(super) const ROL_BY_CONSTANT: u8 = 8;
pub(super) const ROR_BY_CONSTANT: u8 = 9;

/// `rol` to `sar` in the order of the encoding, and the two above.
pub(super) fn shift(op: u8, size: u8, a: u64, count: u64, flags: u64) -> (u64, u64) {
    match op {
        0 => rol(size, a, count, flags),
        1 => ror(size, a, count, flags),
        2 => rcl(size, a, count, flags),
        3 => rcr(size, a, count, flags),
        4 | 6 => shl(size, a, count, flags),
        5 => shr(size, a, count, flags),
        ROL_BY_CONSTANT => rotate_by_constant(size, a, count, flags, rol, rol_by_two),
        ROR_BY_CONSTANT => rotate_by_constant(size, a, count, flags, ror, ror_by_two),
        _ => sar(size, a, count, flags),
    }
}

/// Rotates all but the last two bits without looking at flags, and those with the form of the instruction that has a
/// constant: result and carry are the same.
#[inline(always)]
fn rotate_by_constant(
    size: u8,
    a: u64,
    count: u64,
    flags: u64,
    rotate: impl Fn(u8, u64, u64, u64) -> (u64, u64),
    by_two: impl Fn(u8, u64, u64) -> (u64, u64),
) -> (u64, u64) {
    let count = count & if size == 3 { 63 } else { 31 };
    match count {
        0 | 1 => rotate(size, a, count, flags),
        _ => by_two(size, rotate(size, a, count - 2, flags).0, flags),
    }
}

/// The truncated product.
pub(super) fn imul(size: u8, a: u64, b: u64, flags: u64) -> (u64, u64) {
    let (mut x, mut f) = (a, flags);
    // SAFETY: the assembly changes only its operands and flags, which it returns.
    unsafe {
        match size {
            1 => with_flags!("imul {x:x}, {y:x}", f, x = inout(reg) x, y = in(reg) b),
            2 => with_flags!("imul {x:e}, {y:e}", f, x = inout(reg) x, y = in(reg) b),
            _ => with_flags!("imul {x:r}, {y:r}", f, x = inout(reg) x, y = in(reg) b),
        }
    }
    let x = match size {
        1 => x & 0xffff,
        2 => x & 0xffff_ffff,
        _ => x,
    };
    (x, f)
}

/// Low and high half of the product, and the flags.
pub(super) fn multiply(size: u8, signed: bool, a: u64, b: u64, flags: u64) -> (u64, u64, u64) {
    let bits = 8u32 << size;
    let wide = |value: u64| {
        let shift = 128 - bits;
        let value = u128::from(value) << shift;
        if signed {
            ((value as i128) >> shift) as u128
        } else {
            value >> shift
        }
    };
    let product = wide(a).wrapping_mul(wide(b));
    let mask = (u128::MAX >> (128 - bits)) as u64;
    let low = product as u64 & mask;
    let high = (product >> bits) as u64 & mask;
    let fits = if signed { wide(low) == product } else { high == 0 };
    let f = flags & !(CARRY | OVERFLOW) | if fits { 0 } else { CARRY | OVERFLOW };
    (low, high, f)
}

/// Whether a condition of the encoding holds. Without jumps of its own, which would be hard to predict.
#[inline(always)]
pub(super) fn condition(code: u8, flags: u64) -> bool {
    /// Sign and overflow differ.
    const LESS: u64 = 1 << 16;
    const ANY_OF: [u64; 8] = [OVERFLOW, CARRY, ZERO, CARRY | ZERO, SIGN, PARITY, LESS, LESS | ZERO];
    let with_less = flags | ((flags >> 15 ^ flags) & 1) << 16;
    let holds = with_less & ANY_OF[usize::from(code >> 1) % 8] != 0;
    holds != (code & 1 != 0)
}
