//! `docs/contract.md` is what the tests show.
