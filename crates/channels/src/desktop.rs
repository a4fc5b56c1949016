//! How this machine's desktop is told: over the bus of its session, as the Desktop Notifications Specification has it.

#[cfg(all(unix, not(target_os = "macos")))]
mod bus;
#[cfg(not(all(unix, not(target_os = "macos"))))]
mod nowhere;

#[cfg(all(unix, not(target_os = "macos")))]
pub(crate) use bus::{Session, missing};
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(crate) use nowhere::{Session, missing};

/// What a desktop is to show.
pub(crate) struct Notice {
    /// The headline, without any marks.
    pub(crate) title: String,
    /// The text without any marks.
    pub(crate) plain: String,
    /// The text with the marks and escapes of the specification's markup.
    pub(crate) marked: String,
    /// A name of the icons that every desktop has.
    pub(crate) icon: &'static str,
    /// 0 is low, 1 normal, 2 critical.
    pub(crate) urgency: u8,
    /// How far a run is, in percent.
    pub(crate) percent: Option<u8>,
    /// How long it stays, in milliseconds; -1 is as long as is usual there, 0 until somebody closes it.
    pub(crate) timeout: i32,
    /// What a click on it opens.
    pub(crate) link: Option<String>,
    /// The receipt of the one whose place it takes.
    pub(crate) replaces: Option<String>,
}
