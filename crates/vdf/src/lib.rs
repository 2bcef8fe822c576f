//! Class groups of imaginary quadratic fields, and the Wesolowski delay function that Chia runs in them.
//!
#![doc = include_str!("../README.md")]

pub mod discriminant;
pub mod form;
pub mod prime;
pub mod spec;

pub use discriminant::{Discriminant, DiscriminantError};
pub use form::{Form, FormError};
