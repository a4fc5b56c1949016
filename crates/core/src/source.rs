//! Who reported an event.

use crate::text;

/// Who reported an event, as far as it is known.
///
/// Everything here is what the reporter said of itself: good for display and filters, never for authority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// Name of the MCP client or program, such as `claude-code` or `deskbell notify`.
    pub client: Option<String>,
    /// The client's session, if it has one.
    pub session: Option<String>,
    /// The project folder the reporter works in.
    pub project: Option<String>,
    /// Name of the machine.
    pub host: Option<String>,
}

impl Source {
    /// Longest part of a source, in characters.
    pub const LIMIT: usize = 200;

    /// The source with each part cleaned to one line and cut to [`Self::LIMIT`].
    #[must_use]
    pub fn cleaned(self) -> Self {
        let clean = |part: Option<String>| {
            let part = part?;
            let line = text::cut(&text::one_line(part.trim()), Self::LIMIT, text::Unit::Characters);
            (!line.is_empty()).then_some(line)
        };
        Self {
            client: clean(self.client),
            session: clean(self.session),
            project: clean(self.project),
            host: clean(self.host),
        }
    }
}
