//! The program killed at the worst moments.
