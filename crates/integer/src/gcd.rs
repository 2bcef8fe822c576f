//! Greatest common divisors with cofactors, on fixed runs of limbs, without division of long numbers.
//!
//! * [`euclid`]: Lehmer's method. Windows of 128 bits at the top, worked on by two runs of hardware divisions, give
//!   2x2 matrices; it stops at any size, so it gives short vectors of the lattice of (x, y) with x = k y mod a.
//! * [`binary`]: the algorithm that shifts from the bottom, on words of 33 high and 31 low bits. It gives inverses modulo
//!   an odd number. It cannot stop before the divisor, but a step costs a third of a division.
#![forbid(unsafe_code)]

pub mod binary;
pub mod euclid;
