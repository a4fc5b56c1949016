//! Carries deliveries out: takes what is due, tries it, records what it came to.
